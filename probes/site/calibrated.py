"""Calibration of an analysis: the error rates of its tests by simulation, as a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from plumbline.probes import CALIBRATED
from plumbline.probes.report import error_rates
from plumbline.probes.report.view import Block, Group, Part, listed

if TYPE_CHECKING:
    from plumbline.probes.report.tables import Tables
    from plumbline.probes.report.view import Row

TITLE = "Size, familywise error and coverage of these tests, by simulation"
WORDS = {"test": "test", "shape": "simulated run"}
NUMBERS = {"replicates": "tables", error_rates.SIZE: "size at .05"}
NUMBERS |= {error_rates.FAMILIES: "familywise error at .05"}
NUMBERS |= {error_rates.COVERAGE: "coverage of intervals", "outside": "out of bounds"}


def groups(tables: Tables, analysis: str) -> list[Group]:
    """Return a table for each simulation of an analysis, that of pooled models by itself."""
    result = []
    for name in (name for name, of in CALIBRATED.items() if of == analysis):
        path = tables.data / "tables/calibration" / name / "calibration.parquet"
        if path.is_file():
            rows = [_row(line) for line in error_rates.lines(pl.read_parquet(path))]
            table = listed(rows, WORDS, NUMBERS, f"calibration of {name}")
            result.append(Group("", [Block(TITLE, [Part(tables=(table,))])]))
    return result


def _row(line: error_rates.Line) -> Row:
    """Return a line with its rates written as value and interval."""
    written = {}
    for measure in (error_rates.SIZE, error_rates.FAMILIES, error_rates.COVERAGE):
        value, low, high = line.get(measure, (None, None, None))
        written[measure] = "" if value is None else f"{value:.3f} ({low:.3f} to {high:.3f})"
    return line | written | {"outside": "; ".join(line["outside"])}
