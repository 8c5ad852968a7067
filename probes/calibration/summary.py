"""A line for each test that was simulated: what report and docs tell of its calibration."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

if TYPE_CHECKING:
    from collections.abc import Iterator

SIZE, SIZE_01, FAMILIES, COVERAGE = (
    "size at .05",
    "size at .01",
    "families with a false finding",
    "coverage of intervals",
)
WRONG, WRONG_FAMILIES = "wrong findings at .05", "families with a wrong finding"
LEAST, LEAST_ADJUSTED = "smallest effect found", "smallest found after adjustment"
DETECTABLE = "found at the effect told as detectable"
BOUNDS = {  # of what is told as right
    SIZE: (0.03, 0.07),
    SIZE_01: (0.0, 0.02),
    FAMILIES: (0.0, 0.05),
    COVERAGE: (0.93, 0.97),
}
Line = dict[str, Any]


def lines(table: pl.DataFrame) -> list[Line]:
    """Return a line for each test and shape of a table of rates.

    Each has ``test``, ``shape``, ``replicates``; value, low and high of each measure under the
    null, and of the smallest effects found, by the names above; ``decoys``, shares of wrong
    findings by truth; and ``outside``, what does not hold, in words.
    """
    found = []
    for (test, shape), own in table.group_by("test", "shape", maintain_order=True):
        line: Line = {"test": test, "shape": shape, "replicates": max(own["replicates"].to_list())}
        null = own.filter((pl.col("kind") == "null") & (pl.col("effect") == 0))
        for row in null.iter_rows(named=True):
            line[row["measure"]] = (row["value"], row["low"], row["high"])
        planted = own.filter(pl.col("measure").is_in([LEAST, LEAST_ADJUSTED, DETECTABLE]))
        for row in planted.iter_rows(named=True):
            line[row["measure"]] = (row["value"], row["low"], row["high"])
        decoys = own.filter(pl.col("measure") == WRONG)
        line["decoys"] = dict(decoys.select("truth", "value").iter_rows())
        line["outside"] = list(_outside(line))
        found.append(line)
    return found


def _outside(line: Line) -> Iterator[str]:
    """Yield what is outside of its bounds, by the interval: chance alone does not put it there."""
    for measure, (least, most) in BOUNDS.items():
        if measure in line:
            value, low, high = line[measure]
            if low > most:
                yield f"{measure} is {value:.3f}, above {most}"
            elif high < least:
                yield f"{measure} is {value:.3f}, below {least}"


def sentence(found: list[Line]) -> str:
    """Return the calibration of an analysis in one sentence."""
    if not found:
        return "The tests of this table have not been simulated yet."
    parts = []
    for measure, told in (
        (SIZE, "of tests of a true null {} have p at or below .05"),
        (COVERAGE, "95% intervals hold the truth in {}"),
    ):
        values = [line[measure][0] for line in found if measure in line]
        if values:
            parts.append(told.format(span(values)))
    number = max(line["replicates"] for line in found)
    outside = sum(bool(line["outside"]) for line in found)
    rest = f"; {outside} of {len(found)} lines are outside of their bounds" if outside else ""
    return f"By simulation, {number:,} tables of each truth: {', '.join(parts)}{rest}."


def span(values: list[float]) -> str:
    """Return the least and the largest of some shares in percent, or one where they are alike.

    Examples
    --------
    >>> span([0.031, 0.052]), span([0.05, 0.05])
    ('3 to 5%', '5%')
    """
    return (
        " to ".join(dict.fromkeys(f"{100 * end:.0f}" for end in (min(values), max(values)))) + "%"
    )
