"""Lists of words with sentiments, and lexica of these words, drawn from known parameters.

The sentiment of each word is drawn in each replicate, independently of its frequency, origin and
log-ratio. If sentiments are not associated with gender, words are exchangeable over sentiments.
"""

from __future__ import annotations

from itertools import groupby
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl
from pydantic import Field

from calibration.politicians import lists
from calibration.truth import Array, Bools, Generator, Integers, Truth
from plumbline.builders.datasets.lexica.build import SENTIMENTS
from plumbline.probes.core.run_analysis import Inputs
from plumbline.probes.politicians.words.word_counts import FEMALE, MALE

POSITIVE, NEGATIVE, NEUTRAL = range(len(SENTIMENTS))
TOWARDS = np.array([0.5, -0.5, 0.0])  # women have more positive and fewer negative words
LANGUAGES = ("en", "es", "fr")
CUMULATIVE = (0.2, 0.4)  # 20% of the words are positive, 20% negative and 60% neutral


class MeaningsShape(lists.ListsShape):
    """Shape of the lists and of the lexica."""

    words: int = Field(120, description="number of candidate words per part of speech")
    known: float = Field(0.9, description="share of words in the lexica")
    certainty: float = Field(0.7, description="probability q of a word's true sentiment")
    own: float = Field(0.4, description="SD over words of their own log-ratios, if they have any")


class Cell(NamedTuple):
    """Words of one language and part of speech."""

    language: str
    pos: int
    effect: float  # nats, women minus men, for positive words; minus that for negative ones
    population: lists.Population
    sentiment: Integers  # (words,)
    q: Array  # (words, sentiments); nan if no lexicon contains the word


def cells(shape: MeaningsShape, truth: Truth, rng: Generator) -> list[Cell]:
    """Draw the words of each part of speech, in as many languages as there are effects.

    ``truth.settings``: ``effects``: effects of sentiments, nats, one per language; ``own``: True if
    single words have log-ratios; ``words`` and ``origin``: effects of words and differences in
    origins for :func:`lists.population`.
    """
    result = []
    for language, nats in zip(LANGUAGES, truth.get("effects", (0.0,)), strict=False):
        for pos in range(2):
            ranks = np.arange(shape.words) / shape.words
            sentiment = rng.permutation(np.searchsorted(CUMULATIVE, ranks, side="right"))
            q = np.full((shape.words, len(SENTIMENTS)), (1 - shape.certainty) / 2)
            q[np.arange(shape.words), sentiment] = shape.certainty
            q[rng.permutation(shape.words)[round(shape.known * shape.words) :]] = np.nan
            effects, origin = truth.get("words", ()), truth.get("origin", 0.0)
            words = Truth(truth.kind, origin=origin, effects=effects)
            bare, spread = lists.population(shape, words, pos), shape.own * truth.get("own", 0)
            effect = bare.effect + rng.normal(0, 1, shape.words) * spread
            effect = effect + 2 * TOWARDS[sentiment] * nats
            part = bare._replace(effect=effect, frequency=rng.normal(0, shape.spread, shape.words))
            result.append(Cell(language, pos, nats, part, sentiment, q))
    return result


def write(
    folder: Path, shape: MeaningsShape, cells: list[Cell], rng: Generator, model: str = "m"
) -> Inputs:
    """Write people, lexica and lists, and return the inputs of an analysis."""
    inputs = Inputs((model,), {n: folder / n for n in ("politicians", "lexica")}, folder)
    female = sexes(shape)
    again = rng.choice(len(female), round(shape.shared * len(female)), replace=False)
    bearer = np.concatenate([np.arange(len(female)), again])  # index of each person's name
    gender = np.where(female, FEMALE, MALE)
    none = np.zeros_like(gender)
    drawn = lists.Names(gender, none, none > 0, none > 0, none, bearer)
    people = pl.DataFrame(
        {"name": [f"Name {n}" for n in bearer], "gender": gender[bearer]}
    ).with_columns(
        qid=pl.Series([f"Q{n}" for n in range(len(bearer))]),
        popularity=pl.Series(rng.integers(1, 50, len(bearer)), dtype=pl.Int32),
    )
    for language, group in groupby(cells, key=lambda cell: cell.language):
        parts = list(group)
        people.write_parquet(inputs.datasets["politicians"] / f"{language}.parquet", mkdir=True)
        words = [word for cell in parts for word in lists.words_of(cell.pos, shape.words)]
        q = np.concatenate([cell.q for cell in parts])
        columns = {f"q_{s}": q[:, i] for i, s in enumerate(SENTIMENTS)}
        lexicon = pl.DataFrame({"word": words} | columns).filter(pl.col("q_positive").is_not_nan())
        lexicon.write_parquet(inputs.datasets["lexica"] / f"{language}.parquet", mkdir=True)
        side = np.where(female, 0.5, -0.5)
        drawn_from = [cell.population for cell in parts]
        utility = (lists.utilities(p, lists.origins(p, female, rng), side) for p in drawn_from)
        lists.write_lists(inputs, model, drawn, utility, shape.length, rng, language=language)
    return inputs


def sexes(shape: lists.ListsShape) -> Bools:
    """Return a mask of women's names, an array of shape (names,)."""
    return np.arange(shape.men + shape.women) >= shape.men


def counts(cell: Cell, shape: MeaningsShape, samples: int, rng: Generator) -> Array:
    """Count the names with each word in other samples of names, (samples, words, 2), men first."""
    female = np.repeat(sexes(shape), samples)
    origin = lists.origins(cell.population, female, rng)
    utility = lists.utilities(cell.population, origin, np.where(female, 0.5, -0.5))
    best = lists.best(utility, shape.length, rng)
    sample = np.tile(np.arange(samples), shape.men + shape.women)[:, None]
    index = (sample * shape.words + best) * 2 + female[:, None]
    result = np.bincount(index.ravel(), minlength=samples * shape.words * 2)
    return result.reshape(samples, shape.words, 2).astype(np.float64)
