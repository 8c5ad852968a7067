"""One build: params, snapshot, rows, card."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from builders.lib import card, store
from builders.lib.params import section
from builders.lib.problem import Problem
from builders.lib.snapshot import Snapshot

if TYPE_CHECKING:
    from types import ModuleType

CHECKED = (
    "Every build is checked with Great Expectations before anything may use it: types, "
    "nullability, allowed values and keys from the columns above, floors and ceilings from "
    "`validation` in `params.yaml`, and checks across rows and configs. The report is "
    "`data/validation/{name}.json`; `make docs-data` renders it as pages."
)


def build(name: str, module: ModuleType) -> store.Counts:
    """Build a dataset and its card into ``data/datasets/NAME``.

    Raises
    ------
    Problem
        If params or snapshot are wrong, or nothing is left of a config.
    """
    params: Any = section(f"datasets.{name}", module.Params)
    snapshot = Snapshot.open(Path(params.snapshot))
    if snapshot.manifest["source"] != params.source:
        raise Problem(
            f"{params.snapshot}: a snapshot of {snapshot.manifest['source']}, but {name} is built "
            f"from {params.source}; name another under datasets.{name}.snapshot"
        )
    folder = store.DATASETS / name
    try:
        return _write(name, module, params, snapshot)
    except BaseException:
        shutil.rmtree(folder.with_name(f".{name}.partial"), ignore_errors=True)
        raise


def _write(name: str, module: ModuleType, params: Any, snapshot: Snapshot) -> store.Counts:
    """Write rows and card beside the final folder, and give it its name at the end."""
    folder = store.DATASETS / name
    counts = store.write(module.build(snapshot, params), module.SCHEMA, folder)
    empty = [language for language in params.languages if not counts.rows[language]]
    if empty:
        raise Problem(
            f"{params.snapshot}: no row of {name} for {', '.join(empty)}; was the snapshot fetched "
            "with these languages?"
        )
    partial = folder.with_name(f".{name}.partial")
    origin = card.Origin(
        sources=[snapshot.manifest],
        command=f"make repro STAGE=validate@{name}",
        version=params.version,
        validation=CHECKED.format(name=name),
    )
    extra = module.describe(partial)
    card.write(partial, card.PAGES / f"{name}.md", module.SCHEMA, counts, origin, extra)
    store.finish(folder)
    return counts
