"""A line for each test that was simulated: what report and docs tell of its calibration."""

from __future__ import annotations

import re
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, NamedTuple

import polars as pl

if TYPE_CHECKING:
    from collections.abc import Callable

    Told = tuple[float | None, ...]

SIZE, SIZE_01, FAMILIES, COVERAGE = (
    "size at .05",
    "size at .01",
    "families with a false finding",
    "coverage of intervals",
)
FOUND_05, DEAD = "found at .05", "found under all truths together"
FOUND_BH = "found after adjustment"
WRONG, WRONG_FAMILIES = "wrong findings at .05", "families with a wrong finding"
LEAST, LEAST_ADJUSTED = "smallest effect found", "smallest found after adjustment"
DETECTABLE = "found at the effect told as detectable"
DETECTABLE_BH = "found after adjustment at that told as detectable"
FALSE = "false among findings"
TOLD = (DETECTABLE, DETECTABLE_BH)
OF_POWER = {LEAST: FOUND_05, LEAST_ADJUSTED: FOUND_BH}
AT_MOST = "at most"  # key of the measures whose smallest effect is the smallest that was planted
# How names of tests begin that no table has, or end of which p of a table is the larger of two.
NOT_IN_TABLES, PARTS_OF_P = "not in the tables", (": p_groups", ": p_seeds")
BOUNDS = {  # of what is told as right
    SIZE: (0.03, 0.07),
    SIZE_01: (0.0, 0.02),
    FAMILIES: (0.0, 0.05),
    COVERAGE: (0.93, 0.97),
    FALSE: (0.0, 0.05),
    DETECTABLE: (0.75, 0.85),
    DETECTABLE_BH: (0.75, 0.85),
}
AT_BOUND = (FAMILIES, FALSE)  # of tests that are right as large as the bound
WIDER = NormalDist().inv_cdf(0.995) / NormalDist().inv_cdf(0.975)
OF_NULL = (SIZE, SIZE_01, FAMILIES)
Line = dict[str, Any]


class Beyond(NamedTuple):
    """A rate whose whole interval is outside of its bounds."""

    measure: str
    truth: str  # empty: the null
    value: float
    side: str  # above or below
    bound: float

    def words(self) -> str:
        """Return it as it is written."""
        where = self.truth and f" ({self.truth})"
        return f"{self.measure}{where} is {self.value:.3f}, {self.side} {self.bound}"


def lines(table: pl.DataFrame) -> list[Line]:
    """Return a line for each test and shape of a table of rates.

    Each has ``test``, ``shape``; ``replicates``, of the truth with the fewest; value, low and high
    of each measure by the names above: under the null, of several nulls that farthest from what is
    right; of the effects found, the least over truths; :data:`AT_MOST`, which of these are the
    least that was planted, and smaller ones may be found; ``decoys``, shares of wrong findings by
    truth; ``beyond``, what does not hold under some truth, and ``outside``, the same in words; and
    ``verdict``: that, or ``inside`` where the whole intervals of all rates are inside of their
    bounds, or ``not outside``, which more tables would decide.
    """
    found = []
    for (test, shape), own in table.group_by("test", "shape", maintain_order=True):
        of_all = (pl.col("measure") != FALSE) | (pl.col("measure") == FALSE).all()
        counted = own.filter(of_all)  # false findings are of tables with whole families
        number = counted.group_by("truth").agg(pl.col("replicates").max())["replicates"].min()
        line: Line = {"test": test, "shape": shape, "replicates": number, "decoys": {}}
        beyond = filter(None, map(_outside, own.to_dicts()))
        line["beyond"] = list(dict.fromkeys([*beyond, *_dead(own)]))
        line["outside"] = [of.words() for of in line["beyond"]]
        judged = [row for row in own.to_dicts() if _judged(row)]
        line["verdict"] = "; ".join(line["outside"]) or _verdict(judged)
        for row in own.iter_rows(named=True):
            measure, told = row["measure"], (row["value"], row["low"], row["high"])
            null = row["kind"] == "null" and row["effect"] == 0
            if measure in (*OF_NULL, COVERAGE) and null:
                line[measure] = max(told, line.get(measure, told), key=_distance(row))
            elif measure in (LEAST, LEAST_ADJUSTED):
                line[measure] = min(told, line.get(measure, told), key=_or_infinite)
            elif measure in TOLD:
                line[measure] = max(told, line.get(measure, told), key=_distance(row))
            elif measure == WRONG:
                line["decoys"][row["truth"]] = row["value"]
        line[AT_MOST] = {m for m in OF_POWER if m in line and _tried(own, m, line[m][0])}
        found.append(line)
    return found


def _tried(own: pl.DataFrame, measure: str, value: float | None) -> bool:
    """Tell whether an effect that is found with .8 is the smallest that a truth has planted."""
    planted = own.filter(pl.col("measure") == OF_POWER[measure], pl.col("effect") > 0)
    return value in planted.group_by("truth").agg(pl.col("effect").min())["effect"]


def _distance(row: dict[str, Any]) -> Callable[[Told], float]:
    """Return how far a rate is from what is right; where that is a bound, from 0."""
    middle = 0.0 if row["measure"] in AT_BOUND else sum(bounds(row)) / 2
    return lambda told: abs((told[0] or 0.0) - middle)


def _or_infinite(told: Told) -> float:
    return float("inf") if told[0] is None else told[0]


def bounds(row: dict[str, Any]) -> tuple[float, float]:
    """Return the bounds of a rate; the coverage of others than 95% intervals by the test's name.

    Examples
    --------
    >>> bounds({"measure": COVERAGE, "test": "equivalence, 90% interval"})
    (0.88, 0.92)
    """
    least, most = BOUNDS[row["measure"]]
    level = _other(row) if row["measure"] == COVERAGE else None
    less = 0.95 - int(level[1]) / 100 if level else 0.0
    return round(least - less, 6), round(most - less, 6)


def _other(row: dict[str, Any]) -> re.Match[str] | None:
    """Return the level of a test's intervals where its name has one: it is not 95% there."""
    return re.search(r"(\d+)% interval$", row["test"])


def _outside(row: dict[str, Any]) -> Beyond | None:
    """Return what is outside of its bounds by its whole interval.

    Where the bound is what right tests have, one in forty would be outside by chance: that of 99%
    is taken there.
    """
    measure, value = row["measure"], row["value"]
    if not _judged(row):
        return None
    least, most = bounds(row)
    truth = "" if row["kind"] == "null" else row["truth"]
    if value - (value - row["low"]) * (WIDER if measure in AT_BOUND else 1.0) > most:
        return Beyond(measure, truth, value, "above", most)
    return Beyond(measure, truth, value, "below", least) if row["high"] < least else None


def _dead(own: pl.DataFrame) -> list[Beyond]:
    """Say that a test found nothing whatever the truth, where as many tables say that of size."""
    found = own.filter(pl.col("measure").is_in((SIZE, FOUND_05, WRONG)) & (pl.col("tests") > 0))
    if found.is_empty() or "planted" not in found["kind"] or found["value"].sum() > 0:
        return []
    tables = int(found.group_by("truth").agg(pl.col("replicates").max())["replicates"].sum())
    least, z = BOUNDS[SIZE][0], NormalDist().inv_cdf(0.975)
    high = z**2 / (tables + z**2)  # Wilson's, of none
    return [Beyond(DEAD, "", 0.0, "below", least)] if high < least else []


def _judged(row: dict[str, Any]) -> bool:
    judged = row["measure"] in BOUNDS and (row["measure"] not in OF_NULL or row["kind"] == "null")
    return judged and row["value"] is not None and row["low"] is not None


def _verdict(judged: list[dict[str, Any]]) -> str:
    """Say whether the whole intervals of all rates are inside of their bounds."""
    if not judged:
        return "–"
    each = [(bounds(row), row) for row in judged]
    inside = all(least <= row["low"] and row["high"] <= most for (least, most), row in each)
    return "inside" if inside else "not outside"


def decides(line: Line) -> bool:
    """Return whether a test decides something in the tables: not one that was left out of them."""
    return not line["test"].startswith(NOT_IN_TABLES) and not line["test"].endswith(PARTS_OF_P)


def effect(line: Line, measure: str) -> str:
    """Return the smallest effect found, or another share of a line, as it is written."""
    if measure not in line:
        return "–"
    value = line[measure][0]
    most = "at most " * (measure in line.get(AT_MOST, ()))
    return "above all tried" if value is None else f"{most}{value:.2f}"


def sentence(found: list[Line]) -> str:
    """Return the calibration of the tests that decide something in one sentence."""
    found = [line for line in found if decides(line)]
    if not found:
        return "The tests of this table have not been simulated yet."
    parts = []
    for measure, told in (
        (SIZE, "{} of tests have p at or below .05"),
        (COVERAGE, "95% intervals hold the truth in {}"),
    ):
        values = [line[measure][0] for line in found if measure in line and not _other(line)]
        if values:
            parts.append(told.format(span(values)))
    if not parts:
        return "Neither the size nor the intervals of this table have been simulated yet."
    numbers = [line["replicates"] for line in found]
    number = " to ".join(f"{each:,}" for each in sorted({min(numbers), max(numbers)}))
    outside = sum(bool(line["outside"]) for line in found)
    some = f"; under some truth {outside} of {len(found)} lines are outside of their bounds"
    start = f"By simulation of runs in which nothing differs, {number} tables each"
    return f"{start}: {', '.join(parts)}{some if outside else ''}."


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
