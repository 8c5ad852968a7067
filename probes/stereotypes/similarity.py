"""Representational similarity of two descriptions of the same groups.

Each description gives every group a vector. The groups' similarities to each other, row by row,
are compared between the two descriptions.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.stats import rankdata

from plumbline.probes.stats.estimate import Estimate
from plumbline.probes.stats.intervals import t_half_width
from plumbline.probes.stats.tests import possible_p

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

METHOD = "jackknife over groups, t"
DIGITS = 10  # decimals of cosines: groups with equal profiles are ties
NEAR = 1e-9  # standard errors below are rounding
BLOCK = 2**15  # similarities computed at once, which fit into a processor's cache
LEAST = 3  # groups: with two, a row without its diagonal has one entry


class Similarity(NamedTuple):
    """Similarity of two descriptions, with its permutation test."""

    estimate: Estimate  # mean Spearman correlation of the rows
    expected: float  # mean under relabelling of the groups
    p: float  # nan without a test
    error: float  # standard error of the estimate


def cosines(profiles: Array) -> Array:
    """Return the cosine of every two rows of a (groups, dimensions) array, (groups, groups).

    Rounded, so that a group is exactly 1 with itself and with one of the same profile.

    Examples
    --------
    >>> cosines(np.array([[3.0, 4.0], [4.0, 3.0]])).tolist()
    [[1.0, 0.96], [0.96, 1.0]]
    """
    with np.errstate(invalid="ignore"):
        unit = profiles / np.linalg.norm(profiles, axis=1, keepdims=True)
    found: Array = np.round(unit @ unit.T, DIGITS)
    return found


def rsa(a: Array, b: Array, *, diagonal: bool) -> float:
    """Return the mean over groups of the Spearman correlation of their rows of similarities.

    With ``diagonal`` a group's similarity to itself, always the largest, is one of the pairs, as
    in the code of Choenni et al.; that alone makes unrelated descriptions of n groups correlate by
    3 / (n + 1), see :func:`expected`. Without it they correlate by 0 on average.

    Returned: 1 for equal descriptions. nan where there are fewer than three groups, or where a row
    does not vary.

    Parameters
    ----------
    a, b : (groups, dimensions) arrays
        Descriptions of the same groups in the same order; their dimensions may differ.

    References
    ----------
    Kriegeskorte, Mur and Bandettini (2008), Representational similarity analysis, Frontiers in
    Systems Neuroscience 2(4); Abnar et al. (2019), Blackbox meets blackbox, BlackboxNLP;
    Choenni, Shutova and van Rooij (2021), EMNLP.

    Examples
    --------
    Vectors at 0, 10, 30 and 80 degrees; then those at 10 and at 30 change places.

    >>> angles = np.radians([[0, 10, 30, 80], [0, 30, 10, 80]])
    >>> a, b = (np.stack([np.cos(x), np.sin(x)], axis=1) for x in angles)
    >>> rsa(a, b, diagonal=False), rsa(a, b, diagonal=True)
    (0.5, 0.8)
    """
    if len(a) != len(b):
        raise ValueError("needs two descriptions of the same groups")
    if len(a) < LEAST:
        return float("nan")
    first, second = (standard(cosines(x), diagonal=diagonal) for x in (a, b))
    return round(float(np.vdot(first, second) / len(first)), 12)


def expected(
    a: Array, b: Array, *, diagonal: bool, strata: NDArray[np.int64] | None = None
) -> float:
    """Return the exact mean of :func:`rsa` over all relabellings of the groups of one of the two.

    With the diagonal and without ties it is 3 / (n + 1) for n groups: 0.3 for nine, 0.03 for a
    hundred. Without the diagonal it is 0.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> round(expected(rng.random((9, 8)), rng.random((9, 8)), diagonal=True), 10)
    0.3
    """
    if len(a) < LEAST:
        return float("nan")
    first, second = (standard(cosines(x), diagonal=diagonal) for x in (a, b))
    of = np.zeros(len(first)) if strata is None else strata
    parts = [np.flatnonzero(of == stratum) for stratum in np.unique(of)]
    total = 0.0
    for i, rows in enumerate(parts):
        for j, columns in enumerate(parts):
            here, there = (x[np.ix_(rows, columns)] for x in (first, second))
            cells, sums = here.size, [here.sum(), there.sum()]
            if i == j:
                own = [np.trace(here), np.trace(there)]
                total += own[0] * own[1] / len(rows)
                cells, sums = cells - len(rows), [x - y for x, y in zip(sums, own, strict=True)]
            total += sums[0] * sums[1] / max(cells, 1)
    return float(total / len(first))


def compare(
    a: Array,
    b: Array,
    *,
    diagonal: bool,
    n_permutations: int,
    seed: int,
    confidence: float = 0.95,
    strata: NDArray[np.int64] | None = None,
) -> Similarity:
    """Compare two descriptions of groups, with interval and test.

    Returned: the interval is from :func:`jackknife`, see :func:`limits`; none of three groups. p is
    two-sided, from the distance to the mean over relabellings of the groups of ``b``, rows and
    columns together; the outcome seen is one of them (Phipson and Smyth 2010). It is nan where no
    relabelling has a p of at most .05, as with three groups. All is nan where :func:`rsa` is
    not defined.

    Parameters
    ----------
    diagonal
        See :func:`rsa`.
    strata : (groups,) array, optional
        Groups are relabelled within these alone, so that what whole strata have in common is none
        of the evidence.
    """
    value = rsa(a, b, diagonal=diagonal)
    if np.isnan(value):
        return Similarity(Estimate(value, value, value, len(a)), value, value, value)
    middle = expected(a, b, diagonal=diagonal, strata=strata)
    drawn = relabelled(
        a, b, diagonal=diagonal, n_permutations=n_permutations, seed=seed, strata=strata
    )
    parts = jackknife(a, b, diagonal=diagonal)
    low, high = limits(value, parts, confidence)
    p = float(possible_p(value - middle, drawn - middle))
    return Similarity(Estimate(value, low, high, len(a)), middle, p, float(np.linalg.norm(parts)))


def relabelled(
    a: Array,
    b: Array,
    *,
    diagonal: bool,
    n_permutations: int,
    seed: int,
    strata: NDArray[np.int64] | None = None,
) -> Array:
    """Return :func:`rsa` with the groups of ``b`` in random orders, (n_permutations,)."""
    first, second = (standard(cosines(x), diagonal=diagonal) for x in (a, b))
    of = np.zeros(len(first)) if strata is None else strata
    orders = _orders(tuple(np.unique(of, return_inverse=True)[1]), n_permutations, seed)
    flat, found = second.ravel(), np.empty(n_permutations)
    size = max(1, BLOCK // first.size)
    for start in range(0, n_permutations, size):
        some = slice(start, start + size)
        here = flat.take(orders[some, :, None] * len(first) + orders[some, None])
        found[some] = np.einsum("ij,bij->b", first, here) / len(first)
    return found


@lru_cache(maxsize=16)  # all pairs of models have the same groups
def _orders(strata: tuple[int, ...], n_permutations: int, seed: int) -> NDArray[np.int32]:
    """Return random orders of groups within their strata, (n_permutations, groups)."""
    rng, of = np.random.default_rng(seed), np.array(strata)
    parts = [np.flatnonzero(of == stratum) for stratum in range(of.max() + 1)]
    orders = np.empty((n_permutations, len(of)), dtype=np.int32)
    for order in orders:
        for part in parts:
            order[part] = part[rng.permutation(len(part))]
    orders.flags.writeable = False
    return orders


def left_out(a: Array, b: Array, *, diagonal: bool) -> Array:
    """Return :func:`rsa` without each group in turn, (groups,).

    Returns
    -------
    (groups,) array
        nan with fewer than four groups, or where a row without that group does not vary.
    """
    n = len(a)
    if n <= LEAST:
        return np.full(n, np.nan)
    total, both = np.zeros(n), [cosines(a), cosines(b)]
    off = ~np.eye(n, dtype=np.bool_) | diagonal
    ranks = [rankdata(similar[off].reshape(n, -1), axis=1) for similar in both]
    for i in range(n):
        left = np.delete(np.arange(n), i)
        kept = np.arange(n) if diagonal else left
        one, other = (
            _ranks_without(own[i], similar[i, kept], similar[i, left])
            for own, similar in zip(ranks, both, strict=True)
        )
        gone = kept == left[:, None]
        one[gone] = other[gone] = 0
        with np.errstate(invalid="ignore"):
            size = np.sqrt((one * one).sum(axis=1) * (other * other).sum(axis=1))
            total[left] += (one * other).sum(axis=1) / size
    return total / (n - 1)


def _ranks_without(ranks: Array, values: Array, left: Array) -> Array:
    """Return ranks of values, less their mean, without each that is left out, (left, values)."""
    above = (values > left[:, None]) + 0.5 * (values == left[:, None])
    found: Array = ranks - above - len(values) / 2
    return found


def jackknife(a: Array, b: Array, *, diagonal: bool) -> Array:
    """Return what each group adds to the error of :func:`rsa`, (groups,).

    The standard error is the root of the sum of squares: the jackknife's (Efron and Stein 1981,
    The jackknife estimate of variance, Annals of Statistics 9(3), p. 586-596). A bootstrap would
    compare groups with copies of themselves.
    """
    if not len(a):  # a category in which no group has a direction
        return np.zeros(0)
    without = left_out(a, b, diagonal=diagonal)
    found: Array = np.sqrt((len(a) - 1) / len(a)) * (without - without.mean())
    return found


def limits(
    value: float, parts: Array, confidence: float, bound: float = 1.0
) -> tuple[float, float]:
    """Return the t interval of a similarity, from the parts of its error, one for each group.

    nan where the error is 0: a few groups in one order in both descriptions, which happens to
    every fifth pair of unrelated descriptions of four groups, are no certainty.
    """
    error = float(np.linalg.norm(parts))
    half = t_half_width(error, len(parts) - 1, confidence) if error > NEAR else np.nan
    low, high = np.clip([value - half, value + half], -bound, bound)
    return float(low), float(high)


def standard(similar: Array, *, diagonal: bool) -> Array:
    """Return ranks of each row, centred and of length 1; without diagonal 0 on it.

    Parameters
    ----------
    similar : (..., groups, groups) array
        Similarities of each group to each, of one description or of many.

    Returns
    -------
    (..., groups, groups) array
        nan in rows that do not vary.
    """
    n = similar.shape[-1]
    kept = np.ones((n, n), dtype=np.bool_) if diagonal else ~np.eye(n, dtype=np.bool_)
    part = rankdata(similar[..., kept].reshape(*similar.shape[:-1], -1), axis=-1)
    part -= part.mean(axis=-1, keepdims=True)
    ranks = np.zeros(similar.shape)
    ranks[..., kept] = part.reshape(*similar.shape[:-2], -1)
    with np.errstate(invalid="ignore"):
        found: Array = ranks / np.linalg.norm(ranks, axis=-1, keepdims=True)
    return found
