"""Error rates of tests by simulation: a line for each test and simulated shape of a table."""

from __future__ import annotations

from statistics import NormalDist
from typing import Any

import polars as pl

SIZE, SIZE_01, FAMILIES, COVERAGE = (
    "size at .05",
    "size at .01",
    "families with a false finding",
    "coverage of intervals",
)
WRONG, WRONG_FAMILIES = "wrong findings at .05", "families with a wrong finding"
BOUNDS = {SIZE: 0.07, SIZE_01: 0.02, FAMILIES: 0.05}  # a conservative test is within bounds
LEAST_COVERAGE = 0.93  # of 95% intervals
OF_NULL = (SIZE, SIZE_01, FAMILIES)
WIDER = NormalDist().inv_cdf(0.995) / NormalDist().inv_cdf(0.975)  # a 99% interval over a 95% one
Line = dict[str, Any]


def lines(table: pl.DataFrame) -> list[Line]:
    """Return a line for each test and shape of a table of error rates.

    Each has ``test``, ``shape``, ``replicates`` of the truth with the fewest; (value, low, high) of
    size, familywise error and coverage under the null hypothesis, of several the worst; and
    ``outside``, the rates whose whole interval is out of bounds.
    """
    result = []
    for (test, shape), own in table.group_by("test", "shape", maintain_order=True):
        numbers = own.group_by("truth").agg(number=pl.col("replicates").max())["number"]
        line: Line = {"test": test, "shape": shape, "replicates": numbers.min(), "outside": []}
        for row in own.to_dicts():
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
    """Return whether a rate may be within its bounds, by its interval.

    Right tests have a familywise error as large as its bound, and one in forty would be outside by
    chance: its interval is one of 99%.

    Examples
    --------
    >>> within({"measure": SIZE, "test": "t", "value": 0.1, "low": 0.08, "high": 0.12})
    False
    >>> within({"measure": SIZE, "test": "t", "value": 0.01, "low": 0.0, "high": 0.02})
    True
    """
    measure, value = row["measure"], row["value"]
    if measure == COVERAGE:
        return bool(row["high"] >= LEAST_COVERAGE - _below_95(row["test"]))
    if measure not in BOUNDS:
        return True
    half = (value - row["low"]) * (WIDER if measure == FAMILIES else 1.0)
    return bool(value - half <= BOUNDS[measure])


def _below_95(test: str) -> float:
    """Return by how much the level of a test's intervals is below .95, where its name has one."""
    return 0.05 if test.endswith("90% interval") else 0.0
