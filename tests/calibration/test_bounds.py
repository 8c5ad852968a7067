"""The tables of calibration: what is outside of its bounds, or not simulated, has its reason."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from typing import NamedTuple

import polars as pl
import pytest
from documented import TOP

from plumbline.probes.calibration import summary
from plumbline.probes.calibration.calibrate import FOLDER, those
from plumbline.probes.calibration.rates import COVERAGE, FOUND_05, SIZE, WRONG

PAGE = TOP / "docs/methods/calibration.md"
ROW = re.compile(r"^\| (\w+) \| (`.+`) \| (.+?) \| (.+) \|$", re.MULTILINE)
RATE = re.compile(r"(?P<measure>.+?)(?: \(.+\))? is [\d.]+, (?P<side>above|below) ")


OUTSIDE, LACKING = "## Outside of their bounds, and why", "## Not simulated, and why"
SIZES, APART = 3, 1.1  # of planted effects, and by what factor they are apart at least
UNTOLD = "not in the tables: "  # tests of readings that have no p


class Declared(NamedTuple):
    """A line of a table of the page: what is outside, or lacking, and why."""

    analysis: str
    tests: tuple[str, ...]
    what: str
    why: str

    def explains(self, analysis: str, test: str, what: str) -> bool:
        same = analysis == self.analysis and what == self.what
        return same and any(fnmatchcase(test, of) for of in self.tests)


def declared(section: str) -> list[Declared]:
    text = PAGE.read_text(encoding="utf-8").partition(section)[2]
    rows = ROW.findall(text.partition("\n## ")[0])
    return [Declared(of, tuple(re.findall("`([^`]+)`", tests)), *own) for of, tests, *own in rows]


def outside(analysis: str) -> list[tuple[str, str, str]]:
    """Return what is outside by its whole interval: analysis, test, rate and side."""
    path = TOP / FOLDER / analysis / "calibration.parquet"
    lines = summary.lines(pl.read_parquet(path)) if path.is_file() else []
    found = [(line["test"], RATE.match(text)) for line in lines for text in line["outside"]]
    return [(analysis, test, f"{of['measure']}, {of['side']}") for test, of in found if of]


def lacking(table: pl.DataFrame) -> list[tuple[str, str, str]]:
    """Return which tests lack a true null, three planted sizes or a decoy: analysis, test, what."""
    measure = pl.col("measure")
    of_tests = table.filter(
        measure.is_in([SIZE, FOUND_05, WRONG]), ~pl.col("test").str.starts_with(UNTOLD)
    )
    counted = of_tests.group_by("analysis", "test").agg(
        null=(measure == SIZE).any(),
        sizes=pl.col("effect").filter(measure == FOUND_05).unique().sort(),
        decoy=(measure == WRONG).any(),
    )
    return [
        (row["analysis"], row["test"], what)
        for row in counted.sort("analysis", "test").iter_rows(named=True)
        for what in ("null", "sizes", "decoy")
        if not (row[what] if what != "sizes" else apart(row[what]) >= SIZES)
    ]


def apart(sizes: list[float]) -> int:
    """Return how many of some sizes, from the smallest on, are not those before once more."""
    number, last = 0, 0.0
    for size in sizes:
        if size >= APART * last:
            number, last = number + 1, size
    return number


def unsimulated(analysis: str) -> list[tuple[str, str, str]]:
    path = TOP / FOLDER / analysis / "calibration.parquet"
    return lacking(pl.read_parquet(path)) if path.is_file() else []


@pytest.mark.parametrize("analysis", those())
@pytest.mark.parametrize(("section", "found"), [(OUTSIDE, outside), (LACKING, unsimulated)])
def test_what_is_outside_or_not_simulated_has_a_reason(analysis, section, found):
    reasons = declared(section)
    without = [of for of in found(analysis) if not any(row.explains(*of) for row in reasons)]
    assert not without, f"{PAGE.name} does not say why"


@pytest.mark.parametrize(
    ("section", "found", "least"), [(OUTSIDE, outside, 20), (LACKING, unsimulated, 10)]
)
def test_no_reason_is_of_what_is_inside_or_simulated(section, found, least):
    every = [of for analysis in those() for of in found(analysis)]
    reasons = declared(section)
    dead = [row for row in reasons if not any(row.explains(*of) for of in every)]
    assert len(reasons) > least
    assert not dead


def test_a_test_without_its_null_a_third_size_or_a_decoy_is_seen():
    rows = [
        *[("whole", SIZE, 0.0), ("whole", WRONG, 0.0)],
        *[("whole", FOUND_05, size) for size in (0.1, 0.2, 0.4)],
        *[("half", FOUND_05, size) for size in (0.1, 0.2, 0.21)],
        ("half, interval", COVERAGE, 0.0),
        (f"{UNTOLD}half", FOUND_05, 0.1),
    ]
    table = pl.DataFrame(rows, ["test", "measure", "effect"], orient="row")
    found = lacking(table.with_columns(analysis=pl.lit("a")))
    assert found == [("a", "half", what) for what in ("null", "sizes", "decoy")]
