"""Pointwise mutual information of words and genders, with intervals and an exact null.

The data are the words that a model ranked highest for each name: a matrix of names by words with
a 1 where the word is in the name's list.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.sparse import csr_array
from scipy.stats import hypergeom

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

EXACT = 2**24  # whole numbers below it are exact in single precision
BLOCK = 64  # words whose replicates are held at once beside the draws
TOLERANCE = 1e-7  # two tables as likely as each other up to rounding count as equally likely


class Intervals(NamedTuple):
    """Percentile limits, each (words, groups)."""

    low: NDArray[np.float64]
    high: NDArray[np.float64]


def pmi(counts: NDArray[np.float64], smoothing: float = 0.0) -> NDArray[np.float64]:
    """Pointwise mutual information, natural logarithm.

    PMI(w, g) = log p(w, g) / (p(w) p(g)), equation 1 of Stańczak et al. (2023); with ``smoothing``
    added to every cell first (Lidstone).

    Parameters
    ----------
    counts : (..., words, groups) array
        How often a word was generated for a group.

    Returns
    -------
    (..., words, groups) array
        In nats; -inf where a word was never generated for a group and nothing was added, nan
        where the word or the group has no count at all. Without smoothing,
        sum over g of p(g) exp(PMI(w, g)) is 1 for every word.
    """
    cells = np.asarray(counts, dtype=np.float64) + smoothing
    total = cells.sum(axis=(-2, -1), keepdims=True)
    words = cells.sum(axis=-1, keepdims=True)
    groups = cells.sum(axis=-2, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        result: NDArray[np.float64] = np.log(cells * total / (words * groups))
    return result


def weighted(
    lists: csr_array, groups: NDArray[np.int64], size: int, weights: NDArray[np.float32]
) -> NDArray[np.float64]:
    """Count words by group, each person with weights: whole numbers, so the sums are exact.

    Parameters
    ----------
    lists : (people, words) sparse array
        1 where a person's list has the word.
    groups : (people,) array
        The group of each person, below ``size``.
    weights : (people, replicates) array

    Returns
    -------
    (words, groups, replicates) array
        The same whatever the order of the people, and in whatever pieces they are added up.
    """
    words = lists.shape[1]
    cells = lists.tocoo()
    at = (cells.col.astype(np.int64) * size + groups[cells.row], cells.row)
    table = csr_array((cells.data.astype(np.float32), at), shape=(words * size, len(groups)))
    found = table @ weights
    if found.size and found.max() >= EXACT:
        found = table.astype(np.float64) @ weights.astype(np.float64)
    return np.asarray(found, dtype=np.float64).reshape(words, size, weights.shape[1])


def intervals(
    draws: NDArray[np.float64],
    smoothing: float,
    seed: int | Sequence[int],
    confidence: float = 0.95,
    merged: int = 0,
) -> Intervals:
    """Percentile intervals of :func:`pmi` from counts with bootstrap weights for whole clusters.

    Without smoothing this is the ordinary bootstrap, with Poisson weights. It gives a word that a
    group never got no width at all, and covers the truth too rarely where counts are small. With
    smoothing it is the Bayesian bootstrap: each cluster has a standard exponential weight, and
    what is added to a cell is as uncertain as if it had been counted, Gamma(smoothing) instead of
    the constant.

    Parameters
    ----------
    draws : (words, groups, replicates) array
        Counts with weights, from :func:`weighted`.
    smoothing
        See :func:`pmi`; 0 can give limits of -inf. Replicates in which a word or a group was not
        drawn at all have no PMI and are left out.
    seed
        Of the Gamma.
    merged
        The last row stands for so many words together, 0 for one word as all others.

    References
    ----------
    Davison and Hinkley (1997), Bootstrap Methods and their Application, sections 2.4 and 5.3;
    Rubin (1981), The Bayesian bootstrap, Annals of Statistics 9(1).
    """
    cells = smoothed(draws, smoothing, seed, merged) if smoothing else draws
    words, groups, _ = cells.shape
    by_group = cells.sum(axis=0)
    total = by_group.sum(axis=0)
    low, high = np.empty((words, groups)), np.empty((words, groups))
    for start in range(0, words, BLOCK):
        part = cells[start : start + BLOCK]
        with np.errstate(divide="ignore", invalid="ignore"):
            values = np.log(part * total / (part.sum(axis=1, keepdims=True) * by_group))
        low[start : start + BLOCK], high[start : start + BLOCK] = percentiles(values, confidence)
    return Intervals(low, high)


def smoothed(
    draws: NDArray[np.float64], smoothing: float, seed: int | Sequence[int], merged: int = 0
) -> NDArray[np.float64]:
    """Add Gamma(smoothing) to every cell of (words, groups, replicates) draws.

    See :func:`intervals` for the parameters.
    """
    rng = np.random.default_rng(seed)
    shape = np.full(len(draws), smoothing)
    if merged:
        shape[-1] *= merged
    found = np.empty_like(draws)
    for row, alpha in enumerate(shape):
        found[row] = draws[row] + rng.standard_gamma(alpha, size=draws.shape[1:])
    return found


def percentiles(values: NDArray[np.float64], confidence: float) -> Intervals:
    """Return limits over the last axis; nan is left out, and all nan gives nan.

    The order statistics just outside the percentiles, so that limits are values that were drawn.
    """
    values = np.sort(values, axis=-1)  # nan goes last
    defined = np.maximum(values.shape[-1] - np.isnan(values).sum(axis=-1), 1) - 1
    tail = (1 - confidence) / 2
    first = np.floor(tail * defined).astype(np.int64)
    last = np.ceil((1 - tail) * defined).astype(np.int64)
    low = np.take_along_axis(values, first[..., None], axis=-1)[..., 0]
    high = np.take_along_axis(values, last[..., None], axis=-1)[..., 0]
    return Intervals(low, high)


def permutation_p(
    with_word: NDArray[np.int64], group_sizes: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Exact two-sided p-values under permutation of the group labels over the names.

    All names have lists of one length, so permuting labels leaves everything fixed but how many
    names with the word fall into the group: hypergeometric. The p-value is the probability of
    all outcomes no more likely than the one seen; the same as Fisher's exact test.

    Parameters
    ----------
    with_word : (words, groups) array
        Names whose list has the word.
    group_sizes : (groups,) array
        Names in each group.

    References
    ----------
    Fisher (1935), The Design of Experiments, section 21; Agresti (2002), Categorical Data
    Analysis, section 3.5.1.

    Examples
    --------
    Fisher's tea (Agresti 2002, Table 3.8): 3 of 4 cups guessed right.

    >>> p = permutation_p(np.array([[3, 1]]), np.array([4, 4]))
    >>> p.round(4).tolist()
    [[0.4857, 0.4857]]
    """
    names = int(group_sizes.sum())
    result = np.ones(with_word.shape)
    for g, size in enumerate(group_sizes):
        for having in np.unique(with_word.sum(axis=1)):
            rows = np.flatnonzero(with_word.sum(axis=1) == having)
            support = np.arange(max(0, having + size - names), min(having, size) + 1)
            if not len(support):
                continue
            mass = hypergeom.pmf(support, names, having, size)
            order = np.argsort(mass, kind="stable")
            running = np.cumsum(mass[order])
            seen = mass[with_word[rows, g] - support[0]]
            last = np.searchsorted(mass[order], seen * (1 + TOLERANCE), side="right")
            result[rows, g] = np.minimum(1.0, running[last - 1])
    return result
