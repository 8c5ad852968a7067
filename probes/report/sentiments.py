"""Figures of the analysis ``sentiment``, as the paper's Figures 4 and 6."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from builders.politicians import GENDERS
from builders.words import POS
from probes.report import figures
from probes.sentiments import DEVIATIONS, READINGS
from probes.world.language import SENTIMENTS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LEVEL = 0.05


def blocks(folder: Path) -> list[dict[str, Any]]:
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
        pl.read_parquet(folder / "differences.parquet")
        .sort("test")  # that of names comes last, and counts where there is one
        .group_by(keys, maintain_order=True)
        .agg(pl.col("p_bh").last(), pl.col("test").last())
    )
    shares = pl.read_parquet(folder / "shares.parquet").drop("p", "p_bh")
    table = shares.join(apart, on=keys, how="left")
    found = []
    order = ["deviation", "reading", "pos"]
    for (deviation, reading, pos), part in table.sort(order).group_by(order, maintain_order=True):
        what = f"{POS[pos]}, {DEVIATIONS[deviation]}, {READINGS[reading]}"
        found.append({"title": what, "figures": list(_figures(part, what))})
    return found


def _figures(part: pl.DataFrame, what: str) -> Iterator[str]:
    for language in part["language"].unique().sort():
        here = part.filter(pl.col("language") == language)
        yield figures.sentiments(_rows(here, "model"), f"{language}: {what}")
    several = part.filter(pl.col("language").n_unique().over("model") > 1)
    for model in several["model"].unique().sort():
        here = several.filter(pl.col("model") == model)
        yield figures.sentiments(_rows(here, "language"), f"{model}: {what}")


def _rows(part: pl.DataFrame, label: str) -> list[dict[str, Any]]:
    return [
        {
            "label": row[label],
            "sentiment": SENTIMENTS[row["sentiment"]],
            "gender": GENDERS[row["gender"]],
            "significant": row["p_bh"] is not None and row["p_bh"] <= LEVEL,
            **{k: row[k] for k in ("value", "low", "high", "base", "names")},
        }
        for row in part.sort(label, "gender", "sentiment").iter_rows(named=True)
    ]
