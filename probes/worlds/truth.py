"""What is true in a planted world of names without end."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from plumbline.builders.datasets.politicians.build import GENDERS
from plumbline.builders.datasets.words.build import POS
from plumbline.probes.stats.pmi import pmi
from plumbline.probes.stats.shares import shares
from plumbline.probes.worlds.language import SENTIMENTS, Planted, World, expected_counts

if TYPE_CHECKING:
    from pathlib import Path


def world_of(weights: Path) -> World:
    """Return what was planted in a world's model."""
    return World.model_validate(json.loads((weights / "world.json").read_text(encoding="utf-8")))


def is_null(weights: Path) -> bool:
    """Return whether nothing was planted."""
    return world_of(weights).null


def true_difference(
    weights: Path, people: Path, outputs: Path, pos: int, words: pl.DataFrame, size: int
) -> list[float]:
    """Return the difference, male minus female, of the share of each sentiment.

    Words are ranked by their true PMI, which follows from the planted probabilities. In a null
    world nothing tells words apart, and every difference is 0.

    Parameters
    ----------
    words
        Column word: those that were ranked.
    size
        How many of them were taken.
    """
    if is_null(weights):
        return [0.0] * len(SENTIMENTS)
    true = true_pmi(weights, people, outputs, pos).filter(pl.col("word").is_in(words["word"]))
    sides = {}
    for gender in ("male", "female"):
        own = true.filter(pl.col("gender") == GENDERS.index(gender))
        sides[gender] = shares(
            own["value"].to_numpy(), own["sentiment"].to_numpy(), size, len(SENTIMENTS)
        )
    return [float(x) for x in sides["male"] - sides["female"]]


def true_pmi(weights: Path, people: Path, outputs: Path, pos: int) -> pl.DataFrame:
    """Return the PMI that words have in a planted world of names without end.

    Returns
    -------
    DataFrame
        Columns word, sentiment (place in ``SENTIMENTS``), gender (code) and value: a row for each
        planted word, in the order planted, and each gender that somebody has.
    """
    world = world_of(weights)
    part = pl.read_parquet(weights / "planted.parquet").filter(pl.col("pos") == POS[pos])
    found = pl.scan_parquet(outputs / world.language / "*.parquet").filter(pl.col("pos") == pos)
    length = min(int(found.select("rank").max().collect().item()), len(part))
    label = pl.read_parquet(people / f"{world.language}.parquet", columns=["name", "gender"])
    label = label.unique("name", keep="first", maintain_order=True)
    genders = label["gender"].to_numpy()
    share = {g: float((genders == i).mean()) for i, g in enumerate(GENDERS)}
    share = {g: s for g, s in share.items() if s > 0}
    planted = Planted(
        tuple(part["word"]),
        part["frequency_nats"].to_numpy(),
        part["log_ratio_nats"].to_numpy(),
        np.array([SENTIMENTS.index(s) for s in part["sentiment"]]),
        ("",) * len(part),
    )
    counts = expected_counts(planted, share, world.name_noise, length, world.seed)
    true = pmi(counts)
    rows = {"word": planted.words, "sentiment": planted.sentiment}
    return pl.concat(
        pl.DataFrame(rows | {"gender": GENDERS.index(g), "value": true[:, i]})
        for i, g in enumerate(share)
    )
