"""Counting the lists of ``associations`` again, with bootstrap weights or permuted labels of names.

What is drawn for a name follows from the name alone (``stats.bootstrap``), so that
models, and parts of the people, are resampled together. The labels of a permutation follow from
the names that take part in it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.sparse import csr_array

from plumbline.probes.politicians import word_counts
from plumbline.probes.politicians.word_counts import Counts, Lists, People, cells
from plumbline.probes.stats import bootstrap
from plumbline.probes.stats.pmi import weighted

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

PERSONS = 1024  # whose weights are held at once
LABELS = 64  # permutations whose numbers are held at once for all names


class Draws(NamedTuple):
    """Bootstrap replicates of counts, (words, groups, replicates), resampled by distinct name.

    The words are the chosen ones and, if there are others, all others together in a last row.
    """

    ordinary: Array  # with Poisson weights
    bayesian: Array  # with exponential weights
    merged: int  # how many words the last row stands for; 0: there are no others


class GenderCounts(NamedTuple):
    """Counts of words as seen, with names weighted anew, and with labels permuted.

    Of one language and part of speech; the genders are those asked for that somebody has.
    """

    words: list[str]
    lemmas: list[str]
    genders: list[int]  # codes
    people: NDArray[np.int64]  # (genders,)
    names: int
    seen: Array  # (words, genders): lists that have a word, of people
    drawn: Array  # (replicates, words, genders): the same in bootstrap replicates
    permuted: Array  # (permutations, words, genders): the same with labels permuted


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
    code = counts.code(chosen)
    others = len(chosen)
    merged = len(counts.words) - others
    groups = np.searchsorted(counts.genders, folk.genders)
    shape = (others + (merged > 0), len(counts.genders), replicates)
    ordinary, bayesian = np.zeros(shape), np.zeros(shape)
    for part in cells(source, folk):
        columns = part.columns(code, others)
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
) -> Array:
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
    code = counts.code(chosen)
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
        columns = part.columns(code, others)
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


def by_gender(
    source: Lists,
    folk: People,
    genders: list[int],
    min_count: int,
    replicates: int,
    permutations: int,
    seed: int,
) -> GenderCounts:
    """Count the words that are in at least ``min_count`` lists.

    Replicates are the Bayesian bootstrap's, by distinct name. Permutations deal the labels of a
    name, with as many people as it has, to the names anew.

    Parameters
    ----------
    genders
        Codes; other people are left out.
    """
    wanted = np.isin(folk.genders, genders)
    folk = People(folk.items[wanted], folk.genders[wanted], folk.names[wanted], folk.first[wanted])
    found = word_counts.count(source, folk)
    chosen = found.common(min_count)
    draws = draw(source, folk, found, chosen, replicates, seed).bayesian[: len(chosen)]
    return GenderCounts(
        [found.words[w] for w in chosen],
        [found.lemmas[w] for w in chosen],
        found.genders.tolist(),
        found.people,
        found.clusters,
        found.lists[chosen].astype(np.float64),
        np.ascontiguousarray(draws.transpose(2, 0, 1)),
        _permuted(source, folk, found, chosen, permutations, seed),
    )


def _permuted(
    source: Lists,
    folk: People,
    counts: Counts,
    chosen: NDArray[np.intp],
    permutations: int,
    seed: int,
) -> Array:
    """Return counts with labels permuted, (permutations, words, genders).

    Lists follow from the name alone, so that of a name one person's list stands for all.
    """
    groups = np.searchsorted(counts.genders, folk.genders)
    seen = np.zeros(len(folk.items), dtype=bool)
    for part in cells(source, folk):
        seen[part.person] = True
    persons = np.flatnonzero(seen)
    _, first, of = np.unique(folk.names[persons], return_index=True, return_inverse=True)
    held = np.zeros((len(first), len(counts.genders)))
    np.add.at(held, (of, groups[persons]), 1)
    name_of = np.full(len(folk.items), -1)
    name_of[persons[first]] = np.arange(len(first))
    rng = np.random.default_rng(seed)
    dealt = np.array([rng.permutation(len(first)) for _ in range(permutations)])
    code = counts.code(chosen)
    out = np.zeros((permutations, len(chosen), len(counts.genders)))
    for part in cells(source, folk):
        columns = part.columns(code, -1)
        rows = name_of[part.person]
        kept = (rows >= 0) & (columns >= 0)
        names, at = np.unique(rows[kept], return_inverse=True)
        shape = (len(chosen), len(names))
        table = csr_array((np.ones(len(at)), (columns[kept], at)), shape=shape)
        for i in range(permutations):
            out[i] += table @ held[dealt[i, names]]
    return out


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
