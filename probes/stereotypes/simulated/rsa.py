"""Analysis ``rsa`` on the emotions of simulated lists of several models.

Groups evoke affects: each model adds to the words of an affect what the group evokes in it, normal
parts. Those of the first model are shared with the others by a part of their variance. Simplified:
words and affects are the same in all models, every model has frequencies of its own, and the truth
that intervals should cover is known under the null alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import polars as pl
from pydantic import Field

from plumbline.builders.datasets.emotions.build import AFFECTS
from plumbline.probes.calibration.truth import DECOY, NULL, PLANTED, Drawn, Truth, outcome
from plumbline.probes.stereotypes import emotions
from plumbline.probes.stereotypes.rsa import READINGS
from plumbline.probes.stereotypes.simulated import completions as made
from plumbline.probes.stereotypes.typicality import EVERY

if TYPE_CHECKING:
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

MODELS = ("a", "b", "c", "d")


class Shape(made.ListsShape):
    """Shape of the models' lists."""

    categories: dict[str, int] = Field(
        {"age": 5, "country": 10, "profession": 16}, description="groups of each category"
    )
    words: int = Field(250, ge=20, description="words that lists are made of")
    common: float = Field(0.0, ge=0, description="spread of words in a category")
    evoked: float = Field(1.0, ge=0, description="spread of what a group evokes, an affect's words")
    short: int = Field(20, ge=1, description="words of each list that make a profile")


SHAPES = {
    "4 models, 31 groups": Shape(),
    "4 models, small categories": Shape(
        categories={"religion": 3, "age": 4, "gender": 6, "race": 8}
    ),
}
TRUTHS = {
    "models share nothing": Truth(NULL, "groups evoke other affects in each model"),
    "models share a part": Truth(
        PLANTED, "part of what groups evoke that the first model shares", {"shared": (0.4, 0.7, 1)}
    ),
    "categories": Truth(
        DECOY, "categories evoke affects, others in each model", {"categories": 1.0}
    ),
}
PARAMS: dict[str, Any] = {"n_permutations": 199, "n_bootstrap": 200}


class Known(NamedTuple):
    """What is true of a replicate."""

    kind: str
    shared: dict[str, float]  # by model: with the first


def evoked(truth: Truth, shape: Shape, rng: np.random.Generator) -> list[Array]:
    """Return what groups evoke in each model, (groups, affects) nats."""
    size = (len(shape.category), len(AFFECTS))
    first = rng.normal(0, shape.evoked, size)
    found = [first]
    for part in truth.settings.get("shared", (0.0, 0.0, 0.0)):
        own = rng.normal(0, shape.evoked, size)
        found.append(part**0.5 * first + (1 - part) ** 0.5 * own)
    spread = truth.settings.get("categories", 0.0)
    of = (len(shape.categories), len(AFFECTS))
    return [x + rng.normal(0, spread, of)[shape.category] for x in found]


def draw(folder: Path, truth: Truth, shape: Shape, rng: np.random.Generator) -> Drawn:
    """Write one replicate: lists, and the table of emotions."""
    inputs = made.datasets(folder, MODELS)
    affects = made.vocabulary(shape, rng).affects
    made.write_lexicon(inputs, affects)
    for model, nats in zip(MODELS, evoked(truth, shape, rng), strict=True):
        words = made.vocabulary(shape, rng)
        scores = made.scores(shape, words, shape.category, nats @ affects.T, rng)
        lists = made.table(shape.groups, scores, words.frequency, shape.top, pieces=words.pieces)
        made.write_lists(inputs, model, lists)
    profiles = emotions.Params(
        version="0.1.0", top_k={"corrected": shape.short}, n_permutations=99, n_bootstrap=100
    )
    home = inputs.tables("emotions")
    home.mkdir(parents=True)
    for name, table in emotions.run(inputs, profiles).items():
        table.write_parquet(home / f"{name}.parquet")
    shared = dict(zip(MODELS[1:], truth.settings.get("shared", (0.0, 0.0, 0.0)), strict=True))
    return Drawn(inputs, Known(truth.kind, shared))


def outcomes(tables: dict[str, pl.DataFrame], drawn: Drawn) -> dict[str, pl.DataFrame]:
    """Return the rows of each test: within categories and over all groups, in each reading.

    In pairs without the first model nothing is known but under the null.
    """
    known: Known = drawn.known
    table = tables["rsa"].with_columns(pl.col("reading").cast(pl.Int64))
    nothing, effect = pl.lit(None, dtype=pl.Float64), pl.lit(0.0)
    if known.kind == PLANTED:
        part = pl.col("second").replace_strict(known.shared, default=None, return_dtype=pl.Float64)
        effect = pl.when(pl.col("first") == MODELS[0]).then(part).otherwise(nothing)
    found = {}
    for code, reading in enumerate(READINGS):
        own = table.filter(pl.col("reading") == code)
        chance = pl.lit(0.0) if reading == "corrected" else 3 / (pl.col("n") + 1)
        target = chance if known.kind == NULL else nothing
        apart = own.with_columns(pl.col("value", "low", "high") - pl.col("expected"))
        every = pl.col("category") == EVERY
        target = target - pl.col("expected") if known.kind == NULL else nothing
        found[reading] = outcome(apart, effect=effect)
        for name, some in (
            ("all groups", apart.filter(every)),
            ("a category", apart.filter(~every)),
        ):
            found[f"{reading}: {name}"] = outcome(some, effect=effect, target=target)
    return found
