"""Analysis ``emotions``: emotions carried by the words that models associate with social groups.

Choenni et al. (2021), emotion profiles: the share of a group's words that carry each of the eight
emotions and two sentiments of the NRC lexicon, among the words that the lexicon contains. In
addition, the analysis computes intervals and tests for groups and categories.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl
from pydantic import Field
from scipy.special import ndtri, stdtrit

import plumbline.probes.stats.estimate as stats
from plumbline.builders.core.errors import UserError
from plumbline.builders.core.schema import Column, Schema
from plumbline.builders.datasets.emotions.build import AFFECTS
from plumbline.probes.stats.bootstrap import expanded_tail, percentiles
from plumbline.probes.stats.intervals import wilson
from plumbline.probes.stats.tests import NEAR, permutation_test
from plumbline.probes.stereotypes import typicality
from plumbline.probes.stereotypes.typicality import casefold, group_weights, number, with_constants

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from numpy.typing import NDArray

    from plumbline.probes.core.run_analysis import Inputs

    Array = NDArray[np.float64]
    Floats = NDArray[np.floating[Any]]

DATASETS = ("emotions",)
OUTPUTS = ("completions",)
TABLES = ()
BLOCK = 256  # number of permutations in a batch
LEVELS = ("group", "category")
NUMBERS = ("value", "low", "high", "difference", "low_difference", "high_difference")
EMOTIONS = Schema.keyed(
    (
        *(typicality.MODEL, typicality.LANGUAGE, typicality.READING, typicality.TOP_K),
        Column(
            "level",
            "category",
            "group: share among the group's words; category: mean over its groups",
            labels=LEVELS,
        ),
        Column("category", "string", "category of social groups"),
        Column("group", "string", "social group; empty in rows for a category"),
        Column("affect", "category", "emotion or sentiment", labels=AFFECTS),
    ),
    *stats.estimates(
        cluster="group: its words in the lexicon; category: its groups",
        method="groups: Wilson score; categories: expanded bootstrap percentile over groups",
        null="`difference` is 0, affects permuted over words; categories: the larger p of this and "
        "of permuting groups over categories",
    ),
    number("coverage", "share of the words that the lexicon contains"),
    number(
        "difference",
        "value minus the mean of the other groups, or of the groups outside the category; this "
        "difference is tested",
    ),
    *typicality.LIMITS,
)
SCHEMAS = {"emotions": EMOTIONS}


class Params(stats.Resampling):
    """Number of words per list, and settings of intervals and tests."""

    top_k: dict[typicality.Reading, int] = Field(
        {"probability": 200},
        min_length=1,
        description="words taken from each list, by ranking; the paper takes 200 by probability",
    )


class Profiles(NamedTuple):
    """Groups, and the lexicon words in their lists."""

    groups: pl.DataFrame  # (groups,) sorted by category and group
    words: list[str]  # (words,) sorted
    members: NDArray[np.float32]  # (groups, words) count of each word
    affects: NDArray[np.float32]  # (words, affects) 1 if the word carries the affect, else 0
    sizes: NDArray[np.int64]  # (groups,) number of words, including those not in the lexicon

    @property
    def covered(self) -> NDArray[np.int64]:
        """Return the number of covered words of each group."""
        return np.asarray(self.members.sum(axis=1), dtype=np.int64)

    def share(self) -> Array:
        """Return the profiles (groups, affects), which are nan for groups without covered words.

        Choenni et al. (2021), section on emotion profiles; their released scores are percentages.
        """
        return means(self.members, self.affects, np.ones((len(self.affects), 1)))[..., 0]


def means(members: Floats, values: Floats, weights: Floats) -> Array:
    """Return weighted means over the units of each set, of shape (sets, columns, replicates).

    A unit has the same weight in all sets of a replicate, so overlapping sets are resampled
    jointly. The mean is nan if all weights are 0.

    ``members`` (sets, units): how often each unit (such as a word) is in each set (such as a
    group). ``values``: (units, columns). ``weights``: (units, replicates).

    Examples
    --------
    >>> members, affects = np.array([[1, 1, 1]]), np.array([[1, 0], [0, 0], [0, 1]])
    >>> means(members, affects, np.array([[1], [1], [2]]))[..., 0].tolist()
    [[0.25, 0.5]]
    """
    total = (members @ weights).astype(np.float64)
    with np.errstate(invalid="ignore"):
        return np.stack([(members * column) @ weights / total for column in values.T], axis=1)


def differences(share: Array) -> Array:
    """Return each group's share minus the mean share of all other groups, in the same shape.

    ``share`` has shape (groups, ...), with at least two groups; means exclude nan values.

    Examples
    --------
    >>> differences(np.array([[0.5], [0.1], [0.3]])).round(10).ravel().tolist()
    [0.3, -0.3, 0.0]
    """
    defined = ~np.isnan(share)
    total = np.where(defined, share, 0.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        others = (total.sum(axis=0) - total) / (defined.sum(axis=0) - 1)
    return np.asarray(share - others)


def permuted_affects_p(
    profiles: Profiles,
    n_permutations: int,
    seed: int,
    contrast: Callable[[Array], Array] = differences,
) -> Array:
    """Return two-sided p-values (contrasts, affects) from permutations of affects over words.

    By default, each group is contrasted with the other groups; p is nan for groups without covered
    words. The null hypothesis is that the words of a group are independent of their affects. All
    affects of a word are permuted together. The words of groups are fixed, which preserves the
    overlap between groups. The observed outcome counts as a permutation: Phipson and Smyth (2010),
    Permutation p-values should never be zero, equation 2.
    """
    size = profiles.covered[:, None, None]

    def distances(affects: NDArray[np.float32]) -> Array:
        """Return distances (contrasts, draws, affects), given affects (words, draws, affects)."""
        counts = profiles.members @ affects.reshape(len(affects), -1)
        with np.errstate(invalid="ignore"):
            return np.abs(contrast(counts.reshape(len(size), *affects.shape[1:]) / size))

    observed = distances(profiles.affects[:, None])
    hits = np.ones(observed[:, 0].shape)  # the count includes the observed outcome
    rng, words = np.random.default_rng(seed), np.arange(len(profiles.affects))
    for start in range(0, n_permutations, BLOCK):
        draws = min(BLOCK, n_permutations - start)
        orders = rng.permuted(np.tile(words, (draws, 1)), axis=1)
        hits += (distances(profiles.affects[orders.T]) >= observed - NEAR).sum(axis=1)
    return np.where(np.isnan(observed[:, 0]), np.nan, hits / (1 + n_permutations))


def lexicon(emotions: Path, language: str) -> pl.DataFrame | None:
    """Return casefolded words with one column per affect, or None if the language is missing.

    A word that translates several English words carries all their affects; words that differ only
    in case are merged.
    """
    path = emotions / f"{language}.parquet"
    if not path.is_file():
        return None
    table = pl.read_parquet(path, columns=["word", *AFFECTS])
    return table.group_by(key=casefold("word")).agg(pl.col(AFFECTS).any()).sort("key")


def gather_profiles(unions: pl.DataFrame, lexicon: pl.DataFrame) -> Profiles:
    """Compute the profiles of groups from ``unions``, the result of ``typicality.top_words``."""
    names = ["category", "group"]
    groups = unions.group_by(names, maintain_order=True).agg(pl.col("strings").sum())
    rows = unions.select(row=pl.struct(names).rle_id(), key="key", strings="strings")
    covered = rows.join(lexicon, on="key").sort("key", "row")
    words = covered.unique("key", maintain_order=True)
    members = np.zeros((len(groups), len(words)), np.float32)
    column = covered["key"].rank("dense").cast(pl.Int64).to_numpy() - 1
    members[covered["row"].to_numpy(), column] = covered["strings"]
    affects = words.select(pl.col(AFFECTS).cast(pl.Float32)).to_numpy()
    sizes = groups["strings"].to_numpy()
    return Profiles(groups.select(names), words["key"].to_list(), members, affects, sizes)


def run(inputs: Inputs, params: Params) -> dict[str, pl.DataFrame]:
    """Compute the table of all models; languages without a lexicon have no rows.

    Raises UserError if no language of the dataset ``emotions`` has lists.
    """
    tables: list[pl.DataFrame] = []
    for model in inputs.models:
        outputs = inputs.outputs("completions", model)
        for language in typicality.languages(outputs):
            words = lexicon(inputs.datasets["emotions"], language)
            if words is None:
                continue
            lists = typicality.read_lists(outputs / language).filter(~pl.col("rewritten"))
            for reading in (name for name in typicality.readings(lists) if name in params.top_k):
                ranked, top_k = typicality.rank_words(lists, reading), params.top_k[reading]
                profiles = gather_profiles(typicality.top_words(ranked, top_k, reading), words)
                key = {"model": model, "language": language, "reading": reading, "top_k": top_k}
                for table in (_groups(profiles, params), _categories(profiles, params)):
                    rows = with_constants(table, key)
                    tables.append(stats.typed(rows, EMOTIONS, params.confidence))
    if not tables:
        raise UserError(
            "data/outputs/completions: no language of the dataset emotions has lists with a "
            "ranking of analysis.emotions.top_k; add a language or a ranking"
        )
    return {"emotions": pl.concat(tables)}


def _groups(profiles: Profiles, params: Params) -> pl.DataFrame:
    """Return the rows for groups."""
    covered, share = profiles.covered, profiles.share()
    intervals = [
        wilson(value * n, n, params.confidence)[1:3] if n else (np.nan, np.nan)
        for values, n in zip(share.tolist(), covered.tolist(), strict=True)
        for value in values
    ]
    weights = group_weights(profiles.words, params)
    draws = differences(means(profiles.members, profiles.affects, weights))
    numbers = [share, *np.array(intervals).T, differences(share), *_limits(draws, covered, params)]
    p = permuted_affects_p(profiles, params.n_permutations, params.seed)
    rows = profiles.groups.with_columns(
        level=pl.lit("group"), n=covered, coverage=covered / profiles.sizes
    )
    return _finish(rows, numbers, p, params)


def _categories(profiles: Profiles, params: Params) -> pl.DataFrame:
    """Return the rows for categories, whose means over groups are compared with all other groups.

    p is the larger of two p-values: a test that permutes only groups has a type I error of .2 at
    level .05 if categories have words of their own.
    """
    mask, permutations = profiles.covered > 0, (params.n_permutations, params.seed)
    members, sizes = profiles.members[mask], profiles.sizes[mask]
    profiles = profiles._replace(groups=profiles.groups.filter(mask), members=members, sizes=sizes)
    share, category = profiles.share(), profiles.groups["category"].to_numpy()
    names = np.unique(category)
    inside = names[:, None] == category
    weights = group_weights(profiles.groups["group"].to_list(), params).astype(np.float64)
    weights = np.hstack([np.ones((len(share), 1)), weights])  # first the mean, then replicates
    draws = means(inside, share, weights)
    contrasts, n = draws - means(~inside, share, weights), inside.sum(axis=1)
    numbers = [x for y in (draws, contrasts) for x in (y[..., 0], *_limits(y[..., 1:], n, params))]
    with np.errstate(invalid="ignore"):
        inner, outer = (x / x.sum(axis=1, keepdims=True) for x in (inside, ~inside))
    by_words = permuted_affects_p(
        profiles, *permutations, lambda shares: np.tensordot(inner - outer, shares, axes=1)
    )
    by_groups = np.full(contrasts.shape[:2], np.nan)
    for row, groups in zip(by_groups, inside, strict=True):
        if not groups.all():
            row[:] = permutation_test(share[groups], share[~groups], *permutations).p
    covered = pl.Series([np.mean(profiles.covered[x] / sizes[x]) for x in inside])
    rows = pl.DataFrame({"category": names, "n": n, "coverage": covered})
    rows = rows.with_columns(level=pl.lit("category"), group=pl.lit(""))
    return _finish(rows, numbers, np.maximum(by_groups, by_words), params)


def _limits(draws: Array, clusters: NDArray[np.int64], params: Params) -> Array:
    """Return limits (2, rows, affects) from replicates (rows, affects, replicates).

    Percentiles are expanded for few clusters, as in ``bootstrap.interval``.
    """
    tails = [expanded_tail(n, params.confidence) if n > 1 else 0.0 for n in clusters.tolist()]
    limits = [percentiles(x, 1 - 2 * tail) for x, tail in zip(draws, tails, strict=True)]
    return np.stack(limits, axis=1)


def _finish(rows: pl.DataFrame, numbers: list[Array], p: Array, params: Params) -> pl.DataFrame:
    """Return one row for each input row and affect; p is adjusted over all rows.

    The standard error is half the width of the difference's interval, divided by the quantile of t
    with n - 1 degrees of freedom, as in :func:`_limits`, or of z if there is a single cluster.
    """
    table = rows.join(pl.DataFrame({"affect": AFFECTS}), how="cross", maintain_order="left_right")
    columns = dict(zip((*NUMBERS, "p"), (*numbers, p), strict=True))
    table = table.with_columns(pl.Series(name, x.ravel()) for name, x in columns.items())
    freedom, upper = table["n"].to_numpy() - 1.0, (1 + params.confidence) / 2
    quantile = np.where(freedom > 0, stdtrit(np.maximum(freedom, 1), upper), ndtri(upper))
    width = pl.col("high_difference") - pl.col("low_difference")
    table = table.with_columns(
        pl.col("p").fill_nan(None),
        (width / 2 / pl.Series(quantile)).alias(stats.TESTED_ERROR),
        reach=1.0,
    )
    table = stats.adjusted(table, least=stats.least_p(params.n_permutations))
    table = stats.rounded(table, (*NUMBERS, "coverage"))
    return typicality.sort_by_key(table, EMOTIONS, "category", "group", "affect")
