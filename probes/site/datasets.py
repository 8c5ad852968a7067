"""What the datasets have in them, and how they were validated."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import polars as pl

from plumbline.builders.core import parquet
from plumbline.probes.report import given
from plumbline.probes.report.view import Block, Group, Part, Section, Table

if TYPE_CHECKING:
    from pathlib import Path


def section(data: Path) -> Section:
    """Return counts, rejects and validation of every validated dataset."""
    groups = [_group(path, data) for path in sorted((data / "validation").glob("*.json"))]
    return Section(
        "datasets", "Datasets", "What everything in the report was made of.", groups, "validate"
    )


def _group(path: Path, data: Path) -> Group:
    report = json.loads(path.read_text(encoding="utf-8"))
    folder = data / "datasets" / path.stem
    rows = [
        [c, f"{pl.scan_parquet(folder / f'{c}.parquet').select(pl.len()).collect().item():,}"]
        for c in parquet.configs(folder)
    ]
    rejects = (
        pl.read_parquet(folder / parquet.REJECTS)
        .group_by("config", "reason")
        .agg(pl.col("number").sum())
        .sort("config", "reason")
    )
    tree = given.tree()
    entry = tree["datasets"].get(path.stem) or tree["derived"][path.stem]
    origin = entry.get("snapshot") or ", ".join(entry.get("snapshots", {}).values())
    expectations = [(t, e) for t, of in report["tables"].items() for e in of["expectations"]]
    warned = [
        f"{table}: {e['expectation_type']} {e['kwargs'].get('column', '')}"
        for table, e in expectations
        if not e["success"]
    ]
    about = (
        f"From {origin or 'other datasets'}; "
        f"sha256 {report['fingerprint'][:16]}. Great Expectations: "
        f"{len(expectations)} expectations held against it, {len(warned)} warning(s)"
        f"{': ' + '; '.join(warned) if warned else ''}."
    )
    table = Table("", ("config",), ("rows",), rows)
    lost = [[r["config"], r["reason"], f"{r['number']:,}"] for r in rejects.to_dicts()]
    rejected = Table("", ("config", "reason"), ("rows",), lost)
    return Group(
        f"{path.stem} {entry['version']}",
        [
            Block("", [Part(caption=about, tables=(table,))]),
            Block("Rejected input, by reason", [Part(tables=(rejected,))]),
        ],
    )
