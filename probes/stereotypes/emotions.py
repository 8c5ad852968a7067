"""Analysis ``emotions``: the emotions of the words that models put beside social groups.

Choenni et al. (2021), emotion profiles: which share of a group's words carries each of the eight
emotions and two sentiments of the NRC lexicon; with intervals and tests, for groups and categories.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import polars as pl
from pydantic import Field

from plumbline.builders.core.errors import Problem
from plumbline.builders.core.schema import Column, Schema
from plumbline.builders.datasets.emotions.build import AFFECTS
from plumbline.probes.stats.bootstrap import percentiles
from plumbline.probes.stats.estimate import ESTIMATE, adjusted, rounded, typed
from plumbline.probes.stats.intervals import wilson
from plumbline.probes.stats.tests import permutation_test
from plumbline.probes.stereotypes import emotion_words, typicality
from plumbline.probes.stereotypes.emotion_words import differences, redrawn, shuffled_p
from plumbline.probes.stereotypes.schemas import GroupBootstrap

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from plumbline.probes.core.run_analysis import Inputs
    from plumbline.probes.stereotypes.emotion_words import Members

    Array = NDArray[np.float64]

EACH = False
DATASETS = ("emotions",)
OUTPUTS = ("stereotypes",)
TABLES = ()
LEVELS = ("group", "category")
LIMITS = ("value", "low", "high")
DIFFERENCE = ("difference", "low_difference", "high_difference")
EMOTIONS = Schema(
    columns=(
        Column("model", "string", "name of the model in params.yaml"),
        Column("language", "string", "language of the lists"),
        Column("reading", "label", "what lists are ranked by", labels=typicality.READINGS),
        Column("k", "int64", "words taken of each template's list", minimum=1),
        Column(
            "level",
            "label",
            "group: share of its words; category: mean of its groups",
            labels=LEVELS,
        ),
        Column("category", "string", "category of social groups"),
        Column("group", "string", "social group; empty for a category"),
        Column("affect", "label", "emotion or sentiment", labels=AFFECTS),
        Column("carrying", "int64", "words that carry it; of a group", nullable=True, minimum=0),
        Column("covered", "int64", "words that the lexicon has; of a group", nullable=True),
        Column("words", "int64", "different words; of a group", nullable=True, minimum=0),
        Column("coverage", "float64", "share of the words that the lexicon has", nullable=True),
        *ESTIMATE,
        Column(
            "difference",
            "float64",
            "value minus the mean of all other groups, or of those outside of the category; what p "
            "is a test of",
            nullable=True,
        ),
        Column("low_difference", "float64", "lower end of its interval", nullable=True),
        Column("high_difference", "float64", "upper end of it", nullable=True),
        Column("family", "int64", "tests in the family that p_bh is taken over", minimum=1),
    ),
    key=("model", "language", "reading", "level", "category", "group", "affect"),
)
SCHEMAS = {"emotions": EMOTIONS}


class Params(GroupBootstrap):
    """Which words are taken, and how intervals and tests are made."""

    k: dict[Literal["probability", "faithful", "corrected", "corrected_one"], int] = Field(
        {"probability": 200},
        min_length=1,
        description="words of each list that are taken, by ranking; the paper: probability, 200",
    )
    permutations: int = Field(999, ge=99, description="permutations of affects over words")


def run(inputs: Inputs, params: Params) -> dict[str, pl.DataFrame]:
    """Compute the table of all models; those in languages without a lexicon have no rows.

    Raises
    ------
    Problem
        If there is no list in a language that the dataset ``emotions`` has.
    """
    rows: list[pl.DataFrame] = []
    for model in inputs.models:
        outputs = inputs.outputs("stereotypes", model)
        for language in typicality.languages(outputs):
            lexicon = emotion_words.lexicon(inputs.datasets["emotions"], language)
            if lexicon is None:
                continue
            table = typicality.answers(outputs / language)
            for reading in (name for name in typicality.readings(table) if name in params.k):
                k = params.k[reading]
                ranked = typicality.placed(table, reading)
                found = emotion_words.members(typicality.unions(ranked, k), lexicon)
                part = pl.concat([_groups(found, params), _categories(found, params)])
                place = {"model": model, "language": language, "k": k}
                place["reading"] = typicality.READINGS.index(reading)
                part = part.with_columns(**{name: pl.lit(value) for name, value in place.items()})
                rows.append(typed(part, EMOTIONS))
    if not rows:
        raise Problem(
            "data/outputs/stereotypes: no list in a language of the dataset emotions and a ranking "
            "of analysis.emotions.k; add one there"
        )
    return {"emotions": pl.concat(rows)}


def _groups(found: Members, params: Params) -> pl.DataFrame:
    """Return the rows of groups."""
    counts = found.profiles()
    arrays = (found.members, found.affects, found.known)
    drawn = differences(redrawn(*arrays, params.weights(found.words)))
    apart = np.stack([differences(counts.share), *percentiles(drawn, params.confidence)])
    p = shuffled_p(*arrays, params.permutations, params.seed)
    rows: list[dict[str, Any]] = []
    for g, group in enumerate(found.groups.iter_rows(named=True)):
        covered, words = int(counts.covered[g]), int(counts.words[g])
        for a in range(len(AFFECTS)):
            carrying = int(counts.carrying[g, a])
            share = wilson(carrying, covered, params.confidence)[:3] if covered else [None] * 3
            rows.append(
                group
                | {"affect": a, "carrying": carrying, "covered": covered, "words": words}
                | {"coverage": covered / words, "n": covered, "p": float(p[g, a])}
                | dict(zip(LIMITS, share, strict=True))
                | dict(zip(DIFFERENCE, apart[:, g, a], strict=True))
            )
    return _finished(
        rows,
        level=LEVELS.index("group"),
        cluster="word",
        method="Wilson score; of the difference: bootstrap percentile (Poisson weights)",
        null=f"affects permuted over covered words, {params.permutations} drawn",
    )


def _categories(found: Members, params: Params) -> pl.DataFrame:
    """Return the rows of categories: means of their groups, compared with all other groups."""
    counts = found.profiles()
    defined = counts.covered > 0
    share, groups = counts.share[defined], found.groups.filter(pl.Series(defined))
    coverage = (counts.covered / counts.words)[defined]
    weights = params.weights(groups["group"].to_list()).astype(np.float64)
    rows: list[dict[str, Any]] = []
    for category in groups["category"].unique().sort():
        inside = (groups["category"] == category).to_numpy()
        mean = _means(share[inside], weights[inside], params)
        if inside.all():
            apart, p = (np.full((3, len(AFFECTS)), np.nan)), np.ones(len(AFFECTS))
        else:
            apart = _means(share, weights, params, inside)
            test = permutation_test(share[inside], share[~inside], params.permutations, params.seed)
            p = test.p
        rows += [
            {"category": category, "group": "", "affect": a}
            | {"carrying": None, "covered": None, "words": None}
            | {"coverage": coverage[inside].mean(), "n": int(inside.sum()), "p": float(p[a])}
            | dict(zip(LIMITS, mean[:, a], strict=True))
            | dict(zip(DIFFERENCE, apart[:, a], strict=True))
            for a in range(len(AFFECTS))
        ]
    return _finished(
        rows,
        level=LEVELS.index("category"),
        cluster="group",
        method="bootstrap percentile (Poisson weights)",
        null="groups permuted over categories",
    )


def _means(
    share: Array, weights: Array, params: Params, inside: NDArray[np.bool_] | None = None
) -> Array:
    """Return the mean of groups, or of those inside minus the others, and limits, (3, affects)."""

    def mean(part: NDArray[np.bool_] | slice, by: Array) -> Array:
        with np.errstate(invalid="ignore"):
            found: Array = share[part].T @ by[part] / by[part].sum(axis=0)
        return found

    def estimate(by: Array) -> Array:
        if inside is None:
            return mean(slice(None), by)
        return mean(inside, by) - mean(~inside, by)

    limits = percentiles(estimate(weights), params.confidence)
    return np.stack([estimate(np.ones((len(share), 1)))[:, 0], limits.low, limits.high])


def _finished(rows: list[dict[str, Any]], **columns: Any) -> pl.DataFrame:
    """Add what rows have in common, and p adjusted over all of them."""
    table = adjusted(pl.DataFrame(rows, infer_schema_length=None))
    return (
        rounded(table, (*LIMITS, *DIFFERENCE, "coverage"))
        .with_columns(
            pl.col("carrying", "covered", "words").cast(pl.Int64),
            **{name: pl.lit(value) for name, value in columns.items()},
        )
        .sort("category", "group", "affect")
    )
