"""How well lexica tell the sentiment of texts: the analysis ``sentiment_lexica``, as Table 12."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from plumbline.probes.politicians.lexicon_evaluation import AGREEMENT, DIFFERENCES
from plumbline.probes.report.view import (
    Block,
    Group,
    Part,
    Section,
    Table,
    interval,
    labelled,
    number,
    parts,
)

if TYPE_CHECKING:
    from pathlib import Path

NOTE = (
    "Texts with labels, classified by the mean sentiment of their words: by the combined lexica, "
    "by each view of them, and by the plain mean of the views. Cuts between the labels are chosen "
    "on other texts. Chance: the same labels in a random order. p: against the majority class, "
    "one label for all texts. Combination less: the combination's measure less that of the "
    "row; above 0 it is better. Intervals: bootstrap over texts. p: McNemar's exact test for "
    "accuracy, labels swapped at random for macro-F1; adjusted over all tests of one kind."
)
WORDS = ("lexicon",)
NUMBERS = (
    *("words", "texts without any", "value", "interval", "chance", "p", "p adj."),
    *("combination less", "interval", "p", "p adj."),
)


def section(data: Path) -> Section:
    """Return a table for each language, corpus and measure."""
    title = "Lexica against labelled texts (Table 12)"
    path = data / "tables/sentiment_lexica/agreement.parquet"
    groups = []
    if path.is_file():
        agreement = labelled(pl.read_parquet(path), AGREEMENT)
        apart = labelled(pl.read_parquet(path.parent / "differences.parquet"), DIFFERENCES)
        keys = list(DIFFERENCES.key)
        both = agreement.join(apart, on=keys, how="left", suffix="_apart")
        blocks = [
            Block(f"{language}, {source}", _parts(part))
            for (language, source), part in parts(both, "language", "source")
        ]
        groups.append(Group("", blocks))
    return Section("sentiment_lexica", title, NOTE, groups, "sentiment_lexica")


def _parts(table: pl.DataFrame) -> list[Part]:
    found = []
    for (measure,), part in parts(table, "measure"):
        rows = part.sort("kind", "lexicon").to_dicts()
        caption = f"{measure}, {rows[0]['n']:,} texts"
        found.append(Part(tables=(Table(caption, WORDS, NUMBERS, [_cells(r) for r in rows]),)))
    return found


def _cells(row: dict[str, Any]) -> list[str]:
    name = row["lexicon"] if row["kind"] != "view" else f"view: {row['lexicon']}"
    if row["reason"]:
        name = f"{name} ({row['reason']})"
    of = {k: row[f"{k}_apart"] for k in ("value", "low", "high", "p", "p_bh")}
    return [
        *(name, f"{row['words']:,}", number(row["unknown"]), number(row["value"])),
        *(interval(row), number(row["chance"]), number(row["p"], 4), number(row["p_bh"], 3)),
        *(number(of["value"]), interval(of), number(of["p"], 4), number(of["p_bh"], 3)),
    ]
