"""How alike models are in the emotions of groups: the analysis ``rsa``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
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
from plumbline.probes.stereotypes.rsa import EVERY, RSA

if TYPE_CHECKING:
    from pathlib import Path

TITLE = "How alike models are in the emotions of groups"
NOTE = (
    "Cosine similarities of the groups' emotion profiles in one model, against those in another: "
    "Spearman correlation of each group's row, mean over groups. Faithful has each group's "
    "similarity to itself among the pairs, which alone gives 3 / (n + 1) for n groups without any "
    "relation: 0.3 for nine. Expected is that part; corrected has none. p: groups of one model "
    "relabelled. Intervals: bootstrap over groups, no group compared with a copy of itself."
)
WORDS = ("first", "second", "category", "reading")
NUMBERS = ("groups", "value", "interval", "expected", "p", "p adj.")


def section(data: Path) -> Section:
    """Return the matrix of models, and all pairs and categories, for each ranking."""
    path = data / "tables/rsa/rsa.parquet"
    blocks = []
    if path.is_file():
        table = labelled(pl.read_parquet(path), RSA)
        for (language, ranking), part in parts(table, "language", "ranking"):
            title = f"{language}: {part['k'][0]} words by {ranking}"
            rows = [_cells(row) for row in part.sort(*WORDS).to_dicts()]
            found = [
                Part(figure=_matrix(part, title)),
                Part(tables=(Table("", WORDS, NUMBERS, rows),)),
            ]
            blocks.append(Block(title, found))
    groups = [Group("", blocks)] if blocks else []
    return Section("rsa", TITLE, NOTE, groups, "rsa")


def _matrix(table: pl.DataFrame, title: str) -> str:
    own = table.filter(pl.col("reading") == "corrected", pl.col("category") == EVERY)
    names = sorted({*own["first"], *own["second"]})
    values = np.full((len(names), len(names)), np.nan)
    np.fill_diagonal(values, 1)
    for row in own.to_dicts():
        i, j = names.index(row["first"]), names.index(row["second"])
        value = np.nan if row["value"] is None else row["value"]
        values[i, j] = values[j, i] = value
    return figures_groups.matrix(values, names, f"{title}, corrected, all categories")


def _cells(row: dict[str, Any]) -> list[str]:
    return [
        *(row["first"], row["second"], row["category"], row["reading"], str(row["n"])),
        *(number(row["value"]), interval(row), number(row["expected"])),
        *(number(row["p"], 4), number(row["p_bh"], 3)),
    ]
