"""Analysis ``rsa`` on the emotions of simulated lists of several models.

Groups evoke affects: each model adds to the words of an affect what the group evokes in it, normal
parts. Those of the first model are shared with the others by a part of their variance. Simplified:
words and affects are the same in all models, and every model has frequencies of its own. What
intervals should cover is the mean over many draws of as many groups.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from pydantic import Field
from scipy.stats import rankdata

from calibration.stereotypes import completions as made
from calibration.truth import Array, Bools, Drawn, Generator, Tables, Truth, outcomes_by
from plumbline.builders.datasets.emotions.build import AFFECTS
from plumbline.probes.stereotypes import emotions
from plumbline.probes.stereotypes.rsa import READINGS
from plumbline.probes.stereotypes.typicality import EVERY

MODELS = ("a", "b", "c", "d")
MANY = 100  # draws of which the true likeness is the mean


class Shape(made.ListsShape):
    """Shape of the models' lists."""

    categories: dict[str, int] = Field(
        {"age": 5, "country": 10, "profession": 16}, description="groups of each category"
    )
    words: int = Field(250, description="words that lists are made of")
    common: float = Field(0.0, description="spread of words in a category")
    evoked: float = Field(1.0, description="spread of what a group evokes, an affect's words")
    short: int = Field(20, description="words of each list that make a profile")


SHAPES = {
    "4 models, 31 groups": Shape(),
    "4 models, small categories": Shape(
        categories={"religion": 3, "age": 4, "gender": 6, "race": 8}
    ),
}
TRUTHS = {
    # groups evoke other affects in each model
    "models share nothing": Truth("null"),
    # part of what groups evoke that the first model shares
    "models share a part": Truth("planted", shared=(0.25, 0.6, 1)),
    # categories evoke affects, others in each model
    "categories": Truth("decoy", categories=1.0),
}
PARAMS: dict[str, Any] = {"n_permutations": 999}


def evoked(truth: Truth, shape: Shape, rng: Generator) -> list[Array]:
    """Return the affect of groups in each model, (groups, affects) nats."""
    size = (len(shape.category), len(AFFECTS))
    first = rng.normal(0, shape.evoked, size)
    result = [first]
    for part in truth.get("shared", (0.0, 0.0, 0.0)):
        own = rng.normal(0, shape.evoked, size)
        result.append(part**0.5 * first + (1 - part) ** 0.5 * own)
    spread = truth.get("categories", 0.0)
    of = (len(shape.categories), len(AFFECTS))
    return [x + rng.normal(0, spread, of)[shape.category] for x in result]


def draw(folder: Path, truth: Truth, shape: Shape, rng: Generator) -> Drawn:
    """Write one replicate: lists, and the table of emotions."""
    inputs = made.datasets(folder, MODELS)
    affects = made.vocabulary(shape, rng).affects
    made.write_lexicon(inputs, affects)
    for model, (words, scores) in zip(MODELS, _models(truth, shape, affects, rng), strict=True):
        lists = made.table(shape.groups, scores, words.frequency, shape.top, pieces=words.pieces)
        made.write_lists(inputs, model, lists)
    profiles = emotions.Params(
        version="0.1.0", top_k={"corrected": shape.short}, n_permutations=99, n_bootstrap=100
    )
    for name, table in emotions.run(inputs, profiles).items():
        table.write_parquet(inputs.tables("emotions") / f"{name}.parquet", mkdir=True)
    return Drawn(inputs, _likeness(shape, truth), truth)


def _models(
    truth: Truth, shape: Shape, affects: Bools, rng: Generator
) -> Iterator[tuple[made.Words, Array]]:
    """Yield what words have in each model, and its scores."""
    for nats in evoked(truth, shape, rng):
        words = made.vocabulary(shape, rng)
        yield words, made.scores(shape, words, shape.category, nats @ affects.T, rng)


@lru_cache(maxsize=8)
def _likeness(shape: Shape, truth: Truth) -> pl.DataFrame:
    """Return the mean likeness of the first model and each other, over many draws."""
    rng, rows = np.random.default_rng(13), []
    for _ in range(MANY):
        affects = made.vocabulary(shape, rng).affects
        profiles = [
            made.profiles(made.unions(scores, words, shape.top, shape.short), affects)
            for words, scores in _models(truth, shape, affects, rng)
        ]
        for reading in READINGS:
            some = [a for a, x in enumerate(AFFECTS) if reading != "faithful" or x != "fear"]
            for number, category in enumerate([*shape.categories, EVERY]):
                inside = (shape.category == number) | (category == EVERY)
                for model, other in zip(MODELS[1:], profiles[1:], strict=True):
                    pair = profiles[0][inside][:, some], other[inside][:, some]
                    own = _rank_correlation(*pair, diagonal=reading != "corrected")
                    rows.append((model, category, reading, own))
    keys = ["second", "category", "reading"]
    table = pl.DataFrame(rows, [*keys, "target"], orient="row")
    return table.group_by(keys).agg(pl.col("target").drop_nans().mean())


def _rank_correlation(a: Array, b: Array, *, diagonal: bool) -> float:
    """Return the mean Spearman correlation of the rows of two matrices of cosines."""
    unit = [x / np.linalg.norm(x, axis=1, keepdims=True) for x in (a, b)]
    one, other = ((x @ x.T).round(10) for x in unit)
    kept = np.ones_like(one, dtype=bool) if diagonal else ~np.eye(len(one), dtype=bool)
    ranks = (rankdata(x[kept].reshape(len(x), -1), axis=1) for x in (one, other))
    first, second = (x - x.mean(axis=1, keepdims=True) for x in ranks)
    with np.errstate(invalid="ignore"):
        above = (first * second).sum(axis=1)
        return float(np.mean(above / np.sqrt((first**2).sum(axis=1) * (second**2).sum(axis=1))))


def outcomes(tables: Tables, sample: Drawn) -> Tables:
    """Return the rows of each test: within categories and over all groups, in each reading.

    In pairs without the first model nothing is known but under the null.
    """
    truth, keys = sample.truth, ["second", "category", "reading"]
    table = tables["rsa"].join(sample.known, on=keys, how="left", maintain_order="left")
    first = pl.col("first") == MODELS[0]
    effect: pl.Expr | float = 0.0
    if truth.kind == "planted":
        shared = dict(zip(MODELS[1:], truth.settings["shared"], strict=True))
        part = pl.col("second").replace_strict(shared, default=None, return_dtype=pl.Float64)
        effect = pl.when(first).then(part)
    every = pl.col("category") == EVERY
    table = table.with_columns(
        where=every.replace_strict({True: "all groups", False: "a category"})
    )
    target = pl.when(first).then("target")
    return outcomes_by(table, "{reading}", effect=effect) | outcomes_by(
        table, "{reading}: {where}", effect=effect, target=target
    )
