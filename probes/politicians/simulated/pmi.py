"""Analysis ``pmi`` on simulated lists."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from plumbline.probes.calibration.truth import DECOY, NULL, PLANTED, Drawn, Truth, outcome
from plumbline.probes.politicians.pmi import READINGS
from plumbline.probes.politicians.simulated import lists
from plumbline.probes.politicians.words.columns import FEMALE, MALE
from plumbline.probes.stats.pmi import pmi

if TYPE_CHECKING:
    from pathlib import Path

Shape = lists.ListsShape
SHAPES = {
    "4 men to a woman, 300 names": Shape(),
    "as many women, 200 names": Shape(men=100, women=100),
}
TRUTHS = {
    "no word goes with a gender": Truth(NULL, "words differ in frequency and origin alone"),
    "words planted": Truth(PLANTED, "log-odds of words in lists", {"effects": (0.4, 0.8, 1.6)}),
    "origin": Truth(
        DECOY, "women are of other origins, and words go with origins", {"origin": 0.5}
    ),
}
PARAMS: dict[str, Any] = {"n_bootstrap": 400}


def draw(folder: Path, truth: Truth, shape: Shape, rng: np.random.Generator) -> Drawn:
    """Write one replicate."""
    populations = [lists.population(shape, truth, pos) for pos in range(2)]
    inputs = lists.write(folder, shape, populations, rng)
    settings = tuple(sorted(truth.settings.items()))
    return Drawn(inputs, _known(shape, truth.kind, settings))


@lru_cache(maxsize=8)
def _known(shape: Shape, kind: str, settings: tuple[tuple[str, Any], ...]) -> pl.DataFrame:
    """Return planted effect and true PMI of each word and gender."""
    parts = []
    for pos in range(2):
        of = lists.population(shape, Truth(kind, "", dict(settings)), pos)
        chance = lists.expected(of, shape, pos)
        if kind == NULL:
            chance[:] = chance.mean(axis=1, keepdims=True)  # exactly
        true = pmi(chance * np.array([shape.men, shape.women]))
        for column, sign in ((0, -1.0), (1, 1.0)):
            parts.append(
                pl.DataFrame(
                    {
                        "pos": pos,
                        "word": lists.words_of(pos, shape.words),
                        "gender": FEMALE if column else MALE,
                        "effect": sign * of.effect + 0.0,
                        "target": true[:, column],
                    }
                )
            )
    return pl.concat(parts)


def outcomes(tables: dict[str, pl.DataFrame], drawn: Drawn) -> dict[str, pl.DataFrame]:
    """Return the rows of each test: one of each word and gender, in either reading."""
    keys = ["pos", "word", "gender"]
    table = tables["pmi"].with_columns(pl.col("pos", "gender").cast(pl.Int64))
    table = table.join(drawn.known.with_columns(pl.col("pos", "gender").cast(pl.Int64)), on=keys)
    return {
        f"pmi: {reading}": outcome(
            table.filter(reading=code),
            effect=pl.col("effect"),
            target=pl.col("target"),
            family=["model"],
        )
        for code, reading in enumerate(READINGS)
    }
