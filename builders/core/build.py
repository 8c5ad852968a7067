"""One build: params, snapshot, rows, and what the card is made of."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from plumbline.builders.core import front_matter, parquet
from plumbline.builders.core import inputs as carried
from plumbline.builders.core.errors import UserError
from plumbline.builders.core.params import section
from plumbline.builders.core.snapshot import Snapshot

if TYPE_CHECKING:
    from types import ModuleType

SECTION = ("datasets", "derived")  # of the params: made of one snapshot, or of several things


def build(name: str, module: ModuleType) -> parquet.Counts:
    """Build a dataset into ``data/datasets/NAME``.

    A dataset is made of the snapshot that its params name; where its module has ``SOURCES``, of one
    snapshot of each of them; or, where it has ``INPUTS``, of the folders of those datasets, which
    must be validated.

    Raises
    ------
    UserError
        If params or snapshot are wrong, an input is not validated, or nothing is left of a config.
    """
    inputs = getattr(module, "INPUTS", ())
    several = getattr(module, "SOURCES", ())
    params: Any = section(f"{SECTION[bool(inputs or several)]}.{name}", module.Params)
    folder = parquet.DATASETS / name
    if inputs:
        made_of: Any = {dataset: parquet.require_validated(dataset) for dataset in inputs}
        sources = [front_matter.source(made_of[d], f"dataset {d}") for d in inputs]
        read = {folder.as_posix(): parquet.fingerprint(folder) for folder in made_of.values()}
    elif several:
        made_of = {s: _opened(name, s, getattr(params.snapshots, s)) for s in several}
        sources = [made_of[source].manifest for source in several]
        read = carried.of_snapshots(made_of.values())
    else:
        made_of = _opened(name, getattr(module, "SOURCE", name), params.snapshot)
        sources = [made_of.manifest]
        read = carried.of_snapshots([made_of])
    try:
        return _write(name, module, params, made_of, sources, read)
    except BaseException:
        shutil.rmtree(folder.with_name(f".{name}.partial"), ignore_errors=True)
        raise


def _opened(name: str, source: str, folder: str) -> Snapshot:
    snapshot = Snapshot.open(Path(folder))
    if snapshot.manifest["source"] != source:
        raise UserError(
            f"{folder}: a snapshot of {snapshot.manifest['source']}, but {name} is built "
            f"from {source}; name another for {name} in params.yaml"
        )
    return snapshot


def _write(
    name: str,
    module: ModuleType,
    params: Any,
    made_of: Any,
    sources: list[dict[str, Any]],
    read: dict[str, str],
) -> parquet.Counts:
    """Write rows beside the final folder, and give it its name at the end."""
    folder = parquet.DATASETS / name
    counts = parquet.write(module.build(made_of, params), module.SCHEMA, folder, read)
    empty = [config for config in params.required_configs() if not counts.rows[config]]
    if empty or not counts.rows:
        inputs = getattr(module, "INPUTS", getattr(module, "SOURCES", ()))
        where = getattr(params, "snapshot", " and ".join(inputs))
        raise UserError(
            f"{where}: no row of {name} for {', '.join(empty) or 'anything'}; was the snapshot "
            "fetched with these?"
        )
    partial = folder.with_name(f".{name}.partial")
    origin = front_matter.Origin(
        sources,
        f"make repro STAGE={parquet.stage_of(name)}",
        params.version,
        module.recorded(params) if hasattr(module, "recorded") else "",
    )
    front_matter.write(partial, dict.fromkeys(counts.rows, module.SCHEMA), origin)
    parquet.finish(folder)
    return counts
