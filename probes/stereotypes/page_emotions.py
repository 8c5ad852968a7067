"""Emotions of the words that go with social groups: the analysis ``emotions``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from plumbline.builders.datasets.emotions.build import AFFECTS
from plumbline.probes.report import figures_groups
from plumbline.probes.report.view import (
    LEVEL,
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
from plumbline.probes.stereotypes.emotions import EMOTIONS

if TYPE_CHECKING:
    from pathlib import Path

TITLE = "Emotions that groups evoke"
SHOWN = 15  # groups and affects in the table of largest differences
NOTE = (
    "Share of a group's words that carry each emotion or sentiment of the NRC lexicon, among those "
    "that the lexicon has. Dots: the share differs from that of all other groups at an adjusted p "
    "of at most 0.05, affects permuted over words; of categories: groups permuted over "
    "categories. Shares tell about models, and nothing about people."
)


def section(data: Path) -> Section:
    """Return heat maps of categories for each model and ranking, of groups for the shortest lists.

    The longer lists are, the more groups are alike in them.
    """
    path = data / "tables/emotions/emotions.parquet"
    groups = []
    if path.is_file():
        table = labelled(pl.read_parquet(path), EMOTIONS)
        for (model,), own in parts(table, "model"):
            blocks: list[Block] = []
            for (language, reading), part in parts(own, "language", "reading"):
                title = f"{model}, {language}: {part['k'][0]} words by {reading}"
                shortest = own.filter(pl.col("language") == language)["k"].min()
                blocks += _blocks(part, title, single=bool(part["k"][0] == shortest))
            groups.append(Group(model, blocks))
    return Section("emotions", TITLE, NOTE, groups, "emotions")


def _blocks(table: pl.DataFrame, title: str, *, single: bool) -> list[Block]:
    """Return the block of categories, and with ``single`` one for the groups of each."""
    categories = table.filter(pl.col("level") == "category")
    groups = table.filter(pl.col("level") == "group")
    found = [
        Block(
            title,
            [
                Part("categories", _heat(categories, "category", title)),
                Part(tables=(_coverage(categories), _largest(groups))),
            ],
        )
    ]
    for (category,), own in parts(groups, "category") if single else ():
        name = f"{title}: groups of {category}"
        found.append(Block(name, [Part(figure=_heat(own, "group", name))]))
    return found


def _heat(table: pl.DataFrame, name: str, title: str) -> str:
    ordered = table.sort(name, "affect")
    rows = ordered[name].unique(maintain_order=True).to_list()
    value = ordered["value"].cast(pl.Float64).fill_null(float("nan")).to_numpy()
    marked = (ordered["p_bh"] <= LEVEL).fill_null(value=False).to_numpy()
    shape = (len(rows), len(AFFECTS))
    shares = 100 * value.reshape(shape)
    return figures_groups.heat(
        shares, rows, AFFECTS, marked.reshape(shape) & ~np.isnan(shares), title
    )


def _coverage(categories: pl.DataFrame) -> Table:
    one = categories.filter(pl.col("affect") == AFFECTS[0]).sort("category")
    rows = [[r["category"], str(r["n"]), number(r["coverage"])] for r in one.to_dicts()]
    return Table("Words in the lexicon", ("category",), ("groups", "share"), rows)


def _largest(single: pl.DataFrame) -> Table:
    ordered = single.drop_nulls("difference").sort(
        pl.col("difference").abs(), "group", "affect", descending=[True, False, False]
    )
    rows = [_cells(row) for row in ordered.head(SHOWN).to_dicts()]
    numbers = ("share", "difference", "interval", "words", "p", "p adj.")
    caption = "Largest differences from all other groups"
    return Table(caption, ("group", "category", "affect"), numbers, rows)


def _cells(row: dict[str, Any]) -> list[str]:
    apart = {"low": row["low_difference"], "high": row["high_difference"]}
    return [
        *(row["group"], row["category"], row["affect"], number(row["value"])),
        *(number(row["difference"]), interval(apart), f"{row['carrying']} of {row['covered']}"),
        *(number(row["p"], 4), number(row["p_bh"], 3)),
    ]
