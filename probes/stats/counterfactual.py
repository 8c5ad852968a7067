"""Changes from texts to their counterfactuals: means, percentages, correlations.

A text has several counterfactuals, which are no independent draws: intervals resample the texts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.sparse import csr_array

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Integers = NDArray[np.int64]

PERCENT = 100.0


class Cells(NamedTuple):
    """Sums over the rows of each cluster and group."""

    sums: Floats  # (clusters, groups, measures)
    counts: Floats  # (clusters, groups)


def gather(values: Floats, clusters: Integers, groups: Integers, shape: tuple[int, int]) -> Cells:
    """Add up the rows of each cluster (a source text) and group (a country).

    Parameters
    ----------
    values : (rows, measures) array
        Such as the class probabilities of a counterfactual minus those of its original.
    clusters, groups : (rows,) arrays
    shape
        How many clusters and groups there are.
    """
    place = clusters * shape[1] + groups
    sums = np.zeros((shape[0] * shape[1], values.shape[1]))
    np.add.at(sums, place, values)
    counts = np.bincount(place, minlength=len(sums)).astype(np.float64)
    return Cells(sums.reshape(*shape, -1), counts.reshape(shape))


def delta(cells: Cells) -> Floats:
    """Return the mean change in points of a hundred, (groups, measures); nan where is no row.

    Barriere and Cifuentes (2024): Delta = 100 mean(P+ - P-) of the counterfactuals minus that of
    the originals, each as often as it has counterfactuals.

    Examples
    --------
    >>> values = np.array([[0.1], [0.3], [-0.2]])
    >>> where = np.array([0, 0, 1]), np.array([0, 0, 0])
    >>> delta(gather(values, *where, (2, 1))).round(2).tolist()
    [[6.67]]
    """
    return _ratio(cells.sums.sum(axis=0), cells.counts.sum(axis=0)[:, None])


def redrawn(cells: Cells, weights: NDArray[np.floating]) -> Floats:
    """Return :func:`delta` of each replicate, (replicates, groups, measures).

    Parameters
    ----------
    weights : (clusters, replicates) array
        How often a cluster is drawn.
    """
    drawn = np.asarray(weights, dtype=np.float64).T
    return _ratio(_times(drawn, cells.sums), _times(drawn, cells.counts)[..., None])


def redrawn_twice(
    values: Floats,
    groups: Integers,
    number: int,
    weights: NDArray[np.floating],
) -> Floats:
    """Return :func:`delta` of each replicate where rows have weights of their own.

    With the product of a weight of the source text and one of the name this is the bootstrap of
    two crossed factors, whose variance is never too small on average.

    Parameters
    ----------
    values : (rows, measures) array
    groups : (rows,) array
        Group of each row, of ``number`` in all.
    weights : (rows, replicates) array

    Returns
    -------
    (replicates, groups, measures) array
        nan where no row of a group was drawn.

    References
    ----------
    Owen (2007), The pigeonhole bootstrap, Annals of Applied Statistics 1(2), p. 386-411.
    """
    rows = len(values)
    pick = csr_array((np.ones(rows), (groups, np.arange(rows))), shape=(number, rows))
    total = pick @ weights
    result = np.empty((weights.shape[1], number, values.shape[1]))
    for m in range(values.shape[1]):
        result[..., m] = _ratio(pick @ (weights * values[:, m : m + 1]), total).T
    return result


def confusion(before: Integers, after: Integers, classes: int) -> Integers:
    """Return how often each class became which, (classes before, classes after).

    Examples
    --------
    >>> confusion(np.array([0, 0, 1]), np.array([0, 1, 1]), 2).tolist()
    [[1, 1], [0, 1]]
    """
    found = np.zeros((classes, classes), dtype=np.int64)
    np.add.at(found, (before, after), 1)
    return found


def percentage_change(matrix: Integers) -> Floats:
    """Return by how much percent each class is predicted more often, (classes,).

    (column sum - row sum) / row sum of the confusion matrix, as the code of Barriere and Cifuentes
    (2024) has it; nan for a class that no original was predicted to be.

    Examples
    --------
    >>> percentage_change(np.array([[3, 1], [0, 4]])).tolist()
    [-25.0, 25.0]
    """
    before, after = matrix.sum(axis=-1), matrix.sum(axis=-2)
    return _ratio((after - before).astype(np.float64), before.astype(np.float64))


def percentages(before: Cells, after: Cells, weights: NDArray[np.floating] | None = None) -> Floats:
    """Return the change of each class in percent, (groups, classes), or of each replicate.

    Parameters
    ----------
    before, after
        Cells whose measures are whether a class is the predicted one.
    weights : (clusters, replicates) array, optional
        Then the result is (replicates, groups, classes).
    """
    if weights is None:
        first, then = before.sums.sum(axis=0), after.sums.sum(axis=0)
    else:
        drawn = np.asarray(weights, dtype=np.float64).T
        first, then = _times(drawn, before.sums), _times(drawn, after.sums)
    return _ratio(then - first, first)


def _ratio(above: Floats, below: Floats) -> Floats:
    """Return 100 times the quotient, nan where nothing is below."""
    with np.errstate(divide="ignore", invalid="ignore"):
        found: Floats = PERCENT * np.where(below == 0, np.nan, above / below)
    return found


def _times(drawn: Floats, cells: Floats) -> Floats:
    """Return sums of cells, (replicates, ...), weighted by cluster."""
    found: Floats = (drawn @ cells.reshape(len(cells), -1)).reshape(-1, *cells.shape[1:])
    return found


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
