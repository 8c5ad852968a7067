"""Figures of the analysis ``sentiment``, as the paper's Figures 4 and 6."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from plumbline.probes.politicians.sentiment import DIFFERENCES, SHARES
from plumbline.probes.report import figures
from plumbline.probes.report.view import (
    LEVEL,
    Block,
    Group,
    Part,
    Section,
    counted,
    labelled,
    parts,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NOTE = (
    "Shares of positive, negative and neutral words among those that deviate most towards each "
    "gender. Grey line: share among all candidate words, against which a share is to be read. "
    "Star: men and women differ, adjusted p at most 0.05 over all models, languages, parts of "
    "speech and sentiments; genders permuted over names where words are ranked by PMI, words "
    "permuted between the lists (as in the paper) where by the latent-variable model."
)


def section(data: Path) -> Section:
    """Return the figures of all rankings and readings."""
    found = blocks(data / "tables/sentiment")
    title = "Sentiments of the words that deviate most (Figures 4 and 6)"
    return Section("sentiments", title, NOTE, [Group("", found)] if found else [], "sentiment")


def blocks(folder: Path) -> list[Block]:
    """Return figures by what words are ranked by, reading and part of speech.

    Models are compared in each language (Figure 4), and languages in each model that was asked in
    several (Figure 6).

    Parameters
    ----------
    folder
        Of the tables; where there are none there are no figures.
    """
    if not (folder / "shares.parquet").is_file():
        return []
    keys = ["model", "language", "pos", "deviation", "reading", "sentiment"]
    apart = (
        labelled(pl.read_parquet(folder / "differences.parquet"), DIFFERENCES)
        .sort("test")  # that of names comes last, and counts where there is one
        .group_by(keys, maintain_order=True)
        .agg(pl.col("p_bh").last())
    )
    shares = labelled(pl.read_parquet(folder / "shares.parquet"), SHARES).drop("p", "p_bh")
    table = shares.join(apart, on=keys, how="left")
    found = []
    for values, part in parts(table, "deviation", "reading", "pos"):
        deviation, reading, pos = values
        what = f"{pos}, {deviation}, {reading}"
        found.append(Block(what, list(_parts(part, what))))
    return found


def _parts(part: pl.DataFrame, what: str) -> Iterator[Part]:
    for (language,), here in parts(part, "language"):
        yield _part(here, "model", f"{language}: {what}")
    several = part.filter(pl.col("language").n_unique().over("model") > 1)
    for (model,), here in parts(several, "model"):
        yield _part(here, "language", f"{model}: {what}")


def _part(part: pl.DataFrame, label: str, title: str) -> Part:
    rows = _rows(part, label)
    names = {row["label"]: {} for row in rows}  # type: dict[str, dict[str, int]]
    for row in rows:
        names[row["label"]][row["gender"]] = row["names"]
    caption = "; ".join(f"{one}: {counted(of.items())}" for one, of in names.items())
    return Part(figure=figures.sentiments(rows, title), caption=f"Distinct names. {caption}.")


def _rows(part: pl.DataFrame, label: str) -> list[dict[str, Any]]:
    return [
        {
            "label": row[label],
            "significant": row["p_bh"] is not None and row["p_bh"] <= LEVEL,
            **{k: row[k] for k in ("sentiment", "gender", "value", "low", "high", "base", "names")},
        }
        for row in part.sort(label, "gender", "sentiment").iter_rows(named=True)
    ]
