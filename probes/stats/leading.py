"""Classes of the words that lead for each group, for many tables of counts at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.stats import rankdata

if TYPE_CHECKING:
    from numpy.typing import NDArray

DIGITS = 10  # deviations equal to so many are ties


def deviations(
    counts: NDArray[np.float64], smoothing: float = 0.0, merged: int = 0
) -> NDArray[np.float64]:
    """Return PMI of words and groups for counts with a last axis of replicates.

    Parameters
    ----------
    counts : (words, groups, replicates) array
    smoothing
        Added to every cell.
    merged
        The last row stands for so many words together, and is not returned; 0: for one as all.

    Returns
    -------
    (words, groups, replicates) array
        In nats, see :func:`plumbline.probes.stats.pmi.pmi`.
    """
    cells = counts + smoothing
    if merged:
        cells[-1] += smoothing * (merged - 1)
    by_group = cells.sum(axis=0)
    total = by_group.sum(axis=0)
    kept = cells[:-1] if merged else cells
    with np.errstate(divide="ignore", invalid="ignore"):
        found: NDArray[np.float64] = np.log(
            kept * total / (kept.sum(axis=1, keepdims=True) * by_group)
        )
    return found


def leading(
    values: NDArray[np.float64], classes: NDArray[np.int64], size: int, number: int
) -> NDArray[np.float64]:
    """Return how the ``size`` words with the largest deviations are divided into classes.

    Parameters
    ----------
    values : (words, groups, replicates) array
        Of equal deviations the word that stands first is taken.
    classes : (words,) array
        From 0 to ``number`` - 1.

    Returns
    -------
    (groups, number, replicates) array
        Shares; they sum to 1 over the classes.

    Examples
    --------
    >>> values = np.array([3.0, 2.0, 1.0])[:, None, None]
    >>> leading(values, np.array([0, 1, 1]), 2, 3).ravel().tolist()
    [0.5, 0.5, 0.0]
    """
    if not 1 <= size <= len(values):
        raise ValueError(f"{size} largest of {len(values)}")
    order = np.argsort(-np.round(values, DIGITS), axis=0, kind="stable")[:size]
    chosen = classes[order]
    return np.stack([(chosen == c).mean(axis=0) for c in range(number)], axis=1)


def rank_correlations(x: NDArray[np.float64], y: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return Spearman's correlation over words, for each replicate.

    Parameters
    ----------
    x, y : (words, replicates) arrays

    Returns
    -------
    (replicates,) array
        nan where one of them does not vary.
    """
    ranks = [rankdata(np.round(values, DIGITS), axis=0) for values in (x, y)]
    a, b = (part - part.mean(axis=0) for part in ranks)
    with np.errstate(invalid="ignore", divide="ignore"):
        found: NDArray[np.float64] = (a * b).sum(axis=0) / np.sqrt(
            (a**2).sum(axis=0) * (b**2).sum(axis=0)
        )
    return found


def permutation_p(seen: float, null: NDArray[np.float64]) -> float:
    """Return the two-sided p-value: the share of outcomes as far from 0 as the one seen, or more.

    The one seen is one of them, so that p is never 0 (Phipson and Smyth 2010, equation 2).

    Examples
    --------
    >>> permutation_p(0.2, np.array([0.1, -0.2, 0.0]))
    0.5
    """
    return float((1 + (np.abs(null) >= abs(seen) - 1e-9).sum()) / (1 + len(null)))
