"""Counts of words by gender from lists of words, with bootstrap draws and permuted labels.

Output files are read one after the other, so that memory does not grow with the number of people;
a name is wholly within one file, and so is all resampling of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import polars as pl
from scipy.sparse import csr_array

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    Array = NDArray[np.float64]


class Counts(NamedTuple):
    """Of one language and part of speech."""

    words: list[str]
    lemmas: list[str]
    people: NDArray[np.int64]  # (genders,)
    names: int
    seen: Array  # (words, genders): people in whose list a word is
    drawn: Array  # (replicates, words, genders): the same, names weighted
    permuted: Array  # (permutations, words, genders): the same, labels permuted


def count(
    files: Sequence[Path],
    people: pl.DataFrame,
    pos: int,
    genders: Sequence[int],
    min_count: int,
    replicates: int,
    permutations: int,
    seed: int,
) -> Counts:
    """Count words by gender.

    Replicates weight each name by a standard exponential (the Bayesian bootstrap). Permutations
    deal the labels of names, with as many people as a name has, to the names of the same file
    anew: files are hashes of names, so that labels are exchangeable within them.

    Parameters
    ----------
    files
        Parquet files of the outputs of ``associations``.
    people
        Columns qid and gender.
    genders
        Codes; other people are left out.
    min_count
        A word must be in the lists of so many people.

    References
    ----------
    Rubin (1981), The Bayesian bootstrap, Annals of Statistics 9(1).
    """
    chosen = people.filter(pl.col("gender").is_in(list(genders))).select("qid", "gender")
    kept = (
        pl.scan_parquet(list(files))
        .filter(pl.col("pos") == pos)
        .select("qid", "word", "lemma")
        .join(chosen.lazy().select("qid"), on="qid")
        .group_by("word")
        .agg(pl.len().alias("n"), pl.col("lemma").min())
        .filter(pl.col("n") >= min_count)
        .sort("word")
        .collect()
    )
    place = kept.select("word").with_row_index("column")
    size, number = len(kept), len(genders)
    seen = np.zeros((size, number))
    drawn = np.zeros((replicates, size, number))
    permuted = np.zeros((permutations, size, number))
    totals, names = np.zeros(number), 0
    for index, file in enumerate(sorted(files)):
        part = (
            pl.scan_parquet(file)
            .filter(pl.col("pos") == pos)
            .select("qid", "name", "word")
            .join(chosen.lazy(), on="qid")
            .collect()
        )
        if part.is_empty() or not size:
            continue
        order = part.select(pl.col("name").unique().sort()).with_row_index("row")
        labels = part.unique(["qid"]).join(order, on="name")
        held = np.zeros((len(order), number))
        for column, gender in enumerate(genders):
            rows = labels.filter(pl.col("gender") == gender)["row"].to_numpy()
            held[:, column] = np.bincount(rows, minlength=len(order))
        # persons of one name were asked about once, and share their list
        cells = part.unique(["name", "word"]).join(order, on="name").join(place, on="word")
        at = (cells["column"].to_numpy(), cells["row"].to_numpy())
        lists = csr_array((np.ones(len(cells)), at), shape=(size, len(order)))
        rng = np.random.default_rng([seed, index])
        seen += lists @ held
        for r in range(replicates):
            drawn[r] += lists @ (rng.standard_exponential((len(order), 1)) * held)
        for r in range(permutations):
            permuted[r] += lists @ held[rng.permutation(len(order))]
        totals += held.sum(axis=0)
        names += len(order)
    return Counts(
        kept["word"].to_list(),
        kept["lemma"].to_list(),
        totals.astype(np.int64),
        names,
        seen,
        drawn,
        permuted,
    )
