"""Classes of the words that go with each gender: the analysis ``supersenses``, as Figure 3."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from plumbline.probes.politicians.supersenses import SUPERSENSES
from plumbline.probes.report import figures
from plumbline.probes.report.view import (
    Block,
    Group,
    Part,
    Section,
    Table,
    interval,
    number,
    parts,
    tables,
)

if TYPE_CHECKING:
    from pathlib import Path

SHOWN = {"unit": "form", "counting": "best"}  # one reading of several
NOTE = (
    "Share of each class among the words with the largest deviations towards either gender; a word "
    "counts in its best class. Intervals: of shares Wilson's, given the two lists; of the "
    "difference a symmetric bootstrap over names, with words ranked anew. p: words of both "
    "lists relabelled; Bonferroni over 13 classes of adjectives or 15 of verbs, as in the paper, "
    "and Benjamini-Hochberg over all classes, parts of speech and pairs of genders. Other ways of "
    "counting are in the tables."
)
TESTED = ("interval", "difference", "interval", "p", "p Bonf.", "p adj.")


def section(data: Path) -> Section:
    """Return a figure and a table for each model, part of speech and pair of genders."""
    groups = []
    for name, table in tables(data, "supersenses", "supersenses", SUPERSENSES):
        shown = table.filter(pl.col(k) == v for k, v in SHOWN.items())
        blocks = [
            Block(f"{name}, {language}, {pos}, by {deviation}", _parts(part))
            for (language, pos, deviation), part in parts(shown, "language", "pos", "deviation")
        ]
        groups.append(Group(name, blocks))
    title = "Classes of the words of each gender (Figure 3)"
    return Section("supersenses", title, NOTE, groups, "supersenses")


def _parts(table: pl.DataFrame) -> list[Part]:
    pairs = parts(table, "first", "second")  # women and men come first, by the order of genders
    return [_part(own, first, second) for (first, second), own in pairs]


def _part(table: pl.DataFrame, first: str, second: str) -> Part:
    rows = table.sort("supersense").to_dicts()
    of = rows[0]
    sides = [
        f"{g} ({of[f'words_{side}']} words, {of[f'people_{side}']:,} people)"
        for g, side in ((first, "first"), (second, "second"))
    ]
    title = f"{first} and {second}"
    cells = [
        [
            r["supersense"],
            number(r["share_first"]),
            interval(r, side="_first"),
            number(r["share_second"]),
            interval(r, side="_second"),
            number(r["value"]),
            interval(r),
            number(r["p"], 4),
            number(r["p_bonferroni"], 3),
            number(r["p_bh"], 3),
        ]
        for r in rows
    ]
    return Part(
        f"{sides[0]} and {sides[1]}",
        figures.supersenses(rows, (first, second), title),
        tables=(Table("", ("class",), (first, "interval", second, *TESTED), cells),),
    )
