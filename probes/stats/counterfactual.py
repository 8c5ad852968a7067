"""Changes from texts to their counterfactuals: means, percentages, with source texts as clusters.

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
