"""What the datasets have in them, and how they were validated."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from plumbline.builders.core import parquet
from plumbline.probes.report.view import Block, Group, Listing, Part, Section, listed

if TYPE_CHECKING:
    from plumbline.probes.site.versions import Versions

NOTE = "What everything in the report was made of."


def section(versions: Versions) -> Section:
    """Return counts, rejects and validation of every validated dataset."""
    groups = [_group(versions, name) for name in versions.validated()]
    return Section("datasets", "Datasets", NOTE, groups, "validate")


def _group(versions: Versions, name: str) -> Group:
    known = versions.dataset(name)
    rejects = (
        pl.read_parquet(versions.data / "datasets" / name / parquet.REJECTS)
        .group_by("config", "reason")
        .agg(rows=pl.col("number").sum())
        .sort("config", "reason")
    )
    expected = [(t, e) for t, of in known["report"]["tables"].items() for e in of["expectations"]]
    warned = [
        f"{table}: {e['expectation_type']} {e['kwargs'].get('column', '')}"
        for table, e in expected
        if not e["success"]
    ]
    about = (
        f"From {known['origin']}; sha256 {known['sha256']}. Great Expectations: {len(expected)} "
        f"expectations held against it, {len(warned)} warning(s)"
        f"{': ' + '; '.join(warned) if warned else ''}."
    )
    counts = [{"config": config, "rows": n} for config, n in known["configs"].items()]
    table = listed(Listing("config", "rows"), counts)
    lost = listed(Listing("config; reason", "rows"), rejects.to_dicts())
    return Group(
        f"{name} {known['version']}",
        [
            Block("", [Part(caption=about, tables=(table,))]),
            Block("Rejected input, by reason", [Part(tables=(lost,))]),
        ],
    )
