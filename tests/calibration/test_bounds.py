"""Rates outside of their bounds in the tables of calibration: each has its reason on the page."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from typing import NamedTuple

import polars as pl
import pytest
from documented import TOP

from plumbline.probes.calibration import summary
from plumbline.probes.calibration.calibrate import FOLDER, those

PAGE = TOP / "docs/methods/calibration.md"
ROW = re.compile(r"^\| (\w+) \| (`.+`) \| (.+?) \| (.+) \|$", re.MULTILINE)
RATE = re.compile(r"(?P<measure>.+?)(?: \(.+\))? is [\d.]+, (?P<side>above|below) ")


class Declared(NamedTuple):
    """A line of the page's table of what is outside, and why."""

    analysis: str
    tests: tuple[str, ...]
    outside: str
    why: str

    def explains(self, analysis: str, test: str, outside: str) -> bool:
        same = analysis == self.analysis and outside == self.outside
        return same and any(fnmatchcase(test, of) for of in self.tests)


def declared() -> list[Declared]:
    text = PAGE.read_text(encoding="utf-8").partition("## Outside of their bounds, and why")[2]
    rows = ROW.findall(text.partition("\n## ")[0])
    return [Declared(of, tuple(re.findall("`([^`]+)`", tests)), *own) for of, tests, *own in rows]


def outside(analysis: str) -> list[tuple[str, str, str]]:
    """Return what is outside by its whole interval: analysis, test, rate and side."""
    path = TOP / FOLDER / analysis / "calibration.parquet"
    lines = summary.lines(pl.read_parquet(path)) if path.is_file() else []
    found = [(line["test"], RATE.match(text)) for line in lines for text in line["outside"]]
    return [(analysis, test, f"{of['measure']}, {of['side']}") for test, of in found if of]


@pytest.mark.parametrize("analysis", those())
def test_what_is_outside_of_its_bounds_has_a_reason(analysis):
    lacking = {of for of in outside(analysis) if not any(row.explains(*of) for row in declared())}
    assert not lacking, f"{PAGE.name} does not say why"


def test_no_reason_is_of_what_is_inside():
    every = [of for analysis in those() for of in outside(analysis)]
    dead = [row for row in declared() if not any(row.explains(*of) for of in every)]
    assert len(declared()) > 20
    assert not dead
