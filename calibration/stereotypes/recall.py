"""Analysis ``recall`` on simulated lists.

Words and attributes come from one of a few populations, which determine the frequency of words,
their effects in a category, and their popularity as attributes of any group. Each replicate draws
groups from a population, with attributes and lists. Simplifications: there is one model; an
attribute of several words begins with a word in the vocabulary. Intervals should cover the recall
in many more groups.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from pydantic import Field

from calibration.stereotypes import completions as outputs
from calibration.truth import Array, Drawn, Generator, Integers, Tables, Truth, outcomes_by
from plumbline.probes.stereotypes.typicality import EVERY, READINGS

POPULATIONS = 12
LARGE = 600  # number of groups per category from which true recall is computed
FIRST = " as few of many"  # text after the first word of an attribute of several words


class Shape(outputs.ListsShape):
    """Shape of the lists and attributes."""

    templates: int = Field(3, description="number of templates")
    words: int = Field(200, description="number of words in the vocabulary")
    top: int = Field(80, description="number of words in a list")
    few: int = Field(3, description="minimum number of attributes of a group")
    many: int = Field(11, description="maximum number of attributes of a group")
    longer: float = Field(0.15, description="share of attributes that consist of several words")
    popular: float = Field(1.0, description="spread of the popularity of attributes, nats")


SHAPES = {
    "36 groups, 3 to 11 attributes": Shape(),
    "80 groups, 1 to 5 attributes": Shape(
        categories={"age": 16, "country": 24, "profession": 40}, few=1, many=5
    ),
}
TRUTHS = {
    # the lists of a group are independent of its attributes
    "lists know no group": Truth("null"),
    # nats added to attributes, different in each category
    "attributes planted": Truth("planted", lifts=(0.3, 0.7, 2.2)),
    # attributes are frequent words, in the lists of all groups
    "frequent words": Truth("decoy", frequent=1.0),
}
PARAMS: dict[str, Any] = {"tested": [10, 40, 80], "n_permutations": 999}


@lru_cache(maxsize=64)
def population(shape: Shape, number: int) -> tuple[outputs.Words, Array]:
    """Return the vocabulary and the popularity of words as attributes, (categories, words)."""
    rng = np.random.default_rng([11, number])
    words = outputs.vocabulary(shape, rng)
    popular = rng.normal(0, shape.popular, shape.words)
    return words, popular + rng.normal(0, shape.popular / 2, words.common.shape)


def groups(
    shape: Shape, number: int, category: Integers, lift: Array, frequent: float, rng: Generator
) -> tuple[list[Integers], Array]:
    """Draw groups, given their categories and effects on their attributes, nats, (groups,) each.

    Returns the attributes of each group, of which the nth belongs to template n modulo the number
    of templates, and the scores of their lists, (groups, templates, words).
    """
    words, popular = population(shape, number)
    utility = (popular + frequent * words.frequency)[category]
    order = np.argsort(-(utility + rng.gumbel(size=utility.shape)), axis=1)
    sizes = rng.integers(shape.few, shape.many + 1, len(category))
    attributes = [row[:size] for row, size in zip(order, sizes, strict=True)]
    planted = np.zeros(utility.shape)
    for row, words_in, nats in zip(planted, attributes, lift, strict=True):
        row[words_in] = nats
    return attributes, outputs.scores(shape, words, category, planted, rng)


def draw(folder: Path, truth: Truth, shape: Shape, rng: Generator) -> Drawn:
    """Write one replicate."""
    number, inputs = int(rng.integers(POPULATIONS)), outputs.datasets(folder)
    words, _ = population(shape, number)
    lifts = rng.permutation(truth.get("lifts", np.zeros(len(shape.categories))))
    lifts[0] += truth.get("first", 0.0)
    frequent = truth.get("frequent", 0.0)
    words_of, scores = groups(shape, number, shape.category, lifts[shape.category], frequent, rng)
    attributes = []
    for row in words_of:
        longer = zip(row, (rng.random(len(row)) < shape.longer).tolist(), strict=True)
        named = enumerate((f"w{w:03d}{FIRST * long}", ["multi_word"] * long) for w, long in longer)
        attributes.append([(n % shape.templates, *attribute) for n, attribute in named])
    written = outputs.write_attributes(inputs, shape.groups, attributes)
    outputs.write_vocabulary(inputs, "m", dict.fromkeys(written["attribute"].unique().sort(), 1))
    lists = outputs.table(shape.groups, scores, words.frequency, shape.top, pieces=words.pieces)
    outputs.write_lists(inputs, "m", lists)
    by_category = dict(zip(shape.categories, map(float, lifts), strict=True))
    true_rows = _true(shape, number, by_category, frequent)
    return Drawn(inputs, true_rows, params={"top_k": shape.top})


@lru_cache(maxsize=256)
def recall(shape: Shape, number: int, category: int, lift: float, frequent: float) -> Array:
    """Return the recall of many groups at each tested k, in their own and in another group's lists.

    The other group is in the same category; the result has shape (2, readings, ranks).
    """
    rng = np.random.default_rng([12, number, category])
    words, _ = population(shape, number)
    category_of = np.full(LARGE, category)
    attributes, scores = groups(shape, number, category_of, np.full(LARGE, lift), frequent, rng)
    prior = outputs.priors(words.frequency)
    row = np.repeat(np.arange(LARGE), [len(same) for same in attributes])
    template = np.concatenate([np.arange(len(same)) % shape.templates for same in attributes])
    word = np.concatenate(attributes)
    in_list = np.argsort(np.argsort(-scores, axis=2), axis=2) < shape.top
    result = np.zeros((2, len(READINGS), len(PARAMS["tested"])))
    for reading, name in enumerate(READINGS):
        by, ranked = scores - prior.get(name, 0.0), in_list
        if name.startswith("corrected"):
            ranked = in_list & ~words.pieces
        best = np.argsort(np.argsort(-np.where(ranked, by, -np.inf), axis=2), axis=2)
        ranks = np.where(ranked, best, shape.words)
        same, other = ranks[row, template, word], ranks[(row + 1) % LARGE, template, word]
        for codes, k in enumerate(PARAMS["tested"]):
            result[:, reading, codes] = (same < k).mean(), (other < k).mean()
    return result


def outcomes(tables: Tables, sample: Drawn) -> Tables:
    """Return the rows of each test, and intervals, by variant and kind of attributes.

    Frequent words are not counted as a decoy, as they are in the lists of other groups too.
    """
    tested = tables["recall"].filter(pl.col("k").is_in(PARAMS["tested"]))
    pooled = pl.col("category") == EVERY
    tested = tested.join(sample.known, on=["category", "reading", "k"]).with_columns(
        where=pooled.replace_strict({True: "all", False: "a category"})
    )
    single, effect = tested.filter(attributes="single word"), pl.col("effect").fill_null(0.0)
    test: dict[str, Any] = {"effect": "effect", "interval": ["value"]}
    return (
        outcomes_by(tested, "p: {attributes}", **test)
        | outcomes_by(single, "p: {attributes}, {reading}", **test)
        | outcomes_by(tested, "recall: {attributes}, {where}", effect=effect, target="target", p="")
    )


def _true(shape: Shape, population: int, lifts: dict[str, float], frequent: float) -> pl.DataFrame:
    """Return the planted effect and the true recall of each category, variant and k."""
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
