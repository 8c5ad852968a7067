"""One build: params, snapshot, rows, card."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from plumbline.builders.core import inputs as carried
from plumbline.builders.core import parquet
from plumbline.builders.core.errors import Problem
from plumbline.builders.core.params import section
from plumbline.builders.core.snapshot import Snapshot
from plumbline.builders.release import card

if TYPE_CHECKING:
    from types import ModuleType

SECTION = ("datasets", "derived")  # of the params: made of one snapshot, or of several things
CHECKED = (
    "Every build is checked with Great Expectations before anything may use it: types, "
    "nullability, allowed values and keys from the columns above, floors and ceilings from "
    "`validation` in `params.yaml`, and checks across rows and configs. The report is "
    "`data/validation/{name}.json`; `make docs-data` renders it as pages."
)


def build(name: str, module: ModuleType) -> parquet.Counts:
    """Build a dataset and its card into ``data/datasets/NAME``.

    A dataset is made of the snapshot that its params name; where its module has ``SOURCES``, of one
    snapshot of each of them; or, where it has ``INPUTS``, of the folders of those datasets, which
    must be validated.

    Raises
    ------
    Problem
        If params or snapshot are wrong, an input is not validated, or nothing is left of a config.
    """
    inputs = getattr(module, "INPUTS", ())
    several = getattr(module, "SOURCES", ())
    params: Any = section(f"{SECTION[bool(inputs or several)]}.{name}", module.Params)
    folder = parquet.DATASETS / name
    if inputs:
        made_of: Any = {dataset: parquet.require_validated(dataset) for dataset in inputs}
        sources = [_source(dataset, made_of[dataset]) for dataset in inputs]
        read = {folder.as_posix(): parquet.fingerprint(folder) for folder in made_of.values()}
    elif several:
        made_of = {s: _opened(name, s, getattr(params.snapshots, s)) for s in several}
        sources = [made_of[source].manifest for source in several]
        read = carried.of_snapshots(made_of.values())
    else:
        made_of = _opened(name, params.source, params.snapshot)
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
        raise Problem(
            f"{folder}: a snapshot of {snapshot.manifest['source']}, but {name} is built "
            f"from {source}; name another for {name} in params.yaml"
        )
    return snapshot


def _source(dataset: str, folder: Path) -> dict[str, str]:
    """Describe a dataset that another one is made of, for its card."""
    return {
        "source": f"dataset {dataset}",
        "address": folder.as_posix(),
        "retrieved": f"with sha256 {parquet.fingerprint(folder)[:16]}",
        "licence": "as its card states",
        "citation": "its card",
    }


def _write(
    name: str,
    module: ModuleType,
    params: Any,
    made_of: Any,
    sources: list[dict[str, Any]],
    read: dict[str, str],
) -> parquet.Counts:
    """Write rows and card beside the final folder, and give it its name at the end."""
    folder = parquet.DATASETS / name
    counts = parquet.write(module.build(made_of, params), module.SCHEMA, folder, read)
    wanted = module.wanted(params) if hasattr(module, "wanted") else params.languages
    empty = [config for config in wanted if not counts.rows[config]]
    if empty or not counts.rows:
        inputs = getattr(module, "INPUTS", getattr(module, "SOURCES", ()))
        where = getattr(params, "snapshot", " and ".join(inputs))
        raise Problem(
            f"{where}: no row of {name} for {', '.join(empty) or 'anything'}; was the snapshot "
            "fetched with these?"
        )
    partial = folder.with_name(f".{name}.partial")
    origin = card.Origin(
        sources=sources,
        command=f"make repro STAGE=validate@{name}",
        version=params.version,
        validation=CHECKED.format(name=name),
    )
    extra = module.describe(partial)
    if hasattr(module, "recorded"):
        extra = f"{module.recorded(params)}\n{extra}"
    card.write(partial, card.PAGES / f"{name}.md", module.SCHEMA, counts, origin, extra)
    parquet.finish(folder)
    return counts
