"""Show simulated error rates, with one line per test and per simulated shape of a table."""

from __future__ import annotations

from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import polars as pl

from plumbline.probes import CALIBRATED
from plumbline.probes.report.view import Group, Part, listed

if TYPE_CHECKING:
    from plumbline.probes.report.tables import Tables

SIZE, SIZE_01, FAMILIES, COVERAGE = (
    "size at .05",
    "size at .01",
    "families with a false finding",
    "coverage of intervals",
)
WRONG, WRONG_FAMILIES = "wrong findings at .05", "families with a wrong finding"
BOUNDS = {SIZE: 0.07, SIZE_01: 0.02, FAMILIES: 0.05}  # a conservative test also meets these
LEAST_COVERAGE = 0.93  # lower bound for 95% intervals
OF_NULL = (SIZE, SIZE_01, FAMILIES)
WIDER = NormalDist().inv_cdf(0.995) / NormalDist().inv_cdf(0.975)  # ratio of 99% to 95% widths
TITLE = "Size, familywise error and coverage of these tests, by simulation"
WORDS = {"test": "test", "shape": "simulated run"}
NUMBERS = {"replicates": "tables", SIZE: SIZE, FAMILIES: "familywise error at .05"}
NUMBERS |= {COVERAGE: COVERAGE, "outside": "out of bounds"}
Line = dict[str, Any]


def groups(tables: Tables, analysis: str) -> list[Group]:
    """Return a table for each simulation of an analysis (pooled models have their own)."""
    result = []
    for name in (name for name, simulated in CALIBRATED.items() if simulated == analysis):
        path = tables.data / "tables/calibration" / name / "calibration.parquet"
        if path.is_file():
            rows = lines(pl.read_parquet(path))
            for row in rows:
                for rate in (SIZE, FAMILIES, COVERAGE):
                    numbers = row.get(rate)
                    row[rate] = "{:.3f} ({:.3f} to {:.3f})".format(*numbers) if numbers else ""
                row["outside"] = "; ".join(row["outside"])
            table = listed(rows, WORDS, NUMBERS, f"calibration of {name}")
            result.append(Group("", [Part(TITLE, tables=(table,))]))
    return result


def lines(table: pl.DataFrame) -> list[Line]:
    """Summarise a table of error rates by test and shape.

    Each line has ``test``, ``shape`` and ``replicates`` (the minimum over the column ``truth``);
    ``(value, low, high)`` of the worst size, familywise error and coverage under the null
    hypothesis; and ``outside``, the rates whose whole interval lies outside the bounds.
    """
    result = []
    for (test, shape), rates in table.group_by("test", "shape", maintain_order=True):
        numbers = rates.group_by("truth").agg(number=pl.col("replicates").max())["number"]
        line: Line = {"test": test, "shape": shape, "replicates": numbers.min(), "outside": []}
        for row in rates.to_dicts():
            measure, rate = row["measure"], (row["value"], row["low"], row["high"])
            if row["kind"] != "null" or row["effect"] != 0 or row["value"] is None:
                continue
            if measure == COVERAGE:
                line[measure] = min(rate, line.get(measure, rate))
            elif measure in OF_NULL:
                line[measure] = max(rate, line.get(measure, rate))
            if not within(row):
                line["outside"].append(f"{measure} {row['value']:.3f}")
        result.append(line)
    return result


def within(row: dict[str, Any]) -> bool:
    """Return True if the interval of a rate is at least partly within bounds.

    Since the familywise error of exact tests equals its bound, one in forty 95% intervals would lie
    outside by chance; its interval therefore has a level of 99%.

    Examples
    --------
    >>> within({"measure": SIZE, "test": "t", "value": 0.1, "low": 0.08, "high": 0.12})
    False
    """
    measure, value = row["measure"], row["value"]
    if measure == COVERAGE:
        nominal = 0.05 if row["test"].endswith("90% interval") else 0.0
        return bool(row["high"] >= LEAST_COVERAGE - nominal)
    half = (value - row["low"]) * (WIDER if measure == FAMILIES else 1.0)
    return measure not in BOUNDS or bool(value - half <= BOUNDS[measure])
