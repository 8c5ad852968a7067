"""Outputs of ``associations`` without a model: lists of words for names, from a known truth.

A list has the words of the largest utility for a name: log-frequency of the word, what goes with
the gender, what goes with the name's origin, and Gumbel noise. Without an effect of gender all
lists are exchangeable over names. The lists of a name in several models, templates and parts of
speech have its origin in common, and what words the name itself goes with where that is given.

Simplified: the first names, families and parties of people are one thing, their origin; every list
has one length, or one of two, of which women have the shorter one more often.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import date
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from pydantic import Field

from calibration.truth import Array, Bools, Generator, Integers, Truth
from plumbline.builders.core.params import Params
from plumbline.builders.datasets.lexica.build import SENTIMENTS
from plumbline.builders.datasets.politicians.person import GENDERS
from plumbline.builders.datasets.words.build import POS
from plumbline.probes.core.run_analysis import Inputs
from plumbline.probes.politicians.words.word_counts import FEMALE, MALE, NON_BINARY

LANGUAGE = "en"
FRAMES = ("bare", "neutral", "paraphrase")
OLD = {MALE: 0.27, FEMALE: 0.14, NON_BINARY: 0.0}  # share born before 1946, as in the default run
SITELINKS = {MALE: 77.0, FEMALE: 48.0, NON_BINARY: 32.0}  # mean number, as there
SHORT = 15  # words in a shorter list
BEARERS = 300  # at most, of a name
NATIVE = (0.1, 0.7)  # share of natives among the first and the last origin
MANY = 40_000  # lists of a gender from which expected counts are taken


class ListsShape(Params):
    """Shape of the lists that a model gave."""

    men: int = Field(240, description="distinct names of men")
    women: int = Field(60, description="distinct names of women")
    others: int = Field(0, description="distinct names of non-binary people")
    shared: float = Field(0.05, description="share of people who bear another's name")
    words: int = Field(80, description="candidate words of a part of speech")
    length: int = Field(20, description="words in a list")
    spread: float = Field(1.0, description="SD of log-frequencies of words")
    origins: int = Field(4, description="origins of names, which have words of their own")
    taste: float = Field(0.5, description="SD of what goes with an origin, nats")
    short: float = Field(0, description="share of women with lists of 15; 1 less it of others")
    zipf: float = Field(0, description="exponent of the number of bearers; 0: `shared` has it")

    def cut(self) -> Array:
        """Return the share of men's, women's and others' lists that are shorter."""
        return np.array([1 - self.short, self.short, 1 - self.short]) * (self.short > 0)


class Population(NamedTuple):
    """Population of lists of a part of speech, equal in all replicates."""

    frequency: Array  # (words,)
    origin: Array  # (origins, words)
    effect: Array  # (words,): nats between women and men, half to each
    women_of: Array  # (origins,): shares of origins among women
    men_of: Array  # and among men and others


class Names(NamedTuple):
    """Distinct names, and who bears them."""

    gender: Integers  # (names,) codes
    origin: Integers  # (names,)
    native: Bools  # (names,)
    old: Bools  # (names,)
    sitelinks: Integers  # (names,)
    bearer: Integers  # (people,): the name of each person
    short: Bools | None = None  # (names,): whose lists are shorter

    def side(self) -> Array:
        """Return the share of an effect for each name, (names,): -1/2, 1/2 or 0."""
        return np.array([-0.5, 0.5, 0.0])[self.gender]


def population(shape: ListsShape, truth: Truth, pos: int) -> Population:
    """Return the population of lists.

    ``truth.settings``: ``effects``, nats that are planted, both signs of each in every tenth word;
    ``origin``: how unequally the genders are spread over origins, 0: equally.
    """
    rng = np.random.default_rng([7, pos, shape.words])
    effect = np.zeros(shape.words)
    signed = [s * e for e in truth.get("effects", ()) for s in (1, -1)]
    places = rng.permutation(shape.words)
    for n, nats in enumerate(signed):
        effect[places[n :: max(10, len(signed) + 1)]] = nats
    weights = np.ones(shape.origins)
    tilted = weights * np.exp(truth.get("origin", 0.0) * np.arange(shape.origins))
    return Population(
        rng.normal(0, shape.spread, shape.words),
        rng.normal(0, shape.taste, (shape.origins, shape.words)),
        effect,
        tilted / tilted.sum(),
        weights / weights.sum(),
    )


def names(shape: ListsShape, of: Population, rng: Generator) -> Names:
    """Draw distinct names and the people who bear them.

    Natives are rarer in the first origins than in the last; men are more often old, and have more
    sitelinks. Except for origin, none affects words.
    """
    gender = np.repeat([MALE, FEMALE, NON_BINARY], [shape.men, shape.women, shape.others])
    origin = origins(of, gender == FEMALE, rng)
    again = rng.choice(len(gender), round(shape.shared * len(gender)), replace=False)
    bearer = np.concatenate([np.arange(len(gender)), again])
    if shape.zipf:
        bearer = np.repeat(
            np.arange(len(gender)), rng.zipf(shape.zipf, len(gender)).clip(1, BEARERS)
        )
    means = np.array([SITELINKS[g] for g in range(len(GENDERS))])[gender]
    return Names(
        gender,
        origin,
        rng.random(len(gender)) < np.linspace(*NATIVE, shape.origins)[origin],
        rng.random(len(gender)) < np.array([OLD[g] for g in range(len(GENDERS))])[gender],
        rng.geometric(1 / means),
        bearer,
        rng.random(len(gender)) < shape.cut()[gender] if shape.short else None,
    )


def origins(of: Population, women: Bools, rng: Generator) -> Integers:
    """Draw the origin of each name, (names,)."""
    shares = np.where(women[:, None], of.women_of, of.men_of).cumsum(axis=1)
    index: Integers = (rng.random((len(women), 1)) > shares).sum(axis=1)
    return index.clip(0, len(of.origin) - 1)


def best(utility: Array, length: int, rng: Generator) -> Integers:
    """Draw a list for each row of utilities (names, words): places of words, the best first."""
    noisy = utility + rng.gumbel(size=utility.shape)
    top = np.argpartition(-noisy, length - 1, axis=1)[:, :length]
    order = np.argsort(-np.take_along_axis(noisy, top, axis=1), axis=1)
    return np.take_along_axis(top, order, axis=1)


def utilities(of: Population, origin: Integers, side: Array) -> Array:
    """Return the utility of words to names without noise, (names, words).

    ``side``, (names,) array: how much of the effect each has, see :meth:`Names.side`.
    """
    result: Array = of.frequency + of.origin[origin] + side[:, None] * of.effect
    return result


@lru_cache(maxsize=32)
def expected(shape: ListsShape, truth: Truth, pos: int) -> Array:
    """Return the share of lists of each gender that have each word, (words, 3).

    Without an effect the genders have the same shares, unless their lists have other lengths.
    """
    part = population(shape, truth, pos)
    return expected_of(part, shape, np.random.default_rng([8, pos]))


def expected_of(part: Population, shape: ListsShape, rng: Generator, own: float = 0.0) -> Array:
    """Return the share of many lists of each gender that have each word, (words, 3).

    ``own``: SD of effects of single names, nats.
    """
    seeds = rng.integers(2**32, size=2)
    columns = []
    for gender, side in ((MALE, -0.5), (FEMALE, 0.5), (NON_BINARY, 0.0)):
        draw = np.random.default_rng(seeds)  # the same luck for all genders
        result = np.zeros(shape.words)
        for _ in range(MANY // 2000):
            origin = origins(part, np.full(2000, gender == FEMALE), draw)
            utility = utilities(part, origin, np.full(2000, side))
            utility = utility + draw.normal(0, own, utility.shape)
            listed = best(utility, shape.length, draw)
            if shape.short:
                cut = draw.random(2000) < shape.cut()[gender]
                listed = listed[~(cut[:, None] & (np.arange(shape.length) >= SHORT))]
            result += np.bincount(listed.ravel(), minlength=shape.words)
        columns.append(result / MANY)
    return np.stack(columns, axis=1)


def counts(
    shape: ListsShape,
    populations: Sequence[Population],
    rng: Generator,
    lemmas: Sequence[Integers] | None = None,
) -> list[Array]:
    """Draw another sample of as many names; count those with each word, (words, 3) for each part.

    What an interval covers that is about the words that lead: they are other ones among more names.

    ``lemmas``: (words,) for each part: places of lemmas, which are counted instead of words.
    """
    drawn, result = names(shape, populations[0], rng), []
    gender = np.eye(3)[drawn.gender]
    for pos, of in enumerate(populations):
        lists_of = best(utilities(of, drawn.origin, drawn.side()), shape.length, rng)
        index = lemmas[pos] if lemmas else np.arange(len(of.frequency))
        has = np.zeros((len(gender), index.max() + 1))
        np.put_along_axis(has, index[lists_of], 1.0, axis=1)
        result.append(has.T @ gender)
    return result


def words_of(pos: int, number: int) -> list[str]:
    """Return the words of a part of speech."""
    return [f"{POS[pos].lower()}{n:03d}" for n in range(number)]


def write(
    folder: Path,
    shape: ListsShape,
    populations: Sequence[Population],
    rng: Generator,
    **settings: Any,
) -> Inputs:
    """Write people and the lists of one model about them, and return the inputs of an analysis.

    ``settings``: of :func:`write_lists`.
    """
    drawn = names(shape, populations[0], rng)
    inputs = write_people(folder, drawn, ("m",))
    each = [utilities(of, drawn.origin, drawn.side()) for of in populations]
    write_lists(inputs, "m", drawn, each, shape.length, rng, **settings)
    return inputs


def write_people(folder: Path, of: Names, models: tuple[str, ...]) -> Inputs:
    """Write the dataset ``politicians``, and return inputs of models about these people.

    A name has a letter more for each origin: its length says something of where it is from.
    """
    spelt = [f"Name {n:05d}{'abcd'[: o % 4]}" for n, o in enumerate(of.origin.tolist())]
    born = [date(1930 if old else 1960, 1, 1) for old in of.old.tolist()]
    people = pl.DataFrame(
        {"name": spelt, "gender": of.gender, "native": of.native, "birth_date": born}
    ).with_columns(popularity=pl.Series(of.sitelinks, dtype=pl.Int32))
    inputs = Inputs(models, {"politicians": folder / "people"}, folder)
    qid = pl.Series("qid", [f"Q{n}" for n in range(len(of.bearer))])
    path = inputs.datasets["politicians"] / f"{LANGUAGE}.parquet"
    people[of.bearer].with_columns(qid).write_parquet(path, mkdir=True)
    return inputs


def write_lists(
    inputs: Inputs,
    model: str,
    of: Names,
    each: Iterable[Array],
    length: int,
    rng: Generator,
    *,
    language: str = LANGUAGE,
    frames: int = 1,
    lemmas: list[list[str]] | None = None,
) -> None:
    """Write the lists of a model.

    ``each``: utilities (names, words) for each part of speech.
    ``frames``: templates: the same utilities, other noise.
    ``lemmas``: of the words of each part of speech; without them each word is its own.
    """
    people = pl.DataFrame({"qid": [f"Q{n}" for n in range(len(of.bearer))]}).with_columns(
        prompt_pieces=pl.Series(4 + of.origin[of.bearer], dtype=pl.Int32)
    )
    ranks = np.tile(np.arange(1, length + 1), len(of.bearer))
    rows = people[np.repeat(np.arange(len(people)), length)].with_columns(
        rank=pl.Series(ranks, dtype=pl.Int32), unknown_pieces=pl.lit(0, dtype=pl.Int32)
    )
    parts = []
    for frame in FRAMES[:frames]:
        for pos, utility in enumerate(each):
            places = best(utility, length, rng)[of.bearer].ravel()
            words = words_of(pos, utility.shape[1])
            kind = {"pos": pl.lit(POS[pos]), "frame": pl.lit(frame)}
            of_word = {"word": words, "lemma": lemmas[pos] if lemmas else words}
            texts = {name: pl.Series(every).gather(places) for name, every in of_word.items()}
            parts.append(rows.with_columns(**texts, **kind))
    if of.short is not None:
        longest = np.where(np.repeat(of.short[of.bearer], length), SHORT, length)
        parts = [part.filter(pl.col("rank") <= pl.Series(longest)) for part in parts]
    path = inputs.outputs("associations", model) / language / "00000.parquet"
    pl.concat(parts).write_parquet(path, mkdir=True)


def write_lexicon(folder: Path, classes: list[Integers]) -> Path:
    """Write a lexicon in which the words of each part of speech have sentiments, codes (words,)."""
    words = [word for pos, own in enumerate(classes) for word in words_of(pos, len(own))]
    shares = np.where(np.arange(len(SENTIMENTS)) == np.concatenate(classes)[:, None], 0.8, 0.1)
    table = pl.DataFrame({f"q_{s}": shares[:, n] for n, s in enumerate(SENTIMENTS)})
    (table.with_columns(word=pl.Series(words))).write_parquet(
        folder / f"{LANGUAGE}.parquet", mkdir=True
    )
    return folder
