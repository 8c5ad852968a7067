"""The lists of a model's answers as a matrix, one row for each distinct name."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import polars as pl
from scipy.sparse import csr_array

from plumbline.probes.politicians import word_counts

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray


class Named(NamedTuple):
    """Which words are in the list of which name, for one language and part of speech.

    A name that people of two genders bear is there once for each of them.
    """

    matrix: csr_array  # (names, words): 1 where the word is in the name's list
    genders: NDArray[np.int64]  # (names,): codes of the genders there are, from 0 without gaps
    labels: tuple[int, ...]  # the code in builders.politicians.GENDERS of each of them
    names: pl.DataFrame  # name, gender, people (who bear it), popularity (of the best known)
    # and pieces: those of its prompt, in which names of one frame differ by their own alone
    words: pl.DataFrame  # word, lemma, count (names in whose list it is); most frequent first

    def only(self, names: NDArray[np.bool_], min_count: int) -> Named:
        """Return the part of some names, with the words that ``min_count`` of them have."""
        return _named(
            self.matrix[np.flatnonzero(names)], self.names.filter(names), self.words, min_count
        )


def read(source: word_counts.Lists, people: Path, min_count: int) -> Named | None:
    """Read the lists of one model.

    Held are two numbers for each entry of a list, and the people.

    Parameters
    ----------
    people
        File of the dataset ``politicians``, of the language of the lists.
    min_count
        Names in whose list a word must be for it to be kept.

    Returns
    -------
    Named or None
        None where no word is in enough lists.
    """
    folk = word_counts.people(people)
    code: dict[str, int] = {}
    lemma: dict[str, str] = {}
    persons, columns = [], []
    pieces = np.zeros(len(folk.items), dtype=np.int64)
    for part in word_counts.cells(source, folk):
        there = np.bincount(part.form, minlength=len(part.forms))
        if new := [f for i, f in enumerate(part.forms) if f not in code and there[i]]:
            lemma |= word_counts.lemmas(part, source.pos, new)
            code |= {form: len(code) + i for i, form in enumerate(new)}
        codes = np.array([code.get(form, 0) for form in part.forms], dtype=np.int32)
        persons.append(part.person.astype(np.int32))
        columns.append(codes[part.form])
        if part.pieces is not None:
            pieces[part.person] = part.pieces
    if not code:
        return None
    person, column = np.concatenate(persons), np.concatenate(columns)
    names, row = _names(people, folk, np.unique(person), pieces)
    kept = row[person] >= 0
    at = (row[person[kept]], column[kept].astype(np.int64))
    matrix = csr_array((np.ones(len(at[0])), at), shape=(len(names), len(code)))
    matrix.data[:] = 1
    words = pl.DataFrame({"word": list(code), "lemma": [lemma[form] for form in code]})
    found = _named(matrix, names, words, min_count)
    return found if len(found.words) else None


def _names(
    path: Path, folk: word_counts.People, asked: NDArray[np.int32], pieces: NDArray[np.int64]
) -> tuple[pl.DataFrame, NDArray[np.int64]]:
    """Return the distinct names of the people asked, and which one's row each person's list is.

    Lists follow from the name alone: one person's stands for all who have it; the rest have -1.
    """
    table = pl.read_parquet(path, columns=["qid", "name", "gender", "popularity"])
    item = pl.col("qid").str.slice(1).cast(pl.Int64)
    table = table.sort(item).with_row_index("person")[asked]
    assert table.select(item).to_series().equals(pl.Series("qid", folk.items[asked]))
    names = (
        table.group_by("name", "gender")
        .agg(pl.col("person").min(), people=pl.len(), popularity=pl.col("popularity").max())
        .sort("name", "gender")
    )
    row = np.full(len(folk.items), -1)
    person = names["person"].to_numpy()
    row[person] = np.arange(len(names))
    return names.drop("person").with_columns(pieces=pieces[person]), row


def _named(matrix: csr_array, names: pl.DataFrame, words: pl.DataFrame, min_count: int) -> Named:
    count = np.asarray(matrix.sum(axis=0)).ravel().astype(np.int64)
    words = words.with_columns(count=pl.Series(count)).with_row_index("column")
    words = words.filter(pl.col("count") >= min_count).sort(
        "count", "word", descending=[True, False]
    )
    labels, genders = np.unique(names["gender"].to_numpy(), return_inverse=True)
    columns = words["column"].to_numpy().astype(np.int64)
    return Named(
        matrix.tocsc()[:, columns].tocsr(),
        genders,
        tuple(int(label) for label in labels),
        names,
        words.drop("column"),
    )
