"""Analysis ``emotions`` on simulated lists.

The words and their affects are drawn in each replicate. The planted effect raises the words with
one affect in the lists of all groups in a category. The true share of a category is the share in
many more groups with the same words. Simplifications: one model, and independent affects of a word.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from pydantic import Field

from calibration.stereotypes import completions as outputs
from calibration.truth import Array, Drawn, Generator, Integers, Tables, Truth, outcomes_by
from plumbline.builders.datasets.emotions.build import AFFECTS

LARGE = 300  # number of groups per category from which true shares are computed


class Shape(outputs.ListsShape):
    """Shape of the lists and the lexicon."""

    words: int = Field(250, description="number of words in the vocabulary")
    common: float = Field(0.0, description="spread of effects in a category")
    known: float = Field(0.7, description="share of words in the lexicon")
    short: int = Field(20, description="number of words counted in a list, by typicality")
    lift: float = Field(1.0, description="factor for planted effects")

    @property
    def depth(self) -> dict[str, int]:
        """Return the number of counted words in a list, by variant."""
        return {"probability": self.top, "corrected": self.short}


SHAPES = {"36 groups": Shape(), "36 groups, shorter lexicon": Shape(known=0.3, lift=2.0)}
TRUTHS = {
    # only single groups have effects on words
    "affects of words say nothing of groups": Truth("null"),
    # nats added to words with an affect in the lists of a category
    "affects of categories planted": Truth("planted", categories=(0.15, 0.3, 0.6)),
    # categories have effects on words, independently of affects
    "words of categories": Truth("decoy", shape={"common": 0.5}),
    # positive words are frequent in the lists of all groups
    "frequent affects": Truth("decoy", frequent=1.0),
}
PARAMS: dict[str, Any] = {"n_bootstrap": 200}


def draw(folder: Path, truth: Truth, shape: Shape, rng: Generator) -> Drawn:
    """Write one replicate."""
    inputs, words = outputs.datasets(folder), outputs.vocabulary(shape, rng)
    tilt = truth.get("frequent", 0.0) * words.affects[:, AFFECTS.index("positive")]
    words = words._replace(frequency=words.frequency + tilt)
    nats = np.zeros((len(shape.categories), len(AFFECTS)))
    if sizes := truth.get("categories"):
        sizes = shape.lift * rng.permutation(sizes)
        nats[np.arange(len(nats)), rng.permutation(len(AFFECTS))[: len(nats)]] = sizes
    planted = nats[shape.category] @ words.affects.T
    scores = outputs.scores(shape, words, shape.category, planted, rng)
    rows = np.flatnonzero(rng.random(shape.words) < shape.known)
    spelled = [outputs.names(shape.words)[w] for w in rows]
    outputs.write_lexicon(inputs, words.affects[rows], spelled)
    lists = outputs.table(shape.groups, scores, words.frequency, shape.top, pieces=words.pieces)
    outputs.write_lists(inputs, "m", lists)
    categories = _categories(shape, words, nats, rows, rng)
    return Drawn(inputs, categories, truth, params={"top_k": shape.depth})


def _categories(
    shape: Shape, words: outputs.Words, nats: Array, rows: Integers, rng: Generator
) -> pl.DataFrame:
    """Return planted nats (``effect``), true shares, and their differences from other groups."""
    result: list[dict[str, Array]] = []
    for number in range(len(nats)):
        if result and not nats.any() and not shape.common:  # same distribution
            result.append(result[0])
            continue
        category_of = np.full(LARGE, number)
        planted = np.broadcast_to(nats[number] @ words.affects.T, (LARGE, shape.words))
        scores = outputs.scores(shape, words, category_of, planted, rng)
        shares = {}
        for reading, k in shape.depth.items():
            union = outputs.unions(scores, words, shape.top, k, typical=reading == "corrected")
            shares[reading] = outputs.profiles(union[:, rows], words.affects[rows]).mean(axis=0)
        result.append(shares)
    sizes = np.array(list(shape.categories.values()))
    parts = []
    for number, category in enumerate(shape.categories):
        others = np.arange(len(sizes)) != number
        for reading in shape.depth:
            means = np.array([shares[reading] for shares in result])
            gap = means[number] - np.average(means[others], axis=0, weights=sizes[others])
            values = {"effect": nats[number], "share": means[number], "apart": gap}
            key = {"reading": reading, "category": category, "affect": list(AFFECTS)}
            parts.append(pl.DataFrame(key | values))
    return pl.concat(parts)


def outcomes(tables: Tables, sample: Drawn) -> Tables:
    """Return the rows of each test, for groups and categories, by variant."""
    kind = sample.truth.kind
    table = tables["emotions"].join(sample.known, on=["reading", "category", "affect"])
    carry = pl.col("affect").replace_strict(
        dict(zip(AFFECTS, outputs.CARRY, strict=True)), return_dtype=pl.Float64
    )
    planted = pl.when((pl.col("effect") != 0) | (kind != "planted")).then("effect")
    category = pl.when(pl.col("level") == "category")
    # the true values of groups are known only if their category has no effects
    table = table if kind != "planted" else table.filter(level="category")
    truth = kind == "null"
    return outcomes_by(
        table,
        "difference: {level}, {reading}",
        effect=category.then(planted).otherwise(0.0),
        target=category.then("apart").otherwise(0.0 if truth else None),
        interval=outputs.DIFFERENCE,
    ) | outcomes_by(
        table,
        "share: {level}, {reading}",
        effect=category.then("effect").otherwise(0.0),
        target=category.then("share").otherwise(carry if truth else None),
        p="",
    )
