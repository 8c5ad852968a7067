"""Shares of classes among the words most associated with each of several groups.

The data are lists of words, one per name: a matrix of shape (names, words) that contains 1 if a
word is in a name's list. Words are ranked for each group by smoothed pointwise mutual information.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from plumbline.probes.stats.estimate import Estimate
from plumbline.probes.stats.intervals import newcombe, wilson
from plumbline.probes.stats.pmi import pmi
from plumbline.probes.stats.tests import permutation_test

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

OVER_NAMES = "symmetric Bayesian bootstrap over names"  # method of :func:`symmetric`
WEIGHTS = 4_000_000  # maximum number of weights in memory (32 MB)


def largest(deviations: Floats, size: int) -> Integers:
    """Return the indices of the ``size`` largest values along the last axis, largest first.

    Ties keep their order.
    """
    if not 1 <= size <= deviations.shape[-1]:
        raise ValueError(f"largest: size {size} is not in 1 to {deviations.shape[-1]}")
    return np.argsort(-deviations, axis=-1, kind="stable")[..., :size]


def shares(deviations: Floats, classes: Integers, size: int, number: int) -> Floats:
    """Return the shares of classes among the ``size`` words with the largest deviations.

    Parameters
    ----------
    deviations : (..., words) array
        The result has shape (..., number) and sums to 1 along the last axis.
    classes : (words,) array
        Class of each word, a code from 0 to ``number`` - 1.

    Examples
    --------
    >>> shares(np.array([3.0, 2.0, 1.0, 0.0]), np.array([0, 1, 0, 0]), 2, 3).tolist()
    [0.5, 0.5, 0.0]
    """
    chosen = classes[largest(deviations, size)]
    return np.asarray((chosen[..., None] == np.arange(number)).mean(axis=-2))


class NameShares(NamedTuple):
    """Shares of classes among the words most associated with each group, by smoothed PMI."""

    lists: csr_array  # (names, words): 1 if the word is in the list, else 0
    groups: Integers  # (names,): codes from 0; each with at least one name
    classes: Integers  # (words,): codes from 0 to ``number`` - 1
    size: int  # number of words selected for each group
    number: int
    smoothing: float

    def seen(self) -> Floats:
        """Return the observed shares for each group, of shape (groups, classes)."""
        result: Floats = self._shares(self._counts(self._members()[:, :, None]), self.smoothing)[0]
        return result

    def permuted(self, n_permutations: int, seed: int, among: tuple[int, int] = (0, 1)) -> Floats:
        """Return shares under permutations of two groups' labels over their names.

        The null hypothesis is that a name's list is independent of its group. Words are ranked and
        selected again for each permutation. The result has shape (permutations, groups, number).
        """
        rng = np.random.default_rng(seed)
        pool = np.flatnonzero(np.isin(self.groups, among))
        codes = np.arange(int(self.groups.max()) + 1)[:, None, None]

        def block(size: int) -> Floats:
            labels = np.repeat(self.groups[:, None], size, axis=1)
            for column in range(size):
                labels[pool, column] = rng.permutation(self.groups[pool])
            return self._shares(self._counts((labels == codes).astype(np.float64)), self.smoothing)

        return self._in_blocks(n_permutations, block)

    def resampled(self, n_bootstrap: int, seed: int) -> Floats:
        """Resample names; return replicates of the shares, of shape (replicates, groups, number).

        In the Bayesian bootstrap, each name has a standard exponential weight, and a draw from
        Gamma(smoothing) is added to each cell, as in :func:`plumbline.probes.stats.pmi.intervals`.
        """
        rng = np.random.default_rng(seed)
        members = self._members()[:, :, None]

        def block(size: int) -> Floats:
            counts = self._counts(members * rng.standard_exponential((size, len(self.groups))).T)
            return self._shares(counts + rng.standard_gamma(self.smoothing, counts.shape), 0.0)

        return self._in_blocks(n_bootstrap, block)

    def _in_blocks(self, total: int, block: Callable[[int], Floats]) -> Floats:
        size = max(1, WEIGHTS // self._members().size)
        starts = range(0, total, size)
        return np.concatenate([block(min(size, total - start)) for start in starts])

    def _members(self) -> Floats:
        return np.eye(int(self.groups.max()) + 1)[:, self.groups]

    def _counts(self, weights: Floats) -> Floats:
        """Return counts, of shape (block, words, groups); weights are (groups, names, block)."""
        by_word = self.lists.T.tocsr()
        return np.stack([(by_word @ part).T for part in weights], axis=-1)

    def _shares(self, counts: Floats, smoothing: float) -> Floats:
        """Return shares (block, groups, classes); deviations equal to ten decimals are tied."""
        deviations = np.round(np.swapaxes(pmi(counts, smoothing), -1, -2), 10)
        return shares(deviations, self.classes, self.size, self.number)


def symmetric(draws: Floats, value: float, confidence: float, least: float) -> tuple[float, float]:
    """Return the symmetric bootstrap interval, truncated to [``least``, 1].

    The ranking of words is noisier in replicates than in the estimate. Like the estimate itself,
    replicates are therefore biased towards the share among all candidates, and percentile limits
    would contain this bias twice. docs/studies/politicians.md reports the coverage of both.

    Hall (1988), On symmetric bootstrap confidence intervals, J. R. Stat. Soc. B 50(1), p. 35-45.

    Parameters
    ----------
    draws : (replicates,) array

    Examples
    --------
    >>> symmetric(np.array([0.1, 0.2, 0.3]), 0.3, 0.5, 0.0)
    (0.2, 0.4)
    """
    half = float(np.quantile(np.abs(draws - value), confidence))
    low, high = max(least, value - half), min(1.0, value + half)
    return round(low, 12), round(high, 12)


class Comparison(NamedTuple):
    """The share of one class in each of two lists, their difference and its test."""

    first: Estimate
    second: Estimate
    difference: Estimate
    p: float
    exact: bool
    least_p: float  # smallest possible p-value


def leading(values: Floats, number: int) -> Integers:
    """Return the indices of the largest positive values, largest first.

    Parameters
    ----------
    values : (words,) array
        Association of each word with a group. Words whose value is nan or not positive are
        excluded, so there may be fewer than ``number``. Ties keep their order, so sort the words
        first.
    """
    order = np.argsort(-np.asarray(values, dtype=np.float64), kind="stable")  # nan sorts last
    return order[values[order] > 0][:number]


def leading_shares(values: NDArray[np.floating[Any]], parts: Floats, number: int) -> Floats:
    """Return class shares among the largest positive values, of shape (replicates, classes).

    Parameters
    ----------
    values : (replicates, words) array
        As in :func:`leading`, which selects the words of each replicate; if no value is positive,
        all shares are 0.
    parts : (words, classes) array
        Share of each word that belongs to each class; each row sums to 1.

    Examples
    --------
    >>> leading_shares(np.array([[3.0, 2.0, 1.0], [-1.0, 2.0, -1.0]]), np.eye(3), 2).tolist()
    [[0.5, 0.5, 0.0], [0.0, 1.0, 0.0]]
    """
    order = np.argsort(-values, axis=1, kind="stable")[:, :number]  # nan sorts last
    taken = np.take_along_axis(values, order, axis=1) > 0
    result = np.zeros((len(values), parts.shape[1]))
    for rank in range(order.shape[1]):
        result += taken[:, rank, None] * parts[order[:, rank]]
    return np.asarray(result / np.maximum(taken.sum(axis=1, keepdims=True), 1))


def compare(
    first: Floats, second: Floats, n_permutations: int, seed: int, confidence: float = 0.95
) -> list[Comparison]:
    """Compare the share of each class between two lists of words.

    The unit is the word: intervals and test assume that the words of each list are a random sample,
    and ignore the uncertainty of their selection. The null hypothesis is that list labels are
    exchangeable over words. A word in both lists adds nothing to the difference, which makes the
    test slightly conservative. Shares have Wilson's interval, and their difference (first minus
    second) has Newcombe's; both are conservative for words with fractional classes. p-values are
    not adjusted.

    Stańczak et al. (2023), PLoS ONE 18(11): e0277640, analysis of supersenses; Hoyle et al. (2019),
    Unsupervised discovery of gendered language through latent-variable modeling, ACL.

    Parameters
    ----------
    first, second : (n, classes) and (m, classes) arrays
        Share of each word in each class.
    n_permutations, seed
        Number of permutations and seed, used if the test is not exact.
    """
    test = permutation_test(first, second, n_permutations, seed)
    size = (len(first), len(second))
    # rounding can make sums of fractions such as thirds exceed the total
    hits = np.minimum(np.stack([first.sum(axis=0), second.sum(axis=0)], axis=1), size).tolist()
    return [
        Comparison(
            wilson(first_hits, size[0], confidence),
            wilson(second_hits, size[1], confidence),
            newcombe((first_hits, second_hits), size, confidence),
            float(test.p[c]),
            bool(test.exact[c]),
            float(test.least_p[c]),
        )
        for c, (first_hits, second_hits) in enumerate(hits)
    ]
