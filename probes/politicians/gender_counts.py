"""Counts of words by gender, as seen, with names weighted anew, and with gender labels permuted."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.sparse import csr_array

from plumbline.probes.politicians import resample_counts, word_counts

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]
    Integers = NDArray[np.int64]


class Counts(NamedTuple):
    """Of one language and part of speech; the genders are those asked for that somebody has."""

    words: list[str]
    lemmas: list[str]
    genders: list[int]  # codes
    people: Integers  # (genders,)
    names: int
    seen: Array  # (words, genders): lists that have a word, of people
    drawn: Array  # (replicates, words, genders): the same in bootstrap replicates
    permuted: Array  # (permutations, words, genders): the same with labels permuted


def count(
    source: word_counts.Lists,
    folk: word_counts.People,
    genders: list[int],
    min_count: int,
    replicates: int,
    permutations: int,
    seed: int,
) -> Counts:
    """Count the words that are in at least ``min_count`` lists.

    Replicates are the Bayesian bootstrap's, by distinct name. Permutations deal the labels of a
    name, with as many people as it has, to the names anew.

    Parameters
    ----------
    genders
        Codes; other people are left out.
    """
    wanted = np.isin(folk.genders, genders)
    folk = word_counts.People(
        folk.items[wanted], folk.genders[wanted], folk.names[wanted], folk.first[wanted]
    )
    found = word_counts.count(source, folk)
    chosen = found.common(min_count)
    draws = resample_counts.draw(source, folk, found, chosen, replicates, seed).bayesian[
        : len(chosen)
    ]
    return Counts(
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
    source: word_counts.Lists,
    folk: word_counts.People,
    counts: word_counts.Counts,
    chosen: NDArray[np.intp],
    permutations: int,
    seed: int,
) -> Array:
    """Return counts with labels permuted, (permutations, words, genders).

    Lists follow from the name alone, so that of a name one person's list stands for all.
    """
    groups = np.searchsorted(counts.genders, folk.genders)
    seen = np.zeros(len(folk.items), dtype=bool)
    for part in word_counts.cells(source, folk):
        seen[part.person] = True
    persons = np.flatnonzero(seen)
    _, first, of = np.unique(folk.names[persons], return_index=True, return_inverse=True)
    held = np.zeros((len(first), len(counts.genders)))
    np.add.at(held, (of, groups[persons]), 1)
    name_of = np.full(len(folk.items), -1)
    name_of[persons[first]] = np.arange(len(first))
    rng = np.random.default_rng(seed)
    dealt = np.array([rng.permutation(len(first)) for _ in range(permutations)])
    column = {counts.words[w]: i for i, w in enumerate(chosen)}
    out = np.zeros((permutations, len(chosen), len(counts.genders)))
    for part in word_counts.cells(source, folk):
        columns = np.array([column.get(f, -1) for f in part.forms], dtype=np.int64)[part.form]
        rows = name_of[part.person]
        kept = (rows >= 0) & (columns >= 0)
        names, at = np.unique(rows[kept], return_inverse=True)
        shape = (len(chosen), len(names))
        table = csr_array((np.ones(len(at)), (columns[kept], at)), shape=shape)
        for i in range(permutations):
            out[i] += table @ held[dealt[i, names]]
    return out
