"""What a section of the page is made of, and how numbers are written in it."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

import polars as pl

from plumbline.builders.datasets.politicians.build import GENDERS
from plumbline.probes.report.given import asked

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from plumbline.builders.core.schema import Schema

LEVEL = 0.05  # of adjusted p: what is marked


class Table(NamedTuple):
    """Cells as they are shown; the first of a row is its header."""

    caption: str
    words: tuple[str, ...]  # columns of text, which come first
    numbers: tuple[str, ...]  # columns of numbers
    rows: list[list[str]]


class Part(NamedTuple):
    """A figure and tables that belong together."""

    heading: str = ""
    figure: str = ""  # SVG
    caption: str = ""
    tables: tuple[Table, ...] = ()
    beside: bool = False  # the part before it: two readings of one thing


class Block(NamedTuple):
    """What one may fold; without a title it stands open."""

    title: str
    parts: list[Part]


class Group(NamedTuple):
    """The blocks of a model, of a world or of a kind of models."""

    title: str
    blocks: list[Block]


class Section(NamedTuple):
    """A step of the study."""

    name: str  # id on the page
    title: str
    note: str
    groups: list[Group]
    stage: str  # that makes its tables


def labelled(table: pl.DataFrame, schema: Schema) -> pl.DataFrame:
    """Return a table with labels in place of their codes, which sort in the order of the codes."""
    return table.with_columns(
        pl.col(c.name).replace_strict(
            list(range(len(c.labels))), list(c.labels), return_dtype=pl.Enum(c.labels)
        )
        for c in schema.columns
        if c.kind == "label" and c.name in table.columns
    )


def files(data: Path, analysis: str, name: str) -> Iterator[Path]:
    """Yield the files of a table, of every model that has it and is still asked for."""
    for model in asked(analysis):
        path = data / "tables" / analysis / model / f"{name}.parquet"
        if path.is_file():
            yield path


def tables(
    data: Path, analysis: str, name: str, schema: Schema
) -> Iterator[tuple[str, pl.DataFrame]]:
    """Yield model and table, with labels, of every model that has the table with rows in it."""
    for path in files(data, analysis, name):
        table = pl.read_parquet(path)
        if len(table):
            yield path.parent.name, labelled(table, schema)


def parts(table: pl.DataFrame, *keys: str) -> Iterator[tuple[tuple[Any, ...], pl.DataFrame]]:
    """Yield values of some columns and the rows that have them, in order of the values."""
    yield from table.sort(*keys, maintain_order=True).group_by(*keys, maintain_order=True)


def number(value: float | None, digits: int = 2) -> str:
    """Write a number; a dash where there is none, and no minus before a zero."""
    return "–" if value is None else f"{round(value, digits) + 0.0:.{digits}f}"


def interval(row: dict[str, Any], digits: int = 2, side: str = "") -> str:
    """Write low and high of a row."""
    low, high = row[f"low{side}"], row[f"high{side}"]
    if low is None and high is None:
        return "–"
    return (
        f"{'−∞' if low is None else number(low, digits)} to "
        f"{'∞' if high is None else number(high, digits)}"
    )


def counted(people: Iterable[tuple[str, int]]) -> str:
    """Write how many people, or names, of each gender there are.

    Examples
    --------
    >>> counted([("female", 20), ("male", 30)])
    '30 male, 20 female'
    """
    order = sorted(people, key=lambda each: GENDERS.index(each[0]))
    return ", ".join(f"{n:,} {gender}" for gender, n in order)


def grouped(found: Iterable[tuple[str, Block]]) -> list[Group]:
    """Gather blocks by the title of their group, which come in order."""
    return [
        Group(title, [block for _, block in each]) for title, each in groupby(found, lambda x: x[0])
    ]


def ranking(rows: Sequence[dict[str, Any]], caption: str, what: str) -> Table:
    """Return the table of the highest words, with the lists that they are in.

    Parameters
    ----------
    rows
        Keys word, value, low, high, count, people, p and p_bh.
    what
        What the value is.
    """
    return Table(
        caption,
        ("word",),
        (what, "interval", "lists", "p", "p adj."),
        [
            [
                r["word"],
                number(r["value"]),
                interval(r),
                f"{r['count']:,} of {r['people']:,}",
                number(r["p"], 4),
                number(r["p_bh"], 3),
            ]
            for r in rows
        ],
    )
