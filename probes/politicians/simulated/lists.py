"""Outputs of ``associations`` without a model: lists of words for names, from a known truth.

A list has the words of the largest utility for a name: log-frequency of the word, what goes with
the gender, what goes with the name's origin, and Gumbel noise. Without an effect of gender all
lists are exchangeable over names.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import polars as pl
from pydantic import Field

from plumbline.builders.core.params import Params
from plumbline.builders.datasets.politicians.build import GENDERS
from plumbline.probes.core.run_analysis import Inputs
from plumbline.probes.politicians import associations

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from plumbline.probes.calibration.truth import Truth

LANGUAGE = "en"
LARGE = 40_000  # names of a gender from which expected counts are taken


class ListsShape(Params):
    """Shape of the lists that a model gave."""

    men: int = Field(240, ge=2, description="distinct names of men")
    women: int = Field(60, ge=2, description="distinct names of women")
    shared: float = Field(0.05, ge=0, le=1, description="share of people who bear another's name")
    words: int = Field(80, ge=10, description="candidate words of a part of speech")
    length: int = Field(20, ge=1, description="words in a list")
    spread: float = Field(1.0, ge=0, description="SD of log-frequencies of words")
    origins: int = Field(4, ge=1, description="origins of names, which have words of their own")
    taste: float = Field(0.5, ge=0, description="SD of what goes with an origin, nats")


class Population(NamedTuple):
    """What lists of a part of speech are drawn from; the same in all replicates."""

    frequency: NDArray[np.float64]  # (words,)
    origin: NDArray[np.float64]  # (origins, words)
    effect: NDArray[np.float64]  # (words,): nats between women and men, half to each
    women_of: NDArray[np.float64]  # (origins,): shares of origins among women
    men_of: NDArray[np.float64]


def population(shape: ListsShape, truth: Truth, pos: int) -> Population:
    """Return what lists are drawn from.

    ``truth.settings``: ``effects``, nats that are planted, both signs of each in every tenth word;
    ``origin``: how unequally the genders are spread over origins, 0: equally.
    """
    rng = np.random.default_rng([7, pos, shape.words])
    effect = np.zeros(shape.words)
    signed = [s * e for e in truth.settings.get("effects", ()) for s in (1, -1)]
    places = rng.permutation(shape.words)
    for n, nats in enumerate(signed):
        effect[places[n :: max(10, len(signed) + 1)]] = nats
    weights = np.ones(shape.origins)
    tilted = weights * np.exp(truth.settings.get("origin", 0.0) * np.arange(shape.origins))
    return Population(
        rng.normal(0, shape.spread, shape.words),
        rng.normal(0, shape.taste, (shape.origins, shape.words)),
        effect,
        tilted / tilted.sum(),
        weights / weights.sum(),
    )


def lists(
    of: Population, women: NDArray[np.bool_], length: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Draw a list for each name, (names, length): places of words, the best first."""
    shares = np.where(women[:, None], of.women_of, of.men_of).cumsum(axis=1)
    origin = (rng.random((len(women), 1)) > shares).sum(axis=1).clip(0, len(of.origin) - 1)
    utility = of.frequency + of.origin[origin] + (women[:, None] - 0.5) * of.effect
    utility = utility + rng.gumbel(size=utility.shape)
    best = np.argpartition(-utility, length - 1, axis=1)[:, :length]
    order = np.argsort(-np.take_along_axis(utility, best, axis=1), axis=1)
    return np.take_along_axis(best, order, axis=1)


def expected(of: Population, shape: ListsShape, pos: int) -> NDArray[np.float64]:
    """Return the chance of each word to be in a list of a man and of a woman, (words, 2)."""
    rng = np.random.default_rng([8, pos])
    found = [
        np.bincount(
            lists(of, np.full(LARGE, woman), shape.length, rng).ravel(), minlength=shape.words
        )
        for woman in (False, True)
    ]
    return np.stack(found, axis=1) / LARGE


def words_of(pos: int, number: int) -> list[str]:
    """Return the words of a part of speech."""
    return [f"{associations.POS[pos].lower()}{n:03d}" for n in range(number)]


def write(
    folder: Path,
    shape: ListsShape,
    populations: list[Population],
    rng: np.random.Generator,
    model: str = "m",
) -> Inputs:
    """Write people and the lists of one model about them, and return the inputs of an analysis."""
    names = shape.men + shape.women
    female = np.arange(names) >= shape.men
    again = rng.choice(names, round(shape.shared * names), replace=False)
    bearer = np.concatenate([np.arange(names), again])  # the name of each person
    people = pl.DataFrame({"qid": [f"Q{n}" for n in range(len(bearer))]}).with_columns(
        name=pl.Series([f"Name {n}" for n in bearer]),
        gender=pl.Series(np.where(female[bearer], *(GENDERS.index(g) for g in ("female", "male")))),
    )
    inputs = Inputs((model,), {"politicians": folder / "people"}, folder)
    inputs.datasets["politicians"].mkdir(exist_ok=True)
    people.write_parquet(inputs.datasets["politicians"] / f"{LANGUAGE}.parquet")
    parts, ranks = [], np.tile(np.arange(1, shape.length + 1), len(bearer))
    for pos, of in enumerate(populations):
        best = lists(of, female, shape.length, rng)[bearer]
        words = np.array(words_of(pos, shape.words))[best].ravel()
        parts.append(
            people.select(
                pl.col("qid").repeat_by(shape.length).explode(),
                pl.col("name").repeat_by(shape.length).explode(),
            ).with_columns(
                word=pl.Series(words),
                lemma=pl.Series(words),
                pos=pl.lit(pos, dtype=pl.Int64),
                frame=pl.lit("bare"),
                rank=pl.Series(ranks, dtype=pl.Int32),
                logprob_nats=pl.Series(-ranks.astype(np.float64)),
                prompt_pieces=pl.lit(4, dtype=pl.Int32),
            )
        )
    where = inputs.outputs("associations", model) / LANGUAGE
    where.mkdir(parents=True)
    pl.concat(parts).write_parquet(where / "00000.parquet")
    return inputs
