"""Analysis ``shift`` on simulated lists before and after training.

A training run adds normally distributed effects to the scores of words: some, for each word or for
the words with an affect, are common to all groups; others are specific to one. With these spreads,
the mean share of an affect varies over training runs about as much as the change of one group
varies over groups. Simplifications: one share of the corpus, one model and ranking, and equally
many articles.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from pydantic import Field

from calibration.stereotypes import completions as outputs
from calibration.truth import Array, Drawn, Generator, Tables, Truth, outcomes_by
from plumbline.builders.datasets.emotions.build import AFFECTS
from plumbline.probes.stereotypes.shift import BEFORE
from plumbline.probes.stereotypes.typicality import EVERY, MEAN

CONTROL = "control"
OUTLETS = ("herald", "post", "wire")


class Shape(outputs.ListsShape):
    """Shape of a model's training runs."""

    seeds: int = Field(2, description="number of training runs on each corpus")
    all_groups: float = Field(0.3, description="spread of the effects common to all groups")
    each_group: float = Field(0.3, description="spread of the effects in each group")
    affects: float = Field(0.4, description="spread of the effects on the words with an affect")
    attributes: int = Field(4, description="number of attributes of a group")


SHAPES = {f"{seeds} seeds": Shape(seeds=seeds) for seeds in (2, 3, 5)}
TRUTHS = {
    # training runs have effects that are common to all groups
    "outlets do what the control does": Truth("null"),
    # the common effects of outlets have twice the spread of the control's
    "outlets vary more": Truth("decoy", vary=2.0),
    # training on the first outlet takes more steps, which increase all effects
    "the articles of one outlet are longer": Truth("decoy", longer=1.3),
}
PARAMS: dict[str, Any] = {
    "top_k": {"corrected": 20},
    "top_k_followed": 15,
    "recall_at": [10, 30],
    "n_bootstrap": 100,
}


def draw(folder: Path, truth: Truth, shape: Shape, rng: Generator) -> Drawn:
    """Write one replicate."""
    inputs, groups = outputs.datasets(folder), shape.groups
    words = outputs.vocabulary(shape, rng)
    owned = np.zeros((len(groups), shape.words))
    # many groups share popular attributes
    popular = rng.normal(0, 1, shape.words) + rng.gumbel(size=owned.shape)
    top = np.argsort(-popular, axis=1)[:, : shape.attributes]
    np.put_along_axis(owned, top, 1.0, axis=1)
    base = outputs.scores(shape, words, shape.category, owned, rng)
    outputs.write_attributes(
        *(inputs, groups),
        [[(t % shape.templates, f"w{w:03d}", []) for t, w in enumerate(row)] for row in top],
    )
    outputs.write_lexicon(inputs, words.affects)

    def lists(scores: Array) -> pl.DataFrame:
        return outputs.table(groups, scores, words.frequency, shape.top, pieces=words.pieces)

    outputs.write_lists(inputs, "m", lists(base))
    for corpus in (*OUTLETS, CONTROL):
        vary = 1.0 if corpus == CONTROL else truth.get("vary", 1.0)
        longer = truth.get("longer", 1.0) if corpus == OUTLETS[0] else 1.0
        for seed in range(1, shape.seeds + 1):
            moved = rng.normal(0, vary * shape.all_groups, shape.words)
            moved = moved + words.affects @ rng.normal(0, vary * shape.affects, len(AFFECTS))
            moved = moved + rng.normal(0, shape.each_group, owned.shape)
            after = lists(base + longer * moved[:, None])
            outputs.write_training(inputs, "m", after, corpus, seed, longer)
    return Drawn(inputs, None, truth)


def outcomes(tables: Tables, sample: Drawn) -> Tables:
    """Return the rows of each test by measure, within categories and over all groups.

    If outlets vary more, they do differ from the control, but not in emotions.
    """
    similar = (
        tables["similarities"]
        .filter(first=BEFORE)
        .with_columns(corpus="second", measure="rsa " + pl.col("reading"))
    )
    tested = pl.lit("vary" not in sample.truth.settings) | (pl.col("measure") == "emotion")
    pooled = pl.col("category").is_in([EVERY, MEAN])
    where = pooled.replace_strict({True: "all groups", False: "a category"})
    # intervals describe the variation over groups for fixed training runs, so they have no target
    settings: dict[str, Any] = {"effect": 0.0, "family": ["measure"]}
    result: Tables = {}
    for table in (tables["shifts"], similar):
        rows = table.filter(tested, pl.col("corpus") != CONTROL).with_columns(where=where)
        result |= outcomes_by(rows, "{measure}: {where}", interval=outputs.DIFFERENCE, **settings)
    return result
