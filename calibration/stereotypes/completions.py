"""Outputs of ``completions`` and ``after_training`` without a model, from a known truth.

The score of a word in a list is what the word has everywhere (log-frequency), in lists of the
category, of the group, of the template, and in this list alone, and what is planted: normal parts,
in nats. A list has the words of the highest scores. Priors are log-frequencies, so that typicality
is the rest; the one of a single mask has noise of its own, the released one is of another sentence.
Simplified: every word is one token and begins a word, but for pieces; log-frequencies are normal.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from pydantic import Field

from calibration.truth import Array, Bools, Generator, Integers
from plumbline.builders.core.params import Params
from plumbline.builders.datasets.emotions.build import AFFECTS
from plumbline.probes.core.run_analysis import Inputs

TEMPLATES = (
    *("why are {group} so", "how come {group} are so", "what makes {group} so"),
    *("why do {group} look so", "why are all {group} so"),
)
LANGUAGE = "en"
CARRY = (0.18, 0.11, 0.14, 0.18, 0.21, 0.18, 0.09, 0.22, 0.35, 0.42)  # of the lexicon's words
DATASETS = ("stereotypes", "emotions")
DIFFERENCE = ("difference", "low_difference", "high_difference")  # columns of tables
ARTICLES = 100  # of a training
QUERY = pl.col("template").str.replace("{group}", pl.col("group"), literal=True)


class ListsShape(Params):
    """Shape of a model's lists; spreads are standard deviations in nats."""

    categories: dict[str, int] = Field(
        {"age": 8, "country": 12, "profession": 16}, description="groups of each category"
    )
    templates: int = Field(2, description="questions about each group")
    words: int = Field(150, description="words that lists are made of")
    top: int = Field(60, description="words in a list")
    frequency: float = Field(1.0, description="spread of words everywhere")
    common: float = Field(0.3, description="spread of words in a category")
    own: float = Field(0.8, description="spread of words in a group")
    template: float = Field(0.3, description="spread of words in a template")
    single: float = Field(0.4, description="spread of words in a single list")
    pieces: float = Field(0.1, description="share of words that are pieces of others")

    def __hash__(self) -> int:
        return hash(self.model_dump_json())

    @property
    def groups(self) -> list[tuple[str, str]]:
        """Return category and name of each group."""
        return [
            (category, f"{category}s of kind {number:03d}")
            for category, size in self.categories.items()
            for number in range(size)
        ]

    @property
    def category(self) -> Integers:
        """Return the number of each group's category, (groups,)."""
        return np.repeat(np.arange(len(self.categories)), list(self.categories.values()))


class Words(NamedTuple):
    """Properties of words independent of the group, equal in all lists of a model."""

    frequency: Array  # (words,)
    common: Array  # (categories, words)
    template: Array  # (templates, words)
    affects: Bools  # (words, affects)
    pieces: Bools  # (words,)


def vocabulary(shape: ListsShape, rng: Generator) -> Words:
    """Draw what words have everywhere."""
    n = shape.words
    return Words(
        rng.normal(0, shape.frequency, n),
        rng.normal(0, shape.common, (len(shape.categories), n)),
        rng.normal(0, shape.template, (shape.templates, n)),
        rng.random((n, len(AFFECTS))) < np.array(CARRY),
        rng.random(n) < shape.pieces,
    )


def scores(
    shape: ListsShape, words: Words, category: Integers, planted: Array, rng: Generator
) -> Array:
    """Draw scores, (groups, templates, words).

    ``category``, ``planted``: (groups,) and (groups, words): category of each group, and nats that
    words have more in its lists.
    """
    own = rng.normal(0, shape.own, (len(category), shape.words))
    whole = words.frequency + words.common[category] + own + planted
    result: Array = whole[:, None] + words.template
    return result + rng.normal(0, shape.single, result.shape)


def unions(scores: Array, words: Words, top: int, number: int, *, typical: bool = True) -> Bools:
    """Return a mask of the top words in the lists of each group, (groups, words).

    ``typical``: ranked by typicality, without pieces; otherwise by probability.
    """
    listed = np.argsort(np.argsort(-scores, axis=2), axis=2) < top
    by = scores
    if typical:
        listed = listed & ~words.pieces
        by = np.where(listed, scores - words.frequency, -np.inf)
    first = np.argsort(np.argsort(-by, axis=2), axis=2) < number
    return np.asarray((listed & first).any(axis=1))


def profiles(unions: Bools, affects: Bools) -> Array:
    """Return the share of each affect in the words of groups, (groups, affects)."""
    return np.asarray(unions.astype(np.float64) @ affects / unions.sum(axis=1)[:, None])


def priors(frequency: Array) -> dict[str, Array]:
    """Return the priors of readings, of log-frequencies (words,); of two with noise."""
    own = frequency - np.logaddexp.reduce(frequency)
    noise = np.random.default_rng([5, len(own)]).normal(0, 0.2, (2, len(own)))
    return {"corrected": own, "corrected_one": own + noise[0], "faithful": own + noise[1] - 1}


def names(number: int) -> list[str]:
    """Return the words."""
    return [f"w{n:03d}" for n in range(number)]


def table(
    groups: Sequence[tuple[str, str]],
    scores: Array,
    frequency: Array,
    top: int,
    *,
    pieces: Bools | None = None,
    prior: Mapping[str, Array] | None = None,
) -> pl.DataFrame:
    """Return lists with the columns that the probe writes.

    ``scores``: (groups, templates, words) array.
    ``frequency``, (words,) array: log-frequencies, of which priors are made where they are not
    given.
    """
    spelled = np.array(names(scores.shape[2]), dtype=object)
    logprobs = scores - np.logaddexp.reduce(scores, axis=2, keepdims=True)
    best = np.argsort(-logprobs, axis=2, kind="stable")[..., :top]
    kept = np.take_along_axis(logprobs, best, axis=2)
    prior = prior or priors(frequency)
    prompts = [(*group, text) for group in groups for text in TEMPLATES[: scores.shape[1]]]
    lists = pl.DataFrame(prompts, schema=["category", "group", "template"], orient="row")
    lists, flat = lists.select(pl.all().repeat_by(top).explode()), best.ravel()
    return lists.with_columns(
        query=QUERY,
        rewritten=pl.lit(value=False),
        prompt=QUERY,
        token=pl.Series(spelled[flat], dtype=pl.String),
        word=pl.Series(spelled[flat], dtype=pl.String),
        starts_word=pl.Series(np.ones(len(flat), bool) if pieces is None else ~pieces[flat]),
        rank=pl.Series(np.tile(np.arange(1, top + 1), len(flat) // top), dtype=pl.Int32),
        logprob_nats=pl.Series(kept.ravel()),
        logprob_top_nats=pl.Series((kept - np.logaddexp.reduce(kept, 2, keepdims=True)).ravel()),
        prior_nats=pl.Series(prior["corrected"][flat]),
        prior_one_nats=pl.Series(prior["corrected_one"][flat]),
        prior_released_nats=pl.Series(prior["faithful"][flat]),
        unknown_pieces=pl.lit(0, dtype=pl.Int32),
    )


def write_lists(inputs: Inputs, model: str, lists: pl.DataFrame) -> None:
    """Write the outputs of ``completions``."""
    path = inputs.outputs("completions", model) / LANGUAGE / "00000.parquet"
    lists.write_parquet(path, mkdir=True)


def write_training(inputs: Inputs, model: str, lists: pl.DataFrame, corpus: str, seed: int) -> None:
    """Write the outputs of ``after_training`` after one training on a whole corpus."""
    path = inputs.outputs("after_training", model) / LANGUAGE / f"{corpus}-1-{seed}.parquet"
    whole = {"tuning_seed": seed, "articles": ARTICLES, "steps": -(-ARTICLES // 8)}
    numbers = {name: pl.lit(value, dtype=pl.Int32) for name, value in whole.items()}
    table = lists.with_columns(**numbers, corpus=pl.lit(corpus), share=pl.lit(1.0))
    table.write_parquet(path, mkdir=True)


def write_vocabulary(inputs: Inputs, model: str, pieces: Mapping[str, int]) -> None:
    """Write in how many tokens a model has each attribute."""
    table = pl.DataFrame({"attribute": list(pieces), "pieces": list(pieces.values())})
    path = inputs.outputs("completions", model) / "vocabulary" / f"{LANGUAGE}.parquet"
    table.write_parquet(path, mkdir=True)


def datasets(folder: Path, models: tuple[str, ...] = ("m",)) -> Inputs:
    """Return the inputs of an analysis, in a folder, with empty folders of datasets."""
    inputs = Inputs(models, {name: folder / name for name in DATASETS}, folder / "data")
    for name in inputs.datasets.values():
        name.mkdir(parents=True)
    return inputs


def write_lexicon(inputs: Inputs, affects: Bools, words: Sequence[str] = ()) -> None:
    """Write the dataset ``emotions``: the words of (words, affects), or the first of them."""
    known = list(words) or names(len(affects))
    flags = {name: affects[:, a] for a, name in enumerate(AFFECTS)}
    lexicon = pl.DataFrame({"word": known, "english": known} | flags)
    lexicon.write_parquet(inputs.datasets["emotions"] / f"{LANGUAGE}.parquet", mkdir=True)


def write_attributes(
    inputs: Inputs,
    groups: Sequence[tuple[str, str]],
    attributes: Sequence[Sequence[tuple[int, str, list[str]]]],
) -> pl.DataFrame:
    """Write the dataset ``stereotypes`` and return it.

    ``attributes``: of each group: the number of the template, the attribute, and its flags,
    ``multi_word`` among them where it has several words.
    """
    rows = [
        (category, group, TEMPLATES[t], text, " " not in text, flags)
        for (category, group), own in zip(groups, attributes, strict=True)
        for t, text, flags in own
    ]
    schema: dict[str, Any] = dict.fromkeys(
        ("category", "group", "template", "attribute"), pl.String
    )
    schema |= {"single_word": pl.Boolean, "flags": pl.List(pl.String)}
    result = pl.DataFrame(rows, schema=schema, orient="row").with_columns(
        language=pl.lit(LANGUAGE),
        query=QUERY,
        source_row=pl.lit(0, dtype=pl.Int64),
    )
    folder = inputs.datasets["stereotypes"]
    result.write_parquet(folder / f"{LANGUAGE}.parquet", mkdir=True)
    result.head(0).write_parquet(folder / "rejects.parquet", mkdir=True)
    return result
