"""Pointwise mutual information of words and groups, with intervals.

The data are the words that a model ranked highest for each name: a matrix of shape (names, words)
that contains 1 if a word is in a name's list.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from plumbline.probes.stats.bootstrap import Limits, percentiles

Floats = NDArray[np.float64]

EXACT = 2**24  # integers below this limit are exact in single precision
BLOCK = 64  # number of words whose replicates are in memory at once, in addition to the draws


def pmi(counts: Floats, smoothing: float = 0.0, merged: int = 0) -> Floats:
    """Return pointwise mutual information in nats, of shape (..., words, groups).

    PMI(w, g) = log p(w, g) / (p(w) p(g)), equation 1 of Stańczak et al. (2023), after ``smoothing``
    is added to each cell (Lidstone). Without smoothing, it is -inf for a word that was never
    generated for a group, and nan for a word or group without counts; the sum over g of p(g)
    exp(PMI(w, g)) is 1 for every word.

    Parameters
    ----------
    counts : (..., words, groups) array
        Number of times that each word was generated for each group.
    merged
        Number of words merged in the last row; 0 if the last row is one word.
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
    """Count words by group with weighted people, in shape (words, groups, replicates).

    Weights are integers, so sums are exact and do not depend on how people are ordered and split.

    Parameters
    ----------
    lists : (people, words) sparse array
        1 if a person's list contains the word.
    groups : (people,) array
        The group of each person, an integer below ``size``.
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
    """Return percentile intervals of :func:`pmi` from counts weighted by a cluster bootstrap.

    Without smoothing, this is the ordinary bootstrap, with Poisson weights. Its interval has width
    0 for a word that was never generated for a group, and its coverage is too low for small counts.
    With smoothing, it is the Bayesian bootstrap (Rubin 1981): each cluster has a standard
    exponential weight, and a draw from Gamma(smoothing) replaces the constant added to each cell.

    Davison and Hinkley (1997), Bootstrap Methods and their Application, sections 2.4 and 5.3.

    Parameters
    ----------
    draws : (words, groups, replicates) array
        Weighted counts, from :func:`weighted`.
    smoothing
        See :func:`pmi`; with 0, limits can be -inf. Replicates without counts for a word or a group
        have no PMI and are ignored.
    seed
        Seed of the Gamma draws.
    merged
        Number of words merged in the last row; 0 if the last row is one word.
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
    """Add a draw from Gamma(smoothing) to every cell of ``draws``, see :func:`intervals`."""
    shape = np.full((len(draws), 1, 1), smoothing)
    if merged:
        shape[-1] *= merged
    result = np.random.default_rng(seed).standard_gamma(shape, size=draws.shape)
    result += draws
    return result
