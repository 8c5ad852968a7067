"""Analysis ``rsa``: similarity between models of the emotion profiles of social groups.

Representational similarity of emotion profiles as in Choenni et al. (2021): in each category, the
cosines between groups in one model are correlated, row by row, with the cosines in another model,
both with the diagonal, as published, and without it.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import combinations
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import polars as pl
from scipy.stats import rankdata

import plumbline.probes.stats.estimate as stats
from plumbline.builders.core.schema import Column, Schema
from plumbline.builders.datasets.emotions.build import AFFECTS
from plumbline.probes.stats.intervals import t_half_width
from plumbline.probes.stats.tests import possible_p
from plumbline.probes.stereotypes import typicality
from plumbline.probes.stereotypes.typicality import EVERY, GROUP, GroupTests, number, sort_by_key

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from plumbline.probes.core.run_analysis import Inputs

    Array = NDArray[np.float64]

TABLES = ("emotions",)
WITHOUT_FEAR = [name for name in AFFECTS if name != "fear"]
AFFECTS_OF = {"faithful": WITHOUT_FEAR, "released": AFFECTS, "corrected": AFFECTS}
READINGS = tuple(AFFECTS_OF)
RSA = Schema.keyed(
    (
        typicality.LANGUAGE,
        Column("first", "string", "name of a model in params.yaml"),
        Column("second", "string", "name of another model, later in the alphabet"),
        typicality.RANKING,
        typicality.TOP_K,
        Column(
            "reading",
            "category",
            "faithful: diagonal without fear; released: diagonal with fear; corrected: no diagonal",
            labels=READINGS,
        ),
        typicality.CATEGORY,
    ),
    *stats.estimates(
        cluster="group",
        method="t interval, jackknife over groups",
        null="groups of the second model are exchangeable within categories; mean `expected`; no "
        "test in the readings that list a group under two names",
    ),
    number(
        "expected",
        "mean under the null hypothesis: 3 / (n + 1) for a category with the diagonal and without "
        "ties; for all categories, it includes the similarity between them",
    ),
)
SCHEMAS = {"rsa": RSA}


class Params(GroupTests):
    """Settings for intervals and tests."""


DIGITS = 10  # decimals to which cosines are rounded, so that groups with equal profiles are ties
NEAR = 1e-9  # smaller standard errors are rounding errors
BLOCK = 25  # number of permutations in a batch
LEAST = 3  # minimum number of groups: with two, a row without its diagonal has one entry


def run(inputs: Inputs, params: Params) -> dict[str, pl.DataFrame]:
    """Compare all pairs of models in all categories; with a single model, there are no rows."""
    emotions = pl.read_parquet(inputs.tables("emotions") / "emotions.parquet")
    table = stats.Table(RSA, params.confidence)
    table.adjust("p", ("language", "ranking", "reading"), stats.least_p(params.n_permutations))
    keys = ("language", "reading", "top_k")
    parts = emotions.filter(level="group").group_by(keys, maintain_order=True)
    for (language, ranking, top_k), part in parts:
        models = {str(model): profiles(rows) for (model,), rows in part.group_by(["model"])}
        for first, second in combinations(sorted(models), 2):
            joined = models[first].join(models[second], on=GROUP, maintain_order="left")
            for category in [*joined["category"].unique().sort(), EVERY]:
                listed = joined.filter((pl.col("category") == category) | (category == EVERY))
                merged = merge_groups(listed)
                for reading, affects in AFFECTS_OF.items():
                    groups = merged if reading == "corrected" else listed
                    result = compare(
                        groups.select(affects).to_numpy(),
                        groups.select(f"{name}_right" for name in affects).to_numpy(),
                        params,
                        diagonal=reading != "corrected",
                        strata=groups["category"].to_list(),
                    )
                    table.add(
                        result.estimate,
                        p=result.p if len(groups) == len(merged) else None,
                        language=language,
                        first=first,
                        second=second,
                        ranking=ranking,
                        top_k=top_k,
                        category=category,
                        reading=reading,
                        expected=stats.finite(result.expected),
                        tested_error=stats.finite(result.error),
                        df=len(groups) - 1,
                        reach=1 + abs(result.expected),
                    )
    return {"rsa": sort_by_key(table.frame(), RSA)}


def profiles(table: pl.DataFrame) -> pl.DataFrame:
    """Return category, group and shares of affects, sorted, from one model's rows for groups.

    Groups without words in the lexicon, or without words that carry an affect, are omitted, because
    their vectors are 0.
    """
    words = pl.col("n")
    share = (pl.col("value") * words).round() / words  # undoes the rounding of the table
    covered = table.filter(words > 0).select(*GROUP, "affect", share.alias("share"))
    wide = covered.pivot(on="affect", index=GROUP, values="share").select(*GROUP, *AFFECTS)
    return wide.filter(pl.any_horizontal(pl.col(WITHOUT_FEAR) > 0)).sort(GROUP)


def merge_groups(profiles: pl.DataFrame) -> pl.DataFrame:
    """Average the profiles of groups in a category whose names have the same head word.

    "the Dutch" and "Dutch people" are similar in every model, so that listing both would count as
    similarity of the models. Names are compared in lower case, without a leading "the", "people"
    at the end, and a final s. Synonyms that are other words are not recognised.

    Examples
    --------
    >>> names = ["the Dutch", "Dutch people", "Danes"]
    >>> listed = pl.DataFrame({"category": "race", "group": names, "joy": [0.5, 0.25, 0.0]})
    >>> merge_groups(listed).rows()
    [('race', 'dutch', 0.375), ('race', 'dane', 0.0)]
    """
    name = pl.col("group").str.to_lowercase().str.replace_all(r"^the | people$", "")
    heads = profiles.with_columns(group=name.str.strip_suffix("s"))
    return heads.group_by(GROUP, maintain_order=True).mean()


class Similarity(NamedTuple):
    """Similarity of two descriptions of the same groups, with a permutation test."""

    estimate: stats.Estimate  # mean Spearman correlation of the rows
    expected: float  # mean over permutations of the groups
    p: float  # nan if there is no test
    error: float  # standard error of the estimate


def compare(
    a: Array, b: Array, params: Params, *, diagonal: bool, strata: Sequence[str] = ()
) -> Similarity:
    """Compare two descriptions of the same groups, with an interval and a test.

    The interval, computed by :func:`jackknife` and :func:`limits`, is nan for three groups. The
    two-sided p is computed from distances to the permutation mean, permuting the groups of ``b``
    and counting the observed outcome (Phipson and Smyth 2010). It is nan if the smallest possible p
    is above .05, as for three groups. All values are nan if :func:`similarity` is undefined.

    The arguments are those of :func:`similarity`. Groups are permuted within ``strata`` (groups,),
    so similarity between strata does not affect p.
    """
    value = similarity(a, b, diagonal=diagonal)
    if np.isnan(value):
        return Similarity(stats.Estimate(value, value, value, len(a)), value, value, value)
    first, second = (ranks(x, diagonal=diagonal) for x in (a, b))
    number = tuple(np.unique(strata or [""] * len(a), return_inverse=True)[1].tolist())
    middle = expected(first, second, number)
    replicates = relabelled(first, second, number, params.n_permutations, params.seed)
    parts = jackknife(a, b, diagonal=diagonal)
    low, high = limits(value, parts, params.confidence)
    p = float(possible_p(value - middle, replicates - middle))
    estimate, error = stats.Estimate(value, low, high, len(a)), float(np.linalg.norm(parts))
    return Similarity(estimate, middle, p, error)


def cosines(profiles: Array) -> Array:
    """Return the cosines between the rows of an array of shape (groups, dimensions).

    Cosines are rounded, so equal profiles have a cosine of exactly 1.

    Examples
    --------
    >>> cosines(np.array([[3.0, 4.0], [4.0, 3.0]])).tolist()
    [[1.0, 0.96], [0.96, 1.0]]
    """
    with np.errstate(invalid="ignore"):
        unit = profiles / np.linalg.norm(profiles, axis=1, keepdims=True)
    similar: Array = np.round(unit @ unit.T, DIGITS)
    return similar


def similarity(a: Array, b: Array, *, diagonal: bool) -> float:
    """Return the mean over groups of the Spearman correlation of their rows of similarities.

    With ``diagonal``, a group's similarity to itself, which is always the largest, is included, as
    in the code of Choenni et al.; unrelated descriptions of n groups then have a mean correlation
    of 3 / (n + 1) instead of 0, see :func:`expected`.

    The value is 1 for equal descriptions, and nan for fewer than three groups or a constant row.

    ``a``, ``b``: arrays (groups, dimensions) that describe the same groups in the same order; the
    numbers of dimensions may differ.

    Kriegeskorte, Mur and Bandettini (2008), Representational similarity analysis, Frontiers in
    Systems Neuroscience 2(4); Abnar et al. (2019), Blackbox meets blackbox, BlackboxNLP.

    Examples
    --------
    Vectors at 0, 10, 30 and 80 degrees are compared with themselves after 10 and 30 are exchanged.

    >>> angles = np.radians([[0, 10, 30, 80], [0, 30, 10, 80]])
    >>> a, b = (np.stack([np.cos(x), np.sin(x)], axis=1) for x in angles)
    >>> similarity(a, b, diagonal=False), similarity(a, b, diagonal=True)
    (0.5, 0.8)
    """
    if len(a) != len(b):
        raise ValueError("needs two descriptions of the same groups")
    if len(a) < LEAST:
        return float("nan")
    first, second = (ranks(x, diagonal=diagonal) for x in (a, b))
    return round(float(np.vdot(first, second) / len(first)), 12)


def ranks(profiles: Array, *, diagonal: bool) -> Array:
    """Return the ranks of cosines by row, centred and of unit length; 0 on an excluded diagonal.

    The ranks of constant rows are nan. ``profiles``: (groups, dimensions).
    """
    similar = cosines(profiles)
    mask = ~np.eye(len(similar), dtype=np.bool_) | diagonal
    return _unit_ranks(_row_ranks(similar, mask), mask)


def _row_ranks(similar: Array, mask: NDArray[np.bool_]) -> Array:
    """Return ranks by row, up to an additive constant; cells outside the mask rank lowest."""
    return np.asarray(rankdata(np.where(mask, similar, -np.inf), axis=1))


def _unit_ranks(ranked: Array, mask: NDArray[np.bool_]) -> Array:
    """Centre ranks by row and scale them to unit length, with 0 outside the mask."""
    means = (ranked * mask).sum(axis=1, keepdims=True) / mask.sum(axis=1, keepdims=True)
    centred = np.where(mask, ranked - means, 0.0)
    with np.errstate(invalid="ignore"):
        return np.asarray(centred / np.linalg.norm(centred, axis=1, keepdims=True))


def expected(first: Array, second: Array, strata: Sequence[int]) -> float:
    """Return the exact mean of the similarity over all permutations of one description.

    With the diagonal and without ties, the mean is 3 / (n + 1) for n groups: 0.3 for 9, 0.03 for
    100. Without the diagonal, it is 0.

    ``first``, ``second``: results of :func:`ranks`. ``strata`` (groups,): number of the stratum,
    from 0, within which each group is permuted.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> sides = (ranks(rng.random((9, 8)), diagonal=True) for _ in range(2))
    >>> round(expected(*sides, [0] * 9), 10)
    0.3
    """
    member = np.eye(max(strata) + 1)[list(strata)]  # (groups, strata)
    sizes = member.sum(axis=0)
    diagonals = [member.T @ np.diag(side) for side in (first, second)]
    sums = [member.T @ side @ member for side in (first, second)]
    a, b = (x - np.diag(on) for x, on in zip(sums, diagonals, strict=True))
    pairs = np.maximum(np.outer(sizes, sizes) - np.diag(sizes), 1)
    total = (a * b / pairs).sum() + (np.prod(diagonals, axis=0) / sizes).sum()
    return float(total / len(first))


def relabelled(
    first: Array, second: Array, strata: tuple[int, ...], n_permutations: int, seed: int
) -> Array:
    """Return ``n_permutations`` similarities with the groups of ``second`` in random order.

    The other parameters are those of :func:`expected`.
    """
    blocks = np.array_split(_orders(strata, n_permutations, seed), 1 + n_permutations // BLOCK)
    values = [
        np.einsum("ij,bij->b", first, second[block[:, :, None], block[:, None]]) for block in blocks
    ]
    return np.concatenate(values) / len(first)


@lru_cache(maxsize=16)  # cached, because all pairs of models have the same groups
def _orders(strata: tuple[int, ...], n_permutations: int, seed: int) -> NDArray[np.int64]:
    """Return random orders of groups within strata, of shape (n_permutations, groups)."""
    rng, numbers = np.random.default_rng(seed), np.array(strata)
    parts = [np.flatnonzero(numbers == number) for number in range(max(strata) + 1)]
    orders = np.empty((n_permutations, len(strata)), dtype=np.int64)
    for order in orders:
        for part in parts:
            order[part] = rng.permutation(part)
    return orders


def left_out(a: Array, b: Array, *, diagonal: bool) -> Array:
    """Return :func:`similarity` with each group left out in turn, as an array (groups,).

    The result is nan for fewer than four groups, or if a row without that group is constant.
    """
    n = len(a)
    result = np.full(n, np.nan)
    if n <= LEAST:
        return result
    mask = ~np.eye(n, dtype=np.bool_) | diagonal
    sides = [(similar, _row_ranks(similar, mask)) for similar in (cosines(a), cosines(b))]
    for i in range(n):
        others = np.delete(np.arange(n), i)
        cells, first_and_second = np.ix_(others, others), []
        for similar, ranked in sides:
            values, excluded = similar[cells], similar[others, i, None]
            above = (values > excluded) + 0.5 * (values == excluded)
            first_and_second.append(_unit_ranks(ranked[cells] - above, mask[cells]))
        result[i] = np.prod(first_and_second, axis=0).sum() / (n - 1)
    return result


def jackknife(a: Array, b: Array, *, diagonal: bool) -> Array:
    """Return the component of each group in the error of :func:`similarity`.

    The root of their sum of squares is the jackknife standard error (Efron and Stein 1981, The
    jackknife estimate of variance, Annals of Statistics 9(3), p. 586-596). A bootstrap is not used
    because it would compare groups with copies of themselves.
    """
    if not len(a):  # no group of the category has a direction
        return np.zeros(0)
    without = left_out(a, b, diagonal=diagonal)
    parts: Array = np.sqrt((len(a) - 1) / len(a)) * (without - without.mean())
    return parts


def limits(
    value: float, parts: Array, confidence: float, bound: float = 1.0
) -> tuple[float, float]:
    """Return the t interval of a similarity, given the components of its error by group.

    The limits are nan if the error is 0, because few groups can have the same order in both
    descriptions by chance: this occurs in one of five pairs of unrelated descriptions of four
    groups.
    """
    error = float(np.linalg.norm(parts))
    half = t_half_width(error, len(parts) - 1, confidence) if error > NEAR else np.nan
    low, high = np.clip([value - half, value + half], -bound, bound)
    return float(low), float(high)
