"""Shares of classes among the words that deviate most towards each of several groups.

The data are lists of words, one a name: a matrix of names by words with a 1 where the word is in
the name's list. Words are ranked for each group by their smoothed pointwise mutual information.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from plumbline.probes.stats.pmi import pmi

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray
    from scipy.sparse import csr_array

WEIGHTS = 4_000_000  # weights of names that are held at once: 32 MB


def largest(deviations: NDArray[np.float64], size: int) -> NDArray[np.int64]:
    """Return the places of the ``size`` largest values along the last axis, largest first.

    Of equal values the one that stands first is taken.

    Examples
    --------
    >>> largest(np.array([0.5, 2.0, 0.5, 1.0]), 3).tolist()
    [1, 3, 0]
    """
    if not 1 <= size <= deviations.shape[-1]:
        raise ValueError(f"{size} largest of {deviations.shape[-1]}")
    order: NDArray[np.int64] = np.argsort(-deviations, axis=-1, kind="stable")[..., :size]
    return order


def shares(
    deviations: NDArray[np.float64], classes: NDArray[np.int64], size: int, number: int
) -> NDArray[np.float64]:
    """Return how the ``size`` words with the largest deviations are divided into classes.

    Parameters
    ----------
    deviations : (..., words) array
    classes : (words,) array
        From 0 to ``number`` - 1.

    Returns
    -------
    (..., number) array
        Sums to 1 along the last axis.

    Examples
    --------
    >>> shares(np.array([3.0, 2.0, 1.0, 0.0]), np.array([0, 1, 0, 0]), 2, 3).tolist()
    [0.5, 0.5, 0.0]
    """
    chosen = classes[largest(deviations, size)]
    return np.stack([(chosen == c).mean(axis=-1) for c in range(number)], axis=-1)


def of_names(
    lists: csr_array,
    groups: NDArray[np.int64],
    classes: NDArray[np.int64],
    size: int,
    number: int,
    smoothing: float,
) -> NDArray[np.float64]:
    """Return the shares for each group, an array (groups, classes), by smoothed PMI.

    Parameters
    ----------
    lists : (names, words) sparse array of 0 and 1
    groups : (names,) array
        From 0 on; each with at least one name.
    """
    members = np.eye(int(groups.max()) + 1)[:, groups]
    found = _shares(_counts(lists, members[:, :, None]), classes, size, number, smoothing)
    seen: NDArray[np.float64] = found[0]
    return seen


def permuted(
    lists: csr_array,
    groups: NDArray[np.int64],
    classes: NDArray[np.int64],
    size: int,
    number: int,
    smoothing: float,
    permutations: int,
    seed: int,
    among: tuple[int, int] = (0, 1),
) -> NDArray[np.float64]:
    """Return :func:`of_names` with the labels of two groups permuted over their names.

    The null: which of the two groups a name is of has nothing to do with its list. Everything that
    is computed from the lists (the ranking of words, the selection of the largest) is done anew.

    Returns
    -------
    (permutations, groups, number) array
    """
    rng = np.random.default_rng(seed)
    pool = np.flatnonzero(np.isin(groups, among))
    total = int(groups.max()) + 1
    found = []
    for block in _blocks(permutations, len(groups) * total):
        labels = np.repeat(groups[:, None], block, axis=1)
        for column in range(block):
            labels[pool, column] = rng.permutation(groups[pool])
        members = (labels[None] == np.arange(total)[:, None, None]).astype(np.float64)
        found.append(_shares(_counts(lists, members), classes, size, number, smoothing))
    return np.concatenate(found)


def resampled(
    lists: csr_array,
    groups: NDArray[np.int64],
    classes: NDArray[np.int64],
    size: int,
    number: int,
    smoothing: float,
    replicates: int,
    seed: int,
) -> NDArray[np.float64]:
    """Return replicates of :func:`of_names`: the Bayesian bootstrap over names.

    Each name has a standard exponential weight, and what is added to a cell is Gamma(smoothing), as
    in :func:`plumbline.probes.stats.pmi.bootstrap`.

    Returns
    -------
    (replicates, groups, number) array

    References
    ----------
    Rubin (1981), The Bayesian bootstrap, Annals of Statistics 9(1).
    """
    rng = np.random.default_rng(seed)
    members = np.eye(int(groups.max()) + 1)[:, groups]
    found = []
    for block in _blocks(replicates, members.size):
        weights = rng.standard_exponential((block, len(groups))).T
        counts = _counts(lists, members[:, :, None] * weights[None])
        added = rng.standard_gamma(smoothing, size=counts.shape)
        found.append(_shares(counts + added, classes, size, number, 0.0))
    return np.concatenate(found)


def symmetric(
    drawn: NDArray[np.float64], value: float, confidence: float, least: float
) -> tuple[float, float]:
    """Return the symmetric bootstrap interval, cut at ``least`` and 1.

    A replicate ranks the words anew, with more noise than the estimate, and so is drawn towards the
    share among all candidates, as the estimate itself is from the truth: percentiles would move
    away from the truth twice. docs/analyses/sentiment.md has the coverage of both.

    Parameters
    ----------
    drawn : (replicates,) array

    References
    ----------
    Hall (1988), On symmetric bootstrap confidence intervals, J. R. Stat. Soc. B 50(1), p. 35-45.

    Examples
    --------
    >>> symmetric(np.array([0.1, 0.2, 0.3]), 0.3, 0.5, 0.0)
    (0.2, 0.4)
    """
    half = float(np.quantile(np.abs(drawn - value), confidence))
    low, high = max(least, value - half), min(1.0, value + half)
    return round(low, 12), round(high, 12)


def two_sided_p(seen: float, null: NDArray[np.float64]) -> float:
    """Return the p-value of a statistic from permutations: as far from 0 as the one seen, or more.

    References
    ----------
    Phipson and Smyth (2010), Stat. Appl. Genet. Mol. Biol. 9(1), article 39: the arrangement seen
    is one of the permutations, so that p is never 0.

    Examples
    --------
    >>> two_sided_p(0.2, np.array([0.1, -0.2, 0.0]))
    0.5
    """
    return float((1 + (np.abs(null) >= abs(seen) - 1e-9).sum()) / (1 + len(null)))


def _counts(lists: csr_array, weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return counts (block, words, groups) for weights (groups, names, block)."""
    by_word = lists.T.tocsr()
    return np.stack([(by_word @ part).T for part in weights], axis=-1)


def _shares(
    counts: NDArray[np.float64],
    classes: NDArray[np.int64],
    size: int,
    number: int,
    smoothing: float,
) -> NDArray[np.float64]:
    """Return shares (block, groups, classes); deviations equal to ten digits are ties."""
    deviations = np.round(np.swapaxes(pmi(counts, smoothing), -1, -2), 10)
    return shares(deviations, classes, size, number)


def _blocks(total: int, each: int) -> Iterator[int]:
    block = max(1, WEIGHTS // each)
    for start in range(0, total, block):
        yield min(block, total - start)
