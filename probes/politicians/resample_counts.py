"""Counting the lists of ``associations`` again, with bootstrap weights or permuted labels of names.

What is drawn for a name follows from the name alone (``stats.bootstrap``), so that
models, and parts of the people, are resampled together. The labels of a permutation follow from
the names that take part in it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.sparse import csr_array

from plumbline.probes.politicians.word_counts import cells
from plumbline.probes.stats import bootstrap
from plumbline.probes.stats.pmi import weighted

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from plumbline.probes.politicians.word_counts import Counts, Lists, People

PERSONS = 1024  # whose weights are held at once
LABELS = 64  # permutations whose numbers are held at once for all names


class Draws(NamedTuple):
    """Bootstrap replicates of counts, (words, groups, replicates), resampled by distinct name.

    The words are the chosen ones and, if there are others, all others together in a last row.
    """

    ordinary: NDArray[np.float64]  # with Poisson weights
    bayesian: NDArray[np.float64]  # with exponential weights
    merged: int  # how many words the last row stands for; 0: there are no others


def draw(
    source: Lists,
    folk: People,
    counts: Counts,
    chosen: NDArray[np.intp],
    replicates: int,
    seed: int,
) -> Draws:
    """Count lists again with bootstrap weights for distinct names.

    Parameters
    ----------
    counts
        What :func:`count` found in the same lists.
    chosen : (words,) array
        Indices of the words that are told apart.
    """
    column = {counts.words[w]: i for i, w in enumerate(chosen)}
    others = len(chosen)
    merged = len(counts.words) - others
    groups = np.searchsorted(counts.genders, folk.genders)
    shape = (others + (merged > 0), len(counts.genders), replicates)
    ordinary, bayesian = np.zeros(shape), np.zeros(shape)
    for part in cells(source, folk):
        columns = np.array([column.get(f, others) for f in part.forms], dtype=np.int64)[part.form]
        persons, row = np.unique(part.person, return_inverse=True)
        order = np.argsort(row, kind="stable")
        row, columns = row[order], columns[order]
        for start in range(0, len(persons), PERSONS):
            some = persons[start : start + PERSONS]
            first, last = np.searchsorted(row, (start, start + len(some)))
            # two rows of one person may be merged into one cell: csr_array adds them up
            at = (row[first:last] - start, columns[first:last])
            table = csr_array((np.ones(last - first), at), shape=(len(some), shape[0]))
            names, of = np.unique(folk.names[some], return_inverse=True)
            uniform = bootstrap.bits(names, replicates, seed)
            weights = bootstrap.poisson(uniform)[of]
            ordinary += weighted(table, groups[some], shape[1], weights)
            weights = bootstrap.exponential(uniform)[of]
            bayesian += weighted(table, groups[some], shape[1], weights)
    bayesian /= bootstrap.GRAIN
    return Draws(ordinary, bayesian, merged)


def permute(
    source: Lists,
    folk: People,
    counts: Counts,
    chosen: NDArray[np.intp],
    genders: tuple[int, int],
    permutations: int,
    seed: int,
) -> NDArray[np.float64]:
    """Count lists of distinct names with the labels of two genders permuted over the names.

    Everybody else keeps the label. As many names have each label as before.

    Parameters
    ----------
    genders
        Codes of the two; somebody has each.

    Returns
    -------
    (words, groups, permutations) array
        Of the chosen words and, if there are others, all others together in a last row.
    """
    column = {counts.words[w]: i for i, w in enumerate(chosen)}
    others = len(chosen)
    rows = others + (len(counts.words) > others)
    one, other = np.searchsorted(counts.genders, genders)
    free = folk.first & np.isin(folk.genders, genders)
    units = folk.names ^ ((folk.genders.astype(np.uint64) + 1) << np.uint64(61))
    limits = _limits(
        units[free], int((free & (folk.genders == genders[0])).sum()), permutations, seed
    )
    found = np.zeros((rows, len(counts.genders), permutations))
    for part in cells(source, folk):
        columns = np.array([column.get(f, others) for f in part.forms], dtype=np.int64)[part.form]
        kept = folk.first[part.person]
        persons, row = np.unique(part.person[kept], return_inverse=True)
        columns = columns[kept]
        for start in range(0, len(persons), PERSONS):
            some = persons[start : start + PERSONS]
            here = (row >= start) & (row < start + len(some))
            at = (row[here] - start, columns[here])
            table = csr_array((np.ones(int(here.sum())), at), shape=(len(some), rows))
            groups = np.searchsorted(counts.genders, folk.genders[some])
            uniform = _uniform(units[some], permutations, seed)
            first = ((uniform <= limits) & free[some, None]).astype(np.float32)
            second = ((uniform > limits) & free[some, None]).astype(np.float32)
            none = np.zeros(len(some), dtype=np.int64)
            found[:, one] += weighted(table, none, 1, first)[:, 0]
            found[:, other] += weighted(table, none, 1, second)[:, 0]
            fixed = np.repeat(~free[some, None], permutations, axis=1).astype(np.float32)
            found += weighted(table, groups, found.shape[1], fixed)
    return found


def _uniform(units: NDArray[np.uint64], draws: int, seed: int) -> NDArray[np.uint64]:
    """Return numbers that order the units anew in each permutation, other ones than for weights."""
    parts = [
        bootstrap.bits(units, min(LABELS, draws - start), seed + ((start // LABELS + 1) << 32))
        for start in range(0, draws, LABELS)
    ]
    return np.concatenate(parts, axis=1)


def _limits(
    units: NDArray[np.uint64], size: int, permutations: int, seed: int
) -> NDArray[np.uint64]:
    """Return the largest number that still belongs to the first group, for each permutation."""
    found = []
    for start in range(0, permutations, LABELS):
        number = min(LABELS, permutations - start)
        drawn = bootstrap.bits(units, number, seed + ((start // LABELS + 1) << 32))
        found.append(np.partition(drawn, size - 1, axis=0)[size - 1])
    return np.concatenate(found)
