"""Analysis ``rsa`` on the emotions in simulated lists of several models.

Each group evokes affects: in each model, it has a normally distributed effect on the words with
each affect. The other models share part of the variance of these effects with the first one.
Simplifications: all models have the same words and affects, but different frequencies. Intervals
should cover the mean over many draws of as many groups.
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

from calibration.stereotypes import completions as outputs
from calibration.truth import Array, Bools, Drawn, Generator, Tables, Truth, outcomes_by
from plumbline.builders.datasets.emotions.build import AFFECTS
from plumbline.probes.stereotypes import emotions
from plumbline.probes.stereotypes.rsa import READINGS
from plumbline.probes.stereotypes.typicality import EVERY

MODELS = ("a", "b", "c", "d")
MANY = 100  # number of draws from which the true mean similarity is computed


class Shape(outputs.ListsShape):
    """Shape of the models' lists."""

    categories: dict[str, int] = Field(
        {"age": 5, "country": 10, "profession": 16}, description="number of groups in each category"
    )
    words: int = Field(250, description="number of words in the vocabulary")
    common: float = Field(0.0, description="spread of effects in a category")
    evoked: float = Field(1.0, description="spread of a group's effect on the words with an affect")
    short: int = Field(20, description="number of words of each list in a profile")


SHAPES = {
    "4 models, 31 groups": Shape(),
    "4 models, small categories": Shape(
        categories={"religion": 3, "age": 4, "gender": 6, "race": 8}
    ),
}
TRUTHS = {
    # groups evoke different affects in each model
    "models share nothing": Truth("null"),
    # share of the variance shared with the first model
    "models share a part": Truth("planted", shared=(0.25, 0.6, 1)),
    # categories evoke affects that differ between models
    "categories": Truth("decoy", categories=1.0),
}
PARAMS: dict[str, Any] = {"n_permutations": 999}


def evoked(truth: Truth, shape: Shape, rng: Generator) -> list[Array]:
    """Draw the effects, in nats, of groups on affects in each model, of shape (groups, affects)."""
    size = (len(shape.category), len(AFFECTS))
    first = rng.normal(0, shape.evoked, size)
    result = [first]
    for part in truth.get("shared", (0.0, 0.0, 0.0)):
        separate = rng.normal(0, shape.evoked, size)
        result.append(part**0.5 * first + (1 - part) ** 0.5 * separate)
    spread = truth.get("categories", 0.0)
    shape_of = (len(shape.categories), len(AFFECTS))
    return [x + rng.normal(0, spread, shape_of)[shape.category] for x in result]


def draw(folder: Path, truth: Truth, shape: Shape, rng: Generator) -> Drawn:
    """Write one replicate: the lists and the resulting table of emotions."""
    inputs = outputs.datasets(folder, MODELS)
    affects = outputs.vocabulary(shape, rng).affects
    outputs.write_lexicon(inputs, affects)
    for model, (words, scores) in zip(MODELS, _models(truth, shape, affects, rng), strict=True):
        lists = outputs.table(shape.groups, scores, words.frequency, shape.top, pieces=words.pieces)
        outputs.write_lists(inputs, model, lists)
    profiles = emotions.Params(
        version="0.1.0", top_k={"corrected": shape.short}, n_permutations=99, n_bootstrap=100
    )
    for name, table in emotions.run(inputs, profiles).items():
        table.write_parquet(inputs.tables("emotions") / f"{name}.parquet", mkdir=True)
    return Drawn(inputs, _likeness(shape, truth), truth)


def _models(
    truth: Truth, shape: Shape, affects: Bools, rng: Generator
) -> Iterator[tuple[outputs.Words, Array]]:
    """Yield the properties of words and the scores of each model."""
    for nats in evoked(truth, shape, rng):
        words = outputs.vocabulary(shape, rng)
        yield words, outputs.scores(shape, words, shape.category, nats @ affects.T, rng)


@lru_cache(maxsize=8)
def _likeness(shape: Shape, truth: Truth) -> pl.DataFrame:
    """Return the mean similarity of the first model to each of the others, over many draws."""
    rng, rows = np.random.default_rng(13), []
    for _ in range(MANY):
        affects = outputs.vocabulary(shape, rng).affects
        profiles = [
            outputs.profiles(outputs.unions(scores, words, shape.top, shape.short), affects)
            for words, scores in _models(truth, shape, affects, rng)
        ]
        for reading in READINGS:
            columns = [a for a, x in enumerate(AFFECTS) if reading != "faithful" or x != "fear"]
            for number, category in enumerate([*shape.categories, EVERY]):
                inside = (shape.category == number) | (category == EVERY)
                for model, other in zip(MODELS[1:], profiles[1:], strict=True):
                    pair = profiles[0][inside][:, columns], other[inside][:, columns]
                    correlation = _rank_correlation(*pair, diagonal=reading != "corrected")
                    rows.append((model, category, reading, correlation))
    keys = ["second", "category", "reading"]
    table = pl.DataFrame(rows, [*keys, "target"], orient="row")
    return table.group_by(keys).agg(pl.col("target").drop_nans().mean())


def _rank_correlation(a: Array, b: Array, *, diagonal: bool) -> float:
    """Return the mean Spearman correlation of the rows of two matrices of cosines."""
    unit = [x / np.linalg.norm(x, axis=1, keepdims=True) for x in (a, b)]
    one, other = ((x @ x.T).round(10) for x in unit)
    mask = np.ones_like(one, dtype=bool) if diagonal else ~np.eye(len(one), dtype=bool)
    ranks = (rankdata(x[mask].reshape(len(x), -1), axis=1) for x in (one, other))
    first, second = (x - x.mean(axis=1, keepdims=True) for x in ranks)
    with np.errstate(invalid="ignore"):
        above = (first * second).sum(axis=1)
        return float(np.mean(above / np.sqrt((first**2).sum(axis=1) * (second**2).sum(axis=1))))


def outcomes(tables: Tables, sample: Drawn) -> Tables:
    """Return the rows of each test by variant, within categories and over all groups.

    For pairs without the first model, true values are known only under the null hypothesis.
    """
    truth, keys = sample.truth, ["second", "category", "reading"]
    table = tables["rsa"].join(sample.known, on=keys, how="left", maintain_order="left")
    first = pl.col("first") == MODELS[0]
    effect: pl.Expr | float = 0.0
    if truth.kind == "planted":
        shared = dict(zip(MODELS[1:], truth.settings["shared"], strict=True))
        part = pl.col("second").replace_strict(shared, default=None, return_dtype=pl.Float64)
        effect = pl.when(first).then(part)
    pooled = pl.col("category") == EVERY
    table = table.with_columns(
        where=pooled.replace_strict({True: "all groups", False: "a category"})
    )
    target = pl.when(first).then("target")
    return outcomes_by(table, "{reading}", effect=effect) | outcomes_by(
        table, "{reading}: {where}", effect=effect, target=target
    )
