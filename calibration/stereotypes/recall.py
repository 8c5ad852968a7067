"""Analysis ``recall`` on simulated lists.

Words and attributes are those of one of a few populations: what words have everywhere and in a
category, and how often a search engine says each, of whatever group. A replicate draws groups of
it, their attributes and lists. Simplified: one model; an attribute of several words has one of the
words that lists are made of first; recall that intervals should cover is taken of many more groups.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from pydantic import Field

from calibration.stereotypes import completions as made
from calibration.truth import Array, Drawn, Generator, Integers, Tables, Truth, outcomes_by
from plumbline.probes.stereotypes.typicality import EVERY, READINGS

POPULATIONS = 12
LARGE = 600  # groups of a category that true recall is taken of
FIRST = " as few of many"  # what follows the first word of an attribute of several


class Shape(made.ListsShape):
    """Shape of lists and attributes."""

    templates: int = Field(3, description="questions about each group")
    words: int = Field(200, description="words that lists are made of")
    top: int = Field(80, description="words in a list")
    few: int = Field(3, description="attributes of a group, at least")
    many: int = Field(11, description="at most")
    longer: float = Field(0.15, description="share of attributes of several words")
    popular: float = Field(1.0, description="spread of attributes in what is said, nats")


SHAPES = {
    "36 groups, 3 to 11 attributes": Shape(),
    "80 groups, 1 to 5 attributes": Shape(
        categories={"age": 16, "country": 24, "profession": 40}, few=1, many=5
    ),
}
TRUTHS = {
    # attributes and lists of a group have nothing in common
    "lists know no group": Truth("null"),
    # nats that attributes have more, each category another
    "attributes planted": Truth("planted", lifts=(0.3, 0.7, 2.2)),
    # attributes are frequent words, in lists of any group
    "frequent words": Truth("decoy", frequent=1.0),
}
PARAMS: dict[str, Any] = {"tested": [10, 40, 80], "n_permutations": 999}


@lru_cache(maxsize=64)
def population(shape: Shape, number: int) -> tuple[made.Words, Array]:
    """Return the vocabulary, and the popularity of words as attributes, (categories, words)."""
    rng = np.random.default_rng([11, number])
    words = made.vocabulary(shape, rng)
    popular = rng.normal(0, shape.popular, shape.words)
    return words, popular + rng.normal(0, shape.popular / 2, words.common.shape)


def groups(
    shape: Shape, number: int, category: Integers, lift: Array, frequent: float, rng: Generator
) -> tuple[list[Integers], Array]:
    """Draw groups of some categories, (groups,), whose attributes have a lift, (groups,) nats.

    Returns the words said of each group, of which the nth is in template n mod T, and the scores of
    their lists, (groups, templates, words).
    """
    words, popular = population(shape, number)
    utility = (popular + frequent * words.frequency)[category]
    order = np.argsort(-(utility + rng.gumbel(size=utility.shape)), axis=1)
    sizes = rng.integers(shape.few, shape.many + 1, len(category))
    said = [own[:size] for own, size in zip(order, sizes, strict=True)]
    planted = np.zeros(utility.shape)
    for own, which, nats in zip(planted, said, lift, strict=True):
        own[which] = nats
    return said, made.scores(shape, words, category, planted, rng)


def draw(folder: Path, truth: Truth, shape: Shape, rng: Generator) -> Drawn:
    """Write one replicate."""
    number, inputs = int(rng.integers(POPULATIONS)), made.datasets(folder)
    words, _ = population(shape, number)
    lifts = rng.permutation(truth.get("lifts", (0.0, 0.0, 0.0)))
    frequent = truth.get("frequent", 0.0)
    said, scores = groups(shape, number, shape.category, lifts[shape.category], frequent, rng)
    attributes = [
        [
            (n % shape.templates, f"w{w:03d}{FIRST if longer else ''}", ["multi_word"] * longer)
            for n, (w, longer) in enumerate(
                zip(own, (rng.random(len(own)) < shape.longer).tolist(), strict=True)
            )
        ]
        for own in said
    ]
    written = made.write_attributes(inputs, shape.groups, attributes)
    made.write_vocabulary(inputs, "m", dict.fromkeys(written["attribute"].unique().sort(), 1))
    lists = made.table(shape.groups, scores, words.frequency, shape.top, pieces=words.pieces)
    made.write_lists(inputs, "m", lists)
    by_category = dict(zip(shape.categories, map(float, lifts), strict=True))
    known = _true(shape, number, by_category, frequent)
    return Drawn(inputs, known, params={"top_k": shape.top})


@lru_cache(maxsize=256)
def recall(shape: Shape, number: int, category: int, lift: float, frequent: float) -> Array:
    """Return the recall of many groups at each tested k, and with the lists of another group.

    The other group has the same category; (2, readings, ranks).
    """
    rng = np.random.default_rng([12, number, category])
    words, _ = population(shape, number)
    every = np.full(LARGE, category)
    said, scores = groups(shape, number, every, np.full(LARGE, lift), frequent, rng)
    prior = made.priors(words.frequency)
    row = np.repeat(np.arange(LARGE), [len(own) for own in said])
    asked = np.concatenate([np.arange(len(own)) % shape.templates for own in said])
    word = np.concatenate(said)
    listed = np.argsort(np.argsort(-scores, axis=2), axis=2) < shape.top
    result = np.zeros((2, len(READINGS), len(PARAMS["tested"])))
    for reading, name in enumerate(READINGS):
        by, kept = scores - prior.get(name, 0.0), listed
        if name.startswith("corrected"):
            kept = listed & ~words.pieces
        best = np.argsort(np.argsort(-np.where(kept, by, -np.inf), axis=2), axis=2)
        places = np.where(kept, best, shape.words)
        own, other = places[row, asked, word], places[(row + 1) % LARGE, asked, word]
        for codes, k in enumerate(PARAMS["tested"]):
            result[:, reading, codes] = (own < k).mean(), (other < k).mean()
    return result


def outcomes(tables: Tables, sample: Drawn) -> Tables:
    """Return the rows of each test, and intervals, by reading and kind of attributes.

    Frequent words are no decoy of it: they are in the lists of other groups too.
    """
    tested = tables["recall"].filter(pl.col("k").is_in(PARAMS["tested"]))
    every = pl.col("category") == EVERY
    tested = tested.join(sample.known, on=["category", "reading", "k"]).with_columns(
        where=every.replace_strict({True: "all", False: "a category"})
    )
    single, effect = tested.filter(attributes="single word"), pl.col("effect").fill_null(0.0)
    test: dict[str, Any] = {"effect": "effect", "interval": ["value"]}
    return (
        outcomes_by(tested, "p: {attributes}", **test)
        | outcomes_by(single, "p: {attributes}, {reading}", **test)
        | outcomes_by(tested, "recall: {attributes}, {where}", effect=effect, target="target", p="")
    )


def _true(shape: Shape, population: int, lifts: dict[str, float], frequent: float) -> pl.DataFrame:
    """Return planted effect and true recall of each category, reading and k."""
    true = {
        name: recall(shape, population, number, lift, frequent)[0]
        for number, (name, lift) in enumerate(lifts.items())
    }
    sizes = np.array(list(shape.categories.values()))
    true[EVERY] = np.tensordot(sizes / sizes.sum(), np.stack(list(true.values())), axes=1)
    effects: dict[str, float | None] = dict(lifts)
    effects[EVERY] = None if len(set(lifts.values())) > 1 else 0.0
    rows = [
        (name, reading, k, effects[name], float(values[r, codes]))
        for name, values in true.items()
        for r, reading in enumerate(READINGS)
        for codes, k in enumerate(PARAMS["tested"])
    ]
    names = {"category": pl.String, "reading": pl.String, "k": pl.Int64}
    schema = names | {"effect": pl.Float64, "target": pl.Float64}
    return pl.DataFrame(rows, schema=schema, orient="row")
