"""Shares of classes among the words that deviate most towards one group or another."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from plumbline.probes.stats.intervals import newcombe, wilson
from plumbline.probes.stats.tests import permutation_test

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from plumbline.probes.stats.estimate import Estimate

COUNTINGS = ("best", "fractional", "each")


class Comparison(NamedTuple):
    """One class: its share in either list, their difference, and the test of it."""

    first: Estimate
    second: Estimate
    difference: Estimate
    p: float
    exact: bool


def largest(values: NDArray[np.float64], number: int) -> NDArray[np.int64]:
    """Return where the largest values above 0 are, largest first.

    Parameters
    ----------
    values : (words,) array
        Deviations towards a group. A word at or below 0, or without a value (nan), does not go
        with the group and is never among them, so that there may be fewer than ``number``.
        Minus infinity is below 0. Equal values keep their order: sort the words before.
    """
    values = np.asarray(values, dtype=np.float64)
    above = np.flatnonzero(values > 0)
    order = np.argsort(-values[above], kind="stable")
    return above[order][:number]


def shares(
    values: NDArray[np.floating[Any]], parts: NDArray[np.float64], number: int
) -> NDArray[np.float64]:
    """Return the share of each class among the largest values above 0, in many replicates.

    Parameters
    ----------
    values : (replicates, words) array
        As in :func:`largest`, which chooses the words of each replicate.
    parts : (words, classes) array
        From :func:`membership`.

    Returns
    -------
    (replicates, classes) array
        0 in a replicate without a value above 0.

    Examples
    --------
    >>> shares(np.array([[3.0, 2.0, 1.0], [-1.0, 2.0, -1.0]]), np.eye(3), 2).tolist()
    [[0.5, 0.5, 0.0], [0.0, 1.0, 0.0]]
    """
    order = np.argsort(-values, axis=1, kind="stable")[:, :number]  # nan goes last
    taken = np.take_along_axis(values, order, axis=1) > 0
    found = np.zeros((len(values), parts.shape[1]))
    for rank in range(order.shape[1]):
        found += taken[:, rank, None] * parts[order[:, rank]]
    result: NDArray[np.float64] = found / np.maximum(taken.sum(axis=1, keepdims=True), 1)
    return result


def alone(values: NDArray[np.floating[Any]], lemmas: Sequence[str]) -> NDArray[np.floating[Any]]:
    """Blank (nan), in each replicate, all forms of a lemma but the first of the largest value.

    Parameters
    ----------
    values : (replicates, words) array
    lemmas
        Of the words.

    Examples
    --------
    >>> alone(np.array([[1.0, 3.0, 2.0]]), ["say", "run", "say"]).tolist()
    [[nan, 3.0, 2.0]]
    """
    forms: dict[str, list[int]] = {}
    for place, lemma in enumerate(lemmas):
        forms.setdefault(lemma, []).append(place)
    found = values.copy()
    for places in forms.values():
        if len(places) > 1:
            own = values[:, places]
            best = np.where(np.isnan(own), -np.inf, own).argmax(axis=1)
            others = np.arange(len(places)) != best[:, None]
            found[:, places] = np.where(others, np.nan, own)
    return found


def membership(
    weights: NDArray[np.float64], best: NDArray[np.bool_], counting: str
) -> NDArray[np.float64]:
    """Return how much of each word is counted in each class, an array (words, classes).

    Parameters
    ----------
    weights : (words, classes) array
        Share of a word in each class; a row sums to 1.
    best : (words, classes) array
        The classes that fit a word best: one, or several that fit as well as each other.
    counting
        ``best``: a word is in its best class, in equal parts where there are several;
        ``fractional``: a word is in every class by its weight; ``each``: a word is in every class
        where it has any weight, once in each, so that shares may sum to more than 1.

    Raises
    ------
    ValueError
        If a word has no class, or the counting is none of these.
    """
    weights, best = np.asarray(weights, dtype=np.float64), np.asarray(best, dtype=bool)
    if not (best.any(axis=1).all() and (weights > 0).any(axis=1).all()):
        raise ValueError("a word has no class")
    if counting == "best":
        parts: NDArray[np.float64] = best / best.sum(axis=1, keepdims=True)
        return parts
    if counting == "fractional":
        return weights
    if counting == "each":
        return (weights > 0).astype(np.float64)
    raise ValueError(f"{counting!r} is none of {', '.join(COUNTINGS)}")


def compare(
    first: NDArray[np.float64],
    second: NDArray[np.float64],
    replicates: int,
    seed: int,
    confidence: float = 0.95,
) -> list[Comparison]:
    """Compare the share of every class in two lists of words.

    The unit is the word: the intervals and the test are those of words drawn at random for each
    list, and know nothing of how uncertain it is which words are in the lists. The null of the
    test is that the words of both lists are one population, relabelled. A word in both lists is
    in both groups, which adds nothing to the difference: it makes the test a little cautious.

    Parameters
    ----------
    first, second : (n, classes) and (m, classes) arrays
        Membership of the words of either list, see :func:`membership`.
    replicates, seed
        Of the permutation test where it is not exact.

    Returns
    -------
    list of Comparison
        One a class. Shares have Wilson's interval, their difference (first minus second) has
        Newcombe's; with words in parts they are too wide rather than too narrow. p-values are
        raw: adjust them over the family.

    References
    ----------
    Stańczak et al. (2023), PLoS ONE 18(11): e0277640, the analysis of supersenses; Hoyle et al.
    (2019), Unsupervised discovery of gendered language through latent-variable modeling, ACL.
    """
    test = permutation_test(first, second, replicates, seed)
    size = (len(first), len(second))
    found = []
    for c, (one, two) in enumerate(zip(first.sum(axis=0), second.sum(axis=0), strict=True)):
        # sums of parts such as thirds may pass the whole by a rounding error
        hits = (min(float(one), size[0]), min(float(two), size[1]))
        found.append(
            Comparison(
                wilson(hits[0], size[0], confidence),
                wilson(hits[1], size[1], confidence),
                newcombe(hits, size, confidence),
                float(test.p[c]),
                bool(test.exact[c]),
            )
        )
    return found
