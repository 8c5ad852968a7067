"""Analysis ``pmi`` on simulated lists.

The table has one row per word, gender and reading (method variant); p is given for the smoothed
variant. Without non-binary people, p is equal for both genders. The true value of an interval is
the PMI of the expected counts, as if there were infinitely many names. Words are in one language;
the real run is simulated with one fortieth of its names.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from calibration.politicians import lists
from calibration.truth import Array, Drawn, Generator, Tables, Truth, outcomes_by
from plumbline.builders.datasets.politicians.person import GENDERS
from plumbline.builders.datasets.words.build import POS
from plumbline.probes.stats.pmi import pmi

Shape = lists.ListsShape
SHAPES = {
    "default run: 99 men, 88 women, 6 others": Shape(men=99, women=88, others=6, words=90),
    "real run, 1 name in 40: 400 men, 90 women": Shape(men=400, women=90),
    "lists of 15, and of 20 words, which men have more often": Shape(men=400, women=100, short=0.8),
    "names with many bearers": Shape(men=400, women=100, zipf=1.6),
}
TRUTHS = {
    # words differ only in frequency and origin
    "no word goes with a gender": Truth("null"),
    # log-odds of single words
    "words planted": Truth("planted", effects=(0.5, 1.0, 1.6)),
    # the genders differ in origin, on which the words depend
    "origin": Truth("decoy", origin=0.5),
}
PARAMS: dict[str, Any] = {"n_bootstrap": 400}
KEYS = ["pos", "word", "gender"]


def draw(folder: Path, truth: Truth, shape: Shape, rng: Generator) -> Drawn:
    """Write one replicate."""
    populations = [lists.population(shape, truth, pos) for pos in range(2)]
    inputs = lists.write(folder, shape, populations, rng)
    chances = [lists.expected(shape, truth, pos) for pos in range(2)]
    effects = [part.effect for part in populations]
    return Drawn(inputs, known(shape, list(zip(effects, chances, strict=True))))


def known(shape: Shape, chances: list[tuple[Array, Array]]) -> pl.DataFrame:
    """Return the planted effect and the true PMI of each word and gender, with :data:`KEYS`.

    The effect of a word associated with women is positive for women and negative for men. No effect
    is planted for other people, but effects on men and women change their PMI, so the effect is
    null for such words.

    ``chances``: for each part of speech, the effects, (words,), and the expected number of lists
    with each word per person of each gender, (words, 3).
    """
    sizes = np.array([shape.men, shape.women, shape.others])
    present = np.flatnonzero(sizes)
    parts = []
    for pos, (effect, chance) in enumerate(chances):
        true = pmi((chance * sizes)[:, present])
        sides = (-effect, effect, np.where(effect, np.nan, 0.0))
        for column, gender in enumerate(present):
            values = {"effect": sides[gender] + 0.0, "target": true[:, column]}
            key = {"pos": POS[pos], "word": lists.words_of(pos, shape.words)}
            parts.append(pl.DataFrame(key | {"gender": GENDERS[gender]} | values))
    return pl.concat(parts).with_columns(pl.col("effect").fill_nan(None))


def outcomes(tables: Tables, sample: Drawn) -> Tables:
    """Return the rows of each test, one per word and gender, by variant."""
    return by_reading(tables["pmi"], sample, "pmi", "model")


def by_reading(table: pl.DataFrame, sample: Drawn, name: str, family: str) -> Tables:
    """Return the rows of a table of PMI, with one test per variant.

    Only lemmas are counted: each word is its own lemma here, so forms have the same counts.
    """
    joined = table.filter(unit="lemma").join(
        sample.known, on=KEYS, how="left", maintain_order="left"
    )
    test = f"{name}: {{reading}}"
    return outcomes_by(joined, test, effect="effect", target="target", family=[family])
