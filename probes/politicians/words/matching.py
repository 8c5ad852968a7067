"""Matching two groups on what else they may differ in."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


def coarsened(values: NDArray[np.float64], bins: int) -> NDArray[np.int64]:
    """Return the bin of each value, cut at quantiles; equal values are never parted.

    ``values``, (n,) array: nan is a bin of its own, -1.

    Examples
    --------
    >>> coarsened(np.array([1.0, 1, 1, 2, 3, 4]), 2).tolist()
    [0, 0, 0, 1, 1, 1]
    """
    unknown = np.isnan(values)
    if unknown.all():
        return np.full(len(values), -1)
    edges = np.unique(np.quantile(values[~unknown], np.arange(1, bins) / bins, method="lower"))
    return np.where(unknown, -1, np.searchsorted(edges, values))


def matched(
    strata: NDArray[np.int64], groups: NDArray[np.int64], pair: tuple[int, int], seed: int
) -> NDArray[np.bool_]:
    """Return which units to keep so that two groups are equally many in every stratum.

    Coarsened exact matching, one to one: in each stratum as many of either group as the smaller one
    has, drawn at random; units of other groups are kept.

    Iacus, King and Porro (2012), Causal inference without balance checking: coarsened exact
    matching, Political Analysis 20(1), p. 1-24.

    ``strata``, (n, k) array: units with equal rows are alike.
    ``groups``: (n,) array.

    Examples
    --------
    >>> matched(np.array([[0], [0], [0], [1]]), np.array([0, 0, 1, 1]), (0, 1), 1).sum()
    np.int64(2)
    """
    rng = np.random.default_rng(seed)
    keep = ~np.isin(groups, pair)
    distinct, stratum = np.unique(strata, axis=0, return_inverse=True)
    shuffled = rng.permutation(len(groups))
    for s in range(len(distinct)):
        own = shuffled[stratum[shuffled] == s]
        one, other = (own[groups[own] == g] for g in pair)
        size = min(len(one), len(other))
        keep[[*one[:size], *other[:size]]] = True
    return keep
