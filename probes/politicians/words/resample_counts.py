"""Counting lists again, with bootstrap weights or permuted labels of names.

What is drawn for a name follows from the name alone (``stats.bootstrap``), so that models, and
parts of the people, are resampled together. The labels of a permutation follow from the names that
take part in it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.sparse import csr_array, hstack

from plumbline.probes.stats import bootstrap
from plumbline.probes.stats.pmi import weighted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from plumbline.probes.politicians.words.word_counts import Counts

    Array = NDArray[np.float64]
    Integers = NDArray[np.int64]

PERSONS = 1024  # whose weights are held at once
LABELS = 64  # permutations whose numbers are held at once for all names


class Draws(NamedTuple):
    """Bootstrap replicates of counts, (words, groups, replicates), resampled by distinct name.

    The words are the chosen ones and, if there are others, all others together in a last row.
    """

    ordinary: Array  # with Poisson weights
    bayesian: Array  # with exponential weights; of people, or of distinct names
    merged: int  # how many words the last row stands for; 0: there are no others


def _lists(counts: Counts, chosen: NDArray[np.intp]) -> Iterator[tuple[Integers, csr_array]]:
    """Yield people, ``PERSONS`` at most, and their lists, (people, words).

    The words are the chosen ones and, if there are others, all others together in a last column.
    """
    table = counts.matrix[:, chosen]
    if len(chosen) < len(counts.words):
        others = counts.matrix.sum(axis=1) - table.sum(axis=1)
        table = hstack([table, csr_array(others[:, None])], format="csr")
    persons = np.flatnonzero(counts.seen)
    for start in range(0, len(persons), PERSONS):
        some = persons[start : start + PERSONS]
        yield some, table[some]


def bootstrap_counts(
    counts: Counts,
    chosen: NDArray[np.intp],
    n_bootstrap: int,
    seed: int,
    *,
    once: bool = False,
) -> Draws:
    """Count lists again with bootstrap weights for distinct names.

    ``once``: whether the Bayesian replicates count each name once for a gender.
    ``chosen``, (words,) array: indices of the words with a row of their own.
    """
    people, others = counts.persons, len(chosen)
    merged = len(counts.words) - others
    groups = np.searchsorted(counts.genders, people.genders)
    shape = (others + (merged > 0), len(counts.genders), n_bootstrap)
    ordinary, bayesian = np.zeros(shape), np.zeros(shape)
    for persons, table in _lists(counts, chosen):
        names, of = np.unique(people.names[persons], return_inverse=True)
        uniform = bootstrap.bits(names, n_bootstrap, seed)
        weights = bootstrap.poisson(uniform)[of]
        ordinary += weighted(table, groups[persons], shape[1], weights)
        weights = bootstrap.exponential(uniform)[of]
        weights *= people.first[persons, None] | (not once)
        bayesian += weighted(table, groups[persons], shape[1], weights)
    bayesian /= bootstrap.GRAIN
    return Draws(ordinary, bayesian, merged)


def permute_counts(
    counts: Counts,
    chosen: NDArray[np.intp],
    genders: tuple[int, int],
    n_permutations: int,
    seed: int,
) -> Array:
    """Count lists of distinct names with the labels of two genders permuted over the names.

    Everybody else keeps the label. As many names have each label as before.

    ``genders``: codes of the two; somebody has each.

    Returns
    -------
    (words, groups, permutations) array
        Of the chosen words and, if there are others, all others together in a last row.
    """
    people, others = counts.persons, len(chosen)
    rows = others + (len(counts.words) > others)
    groups = np.searchsorted(counts.genders, people.genders)
    free = people.first & np.isin(people.genders, genders)
    units = people.names ^ ((people.genders.astype(np.uint64) + 1) << np.uint64(61))
    size = int((free & (people.genders == genders[0])).sum())
    every = _uniform(units[free], n_permutations, seed)
    # the largest number that still belongs to the first gender
    limits = np.concatenate([np.partition(part, size - 1, axis=0)[size - 1] for part in every])
    found = np.zeros((rows, len(counts.genders), n_permutations))
    for persons, table in _lists(counts, chosen):
        kept = people.first[persons]
        some, part, own = persons[kept], table[kept], free[persons[kept], None]
        inside = np.concatenate(list(_uniform(units[some], n_permutations, seed)), axis=1) <= limits
        none = np.zeros(len(some), dtype=np.int64)
        for gender, chosen_here in zip(genders, (inside & own, ~inside & own), strict=True):
            column = np.searchsorted(counts.genders, gender)
            weights = chosen_here.astype(np.float32)
            found[:, column] += weighted(part, none, 1, weights)[:, 0]
        fixed = np.repeat(~own, n_permutations, axis=1).astype(np.float32)
        found += weighted(part, groups[some], found.shape[1], fixed)
    return found


def _uniform(
    units: NDArray[np.uint64], n_permutations: int, seed: int
) -> Iterator[NDArray[np.uint64]]:
    """Yield numbers that order units anew in each permutation, other ones than for weights."""
    for start in range(0, n_permutations, LABELS):
        number = min(LABELS, n_permutations - start)
        yield bootstrap.bits(units, number, seed + ((start // LABELS + 1) << 32))


def permute_names(
    counts: Counts, chosen: NDArray[np.intp], n_permutations: int, seed: int
) -> Array:
    """Count lists with the labels of a name, one for each of its people, dealt to other names.

    Lists follow from the name alone, so that one person's list stands for all of the name.

    Returns
    -------
    (permutations, words, groups) array
    """
    people = counts.persons
    groups = np.searchsorted(counts.genders, people.genders)
    persons = np.flatnonzero(counts.seen)
    _, first, name = np.unique(people.names[persons], return_index=True, return_inverse=True)
    held = np.zeros((len(first), len(counts.genders)))
    np.add.at(held, (name, groups[persons]), 1)
    by_word = counts.matrix[persons[first]][:, chosen].T.tocsr()
    rng = np.random.default_rng(seed)
    return np.stack([by_word @ held[rng.permutation(len(first))] for _ in range(n_permutations)])
