"""Beside the tables of an analysis: what its tests do by simulation."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from plumbline.probes import OF_GROUPS
from plumbline.probes.report import error_rates
from plumbline.probes.report.view import Block, Group, Listing, Part, Section, listed, number

if TYPE_CHECKING:
    from plumbline.probes.report.tables import Tables
    from plumbline.probes.report.view import Row

LISTING = Listing(
    "test; shape=simulated run; decoys=decoys found; bounds",
    "replicates=tables; size; families=families with a false finding; coverage; "
    "smallest=found with .8; adjusted",
)
UNTESTED = ("averages",)
NO_TESTS = "These tables have no tests, and their intervals are not simulated."
TITLE = "Size, power and coverage of these tests, by simulation"


def calibrated(shown: Section, tables: Tables) -> Section:
    """Return a section with a sentence on the calibration of its tests, and a table of it."""
    analysis, _, groups = shown.stage.partition("-")
    name = OF_GROUPS[analysis] if groups else analysis
    path = tables.data / "tables" / "calibration" / name / "calibration.parquet"
    if not shown.groups:
        return shown
    found = error_rates.lines(pl.read_parquet(path)) if path.is_file() else []
    told = NO_TESTS if name in UNTESTED else error_rates.sentence(found)
    shown = shown._replace(note=f"{shown.note} {told}", calibration=told)
    if not found:
        return shown
    part = Part(tables=(listed(LISTING, [_row(line) for line in found], shown.stage),))
    return shown._replace(groups=[*shown.groups, Group("", [Block(TITLE, [part])])])


def _row(line: error_rates.Line) -> Row:
    def share(name: str) -> str:
        value, low, high = line.get(name, (None, None, None))
        return "–" if value is None else f"{value:.3f} ({low:.3f} to {high:.3f})"

    decoys = ", ".join(f"{truth} {number(value)}" for truth, value in line["decoys"].items())
    return {
        "test": line["test"],
        "shape": line["shape"],
        "replicates": line["replicates"],
        "size": share(error_rates.SIZE),
        "families": share(error_rates.FAMILIES),
        "coverage": share(error_rates.COVERAGE),
        "smallest": error_rates.effect(line, error_rates.LEAST),
        "adjusted": error_rates.effect(line, error_rates.LEAST_ADJUSTED),
        "decoys": decoys or "–",
        "bounds": line["verdict"],
    }
