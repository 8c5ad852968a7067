"""Analysis ``sentiment`` on simulated lists, with words ranked by PMI.

For rankings by the latent-variable model, neither tests nor intervals are computed.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from pydantic import Field

from calibration.politicians import meanings
from calibration.truth import Array, Drawn, Generator, Tables, Truth, outcomes_by
from plumbline.builders.datasets.lexica.build import SENTIMENTS
from plumbline.builders.datasets.words.build import POS


class Shape(meanings.MeaningsShape):
    """Shape of the lists, and the number of samples for true values."""

    samples: int = Field(30, description="number of samples for true means; 0: no true means")


SHAPES = {
    "4 men to a woman, 300 names": Shape(),
    "as many women, 200 names": Shape(men=100, women=100),
    "4 men to a woman, 400 words": Shape(men=1600, women=400, words=400, samples=0),
    "as many women, 400 words": Shape(men=1000, women=1000, words=400, samples=0),
    "4 men to a woman, 1,000 words": Shape(men=1600, women=400, words=1000, samples=0),
    "as many women, 1,000 words": Shape(men=1000, women=1000, words=1000, samples=0),
}
TRUTHS = {
    # words differ only in frequency and origin
    "no word goes with a gender": Truth("null"),
    # log-odds of positive and negative words
    "sentiments planted": Truth("planted", effects=(0.1, 0.2, 0.4), own=1),
    # words depend on gender, independently of their sentiment
    "words, not sentiments": Truth("decoy", own=1),
}
PARAMS: dict[str, Any] = {"n_bootstrap": 199, "n_permutations": 199}


def draw(folder: Path, truth: Truth, shape: Shape, rng: Generator) -> Drawn:
    """Write one replicate."""
    cells = meanings.cells(shape, truth, rng)
    inputs = meanings.write(folder, shape, cells, rng)
    parts = []
    for cell in cells:
        men, women = _mean_shares(cell, shape, rng)
        effect: list[float | None] = [0.0 - cell.effect, cell.effect, 0.0]  # male minus female
        if cell.effect:
            effect[meanings.NEUTRAL] = None  # its change depends on the other sentiments
        key = {"language": cell.language, "pos": POS[cell.pos], "sentiment": list(SENTIMENTS)}
        parts.append(pl.DataFrame(key | {"effect": effect, "men": men, "women": women}))
    return Drawn(inputs, pl.concat(parts).fill_nan(None))


def _mean_shares(cell: meanings.Cell, shape: Shape, rng: Generator) -> Array:
    """Return the mean share of each sentiment over samples of as many names, (2, sentiments).

    Intervals should cover it. A third of the words that are in the lexica and in the lists of at
    least five names is selected, by the PMI of counts plus 0.5. Without samples, it is nan.
    """
    if not shape.samples:
        return np.full((2, len(SENTIMENTS)), np.nan)
    counts = meanings.counts(cell, shape, shape.samples, rng)
    in_lexicon = ~np.isnan(cell.q[:, 0])
    result = np.zeros((2, len(SENTIMENTS)))
    for sample in counts:
        candidates = np.flatnonzero(in_lexicon & (sample.sum(axis=1) >= 5))
        table = sample[candidates] + 0.5
        ratio = np.log(table / table.sum(axis=1, keepdims=True) / table.sum(axis=0))
        size = max(1, int(0.33 * len(candidates)))
        for gender in range(2):
            top = candidates[np.argsort(-ratio[:, gender])[:size]]
            result[gender] += np.bincount(cell.sentiment[top], minlength=len(SENTIMENTS)) / size
    return result / shape.samples


def outcomes(tables: Tables, sample: Drawn) -> Tables:
    """Return the rows of each test and interval, with one test per unit."""
    keys = ["language", "pos", "sentiment"]
    differences, shares = (
        tables[name].join(sample.known, on=keys) for name in ("differences", "shares")
    )
    mean = pl.when(pl.col("gender") == "male").then("men").otherwise("women")
    result = outcomes_by(shares, "shares: pmi", effect="effect", target=mean)
    gap, test = pl.col("men") - pl.col("women"), "differences: pmi, argmax, {test}"
    return result | outcomes_by(differences, test, effect="effect", target=gap, family=["model"])
