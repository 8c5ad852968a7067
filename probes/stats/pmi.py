"""Pointwise mutual information of words and groups, with intervals.

The data are the words that a model ranked highest for each name: a matrix of names by words with
a 1 where the word is in the name's list.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from plumbline.probes.stats.bootstrap import Limits, percentiles

Floats = NDArray[np.float64]

EXACT = 2**24  # whole numbers below it are exact in single precision
BLOCK = 64  # words whose replicates are held at once beside the draws


def pmi(counts: Floats, smoothing: float = 0.0, merged: int = 0) -> Floats:
    """Pointwise mutual information in nats, (..., words, groups).

    PMI(w, g) = log p(w, g) / (p(w) p(g)), equation 1 of Stańczak et al. (2023); with ``smoothing``
    added to every cell first (Lidstone). -inf where a word was never generated for a group and
    nothing was added, nan where the word or the group has no count at all. Without smoothing,
    sum over g of p(g) exp(PMI(w, g)) is 1 for every word.

    Parameters
    ----------
    counts : (..., words, groups) array
        How often a word was generated for a group.
    merged
        The last row stands for so many words together, 0 for one word as all others.

    """
    cells = np.asarray(counts, dtype=np.float64) + smoothing
    if merged:
        cells[..., -1, :] += smoothing * (merged - 1)
    total = cells.sum(axis=(-2, -1), keepdims=True)
    words = cells.sum(axis=-1, keepdims=True)
    groups = cells.sum(axis=-2, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.log(cells * total / (words * groups)))


def weighted(
    lists: csr_array, groups: NDArray[np.int64], size: int, weights: NDArray[np.float32]
) -> Floats:
    """Count words by group, (words, groups, replicates), each person with weights.

    Weights are whole numbers, so that sums are exact: the same whatever the order of the people,
    and in whatever pieces they are added up.

    Parameters
    ----------
    lists : (people, words) sparse array
        1 where a person's list has the word.
    groups : (people,) array
        The group of each person, below ``size``.
    weights : (people, replicates) array
    """
    words = lists.shape[1]
    cells = lists.tocoo()
    indices = (cells.col.astype(np.int64) * size + groups[cells.row], cells.row)
    table = csr_array((cells.data.astype(np.float32), indices), shape=(words * size, len(groups)))
    result = table @ weights
    if result.size and result.max() >= EXACT:
        result = table.astype(np.float64) @ weights.astype(np.float64)
    return np.asarray(result, dtype=np.float64).reshape(words, size, weights.shape[1])


def intervals(
    draws: Floats,
    smoothing: float,
    seed: int | Sequence[int],
    confidence: float = 0.95,
    merged: int = 0,
) -> Limits:
    """Percentile intervals of :func:`pmi` from counts with bootstrap weights for whole clusters.

    Without smoothing this is the ordinary bootstrap, with Poisson weights. It gives a word that a
    group never got no width at all, and covers the truth too rarely where counts are small. With
    smoothing it is the Bayesian bootstrap (Rubin 1981): each cluster has a standard exponential
    weight, and what is added to a cell is as uncertain as if it had been counted, Gamma(smoothing)
    instead of the constant.

    Davison and Hinkley (1997), Bootstrap Methods and their Application, sections 2.4 and 5.3.

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
    """
    cells = smoothed(draws, smoothing, seed, merged) if smoothing else draws
    by_group = cells.sum(axis=0)
    total = by_group.sum(axis=0)
    limits = Limits(*np.empty((2, *cells.shape[:2])))
    for start in range(0, len(cells), BLOCK):
        rows = slice(start, start + BLOCK)
        with np.errstate(divide="ignore", invalid="ignore"):
            words = cells[rows].sum(axis=1, keepdims=True)
            values = np.log(cells[rows] * total / (words * by_group))
        limits.low[rows], limits.high[rows] = percentiles(values, confidence)
    return limits


def smoothed(draws: Floats, smoothing: float, seed: int | Sequence[int], merged: int = 0) -> Floats:
    """Add Gamma(smoothing) to every cell of (words, groups, replicates), see :func:`intervals`."""
    shape = np.full((len(draws), 1, 1), smoothing)
    if merged:
        shape[-1] *= merged
    result = np.random.default_rng(seed).standard_gamma(shape, size=draws.shape)
    result += draws
    return result
