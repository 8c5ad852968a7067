"""What a page is made of: sections of figures and tables, and cells as they are written."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any, NamedTuple

import polars as pl

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

LEVEL = 0.05  # of adjusted p: what is marked
MISSING = "–"
Row = dict[str, Any]


class Linked(str):
    """HTML with a link, which the templates write as it is."""

    __slots__ = ()

    def __html__(self) -> str:
        """Return itself."""
        return self


def link(address: str, text: str) -> Linked:
    """Return a link to an address, relative to the page that it stands on.

    Examples
    --------
    >>> link("values.html#controls", "a & b")
    '<a href="values.html#controls">a &amp; b</a>'
    """
    return Linked(f'<a href="{escape(address)}">{escape(text)}</a>')


class Table(NamedTuple):
    """Cells as they are shown; the first of a row is its header."""

    caption: str
    words: tuple[str, ...]  # columns of text, which come first
    numbers: tuple[str, ...]  # columns of numbers
    rows: list[list[str]]


class Part(NamedTuple):
    """A figure and tables that belong together."""

    figure: str = ""  # SVG
    caption: str = ""
    tables: tuple[Table, ...] = ()
    open: bool = False  # whether tables are never folded, however long


class Block(NamedTuple):
    """Parts that can be folded; without a title they are always shown."""

    title: str
    parts: list[Part]


class Group(NamedTuple):
    """The blocks of a table or of a model."""

    title: str
    blocks: list[Block]
    name: str = ""  # id on the page


class Section(NamedTuple):
    """The results of an analysis, or another part of a page."""

    name: str  # id on the page
    title: str
    note: str
    groups: list[Group]
    stage: str  # that makes its tables


class Study(NamedTuple):
    """A page of the site, as ``page.yaml`` of a study declares it."""

    name: str  # of the folder, the page and the study in the docs
    title: str
    about: str
    paper: str
    analyses: Mapping[str, str]  # a note for each
    probes: Sequence[str]
    datasets: Sequence[str]
    limits: Sequence[Mapping[str, Any]] = ()  # known ones: columns of recovery, and `about`
    directions: Mapping[str, Sequence[str]] = {}  # ANALYSIS/TABLE: what lies below and above 0


def listed(
    rows: Sequence[Row],
    words: Mapping[str, str],
    numbers: Mapping[str, str] | None = None,
    caption: str = "",
    digits: int = 3,
) -> Table:
    """Return rows as a table on the page.

    Parameters
    ----------
    words, numbers
        Columns and their heads. ``interval`` is the interval from low to high.
    digits
        Decimals of numbers that are no p-values.
    """
    numbers = numbers or {}
    cells = [
        [cell(row[name]) for name in words] + [_number_cell(row, name, digits) for name in numbers]
        for row in rows
    ]
    return Table(caption, tuple(words.values()), tuple(numbers.values()), cells)


def _number_cell(row: Row, name: str, digits: int) -> str:
    if name == "interval":
        return interval(row, digits)
    is_p = name == "p" or name.startswith("p_")
    return probability(row[name]) if is_p else cell(row[name], digits)


def probability(value: float | None, digits: int = 4) -> str:
    """Write a p-value; a small one as below a bound, since no p is 0.

    Examples
    --------
    >>> probability(0.01234), probability(0.00004)
    ('0.0123', '< 0.0001')
    """
    if value is not None and 0 < value < 10**-digits:
        return f"< {10**-digits:.{digits}f}"
    return number(value, digits)


def cell(value: Any, digits: int = 3) -> str:
    """Write what is in a cell."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return value or MISSING
    if isinstance(value, list):
        return ", ".join(map(str, value)) or MISSING
    return f"{value:,}" if isinstance(value, int) else number(value, digits)


def number(value: float | None, digits: int = 3) -> str:
    """Write a number; a dash where there is none, and no minus before a zero."""
    return MISSING if value is None else f"{round(value, digits) + 0.0:.{digits}f}"


def interval(row: Row, digits: int = 3) -> str:
    """Write both ends of a row's interval.

    Examples
    --------
    >>> interval({"low": None, "high": 2.5}, 1)
    '−∞ to 2.5'
    """
    low, high = row["low"], row["high"]
    if low is None and high is None:
        return MISSING
    return (
        f"{'−∞' if low is None else number(low, digits)} to "
        f"{'∞' if high is None else number(high, digits)}"
    )


def usual(detectable: pl.Series) -> float | None:
    """Return the median of effects that tests would find; None where half would find none.

    Examples
    --------
    >>> usual(pl.Series([0.1, 0.4, None])), usual(pl.Series([0.1, None, None]))
    (0.4, None)
    """
    middle = detectable.cast(pl.Float64).fill_null(float("inf")).median()
    return middle if isinstance(middle, float) and middle < float("inf") else None


def sure(name: str = "p_bh") -> pl.Expr:
    """Return whether an adjusted p is there, and small."""
    return (pl.col(name) <= LEVEL).fill_null(value=False)
