"""Recall of known attributes in ranked lists, with two baselines: random order, other groups.

A group has a list of candidates for each of its queries, and attributes that are sought in them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from plumbline.probes.stats.bootstrap import percentiles

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Integers = NDArray[np.int64]


class Curve(NamedTuple):
    """Recall at 1, 2, ... and its interval, each (depth,)."""

    value: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]


class Query(NamedTuple):
    """One list: its candidates, and where the attributes sought in it stand."""

    candidates: Integers  # (candidates,) numbers that name them; the order is of no account
    sought: Sequence[Integers]  # for each attribute its positions in candidates; empty: not there


class Outcomes(NamedTuple):
    """Hits under a null, at some ranks."""

    expected: NDArray[np.float64]  # (ranks,)
    drawn: NDArray[np.float64]  # (draws, ranks)


def hits(ranks: Integers, groups: Integers, size: int, depth: int) -> Integers:
    """Count, for each group, its attributes at ranks up to 1, 2, ..., ``depth``.

    Parameters
    ----------
    ranks : (attributes,) array
        Rank of each attribute in the list of its query, 1 the first; 0: not in the list.
    groups : (attributes,) array
        Group of each, below ``size``.

    Returns
    -------
    (size, depth) array

    Examples
    --------
    >>> hits(np.array([1, 3, 0]), np.array([0, 0, 1]), 2, 3).tolist()
    [[1, 1, 2], [0, 0, 0]]
    """
    found = np.zeros((size, depth + 1), dtype=np.int64)
    inside = (ranks > 0) & (ranks <= depth)
    np.add.at(found, (groups[inside], ranks[inside]), 1)
    return found[:, 1:].cumsum(axis=1)


def chance(listed: Integers, lengths: Integers, depth: int) -> NDArray[np.float64]:
    """Return the exact chance that each attribute is a hit when its list is in random order.

    The same candidates, the ranking alone is random: an attribute that is not in the list is never
    hit, so that this tells how much of a recall is due to the order.

    Parameters
    ----------
    listed : (attributes,) array
        How many candidates of the list are the attribute: mostly 0 or 1, 2 where two tokens
        are one word.
    lengths : (attributes,) array
        Candidates in the list.

    Returns
    -------
    (attributes, depth) array
        min(k, length) / length where it is listed once: the mean of a hypergeometric variable.

    Examples
    --------
    >>> chance(np.array([1, 0, 2]), np.array([4, 4, 4]), 2).round(4).tolist()
    [[0.25, 0.5], [0.0, 0.0], [0.5, 0.8333]]
    """
    first = np.arange(1, depth + 1)
    missed = np.ones((len(listed), depth))
    for i in range(int(listed.max(initial=0))):
        left = np.clip(lengths[:, None] - first - i, 0, None) / (lengths[:, None] - i).clip(1)
        missed *= np.where(listed[:, None] > i, left, 1.0)
    found: NDArray[np.float64] = 1 - missed
    return found


def curve(
    counts: Integers, sizes: Integers, weights: NDArray[np.float32], confidence: float = 0.95
) -> Curve:
    """Estimate recall over all attributes of some groups, with intervals.

    Parameters
    ----------
    counts : (groups, depth) array
        From :func:`hits`.
    sizes : (groups,) array
        Attributes of each group, at least one in all.
    weights : (groups, replicates) array
        How often a group is in each bootstrap replicate. The cluster is the group, with all its
        templates and attributes; limits are percentiles. With few groups they are too narrow.
    """
    with np.errstate(invalid="ignore"):
        drawn = (counts.T.astype(np.float64) @ weights) / (sizes @ weights)
    limits = percentiles(drawn, confidence)
    return Curve(counts.sum(axis=0) / sizes.sum(), limits.low, limits.high)


def reordered(
    groups: Sequence[Sequence[Query]], ranks: Sequence[int], draws: int, seed: int
) -> NDArray[np.float64]:
    """Draw the hits of each group with its candidates in random order.

    All templates of a group share one random order of the candidates that any of them has: lists
    of one group resemble each other, and orders drawn for each alone would vary too little. The
    mean is that of :func:`chance` in any case.

    Returns
    -------
    (groups, draws, ranks) array
        Attributes at or above each of ``ranks``.
    """
    found = np.zeros((len(groups), draws, len(ranks)))
    for g, queries in enumerate(groups):
        if not any(len(where) for query in queries for where in query.sought):
            continue
        every = np.unique(np.concatenate([query.candidates for query in queries]))
        order = np.random.default_rng([seed, g]).random((len(every), draws), dtype=np.float32)
        for query in queries:
            here = order[np.searchsorted(every, query.candidates)]
            for where in query.sought:
                if len(where):
                    rank = (here < here[where].min(axis=0)).sum(axis=0) + 1
                    found[g] += rank[:, None] <= np.array(ranks)
    return found


def exchanged(
    table: NDArray[np.float64], own: Integers, permutations: int, seed: int | Sequence[int]
) -> Outcomes:
    """Return the hits of all groups together when each is given the lists of another group.

    The null: lists say nothing about the group that they were asked for, whatever words are common
    in all of them. The unit that is permuted is the group, with all its lists.

    Parameters
    ----------
    table : (groups, lists, ranks) array
        Hits of a group's attributes in each group's lists of the same templates; there may be
        lists of groups that have no attributes.
    own : (groups,) array
        Which lists are the group's own, all different.
    seed
        Outcomes that are added up need seeds of their own, such as (seed, number of the part):
        with one seed, parts of one size get the same permutations, and their sum varies too much.

    Returns
    -------
    Outcomes
        The exact mean over all ways to give out the lists, and ``permutations`` of the sums.
    """
    size, lists, _ = table.shape
    if len(set(own.tolist())) != size:
        raise ValueError("two groups with the same lists")
    rng = np.random.default_rng(seed)
    orders = rng.permuted(np.tile(np.arange(lists), (permutations, 1)), axis=1)[:, own]
    drawn = table[np.arange(size), orders].sum(axis=1)
    return Outcomes(table.mean(axis=1).sum(axis=0), drawn)
