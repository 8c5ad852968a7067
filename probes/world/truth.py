"""What is true in a planted world of names without end."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from builders.politicians import GENDERS
from builders.words import POS
from probes.stats.pmi import pmi
from probes.stats.shares import shares
from probes.world.language import SENTIMENTS, Planted, World, expected_counts

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
    world = world_of(weights)
    if is_null(weights):
        return [0.0] * len(SENTIMENTS)
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
    kept = np.isin(planted.words, words["word"].to_list())
    true = pmi(counts)[kept].T
    of = shares(true, planted.sentiment[kept], size, len(SENTIMENTS))
    order = list(share)
    return [float(x) for x in of[order.index("male")] - of[order.index("female")]]
