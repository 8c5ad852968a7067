"""Changes from texts to their counterfactuals: means, percentages and correlations.

Results are computed for each group (a country), and are nan for a group without data. The
counterfactuals of a text are dependent, so intervals and tests are computed in
:mod:`plumbline.probes.stats.two_way`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.signedinteger[Any]]

LEAST = 4  # minimum rows in a cluster: with fewer, the variance of Fisher's z is undefined
NEAREST = 1 - 1e-12  # largest absolute correlation: z is infinite at 1
FLAT = 1e-12  # smaller variances are rounding errors


class Cells(NamedTuple):
    """Sums over the rows of each cluster and group."""

    sums: Floats  # (clusters, groups, measures)
    counts: Floats  # (clusters, groups)


def gather(values: Floats, clusters: Integers, groups: Integers, shape: tuple[int, int]) -> Cells:
    """Sum the rows of each cluster (a source text) and group (a country).

    Parameters
    ----------
    values : (rows, measures) array
        For example, class probabilities of a counterfactual minus those of its original.
    clusters, groups : (rows,) arrays
    shape
        Number of clusters and number of groups.
    """
    cell = clusters * shape[1] + groups
    columns = [np.bincount(cell, column, shape[0] * shape[1]) for column in values.T]
    counts = np.bincount(cell, minlength=shape[0] * shape[1]).astype(np.float64)
    sums = np.stack(columns, axis=-1).astype(np.float64)
    return Cells(sums.reshape(*shape, -1), counts.reshape(shape))


def delta(cells: Cells) -> Floats:
    """Return the mean change in percentage points, of shape (groups, measures).

    Barriere and Cifuentes (2024): Delta = 100 mean(P+ - P-) over counterfactuals minus that over
    originals, each original weighted by its number of counterfactuals.

    Examples
    --------
    >>> values = np.array([[0.1], [0.3], [-0.2]])
    >>> where = np.array([0, 0, 1]), np.array([0, 0, 0])
    >>> delta(gather(values, *where, (2, 1))).round(2).tolist()
    [[6.67]]
    """
    return 100 * _ratio(cells.sums.sum(axis=0), cells.counts.sum(axis=0)[:, None])


def percentages(before: Cells, after: Cells) -> Floats:
    """Return the percentage change of each class's count, of shape (groups, classes).

    The change is 100 (after - before) / before, computed from numbers of texts as in the code of
    Barriere and Cifuentes (2024); it is nan for a class that is not predicted for any original.

    Parameters
    ----------
    before, after
        Cells in which each measure is an indicator of one predicted class.
    """
    first, second = before.sums.sum(axis=0), after.sums.sum(axis=0)
    return 100 * _ratio(second - first, first)


def moments(
    x: Floats, y: Floats, clusters: Integers, groups: Integers, shape: tuple[int, int]
) -> Floats:
    """Return sums over rows of 1, x, y, xx, yy and xy, of shape (clusters, groups, 6).

    ``x`` and ``y`` are (rows,) arrays; the other parameters are those of :func:`gather`.
    """
    x, y = x - x.mean(), y - y.mean()  # centring prevents cancellation in sums of squares
    products = np.stack([np.ones_like(x), x, y, x * x, y * y, x * y], axis=1)
    return gather(products, clusters, groups, shape).sums


def pooled(sums: Floats) -> Floats:
    """Return the correlation over the rows of each group; nan if x or y is constant.

    Examples
    --------
    Five texts with S = 0...4 have four rows each, with z = -1.5, -.5, .5 and 1.5. The perplexity is
    10 S + z, the probability 2 S - z; r is positive over all texts, and negative within each.

    >>> s, z = (a.ravel() for a in np.meshgrid(np.arange(5.0), [-1.5, -0.5, 0.5, 1.5]))
    >>> both = moments(10 * s + z, 2 * s - z, s.astype(int), np.zeros(20, dtype=int), (5, 1))
    >>> pooled(both).round(3).tolist(), np.tanh(scores(both)[0]).round(3).T.tolist()
    ([0.898], [[-1.0, -1.0, -1.0, -1.0, -1.0]])
    """
    return _pearson(sums.sum(axis=0))


def scores(sums: Floats) -> tuple[Floats, Floats]:
    """Return Fisher's z of the correlation in each cluster and group, and its weight n - 3.

    Both have shape (clusters, groups) and are 0 where there are fewer than four rows, or x or y is
    constant. Correlations of 1 or -1 are moved 1e-12 towards 0. The weight for averaging z is the
    inverse of its variance.

    Fisher (1921), On the probable error of a coefficient of correlation deduced from a small
    sample, Metron 1(4); Silver and Dunlap (1987), J. Applied Psychology 72(1), p. 146-148.
    """
    r = _pearson(sums)
    defined = ~np.isnan(r) & (sums[..., 0] >= LEAST)
    z = np.arctanh(np.where(defined, r, 0.0).clip(-NEAREST, NEAREST))
    return z, np.where(defined, sums[..., 0] - 3, 0.0)


def _ratio(above: Floats, below: Floats) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(below == 0, np.nan, above / below)


def _pearson(sums: Floats) -> Floats:
    """Return correlations of shape (...) from sums of shape (..., 6), see :func:`moments`."""
    n, x, y, xx, yy, xy = np.moveaxis(sums, -1, 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        a, b, ab = xx - x * x / n, yy - y * y / n, xy - x * y / n
        varies = (n > 1) & (a > FLAT * np.maximum(xx, 1e-300)) & (b > FLAT * np.maximum(yy, 1e-300))
        result: Floats = np.where(varies, ab / np.sqrt(np.where(varies, a * b, 1)), np.nan)
    return result.clip(-1, 1)
