"""Pearson correlations of what is measured on the counterfactuals of several texts.

Pooled over everything, or within each text; with texts as clusters that are resampled.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Integers = NDArray[np.int64]

LEAST = 4  # rows of a cluster: Fisher's z of fewer has no variance
NEAREST = 1 - 1e-12  # correlations nearer to 1 count as this far from 0: their z is infinite
FLAT = 1e-12  # variances below are rounding


class Moments(NamedTuple):
    """Sums over the rows of each cluster and group: of 1, x, y, xx, yy, xy."""

    sums: Floats  # (clusters, groups, 6)


def moments(
    x: Floats, y: Floats, clusters: Integers, groups: Integers, shape: tuple[int, int]
) -> Moments:
    """Add up what correlations need.

    Parameters
    ----------
    x, y : (rows,) arrays
    clusters, groups : (rows,) arrays
        Source text, and for instance country, of each row.
    shape
        How many clusters and groups there are.
    """
    x, y = x - x.mean(), y - y.mean()  # or squares of large numbers would swallow the differences
    place = clusters * shape[1] + groups
    each = (np.ones(len(x)), x, y, x * x, y * y, x * y)
    total = shape[0] * shape[1]
    sums = np.stack([np.bincount(place, weights=w, minlength=total) for w in each], axis=-1)
    return Moments(sums.astype(np.float64).reshape(*shape, 6))


def pooled(found: Moments, weights: NDArray[np.floating] | None = None) -> Floats:
    """Correlate over all rows of a group, (groups,), or of each replicate, (replicates, groups).

    nan where x or y does not vary.

    Parameters
    ----------
    weights : (clusters, replicates) array, optional
        How often a cluster is drawn.

    Examples
    --------
    Five texts with S = 0...4, and in each z = -1.5, -.5, .5, 1.5; perplexity 10 S + z and
    probability 2 S - z. Over all texts they rise together; the text taken off, one falls as the
    other rises.

    >>> s, z = (a.ravel() for a in np.meshgrid(np.arange(5.0), [-1.5, -0.5, 0.5, 1.5]))
    >>> where = s.astype(int), np.zeros(20, dtype=int), (5, 1)
    >>> pooled(moments(10 * s + z, 2 * s - z, *where)).round(3).tolist()
    [0.898]
    >>> pooled(moments(10 * s + z - 10 * s, 2 * s - z - 2 * s, *where)).round(3).tolist()
    [-1.0]
    >>> within(moments(10 * s + z, 2 * s - z, *where)).round(3).tolist()
    [-1.0]
    """
    if weights is None:
        return _pearson(found.sums.sum(axis=0))
    drawn = np.asarray(weights, dtype=np.float64).T @ found.sums.reshape(len(found.sums), -1)
    return _pearson(drawn.reshape(-1, *found.sums.shape[1:]))


def scores(found: Moments) -> tuple[Floats, Floats]:
    """Return Fisher's z of the correlation within each cluster and group, and its weight n - 3.

    Both (clusters, groups); weight and z are 0 where there are fewer than four rows, or x or y
    does not vary. Correlations of 1 or -1 are taken as 1e-12 nearer to 0.
    """
    r = _pearson(found.sums)
    there = ~np.isnan(r) & (found.sums[..., 0] >= LEAST)
    z = np.arctanh(np.where(there, r, 0.0).clip(-NEAREST, NEAREST))
    return z, np.where(there, found.sums[..., 0] - 3, 0.0)


def within(found: Moments, weights: NDArray[np.floating] | None = None) -> Floats:
    """Correlate within each cluster and average by Fisher's z, (groups,), or of each replicate.

    The mean is weighted by n - 3, the inverse of the variance of z.

    References
    ----------
    Fisher (1921), On the probable error of a coefficient of correlation deduced from a small
    sample, Metron 1(4); Silver and Dunlap (1987), J. Applied Psychology 72(1), p. 146-148.
    """
    z, n = scores(found)
    if weights is None:
        above, below = (z * n).sum(axis=0), n.sum(axis=0)
    else:
        drawn = np.asarray(weights, dtype=np.float64).T
        above, below = drawn @ (z * n), drawn @ n
    with np.errstate(divide="ignore", invalid="ignore"):
        result: Floats = np.tanh(np.where(below > 0, above / below, np.nan))
    return result


def _pearson(sums: Floats) -> Floats:
    """Return correlations of sums, (...), of (..., 6)."""
    n, x, y, xx, yy, xy = np.moveaxis(sums, -1, 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        a, b, both = xx - x * x / n, yy - y * y / n, xy - x * y / n
        varies = (n > 1) & (a > FLAT * np.maximum(xx, 1e-300)) & (b > FLAT * np.maximum(yy, 1e-300))
        result: Floats = np.where(varies, both / np.sqrt(np.where(varies, a * b, 1)), np.nan)
    return result.clip(-1, 1)
