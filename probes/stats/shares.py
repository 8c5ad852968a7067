"""Shares of classes among the words that deviate most towards each of several groups.

The data are lists of words, one a name: a matrix of names by words with a 1 where the word is in
the name's list. Words are ranked for each group by their smoothed pointwise mutual information.
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
WEIGHTS = 4_000_000  # weights of names that are held at once: 32 MB


def largest(deviations: Floats, size: int) -> Integers:
    """Return the places of the ``size`` largest values along the last axis, largest first.

    Of equal values the one that stands first is taken.
    """
    if not 1 <= size <= deviations.shape[-1]:
        raise ValueError(f"{size} largest of {deviations.shape[-1]}")
    return np.argsort(-deviations, axis=-1, kind="stable")[..., :size]


def shares(deviations: Floats, classes: Integers, size: int, number: int) -> Floats:
    """Return how the ``size`` words with the largest deviations are divided into classes.

    Parameters
    ----------
    deviations : (..., words) array
        The result, (..., number), sums to 1 along the last axis.
    classes : (words,) array
        From 0 to ``number`` - 1.

    Examples
    --------
    >>> shares(np.array([3.0, 2.0, 1.0, 0.0]), np.array([0, 1, 0, 0]), 2, 3).tolist()
    [0.5, 0.5, 0.0]
    """
    chosen = classes[largest(deviations, size)]
    return np.asarray((chosen[..., None] == np.arange(number)).mean(axis=-2))


class NameShares(NamedTuple):
    """Shares of classes among the words that deviate most to each group, by smoothed PMI."""

    lists: csr_array  # (names, words): 0 and 1
    groups: Integers  # (names,): from 0 on; each with at least one name
    classes: Integers  # (words,): from 0 to ``number`` - 1
    size: int  # words taken for each group
    number: int
    smoothing: float

    def seen(self) -> Floats:
        """Return the shares for each group, an array (groups, classes)."""
        result: Floats = self._shares(self._counts(self._members()[:, :, None]), self.smoothing)[0]
        return result

    def permuted(
        self,
        n_permutations: int,
        seed: int,
        among: tuple[int, int] = (0, 1),
        strata: Integers | None = None,
    ) -> Floats:
        """Return shares with the labels of two groups permuted over their names.

        The null: which of the two groups a name is of has nothing to do with its list. Everything
        that is computed from the lists (the ranking of words, the selection of the largest) is done
        anew: (permutations, groups, number).

        ``strata``, (names,): labels are permuted among names of one stratum alone, as names that
        were matched have to be: the null is that lists hang on the group no more than the stratum
        says.
        """
        rng = np.random.default_rng(seed)
        pool = np.flatnonzero(np.isin(self.groups, among))
        codes = np.arange(int(self.groups.max()) + 1)[:, None, None]
        if strata is not None:
            pool = pool[np.argsort(strata[pool], kind="stable")]

        def block(size: int) -> Floats:
            labels = np.repeat(self.groups[:, None], size, axis=1)
            for column in range(size):
                if strata is None:
                    labels[pool, column] = rng.permutation(self.groups[pool])
                else:
                    order = np.lexsort((rng.random(len(pool)), strata[pool]))
                    labels[pool, column] = self.groups[pool[order]]
            return self._shares(self._counts((labels == codes).astype(np.float64)), self.smoothing)

        return self._in_blocks(n_permutations, block)

    def resampled(self, n_bootstrap: int, seed: int) -> Floats:
        """Return replicates of the shares, (replicates, groups, number), names resampled.

        The Bayesian bootstrap: each name has a standard exponential weight, and what is added to a
        cell is Gamma(smoothing), as in :func:`plumbline.probes.stats.pmi.intervals`.
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
        """Return counts (block, words, groups) for weights (groups, names, block)."""
        by_word = self.lists.T.tocsr()
        return np.stack([(by_word @ part).T for part in weights], axis=-1)

    def _shares(self, counts: Floats, smoothing: float) -> Floats:
        """Return shares (block, groups, classes); deviations equal to ten digits are ties."""
        deviations = np.round(np.swapaxes(pmi(counts, smoothing), -1, -2), 10)
        return shares(deviations, self.classes, self.size, self.number)


def symmetric(draws: Floats, value: float, confidence: float, least: float) -> tuple[float, float]:
    """Return the symmetric bootstrap interval, cut at ``least`` and 1.

    A replicate ranks the words anew, with more noise than the estimate, and so is drawn towards the
    share among all candidates, as the estimate itself is from the truth: percentiles would move
    away from the truth twice. docs/studies/politicians.md has the coverage of both.

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
    """One class: its share in either list, their difference, and the test of it."""

    first: Estimate
    second: Estimate
    difference: Estimate
    p: float
    exact: bool
    least_p: float  # that the test can have


def leading(values: Floats, number: int) -> Integers:
    """Return where the largest values above 0 are, largest first.

    Parameters
    ----------
    values : (words,) array
        Deviations towards a group. A word at or below 0, or without a value (nan), does not go
        with the group and is never among them, so that there may be fewer than ``number``.
        Equal values keep their order: sort the words before.
    """
    order = np.argsort(-np.asarray(values, dtype=np.float64), kind="stable")  # nan goes last
    return order[values[order] > 0][:number]


def leading_shares(values: NDArray[np.floating[Any]], parts: Floats, number: int) -> Floats:
    """Return the share of each class among the largest values above 0, (replicates, classes).

    Parameters
    ----------
    values : (replicates, words) array
        As in :func:`leading`, which chooses the words of each replicate; without a value above 0
        all shares are 0.
    parts : (words, classes) array
        Share of a word in each class; a row sums to 1.

    Examples
    --------
    >>> leading_shares(np.array([[3.0, 2.0, 1.0], [-1.0, 2.0, -1.0]]), np.eye(3), 2).tolist()
    [[0.5, 0.5, 0.0], [0.0, 1.0, 0.0]]
    """
    order = np.argsort(-values, axis=1, kind="stable")[:, :number]  # nan goes last
    taken = np.take_along_axis(values, order, axis=1) > 0
    result = np.zeros((len(values), parts.shape[1]))
    for rank in range(order.shape[1]):
        result += taken[:, rank, None] * parts[order[:, rank]]
    return np.asarray(result / np.maximum(taken.sum(axis=1, keepdims=True), 1))


def compare(
    first: Floats, second: Floats, n_permutations: int, seed: int, confidence: float = 0.95
) -> list[Comparison]:
    """Compare the share of every class in two lists of words.

    The unit is the word: the intervals and the test are those of words drawn at random for each
    list, and know nothing of how uncertain it is which words are in the lists. The null of the
    test is that the words of both lists are one population, relabelled. A word in both lists is
    in both groups, which adds nothing to the difference: it makes the test a little cautious.

    Shares have Wilson's interval, their difference (first minus second) has Newcombe's; with words
    in parts they are too wide rather than too narrow. p-values are raw: adjust them over the
    family.

    Stańczak et al. (2023), PLoS ONE 18(11): e0277640, the analysis of supersenses; Hoyle et al.
    (2019), Unsupervised discovery of gendered language through latent-variable modeling, ACL.

    Parameters
    ----------
    first, second : (n, classes) and (m, classes) arrays
        Share of each word in each class.
    n_permutations, seed
        Of the permutation test where it is not exact.
    """
    test = permutation_test(first, second, n_permutations, seed)
    size = (len(first), len(second))
    # sums of parts such as thirds may pass the whole by a rounding error
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
