"""Of what exact versions a page was made: datasets, models, packages."""

from __future__ import annotations

import json
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING

import polars as pl

from plumbline.builders.core import parquet
from plumbline.probes.models.files import pointer
from plumbline.probes.report import given
from plumbline.probes.report.given import asked
from plumbline.probes.report.view import Table

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

PACKAGES = (  # that make numbers
    *("plumbline", "numpy", "polars", "pyarrow", "scipy", "scikit-learn", "statsmodels"),
    *("torch", "transformers", "tokenizers", "datasets", "great-expectations", "matplotlib"),
)


def validated(data: Path) -> list[str]:
    """Return the names of the datasets that have a report of their validation."""
    return sorted(path.stem for path in (data / "validation").glob("*.json"))


def datasets(data: Path, names: Iterable[str]) -> Table:
    """Return version, rows, fingerprint and source of some datasets."""
    tree = given.tree()
    rows = []
    for name in names:
        path = data / "validation" / f"{name}.json"
        if not path.is_file():
            continue
        report = json.loads(path.read_text(encoding="utf-8"))
        entry = tree["datasets"].get(name) or tree["derived"][name]
        origin = entry.get("snapshot") or ", ".join(entry.get("snapshots", {}).values())
        said = "passed" if report["success"] else "failed"
        cells = [name, entry["version"], said, report["fingerprint"][:16]]
        folder = data / "datasets" / name
        count = sum(
            pl.scan_parquet(folder / f"{config}.parquet").select(pl.len()).collect().item()
            for config in parquet.configs(folder)
        )
        rows.append([*cells, origin or "other datasets", f"{count:,}"])
    words = ("dataset", "version", "validation", "sha256", "made from")
    return Table("Datasets", words, ("rows",), rows)


def models(data: Path, probes: Iterable[str]) -> Table:
    """Return what the models are that some probes are put to, or all, with their revisions."""
    tree = given.tree()
    by = {probe: asked(probe) for probe in probes}
    names = sorted({name for own in by.values() for name in own})
    rows = []
    for name in names:
        path = pointer(name, data)
        known = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
        entry = known.get("model") or (tree.get("models") or {}).get(name, {})
        revision = known.get("revision") or entry.get("revision") or "–"
        kind = entry.get("kind", "masked")
        asking = [probe for probe, own in by.items() if name in own]
        rows.append([name, kind, str(known.get("id", "–")), str(revision), ", ".join(asking)])
    return Table("Models", ("model", "kind", "id", "revision", "asked by"), (), rows)


def packages(names: Sequence[str] = PACKAGES) -> Table:
    """Return the versions of the packages that numbers come from."""
    rows = []
    for name in names:
        try:
            rows.append([name, version(name).partition("+")[0]])  # "+cpu" says where
        except PackageNotFoundError:  # run from a checkout that is not installed
            rows.append([name, "–"])
    return Table("Packages", ("package", "version"), (), rows)
