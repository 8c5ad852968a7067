"""Analysis ``emotions``: the emotions of the words that models put beside social groups.

Choenni et al. (2021), emotion profiles: which share of a group's words carries each of the eight
emotions and two sentiments of the NRC lexicon, among the words that the lexicon knows; with
intervals and tests, for groups and categories.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import polars as pl
from pydantic import Field
from scipy.special import ndtri, stdtrit

from plumbline.builders.core.errors import UserError
from plumbline.builders.core.schema import Column, Schema
from plumbline.builders.datasets.emotions.build import AFFECTS
from plumbline.probes.stats.bootstrap import percentiles
from plumbline.probes.stats.estimate import (
    CRITICAL,
    CRITICAL_NEEDED,
    ESTIMATE,
    NEEDED,
    TESTED_ERROR,
    adjusted,
    least_p,
    rounded,
    typed,
)
from plumbline.probes.stats.intervals import wilson
from plumbline.probes.stats.tests import (
    critical_at,
    critical_of,
    farthest,
    permutation_p,
    permutation_test,
)
from plumbline.probes.stereotypes import typicality
from plumbline.probes.stereotypes.typicality import (
    GroupBootstrap,
    Reading,
    expanded,
    folded,
    located,
    number,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from plumbline.probes.core.run_analysis import Inputs
    from plumbline.probes.stats.tests import Permutation

    Array = NDArray[np.float64]
    Integers = NDArray[np.int64]

DATASETS = ("emotions",)
OUTPUTS = ("completions",)
TABLES = ()
BLOCK = 256  # replicates held at once
LEVELS = ("group", "category")
NUMBERS = ("value", "low", "high", "difference", "low_difference", "high_difference")
EMOTIONS = Schema(
    columns=(
        *(typicality.MODEL, typicality.LANGUAGE, typicality.READING, typicality.TOP_K),
        Column(
            "level",
            "label",
            "group: share of its words; category: mean of its groups",
            labels=LEVELS,
        ),
        Column("category", "string", "category of social groups"),
        Column("group", "string", "social group; empty for a category"),
        Column("affect", "label", "emotion or sentiment", labels=AFFECTS),
        Column(
            "carrying",
            "int64",
            "words of a group that carry it; by probability and faithful strings, as released",
            nullable=True,
            minimum=0,
        ),
        Column("covered", "int64", "those that the lexicon has; of a group", nullable=True),
        Column("words", "int64", "all of them; of a group", nullable=True, minimum=0),
        number("coverage", "share of the words that the lexicon has"),
        *ESTIMATE,
        number(
            "difference",
            "value minus the mean of all other groups, or of those outside of the category; what p "
            "is a test of",
        ),
        *typicality.LIMITS,
        typicality.FAMILY,
    ),
    key=("model", "language", "reading", "level", "category", "group", "affect"),
)
SCHEMAS = {"emotions": EMOTIONS}


def differences(share: Array) -> Array:
    """Return each group's share minus the mean share of all other groups, of the same shape.

    Parameters
    ----------
    share : (groups, ...) array
        At least two groups; those of nan are left out of the means of the others.

    Examples
    --------
    >>> differences(np.array([[0.5], [0.1], [0.3]])).round(10).ravel().tolist()
    [0.3, -0.3, 0.0]
    """
    defined = ~np.isnan(share)
    total = np.where(defined, share, 0.0)
    others = defined.sum(axis=0) - 1
    with np.errstate(invalid="ignore", divide="ignore"):
        found: Array = share - (total.sum(axis=0) - total) / others
    return found


class Shuffled(NamedTuple):
    """p, and the least distance from 0 that has one at most .05, (rows, affects) each."""

    p: Array
    critical: Array
    far: Array  # (kept, rows * affects) of ``farthest``
    number: int  # of permutations

    def critical_at(self, level: Array) -> Array:
        """Return the same at other levels, (rows * affects,) each."""
        return critical_at(self.far, level, self.number)


class Members(NamedTuple):
    """Which words go with which groups, and what the words carry."""

    members: Integers  # (groups, words) how often a word counts, see ``typicality.unions``
    affects: NDArray[np.bool_]  # (words, affects) False where the lexicon does not have the word
    known: NDArray[np.bool_]  # (words,) whether the lexicon has the word, with affects or without
    groups: pl.DataFrame = pl.DataFrame()  # (groups,) rows that name them, sorted
    words: Sequence[str] = ()  # (words,) sorted

    @property
    def carrying(self) -> Integers:
        """Return how many words of each group carry each affect, (groups, affects)."""
        found: Integers = (self.members * self.known) @ self.affects.astype(np.int64)
        return found

    @property
    def covered(self) -> Integers:
        """Return how many words of each group the lexicon has, (groups,)."""
        found: Integers = (self.members * self.known).sum(axis=1)
        return found

    @property
    def share(self) -> Array:
        """Return the profiles, (groups, affects) between 0 and 1; nan without covered words.

        References
        ----------
        Choenni, Shutova and van Rooij (2021), Stepmothers are mean and academics are pretentious,
        EMNLP, section on emotion profiles; times 100 it is the percentage of their released scores.

        Examples
        --------
        >>> members, affects = np.array([[1, 1, 1, 0]]), np.array([[1, 0], [0, 0], [0, 0], [1, 1]])
        >>> found = Members(members, affects == 1, np.array([True, True, False, True]))
        >>> found.share.tolist(), found.covered.tolist()
        ([[0.5, 0.0]], [2])
        """
        with np.errstate(invalid="ignore"):
            found: Array = self.carrying / self.covered[:, None]
        return found

    def redrawn(self, weights: NDArray[np.float32]) -> Array:
        """Return profiles with words drawn anew, (groups, affects, replicates).

        The cluster is the word: it has one weight in a replicate for all groups that have it, so
        that what groups have in common is resampled in common.

        Parameters
        ----------
        weights : (words, replicates) array
            Whole numbers, such as Poisson draws: the sums of them are exact.
        """
        kept = (self.members * self.known).astype(np.float32)
        total = (kept @ weights).astype(np.float64)
        with np.errstate(invalid="ignore"):
            parts = [(kept[:, has] @ weights[has]) / total for has in self.affects.T]
        return np.stack(parts, axis=1)

    def shuffled(
        self, n_permutations: int, seed: int, contrast: Callable[[Array], Array] = differences
    ) -> Shuffled:
        """Test contrasts of profiles, :func:`differences` or others.

        The null: which words a group has says nothing about their affects. The affects, all of a
        word together, are permuted over the covered words, while every group keeps its words; so
        that groups share words as much as they do, and only words that not all have can make a
        difference. Two-sided, the outcome seen counted as one of them; nan for groups without
        covered words.

        References
        ----------
        Phipson and Smyth (2010), Permutation p-values should never be zero, equation 2.
        """
        kept = self.members[:, self.known].astype(np.float32)
        carries = self.affects[self.known].astype(np.float32)
        size = kept.sum(axis=1, dtype=np.float64)[:, None, None]

        def far(drawn: NDArray[np.float32]) -> Array:
            with np.errstate(invalid="ignore"):
                counted = kept @ drawn.reshape(len(drawn), drawn.shape[1] * drawn.shape[2])
                return np.abs(contrast(counted.reshape(len(kept), *drawn.shape[1:]) / size))

        seen = far(carries[:, None])
        null = np.empty((len(seen), seen.shape[2], n_permutations))
        rng = np.random.default_rng(seed)
        for start in range(0, n_permutations, BLOCK):
            number = min(BLOCK, n_permutations - start)
            orders = rng.permuted(np.tile(np.arange(len(carries)), (number, 1)), axis=1)
            distances = far(carries.take(orders.T, axis=0))  # (groups, number, affects)
            null[:, :, start : start + number] = distances.transpose(0, 2, 1)
        p = permutation_p(seen[:, 0], null)
        far_ones = farthest(null.reshape(-1, n_permutations).T)
        least, undefined = critical_of(far_ones).reshape(p.shape), np.isnan(seen[:, 0])
        p, least = (np.where(undefined, np.nan, x) for x in (p, least))
        return Shuffled(p, least, far_ones, n_permutations)


def lexicon(emotions: Path, language: str) -> pl.DataFrame | None:
    """Return words as they are compared and a column for each affect; None without the language.

    A word that is the translation of several English words carries what any of them carries, and
    one that differs from another in case alone is one with it.
    """
    path = emotions / f"{language}.parquet"
    if not path.is_file():
        return None
    table = pl.read_parquet(path, columns=["word", *AFFECTS])
    return table.group_by(key=folded("word")).agg(pl.col(AFFECTS).any()).sort("key")


def members(unions: pl.DataFrame, lexicon: pl.DataFrame) -> Members:
    """Gather the words of groups.

    Parameters
    ----------
    unions
        Columns that name a group, ``key`` and ``strings``, sorted; see ``typicality.unions``.
    """
    names = pl.exclude("key", "strings")
    groups = unions.select(names).unique(maintain_order=True)
    words = unions.select("key").unique().sort("key")
    at = unions.select(row=pl.struct(names).rle_id(), column=pl.col("key").rank("dense") - 1)
    found = np.zeros((len(groups), len(words)), dtype=np.int64)
    found[at["row"].to_numpy(), at["column"].to_numpy()] = unions["strings"]
    looked = words.join(lexicon, on="key", how="left", maintain_order="left")
    known = looked[AFFECTS[0]].is_not_null().to_numpy()
    affects = looked.select(pl.col(AFFECTS).fill_null(value=False)).to_numpy()
    return Members(found, affects, known, groups, words["key"].to_list())


class Params(GroupBootstrap):
    """Which words are taken, and how intervals and tests are made."""

    top_k: dict[Reading, int] = Field(
        {"probability": 200},
        min_length=1,
        description="words of each list that are taken, by ranking; the paper: probability, 200",
    )


def run(inputs: Inputs, params: Params) -> dict[str, pl.DataFrame]:
    """Compute the table of all models; those in languages without a lexicon have no rows.

    Raises
    ------
    UserError
        If there is no list in a language that the dataset ``emotions`` has.
    """
    rows: list[pl.DataFrame] = []
    for model in inputs.models:
        outputs = inputs.outputs("completions", model)
        for language in typicality.languages(outputs):
            words = lexicon(inputs.datasets["emotions"], language)
            if words is None:
                continue
            table = typicality.answers(outputs / language).filter(~pl.col("rewritten"))
            for reading in (name for name in typicality.readings(table) if name in params.top_k):
                ranked = typicality.placed(table, reading)
                found = members(typicality.unions(ranked, params.top_k[reading], reading), words)
                place = {"model": model, "language": language, "top_k": params.top_k[reading]}
                place["reading"] = typicality.READINGS.index(reading)
                parts = _groups(found, params), _categories(found, params)
                told = (located(part, place) for part in parts)
                rows += [typed(part, EMOTIONS, params.confidence) for part in told]
    if not rows:
        raise UserError(
            "data/outputs/completions: no list in a language of the dataset emotions and a ranking "
            "of analysis.emotions.top_k; add one there"
        )
    return {"emotions": pl.concat(rows)}


def _groups(found: Members, params: Params) -> pl.DataFrame:
    """Return the rows of groups."""
    drawn = differences(found.redrawn(params.weights(found.words)))
    covered, words = found.covered, found.members.sum(axis=1)
    shares = [
        wilson(hits, n, params.confidence)[:3] if n else [np.nan] * 3
        for each, n in zip(found.carrying.tolist(), covered.tolist(), strict=True)
        for hits in each
    ]
    limits = [
        percentiles(own, expanded(params.confidence, int(n)))
        for own, n in zip(drawn, covered, strict=True)
    ]
    apart = differences(found.share), *np.stack(limits, axis=1)
    columns = dict(zip(NUMBERS, [*np.array(shares).T, *apart], strict=True))
    columns["carrying"] = found.carrying
    tested = found.shuffled(params.n_permutations, params.seed)
    columns |= {"p": tested.p, CRITICAL: tested.critical}
    each = {"covered": covered, "n": covered, "words": words, "coverage": covered / words}
    table = found.groups.with_columns(pl.Series(name, of) for name, of in each.items())
    table = table.join(pl.DataFrame({"name": AFFECTS}), how="cross", maintain_order="left_right")
    return _finished(
        table.with_columns(pl.Series(name, values.ravel()) for name, values in columns.items()),
        params,
        tested.critical_at,
        level=LEVELS.index("group"),
        cluster="word",
        method="Wilson score; of the difference: expanded bootstrap percentile (Poisson weights)",
        null=f"affects permuted over covered words, {params.n_permutations} drawn",
    )


def _categories(found: Members, params: Params) -> pl.DataFrame:
    """Return the rows of categories: means of their groups, compared with all other groups."""
    defined = found.covered > 0
    share, groups = found.share[defined], found.groups.filter(pl.Series(defined))
    coverage = (found.covered / found.members.sum(axis=1))[defined]
    weights = params.weights(groups["group"].to_list()).astype(np.float64)
    weights = np.hstack([np.ones((len(groups), 1)), weights])

    def means(part: NDArray[np.bool_]) -> Array:
        """Return the mean of some groups, and that of each replicate, (affects, 1 + replicates)."""
        with np.errstate(invalid="ignore"):
            mean: Array = share[part].T @ weights[part] / weights[part].sum(axis=0)
        return mean

    names, of = groups["category"].unique().sort(), groups["category"].to_numpy()
    every = np.stack([of == category for category in names]).astype(np.float64)
    with np.errstate(invalid="ignore"):
        weighed = every / every.sum(axis=1, keepdims=True)
        weighed -= (1 - every) / (1 - every).sum(axis=1, keepdims=True)

    def contrast(shares: Array) -> Array:
        """Return the mean of each category minus that of all other groups."""
        found: Array = np.tensordot(weighed, shares, axes=1)
        return found

    some = found._replace(members=found.members[defined])
    by_words = some.shuffled(params.n_permutations, params.seed, contrast)
    parts: list[pl.DataFrame] = []
    tests: list[Permutation | None] = []
    for category, *of_words in zip(names, by_words.p, by_words.critical, strict=True):
        inside = (groups["category"] == category).to_numpy()
        own, p, least = means(inside), *np.full((2, len(AFFECTS)), np.nan)
        test = None
        apart = own - means(~inside)
        if not inside.all():
            sides = share[inside], share[~inside]
            test = permutation_test(*sides, params.n_permutations, params.seed)
            p, least = (
                np.maximum(*both) for both in zip((test.p, test.critical), of_words, strict=True)
            )
        level = expanded(params.confidence, int(inside.sum()))
        limits = ((x[:, 0], *percentiles(x[:, 1:], level)) for x in (own, apart))
        columns = dict(zip(NUMBERS, [x for of in limits for x in of], strict=True))
        columns |= {"p": p, CRITICAL: least}
        place = {"category": category, "group": "", "n": int(inside.sum())}
        place["coverage"] = coverage[inside].mean()
        parts.append(located(pl.DataFrame(columns), place))
        tests.append(test)

    def critical_at(level: Array) -> Array:
        """Return the larger of both tests' distances; nan where one has none."""
        each = zip(tests, level.reshape(-1, len(AFFECTS)), strict=True)
        by_groups = [x.critical_at(own) if x else np.full(len(own), np.nan) for x, own in each]
        found: Array = np.maximum(np.concatenate(by_groups), by_words.critical_at(level))
        return found

    return _finished(
        pl.concat(parts).with_columns(
            pl.lit(None).alias(x) for x in ("carrying", "covered", "words")
        ),
        params,
        critical_at,
        level=LEVELS.index("category"),
        cluster="group",
        method="expanded bootstrap percentile (Poisson weights)",
        null="the larger p: groups permuted over categories, affects over covered words",
    )


def _finished(
    table: pl.DataFrame,
    params: Params,
    critical_at: Callable[[Array], Array],
    **columns: str | int,
) -> pl.DataFrame:
    """Add affects and what rows have in common, and p adjusted over all of them.

    The error is half the interval of the difference over the quantile of t that
    :func:`plumbline.probes.stereotypes.typicality.expanded` widened it by, of n - 1 degrees of
    freedom; a single cluster, which has no t, keeps that of z.
    """
    affect = pl.int_range(pl.len()) % len(AFFECTS)
    apart = pl.col("high_difference") - pl.col("low_difference")
    freedom = table["n"].to_numpy() - 1.0
    upper = (1 + params.confidence) / 2
    quantile = np.where(freedom > 0, stdtrit(np.maximum(freedom, 1), upper), ndtri(upper))
    own = {"affect": affect, TESTED_ERROR: apart / 2 / pl.Series(quantile)}
    table = table.with_columns(pl.col("p", CRITICAL).fill_nan(None), **own)
    table = adjusted(table, least=least_p(params.n_permutations))
    level = table[NEEDED].cast(pl.Float64).fill_null(np.nan).to_numpy()
    table = table.with_columns(pl.Series(CRITICAL_NEEDED, critical_at(level)))
    table = rounded(table, (*NUMBERS, "coverage"))
    return located(table, columns).sort("category", "group", "affect")
