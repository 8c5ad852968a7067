"""Declare the parts of a page, and format its numbers."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import polars as pl
from markupsafe import Markup

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

LEVEL = 0.05  # significance level of the adjusted p
MISSING = "–"
Row = dict[str, Any]


def link(address: str, text: str) -> Markup:
    """Return an HTML link to an address relative to the page.

    Examples
    --------
    >>> link("values.html#controls", "a & b")
    Markup('<a href="values.html#controls">a &amp; b</a>')
    """
    return Markup('<a href="{}">{}</a>').format(address, text)


class Table(NamedTuple):
    """A table of formatted cells; the first cell of each row is its header."""

    caption: str
    words: tuple[str, ...]  # headers of text columns, which come first
    numbers: tuple[str, ...]  # headers of numeric columns
    rows: list[list[str]]


class Part(NamedTuple):
    """A figure with its tables; the part is collapsed if it has a title."""

    title: str = ""
    figure: str = ""  # SVG
    caption: str = ""
    tables: tuple[Table, ...] = ()
    open: bool = False  # whether long tables are expanded


class Group(NamedTuple):
    """The parts that show one table or one model."""

    title: str
    parts: list[Part]
    name: str = ""  # id on the page


class Section(NamedTuple):
    """A section of a page, such as the results of an analysis."""

    name: str  # id on the page
    title: str
    note: str
    groups: list[Group]
    stage: str = ""  # name of the stage that writes its tables


class Study(NamedTuple):
    """A page of the site, as declared by ``page.yaml`` of a study."""

    name: str  # name of the folder, the page and the docs of the study
    title: str
    about: str
    paper: str
    analyses: Mapping[str, str]  # a note on each analysis
    probes: Sequence[str]
    datasets: Sequence[str]
    limits: Sequence[Mapping[str, Any]] = ()  # column values of the table recovery, and `about`
    directions: Mapping[str, Sequence[str]] = {}  # labels below and above 0, by table


def listed(
    rows: Sequence[Row],
    words: Mapping[str, str],
    numbers: Mapping[str, str] | None = None,
    caption: str = "",
) -> Table:
    """Return rows as a table for the page.

    ``words``, ``numbers``: headers of text and numeric columns; ``interval`` stands for the columns
    low and high.
    """
    numbers = numbers or {}
    cells = [
        [cell(row[name]) for name in words] + [_number_cell(row, name) for name in numbers]
        for row in rows
    ]
    return Table(caption, tuple(words.values()), tuple(numbers.values()), cells)


def _number_cell(row: Row, name: str) -> str:
    if name == "interval":
        return MISSING if row["low"] is row["high"] is None else " to ".join(_ends(row))
    return p_value(row[name]) if name == "p" or name.startswith("p_") else cell(row[name])


def cell(value: Any) -> str:
    """Format a value as the text of a cell."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return value or MISSING
    if isinstance(value, list):
        return ", ".join(map(str, value)) or MISSING
    return f"{value:,}" if isinstance(value, int) else number(value)


def number(value: float | None) -> str:
    """Format a number with at most three decimals, or with two significant digits below 0.01.

    Examples
    --------
    >>> number(0.7512), number(-12.34), number(123.4), number(0.00421), number(None)
    ('0.751', '-12.3', '123', '0.0042', '–')
    """
    if value is None or math.isnan(value):
        return MISSING
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    size = abs(value)
    if size < 0.01:
        return f"{value:.2g}" if value else "0"
    return f"{value:.{max(0, 3 - len(str(int(size)))) if size >= 1 else 3}f}"


def interval(row: Mapping[str, Any]) -> str:
    """Format the estimate of a row with its interval, which may be open or missing.

    Examples
    --------
    >>> interval({"value": 0.75, "low": 0.6, "high": None})
    '0.750 [0.600, ∞]'
    """
    if row["value"] is None or row["low"] is row["high"] is None:
        return number(row["value"])
    return f"{number(row['value'])} [{', '.join(_ends(row))}]"


def _ends(row: Mapping[str, Any]) -> tuple[str, str]:
    low, high = row["low"], row["high"]
    return "-∞" if low is None else number(low), "∞" if high is None else number(high)


def p_value(value: float | None) -> str:
    """Format a p-value with three decimals, or in scientific notation if it is small."""
    if value is None or math.isnan(value):
        return MISSING
    return f"{value:.3f}" if value >= 0.001 or value == 0 else f"{value:.0e}"


def median_detectable(detectable: pl.Series) -> float | None:
    """Return the median detectable effect, or None if at least half of the tests lack one.

    Examples
    --------
    >>> median_detectable(pl.Series([0.1, 0.4, None]))
    0.4
    """
    middle = detectable.cast(pl.Float64).fill_null(float("inf")).median()
    return middle if isinstance(middle, float) and middle < float("inf") else None


def is_significant(name: str = "p_bh") -> pl.Expr:
    """Return an expression that is True if an adjusted p is at most :data:`LEVEL`."""
    return (pl.col(name) <= LEVEL).fill_null(value=False)
