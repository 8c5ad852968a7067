"""Attributes of autocompletion among a model's best words: the analysis ``recall``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from plumbline.probes.report import figures_groups
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
from plumbline.probes.stereotypes.recall import EVERY, RECALL

if TYPE_CHECKING:
    from pathlib import Path

TITLE = "What search engines suggest, and models complete"
NOTE = (
    "Recall@k: share of the attributes that search engines suggest for a group and are among the "
    "model's k best tokens for the same question. Readings of typicality: faithful is the released "
    "code's, corrected is equation 3 as written. Two baselines: the same lists in random order, "
    "and the lists of other groups of the category, which p is against. Intervals: bootstrap over "
    "groups. First word: the first words of attributes of several words, which the paper lacks; a "
    "hit is that word alone, be it 'not', and no recall of the attribute."
)
WORDS = ("category", "reading", "attributes")
NUMBERS = (
    *("k", "sought", "not one token", "recall", "interval", "other groups", "random order"),
    *("p", "p adj.", "groups"),
)


def section(data: Path) -> Section:
    """Return curves and the tested k of each model and config of the dataset."""
    path = data / "tables/recall/recall.parquet"
    groups = []
    if path.is_file():
        table = labelled(pl.read_parquet(path), RECALL)
        for (model,), own in parts(table, "model"):
            blocks = [
                Block(f"{model}, attributes of {dataset}", _parts(part, f"{model}, {dataset}"))
                for (dataset,), part in parts(own, "dataset")
            ]
            groups.append(Group(model, blocks))
    return Section("recall", TITLE, NOTE, groups, "recall")


def _parts(table: pl.DataFrame, title: str) -> list[Part]:
    found = []
    single = table.filter(pl.col("attributes") == "single word")
    if len(single):
        found.append(Part(figure=figures_groups.curves(_panels(single), title)))
    rows = [
        _cells(row)
        for row in table.filter(pl.col("p").is_not_null())
        .sort(pl.col("category") != EVERY, "category", "attributes", "reading", "k")
        .to_dicts()
    ]
    return [*found, Part(tables=(Table("", WORDS, NUMBERS, rows),))]


def _panels(table: pl.DataFrame) -> dict[str, list[dict[str, Any]]]:
    names = [n for n in table["category"].unique().sort().to_list() if n != EVERY]
    columns = ("k", "value", "low", "high", "chance", "exchanged")
    found = {}
    for category in [EVERY, *names]:
        own = table.filter(pl.col("category") == category).sort("reading", "k")
        found[category] = [
            {"reading": reading} | {name: part[name].to_list() for name in columns}
            for (reading,), part in parts(own, "reading")
        ]
    return found


def _cells(row: dict[str, Any]) -> list[str]:
    unknown = row["out_of_vocabulary"]
    return [
        *(row["category"], row["reading"], row["attributes"], str(row["k"]), f"{row['sought']:,}"),
        *(number(unknown), number(row["value"], 3), interval(row, 3), number(row["exchanged"], 3)),
        *(number(row["chance"], 3), number(row["p"], 4), number(row["p_bh"], 3), str(row["n"])),
    ]
