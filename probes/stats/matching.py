"""Matching two groups on what else they may differ in."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


def coarsened(values: NDArray[np.float64], bins: int) -> NDArray[np.int64]:
    """Return the bin of each value, cut at quantiles; equal values are never parted.

    Parameters
    ----------
    values : (n,) array
        nan is a bin of its own, -1.

    Examples
    --------
    >>> coarsened(np.array([1.0, 1, 1, 2, 3, 4]), 2).tolist()
    [0, 0, 0, 1, 1, 1]
    """
    values = np.asarray(values, dtype=np.float64)
    known = values[~np.isnan(values)]
    if not len(known):
        return np.full(len(values), -1)
    edges = np.unique(np.quantile(known, np.arange(1, bins) / bins, method="lower"))
    found = np.searchsorted(edges, values, side="left")
    return np.where(np.isnan(values), -1, found)


def matched(
    strata: NDArray[np.int64], groups: NDArray[np.int64], pair: tuple[int, int], seed: int
) -> NDArray[np.bool_]:
    """Return which units to keep so that two groups are equally many in every stratum.

    Coarsened exact matching, one to one: in each stratum as many of either group as the smaller one
    has, drawn at random; units of other groups are kept.

    Parameters
    ----------
    strata : (n, k) array
        Units with equal rows are alike.
    groups : (n,) array

    References
    ----------
    Iacus, King and Porro (2012), Causal inference without balance checking: coarsened exact
    matching, Political Analysis 20(1), p. 1-24.

    Examples
    --------
    >>> matched(np.array([[0], [0], [0], [1]]), np.array([0, 0, 1, 1]), (0, 1), 1).sum()
    np.int64(2)
    """
    rng = np.random.default_rng(seed)
    keep = ~np.isin(groups, pair)
    _, stratum = np.unique(strata, axis=0, return_inverse=True)
    shuffled = rng.permutation(len(groups))
    for s in range(int(stratum.max()) + 1 if len(stratum) else 0):
        members = [shuffled[(stratum == s)[shuffled] & (groups == g)[shuffled]] for g in pair]
        size = min(len(m) for m in members)
        for m in members:
            keep[m[:size]] = True
    return keep
