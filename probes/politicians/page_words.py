"""Words and genders: the analysis ``pmi``, and what each model was asked."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from plumbline.builders.datasets.words.build import POS
from plumbline.probes.politicians import pmi
from plumbline.probes.report import figures
from plumbline.probes.report.view import (
    Block,
    Group,
    Part,
    Section,
    Table,
    number,
    parts,
    ranking,
    tables,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

TOP = 10
UNDRAWN = {"ar", "zh", "hi"}  # scripts that the figures' font lacks: tables only
CAPTIONS = {"plug-in": "Faithful (plug-in)", "smoothed": "Corrected (smoothed)"}
NOTE = (
    "PMI (nats) of a word and a gender over the lists that the model gave for each name. Faithful: "
    "the plug-in estimate of the paper. Corrected: the smoothed one. Intervals: bootstrap over "
    "names. p: gender labels permuted over names, exact, two-sided; adjusted by Benjamini-Hochberg "
    "over all words, genders, parts of speech and languages of the model."
)


def section(data: Path) -> Section:
    """Return the highest words of each model, language, part of speech and gender."""
    groups = []
    for name, table in tables(data, "pmi", "pmi", pmi.SCHEMAS["pmi"]):
        vocabulary = Block("", [Part(tables=(_vocabulary(data, name),))])
        blocks = [
            Block(f"{name}, {language}, {pos}", list(_parts(part, f"{name}, {language}, {pos}")))
            for (language, pos), part in parts(table, "language", "pos")
        ]
        groups.append(Group(name, [vocabulary, *blocks]))
    return Section("results", "Words and genders", NOTE, groups, "pmi")


def highest(table: pl.DataFrame) -> pl.DataFrame:
    """Return the rows of the largest values, equal ones by the alphabet."""
    known = table.drop_nulls("value")
    return known.sort(["value", "word"], descending=[True, False]).head(TOP)


def _parts(table: pl.DataFrame, title: str) -> Iterator[Part]:
    for (gender,), part in parts(table.drop_nulls("value"), "gender"):
        best = {r: highest(own).to_dicts() for (r,), own in parts(part, "reading")}
        drawn = ""
        if best.get("smoothed") and part["language"][0] not in UNDRAWN:
            drawn = figures.words(best["smoothed"], f"{title}, {gender}: {TOP} highest")
        people = part["people"][0]
        shown = tuple(ranking(rows, CAPTIONS[r], "PMI") for r, rows in best.items())
        yield Part(f"{gender} ({people:,} people)", drawn, tables=shown)


def _vocabulary(data: Path, name: str) -> Table:
    coverage = pl.read_parquet(data / "outputs/associations" / name / "coverage" / "*.parquet")
    rows = [
        [
            r["language"],
            POS[r["pos"]],
            r["revision"][:12],
            r["dtype"],
            str(r["words"]),
            str(r["covered"]),
            number(r["tokens_covered"]),
            str(r["asked"]),
        ]
        for r in coverage.to_dicts()
    ]
    words = ("language", "part of speech", "revision", "dtype")
    return Table("Vocabulary", words, ("asked for", "covered", "of tokens", "list length"), rows)
