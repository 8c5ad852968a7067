"""Pointwise mutual information of words and genders, with intervals and an exact null.

The data are the words that a model ranked highest for each name: a matrix of names by words with
a 1 where the word is in the name's list.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.stats import hypergeom

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from scipy.sparse import csr_array

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


def bootstrap(
    lists: csr_array,
    groups: NDArray[np.int64],
    clusters: NDArray[np.int64],
    smoothing: float,
    replicates: int,
    seed: int,
    confidence: float = 0.95,
) -> Intervals:
    """Percentile intervals of :func:`pmi`, resampling whole clusters.

    Without smoothing this is the ordinary bootstrap: clusters are drawn with replacement. It gives
    a word that a group never got no width at all, and covers the truth too rarely where counts are
    small. With smoothing it is the Bayesian bootstrap: each cluster has a standard exponential
    weight, and what is added to a cell is as uncertain as if it had been counted, Gamma(smoothing)
    instead of the constant.

    Parameters
    ----------
    lists : (people, words) sparse array of 0 and 1
    groups, clusters : (people,) arrays
        The group of each person, and the cluster (distinct name) that is drawn with all its
        people, 0 to the largest without gaps.
    smoothing
        See :func:`pmi`; 0 can give limits of -inf. Replicates in which a word or a group was not
        drawn at all have no PMI and are left out.

    References
    ----------
    Davison and Hinkley (1997), Bootstrap Methods and their Application, sections 2.4 and 5.3;
    Rubin (1981), The Bayesian bootstrap, Annals of Statistics 9(1).
    """
    rng = np.random.default_rng(seed)
    number = int(clusters.max()) + 1
    size = int(groups.max()) + 1
    members = [np.flatnonzero(groups == g) for g in range(size)]
    parts = [lists[rows].T.tocsr().astype(np.float64) for rows in members]
    draws = np.empty((replicates, lists.shape[1], size))
    block = max(1, 4_000_000 // number)  # bounds memory at 32 MB of weights
    for start in range(0, replicates, block):
        stop = min(start + block, replicates)
        weights = np.stack([_weights(rng, number, smoothing) for _ in range(start, stop)])
        for g in range(size):
            draws[start:stop, :, g] = (parts[g] @ weights[:, clusters[members[g]]].T).T
    if smoothing:
        draws += rng.standard_gamma(smoothing, size=draws.shape)
    values = np.sort(pmi(draws), axis=0)  # nan, where a word or group was not drawn, sorts last
    defined = np.maximum(replicates - np.isnan(values).sum(axis=0), 1) - 1
    tail = (1 - confidence) / 2
    first = np.floor(tail * defined).astype(np.int64)
    last = np.ceil((1 - tail) * defined).astype(np.int64)
    low = np.take_along_axis(values, first[None], axis=0)[0]
    high = np.take_along_axis(values, last[None], axis=0)[0]
    return Intervals(low, high)


def _weights(rng: np.random.Generator, number: int, smoothing: float) -> NDArray[np.float64]:
    """Return one weight a cluster: how often it was drawn, or its exponential weight."""
    if smoothing:
        return rng.standard_exponential(number)
    return np.bincount(rng.integers(0, number, number), minlength=number).astype(np.float64)


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
