"""Simulated outputs of ``completions`` and ``after_training``, from known parameters.

The score of a word in a list, in nats, is the sum of its log-frequency, its normally distributed
effects in the category, group, template and single list, and the planted effect. A list contains
the words with the highest scores. Priors are log-frequencies, so that typicality is the rest of the
score; the prior for a single mask has additional noise, and the released prior comes from another
sentence. Simplifications: every word is one token and, unless marked as a piece, begins a word;
log-frequencies are normal.
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
CARRY = (0.18, 0.11, 0.14, 0.18, 0.21, 0.18, 0.09, 0.22, 0.35, 0.42)  # share of words by affect
DATASETS = ("stereotypes", "emotions")
DIFFERENCE = ("difference", "low_difference", "high_difference")  # columns of the tables
ARTICLES = 100  # number of articles in a training run
QUERY = pl.col("template").str.replace("{group}", pl.col("group"), literal=True)


class ListsShape(Params):
    """Shape of a model's lists; spreads are standard deviations in nats."""

    categories: dict[str, int] = Field(
        {"age": 8, "country": 12, "profession": 16}, description="number of groups in each category"
    )
    templates: int = Field(2, description="number of templates")
    words: int = Field(150, description="number of words in the vocabulary")
    top: int = Field(60, description="number of words in a list")
    frequency: float = Field(1.0, description="spread of log-frequencies")
    common: float = Field(0.3, description="spread of effects in a category")
    own: float = Field(0.8, description="spread of effects in a group")
    template: float = Field(0.3, description="spread of effects in a template")
    single: float = Field(0.4, description="spread of effects in a single list")
    pieces: float = Field(0.1, description="share of words that are pieces of other words")

    def __hash__(self) -> int:
        return hash(self.model_dump_json())

    @property
    def groups(self) -> list[tuple[str, str]]:
        """Return the category and name of each group."""
        return [
            (category, f"{category}s of kind {number:03d}")
            for category, size in self.categories.items()
            for number in range(size)
        ]

    @property
    def category(self) -> Integers:
        """Return the index of each group's category, an array of shape (groups,)."""
        return np.repeat(np.arange(len(self.categories)), list(self.categories.values()))


class Words(NamedTuple):
    """Properties of words that do not depend on the group, equal in all lists of a model."""

    frequency: Array  # (words,)
    common: Array  # (categories, words)
    template: Array  # (templates, words)
    affects: Bools  # (words, affects)
    pieces: Bools  # (words,)


def vocabulary(shape: ListsShape, rng: Generator) -> Words:
    """Draw the properties of words."""
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
    """Draw scores, an array of shape (groups, templates, words).

    ``category``: index of each group's category, (groups,).
    ``planted``: planted effects on words in the lists of each group, (groups, words), nats.
    """
    group_effects = rng.normal(0, shape.own, (len(category), shape.words))
    total = words.frequency + words.common[category] + group_effects + planted
    result: Array = total[:, None] + words.template
    return result + rng.normal(0, shape.single, result.shape)


def unions(scores: Array, words: Words, top: int, number: int, *, typical: bool = True) -> Bools:
    """Return a mask of the words that lead over all lists of each group, (groups, words).

    ``typical``: if True, rank words except pieces by typicality; otherwise all by probability.
    """
    in_list = np.argsort(np.argsort(-scores, axis=2), axis=2) < top
    by = scores
    if typical:
        in_list = in_list & ~words.pieces
        by = np.where(in_list, scores - words.frequency, -np.inf)
    first = np.argsort(np.argsort(-by, axis=2), axis=2) < number
    return np.asarray((in_list & first).any(axis=1))


def profiles(unions: Bools, affects: Bools) -> Array:
    """Return the share of each group's words with each affect, of shape (groups, affects)."""
    return np.asarray(unions.astype(np.float64) @ affects / unions.sum(axis=1)[:, None])


def priors(frequency: Array) -> dict[str, Array]:
    """Return the priors of each variant from log-frequencies, (words,); two of them add noise."""
    logs = frequency - np.logaddexp.reduce(frequency)
    noise = np.random.default_rng([5, len(logs)]).normal(0, 0.2, (2, len(logs)))
    return {"corrected": logs, "corrected_one": logs + noise[0], "faithful": logs + noise[1] - 1}


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
    """Return lists with the columns of the probe's outputs.

    ``scores``: (groups, templates, words) array.
    ``frequency``: log-frequencies, (words,), from which priors are computed if ``prior`` is None.
    """
    spelled = np.array(names(scores.shape[2]), dtype=object)
    logprobs = scores - np.logaddexp.reduce(scores, axis=2, keepdims=True)
    best = np.argsort(-logprobs, axis=2, kind="stable")[..., :top]
    logs = np.take_along_axis(logprobs, best, axis=2)
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
        logprob_nats=pl.Series(logs.ravel()),
        logprob_top_nats=pl.Series((logs - np.logaddexp.reduce(logs, 2, keepdims=True)).ravel()),
        prior_nats=pl.Series(prior["corrected"][flat]),
        prior_one_nats=pl.Series(prior["corrected_one"][flat]),
        prior_released_nats=pl.Series(prior["faithful"][flat]),
        unknown_pieces=pl.lit(0, dtype=pl.Int32),
    )


def write_lists(inputs: Inputs, model: str, lists: pl.DataFrame) -> None:
    """Write the outputs of ``completions``."""
    path = inputs.outputs("completions", model) / LANGUAGE / "00000.parquet"
    lists.write_parquet(path, mkdir=True)


def write_training(
    inputs: Inputs, model: str, lists: pl.DataFrame, corpus: str, seed: int, longer: float = 1.0
) -> None:
    """Write the outputs of ``after_training`` for one run, with ``longer`` times the steps."""
    path = inputs.outputs("after_training", model) / LANGUAGE / f"{corpus}-1-{seed}.parquet"
    constants = {"tuning_seed": seed, "articles": ARTICLES, "steps": round(longer * ARTICLES / 8)}
    numbers = {name: pl.lit(value, dtype=pl.Int32) for name, value in constants.items()}
    table = lists.with_columns(**numbers, corpus=pl.lit(corpus), share=pl.lit(1.0))
    table.write_parquet(path, mkdir=True)


def write_vocabulary(inputs: Inputs, model: str, pieces: Mapping[str, int]) -> None:
    """Write the number of tokens of each attribute in a model."""
    table = pl.DataFrame({"attribute": list(pieces), "pieces": list(pieces.values())})
    path = inputs.outputs("completions", model) / "vocabulary" / f"{LANGUAGE}.parquet"
    table.write_parquet(path, mkdir=True)


def datasets(folder: Path, models: tuple[str, ...] = ("m",)) -> Inputs:
    """Create empty dataset folders, and return the inputs of an analysis in a folder."""
    inputs = Inputs(models, {name: folder / name for name in DATASETS}, folder / "data")
    for name in inputs.datasets.values():
        name.mkdir(parents=True)
    return inputs


def write_lexicon(inputs: Inputs, affects: Bools, words: Sequence[str] = ()) -> None:
    """Write the dataset ``emotions`` from (words, affects), by default of the first words."""
    spelled = list(words) or names(len(affects))
    flags = {name: affects[:, a] for a, name in enumerate(AFFECTS)}
    lexicon = pl.DataFrame({"word": spelled, "english": spelled} | flags)
    lexicon.write_parquet(inputs.datasets["emotions"] / f"{LANGUAGE}.parquet", mkdir=True)


def write_attributes(
    inputs: Inputs,
    groups: Sequence[tuple[str, str]],
    attributes: Sequence[Sequence[tuple[int, str, list[str]]]],
) -> pl.DataFrame:
    """Write the dataset ``stereotypes`` and return it.

    ``attributes``: for each group, the index of the template, the attribute, and its flags
    (``multi_word`` if it has several words).
    """
    rows = [
        (category, group, TEMPLATES[t], text, " " not in text, flags)
        for (category, group), of_group in zip(groups, attributes, strict=True)
        for t, text, flags in of_group
    ]
    schema: dict[str, Any] = dict.fromkeys(
        ("category", "group", "template", "attribute"), pl.String
    )
    schema |= {"single_word": pl.Boolean, "flags": pl.List(pl.String)}
    result = pl.DataFrame(rows, schema=schema, orient="row").with_columns(
        language=pl.lit(LANGUAGE), query=QUERY, source_row=pl.lit(0, dtype=pl.Int64)
    )
    folder = inputs.datasets["stereotypes"]
    result.write_parquet(folder / f"{LANGUAGE}.parquet", mkdir=True)
    result.head(0).write_parquet(folder / "rejects.parquet", mkdir=True)
    return result
