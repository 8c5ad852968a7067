"""The tables of reasons on the page of calibration: what each row is of, and its figures.

What is outside of its bounds, found by a decoy, or not simulated needs a row, and a row needs
something that it is of. The figures of a row are of the tables: the least and the largest.
"""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

import polars as pl

from plumbline.probes.report import error_rates

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

OUTSIDE, DECOYS, LACKING = (
    "## Outside of their bounds, and why",
    "## What decoys find, and why",
    "## Not simulated, and why",
)
WITH_FIGURES = (OUTSIDE, DECOYS)
SIZES, APART = 3, 1.1  # of planted effects, and by what factor they are apart at least


class Case(NamedTuple):
    """What needs a reason."""

    analysis: str
    test: str
    what: str  # measure and side, name of a decoy, or what is lacking
    value: float | None = None


class Reason(NamedTuple):
    """A row: of which tests, what of them, and why."""

    analysis: str
    tests: tuple[str, ...]  # patterns
    what: str
    figures: str  # empty where it has none
    why: str

    def explains(self, case: Case, pattern: str = "") -> bool:
        """Tell whether a row, or one pattern of its tests, is of a case."""
        same = case.analysis == self.analysis and case.what == self.what
        patterns = (pattern,) if pattern else self.tests
        return same and any(fnmatchcase(case.test, of) for of in patterns)

    def row(self) -> str:
        """Return the row as it stands on the page."""
        tests = "; ".join(f"`{of}`" for of in self.tests)
        cells = [self.analysis, tests, self.what, *filter(None, [self.figures]), self.why]
        return f"| {' | '.join(cells)} |"


def reasons(text: str, section: str) -> list[Reason]:
    """Return the rows of a section of the page."""
    rows = text.partition(f"{section}\n")[2].partition("\n## ")[0].splitlines()
    cells = [row.strip("| ").split(" | ") for row in rows if row.startswith("| ")]
    found = []
    for analysis, tests, what, *figures, why in cells[1:]:  # without the heads
        patterns = tuple(re.findall("`([^`]+)`", tests))
        found.append(Reason(analysis, patterns, what, *figures or [""], why))
    return found


def outside(table: pl.DataFrame) -> Iterator[Case]:
    """Yield what is outside of its bounds by its whole interval."""
    analysis = table["analysis"][0]
    for line in error_rates.lines(table):
        for of in line["beyond"]:
            yield Case(analysis, line["test"], f"{of.measure}, {of.side}", of.value)


def decoys(table: pl.DataFrame) -> Iterator[Case]:
    """Yield what decoys make be found more often than right tests may find nothing."""
    most = error_rates.BOUNDS[error_rates.SIZE][1]
    often = table.filter(pl.col("measure") == error_rates.WRONG, pl.col("low") > most)
    for row in often.iter_rows(named=True):
        yield Case(row["analysis"], row["test"], row["truth"], row["value"])


def lacking(table: pl.DataFrame) -> Iterator[Case]:
    """Yield which tests lack a true null, three planted sizes, a decoy, or `detectable`."""
    measure = pl.col("measure")
    told = table.filter(~pl.col("test").str.starts_with(error_rates.NOT_IN_TABLES))
    counted = (
        told.filter(
            measure.is_in(
                [error_rates.SIZE, error_rates.FOUND_05, error_rates.WRONG, *error_rates.TOLD]
            )
        )
        .group_by("analysis", "test")
        .agg(
            null=(measure == error_rates.SIZE).any(),
            sizes=pl.col("effect").filter(measure == error_rates.FOUND_05).unique().sort(),
            decoy=(measure == error_rates.WRONG).any(),
            detectable=(measure == error_rates.DETECTABLE).any(),
        )
    )
    for row in counted.sort("analysis", "test").iter_rows(named=True):
        row["sizes"] = apart(row["sizes"]) >= SIZES
        yield from (
            Case(row["analysis"], row["test"], what)
            for what in ("null", "sizes", "decoy", "detectable")
            if not row[what]
        )


def apart(sizes: list[float]) -> int:
    """Return how many of some sizes, from the smallest on, are not those before once more."""
    number, last = 0, 0.0
    for size in sizes:
        if size >= APART * last:
            number, last = number + 1, size
    return number


CASES: dict[str, Callable[[pl.DataFrame], Iterator[Case]]] = {
    OUTSIDE: outside,
    DECOYS: decoys,
    LACKING: lacking,
}


def cases(section: str, folder: Path) -> list[Case]:
    """Return what needs a reason in a section, of all tables in a folder."""
    paths = sorted(folder.glob("*/calibration.parquet"))
    return list(chain.from_iterable(CASES[section](pl.read_parquet(path)) for path in paths))


def span(values: list[float]) -> str:
    """Return the least and the largest of some shares as they are written.

    Examples
    --------
    >>> span([0.714, 0.9]), span([1.0, 0.996]), span([0.0, 0.0203])
    ('.71 to .90', '.996 to 1', '0 to .020')
    """
    digits = 3 if all(v < 0.1 or v > 0.9 for v in values) else 2
    each = [f"{v:.{digits}f}" for v in (min(values), max(values))]
    short = [f"{float(end):g}" if float(end) in (0, 1) else end.lstrip("0") for end in each]
    return " to ".join(dict.fromkeys(short))


def with_figures(text: str, folder: Path) -> str:
    """Return the page with the figures of its rows; "none" where a row is of nothing.

    Raises ValueError if a row is not written as others are.
    """
    for section in WITH_FIGURES:
        every = cases(section, folder)
        for reason in reasons(text, section):
            own = [c.value for c in every if reason.explains(c) and c.value is not None]
            figures = span(own) if own else "none"
            if reason.row() not in text:
                raise ValueError(f"{section[3:]}: mend the row that should be {reason.row()!r}")
            text = text.replace(reason.row(), reason._replace(figures=figures).row(), 1)
    return text
