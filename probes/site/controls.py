"""What the controls ask of each analysis, and whether it is as it should be.

Every analysis tells in its table ``recovery`` what it finds of what was planted in worlds. Here
each number is given the question that it answers, by its words, so that an analysis that is added
answers without more code.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

import polars as pl

from plumbline.probes import ALL, EACH
from plumbline.probes.report.view import files

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

FOUND, ORDER, HOLD, SILENT = QUESTIONS = (
    "is what was planted found?",
    "in its order?",
    "do intervals hold the truth?",
    "silent where nothing is planted?",
)
YES, UNCLEAR, NO = VERDICTS = ("yes", "unclear", "no")
NOMINAL = 0.95  # of intervals
FALSE = 0.05  # of tests where nothing is planted
READINGS = (
    *("faithful", "paper", "released", "probability", "corrected", "corrected_one"),
    *("continuous", "named", "likeliest", "expected", "placebo"),
)
DIFFERENCE = re.compile(r"minus that in the lists|the way it speaks")
TESTED = re.compile(r"\bp\b(?!\()|p_bh|p_bonferroni|false discover|make a difference")
RANDOM = re.compile(r"random orders")
SIGN = re.compile(r"\bsign\b|planted side|that are found")
RELATED = re.compile(r"Spearman|^order of|^correlation of planted")


class Check(NamedTuple):
    """A number of a control, and what it says."""

    analysis: str
    model: str
    planted: bool
    reading: str  # "" where the analysis has one
    way: str  # of asking, where there are several
    question: str
    measure: str
    value: float
    low: float | None
    high: float | None
    n: int
    null: str  # what it is judged against
    verdict: str


def recoveries(
    data: Path, each: Sequence[str] = tuple(EACH), over_all: Sequence[str] = tuple(ALL)
) -> Iterator[tuple[str, pl.DataFrame]]:
    """Yield analysis and table ``recovery`` of one world after another."""
    for analysis in each:
        for path in files(data, analysis, "recovery"):
            yield analysis, pl.read_parquet(path)
    for analysis in over_all:
        if (path := data / "tables" / analysis / "recovery.parquet").is_file():
            for table in pl.read_parquet(path).partition_by("model", maintain_order=True):
                yield analysis, table


def checks(data: Path) -> list[Check]:
    """Return all numbers of controls that answer one of the questions."""
    return [
        check
        for analysis, table in recoveries(data)
        for row in table.to_dicts()
        if row["value"] is not None and (check := told(analysis, row))
    ]


def told(analysis: str, row: dict[str, Any]) -> Check | None:
    """Return what a row of a table ``recovery`` says; None where it answers no question."""
    reading, way, measure = parted(row["measure"])
    planted = not row["world"]
    question = asked(measure, row["null"], planted=planted)
    if not question:
        return None
    return Check(
        *(analysis, row["model"], planted, reading, way, question, measure),
        *(row["value"], row["low"], row["high"], row["n"], row["null"]),
        verdict(question, measure, row),
    )


def parted(measure: str) -> tuple[str, str, str]:
    """Return the reading, the way of asking and the measure itself.

    Examples
    --------
    >>> parted("filled, continuous, axes-en: order of planted stances")
    ('continuous', 'filled, axes-en', 'order of planted stances')
    >>> parted("ADJ: share of words")
    ('', '', 'ADJ: share of words')
    """
    head, colon, rest = measure.partition(": ")
    pieces = head.split(", ")
    known = [piece for piece in pieces if piece in READINGS]
    if not (colon and known):
        return "", "", measure
    others = [piece for piece in pieces if piece != known[-1]]
    return known[-1], ", ".join(others), rest


def asked(measure: str, null: str, *, planted: bool) -> str:
    """Return the question that a measure answers; '' if it answers none."""
    if "interval" in measure:
        return HOLD
    if RANDOM.search(measure):
        return SILENT
    if DIFFERENCE.search(measure):
        return FOUND if planted else SILENT
    if planted and SIGN.search(measure):
        return FOUND
    if planted and RELATED.search(measure):
        return ORDER
    alone = "other differences" in measure or "control, one seed" in measure
    nothing = "no nominal value" not in null and (not planted or alone)
    return SILENT if nothing and TESTED.search(measure) else ""


def verdict(question: str, measure: str, row: dict[str, Any]) -> str:
    """Judge a number by its interval, or where it has none by itself.

    What was planted is found, or in order, if the interval lies above chance; 'no' if the number
    itself does not; else it is unclear. Intervals hold the truth, and a probe is silent, unless
    that is outside of the interval of the share.
    """
    value, low, high = row["value"], row["low"], row["high"]
    if question in (FOUND, ORDER):
        chance = _chance(question, measure)
        if value <= chance:
            return NO
        return YES if low is not None and low > chance else UNCLEAR
    if question == HOLD:
        return YES if (value if high is None else high) >= NOMINAL else NO
    if RANDOM.search(measure) or DIFFERENCE.search(measure):
        # the test's expectation is the number that what it is judged against begins with
        expected = float(row["null"].partition(":")[0])
        inside = low is not None and low <= expected <= high
        return YES if inside else NO
    return YES if (value if low is None else low) <= FALSE else NO


def _chance(question: str, measure: str) -> float:
    if question == ORDER or DIFFERENCE.search(measure):
        return 0.0
    return FALSE if TESTED.search(measure) or "that are found" in measure else 0.5
