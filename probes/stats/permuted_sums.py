"""Permutation test of a sum over a group, where units have whole numbers and not only 0 or 1."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from plumbline.probes.stats.pmi import permutation_p

if TYPE_CHECKING:
    from numpy.typing import NDArray


def permuted_sums_p(
    times: NDArray[np.int64],
    sums: NDArray[np.int64],
    sizes: NDArray[np.int64],
    permutations: int,
    seed: int,
) -> NDArray[np.float64]:
    """Two-sided p-values under permutation of the group labels over the units.

    A unit (a name) has a word in 0, 1, 2, ... lists, one of each model; the statistic is the sum
    over the units of a group. Permuting labels moves all lists of a unit together: how many units
    with 0, 1, 2, ... lists fall into a group is multivariate hypergeometric, from which
    ``permutations`` outcomes are drawn. The p-value is the share of outcomes, the one seen
    included, at least as far from the mean as the one seen; it is valid for any number of them. If
    no unit has more than one list it is :func:`plumbline.probes.stats.pmi.permutation_p`, exact.

    Parameters
    ----------
    times : (words, m + 1) array
        How many units have the word in 0, 1, ... m lists.
    sums : (words, groups) array
        Lists of a group's units that have the word.
    sizes : (groups,) array
        Units in each group.

    References
    ----------
    Phipson and Smyth (2010), Stat. Appl. Genet. Mol. Biol. 9(1), equation 2.
    """
    if not times[:, 2:].any():
        return permutation_p(sums, sizes)
    rng = np.random.default_rng(seed)
    number = np.arange(times.shape[1])
    result = np.ones(sums.shape)
    for w, units in enumerate(times):
        there = np.flatnonzero(units)
        for g, size in enumerate(sizes):
            drawn = rng.multivariate_hypergeometric(
                units[there], int(size), permutations, method="marginals"
            )
            # whole numbers, the number of units times the distance: nothing is lost to rounding
            middle = int(size) * int(units @ number)
            total = int(units.sum())
            far = np.abs(drawn @ number[there] * total - middle)
            seen = abs(int(sums[w, g]) * total - middle)
            result[w, g] = (1 + int((far >= seen).sum())) / (permutations + 1)
    return result
