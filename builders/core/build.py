"""Build one dataset: read params and snapshots, then write the rows and the card's facts."""

from __future__ import annotations

import shutil
from pathlib import Path
from types import ModuleType
from typing import Any

from plumbline.builders.core import front_matter, parquet, private
from plumbline.builders.core.errors import UserError
from plumbline.builders.core.params import section
from plumbline.builders.core.snapshot import Snapshot, manifest_digests


def build(name: str, module: ModuleType) -> parquet.Counts:
    """Build a dataset into ``data/datasets/NAME``.

    A dataset is built from the snapshot in its params; if its module defines ``SOURCES``, from one
    snapshot of each; if ``INPUTS``, from the folders of these datasets, which must be validated.

    Raises UserError if the params, a snapshot or the removal list is invalid, an input is not
    validated, or a required config has no rows.
    """
    inputs, snapshot_sources = getattr(module, "INPUTS", ()), getattr(module, "SOURCES", ())
    top = "derived" if inputs or snapshot_sources else "datasets"
    params: Any = section(f"{top}.{name}", module.Params)
    folder = parquet.DATASETS / name
    made_of: Any  # one snapshot, or a mapping from names to folders or snapshots
    if inputs:
        made_of = {dataset: parquet.require_validated(dataset) for dataset in inputs}
        sources = [front_matter.source(made_of[d], f"dataset {d}") for d in inputs]
        read = {path.as_posix(): parquet.fingerprint(path) for path in made_of.values()}
    else:
        named = {s: getattr(params.snapshots, s) for s in snapshot_sources}
        named = named or {getattr(module, "SOURCE", name): params.snapshot}
        snapshots = {source: Snapshot.open(Path(path)) for source, path in named.items()}
        for source, snapshot in snapshots.items():
            if (actual := snapshot.manifest["source"]) != source:
                raise UserError(
                    f"{snapshot.folder}: this is a snapshot of {actual}, but {name} is built from "
                    f"{source}; name another snapshot for {name} in params.yaml"
                )
        sources = [snapshot.manifest for snapshot in snapshots.values()]
        read = manifest_digests(snapshots.values())
        made_of = snapshots if snapshot_sources else next(iter(snapshots.values()))
    try:
        rows, gone = module.build(made_of, params), private.removed()
        rows = private.without(rows, gone) if gone.places else rows
        counts = parquet.write(rows, module.SCHEMA, folder, read)
        empty = [config for config in params.required_configs() if not counts.rows[config]]
        if empty or not counts.rows:
            where = getattr(params, "snapshot", " and ".join(inputs or snapshot_sources))
            raise UserError(  # noqa: TRY301
                f"{where}: has no rows of {name} for {', '.join(empty) or 'any config'}; fetch a "
                "snapshot that has them"
            )
        recorded = module.recorded(params) if hasattr(module, "recorded") else ""
        command = f"make repro STAGE={parquet.stage_of(name)}"
        origin = front_matter.Origin(sources, command, params.version, recorded)
        partial = parquet.partial(folder)
        front_matter.write(partial, {c: module.SCHEMA.config(c) for c in counts.rows}, origin)
        parquet.finish(folder)
    except BaseException:
        shutil.rmtree(parquet.partial(folder), ignore_errors=True)
        raise
    return counts
