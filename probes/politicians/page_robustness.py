"""Which headline numbers move, and with what: the analysis ``robustness``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from plumbline.probes.politicians.robustness import ROBUSTNESS
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

NOTE = (
    "The differences of shares between men and women, and the shares of non-binary people, with "
    "one thing done otherwise at a time. Numbers that move come first, by the size of the change "
    "from the default (by the latent-variable model, from its own); the others are folded. Default "
    "held: whether the interval has the default in it. p: genders permuted over distinct names; "
    "adjusted within one variation, over all "
    "languages, parts of speech and sentiments."
)
WORDS = ("what is varied", "language", "part of speech", "number", "sentiment", "default held")
NUMBERS = ("change", "value", "interval", "men", "women", "non-binary", "words", "p", "p adj.")


def section(data: Path) -> Section:
    """Return, for each model, what moves most with what, and all numbers by their change."""
    groups = []
    for name, table in tables(data, "robustness", "robustness", ROBUSTNESS):
        by = pl.lit(", by ") + pl.col("deviation").cast(pl.String)
        plain = pl.col("number").cast(pl.String)
        told = pl.when(pl.col("deviation") == "pmi").then(plain).otherwise(plain + by)
        varied = table.filter(pl.col("kind") != "default").with_columns(number=told)
        size = pl.col("change").abs()
        order = [k for k in ROBUSTNESS.key if k in varied.columns]
        moved = varied.filter(size > 0).sort(order).sort(size, descending=True, maintain_order=True)
        still = varied.filter(size == 0).sort(order)
        lacking = varied.filter(size.is_null()).sort(order)
        blocks = [Block("", [Part(tables=(_summary(varied),))])]
        for what, rows in (("that move", moved), ("that stay as they are", still)):
            if len(rows):
                title = f"{name}: {len(rows):,} numbers {what}"
                blocks.append(Block(title, [Part(tables=(_listed(rows),))]))
        if len(lacking):
            title = f"{name}: {len(lacking):,} numbers that cannot be had"
            blocks.append(Block(title, [Part(tables=(_reasons(lacking),))]))
        groups.append(Group(name, blocks))
    return Section("robustness", "Which numbers move, and with what", NOTE, groups, "robustness")


def _summary(varied: pl.DataFrame) -> Table:
    rows = []
    for (kind, number_), part in parts(varied, "kind", "number"):
        change = part["change"].drop_nulls().abs()
        if change.is_empty():
            continue
        left = int((~part["holds_default"].drop_nulls()).sum())
        largest = number(change.max())  # type: ignore[arg-type]
        rows.append([kind, number_, f"{len(change):,}", f"{int((change > 0).sum()):,}"])
        rows[-1] += [largest, str(left)]
    numbers = ("numbers", "moved", "largest change", "default not held")
    return Table("Changes from the default", ("what is varied", "number"), numbers, rows)


def _listed(table: pl.DataFrame) -> Table:
    return Table("", WORDS, NUMBERS, [_cells(row) for row in table.to_dicts()])


def _cells(row: dict[str, Any]) -> list[str]:
    held = {True: "yes", False: "no", None: "–"}[row["holds_default"]]
    names = [f"{row[k]:,}" for k in ("men", "women", "others")]
    return [
        *(f"{row['kind']}: {row['variation']}", row["language"], row["pos"], row["number"]),
        *(row["sentiment"], held, number(row["change"]), number(row["value"]), interval(row)),
        *(*names, f"{row['largest']} of {row['candidates']}"),
        *(number(row["p"], 4), number(row["p_bh"], 3)),
    ]


def _reasons(table: pl.DataFrame) -> Table:
    """Return how many numbers there are not, and why."""
    keys = ("kind", "variation", "language", "pos", "number", "reason")
    whole = table.with_columns(pl.col("reason").fill_null("the default cannot be had"))
    rows = [
        [f"{kind}: {variation}", language, pos, what, reason, str(len(part))]
        for (kind, variation, language, pos, what, reason), part in parts(whole, *keys)
    ]
    return Table("", (*WORDS[:4], "why"), ("numbers",), rows)
