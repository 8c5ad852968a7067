"""Of what exact versions a page was made: datasets with their validation, models, packages."""

from __future__ import annotations

import json
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

import polars as pl

from plumbline.builders.core import params, parquet
from plumbline.probes.models.params import pointer
from plumbline.probes.report.view import Block, Group, Part, Row, Section, listed

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from plumbline.probes.report.tables import Tables
    from plumbline.probes.report.view import Table

PACKAGES = (  # that make numbers
    *("plumbline", "numpy", "polars", "pyarrow", "scipy", "scikit-learn", "statsmodels"),
    *("torch", "transformers", "tokenizers", "datasets", "great-expectations"),
)
DATASETS = {"name": "dataset", "version": "version", "validation": "validation"}
DATASETS |= {"sha256": "sha256", "origin": "made from"}
MODELS = {name: name for name in ("model", "kind", "id", "revision", "probes")}


class Versions:
    """What a run was made of; the params are read once."""

    def __init__(self, tables: Tables) -> None:
        self.tables, self.data = tables, tables.data
        self.tree = params.read()
        reports = sorted((self.data / "validation").glob("*.json"))
        self.validated = {path.stem: self._dataset(path) for path in reports}

    def _dataset(self, path: Path) -> dict[str, Any]:
        """Return version, rows, fingerprint and source of a dataset, and what validated it."""
        name, report = path.stem, json.loads(path.read_text(encoding="utf-8"))
        entry = self.tree["datasets"].get(name) or self.tree.get("derived", {}).get(name) or {}
        origin = entry.get("snapshot") or ", ".join(entry.get("snapshots", {}).values())
        folder = self.data / "datasets" / name
        configs = {c: rows(folder / f"{c}.parquet") for c in parquet.configs(folder)}
        return {"name": name, "version": str(entry.get("version", "–")), "report": report} | {
            "validation": "passed" if report["success"] else "failed",
            "sha256": report["fingerprint"][:16],
            "origin": origin or "other datasets",
            "configs": configs,
            "rows": sum(configs.values()),
        }

    def datasets(self, names: Iterable[str]) -> Table:
        """Return version, rows, fingerprint and source of some datasets."""
        known = [self.validated[name] for name in names if name in self.validated]
        return listed(known, DATASETS, {"rows": "rows"}, "Datasets")

    def models(self, probes: Iterable[str]) -> Table:
        """Return the models that some probes run on: kind, id, revision and probes."""
        by_probe = {probe: self.tables.models(probe) for probe in probes}
        rows = list[Row]()
        for name in sorted({name for models in by_probe.values() for name in models}):
            path = pointer(name, self.data)
            known = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
            entry = known.get("model") or (self.tree.get("models") or {}).get(name, {})
            rows.append(
                {"model": name, "kind": entry.get("kind", "masked"), "id": known.get("id", "")}
                | {"revision": str(known.get("revision") or entry.get("revision") or "")}
                | {"probes": ", ".join(probe for probe, own in by_probe.items() if name in own)}
            )
        return listed(rows, MODELS, caption="Models")


def rows(path: Path) -> int:
    """Return how many rows a file has."""
    import pyarrow.parquet as pq

    return int(pq.read_metadata(path).num_rows)


def packages(names: Sequence[str] = PACKAGES) -> Table:
    """Return the versions of the packages that numbers come from."""
    found = []
    for name in names:
        try:
            release = version(name).partition("+")[0]  # "+cpu" says where
        except PackageNotFoundError:  # run from a checkout that is not installed
            release = "–"
        found.append({"package": name, "version": release})
    return listed(found, {"package": "package", "version": "version"}, caption="Packages")


def section(*tables: Table) -> Section:
    """Return of what exact versions a page was made."""
    groups = [Group("", [Block("", [Part(tables=tables)])])]
    return Section("versions", "Versions", "", groups, "")


def datasets_section(versions: Versions) -> Section:
    """Return counts, rejects and validation of every validated dataset."""
    groups, by = [], ["config", "reason"]
    for known in versions.validated.values():
        of = [(t, e) for t, of in known["report"]["tables"].items() for e in of["expectations"]]
        warned = [
            f"{table}: {e['expectation_type']} {e['kwargs'].get('column', '')}"
            for table, e in of
            if not e["success"]
        ]
        about = (
            f"From {known['origin']}; sha256 {known['sha256']}. Great Expectations: {len(of)} "
            f"expectations held against it, {len(warned)} warning(s)"
            f"{': ' + '; '.join(warned) if warned else ''}."
        )
        counts = [{"config": config, "rows": n} for config, n in known["configs"].items()]
        rejects = pl.read_parquet(versions.data / "datasets" / known["name"] / parquet.REJECTS)
        lost = rejects.group_by(by).agg(rows=pl.sum("number")).sort(by).to_dicts()
        table = listed(counts, {"config": "config"}, {"rows": "rows"})
        rejected = listed(lost, {"config": "config", "reason": "reason"}, {"rows": "rows"})
        blocks = [
            Block("", [Part(caption=about, tables=(table,))]),
            Block("Rejected input, by reason", [Part(tables=(rejected,))]),
        ]
        groups.append(Group(f"{known['name']} {known['version']}", blocks))
    note = "What everything in the report was made of."
    return Section("datasets", "Datasets", note, groups, "validate")
