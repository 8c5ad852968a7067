"""The lists of a model's answers as a matrix, one row for each distinct name."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import polars as pl
from scipy.sparse import csr_array

from probes.lists import BARE

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray


class Lists(NamedTuple):
    """Which words are in the list of which name, for one language and part of speech.

    A name that people of two genders bear is there once for each of them.
    """

    matrix: csr_array  # (names, words): 1 where the word is in the name's list
    genders: NDArray[np.int64]  # (names,): codes of the genders there are, from 0 without gaps
    labels: tuple[int, ...]  # the code in builders.politicians.GENDERS of each of them
    names: pl.DataFrame  # name, gender, people (who bear it), popularity (of the best known)
    words: pl.DataFrame  # word, lemma, count (names in whose list it is); most frequent first

    def only(self, names: NDArray[np.bool_], min_count: int) -> Lists:
        """Return the part of some names, with the words that ``min_count`` of them have."""
        return _lists(
            self.matrix[np.flatnonzero(names)], self.names.filter(names), self.words, min_count
        )


def frames(outputs: Path, language: str) -> list[str]:
    """Return the frames that a model was asked in, the bare name first; none where it is unsaid."""
    rows = pl.scan_parquet(outputs / language / "*.parquet")
    if "frame" not in rows.collect_schema():
        return []
    found = rows.select(pl.col("frame").unique()).collect()["frame"].to_list()
    return sorted(found, key=lambda frame: (frame != BARE, frame))


def answers_of(outputs: Path, language: str, frame: str | None) -> pl.LazyFrame:
    """Return a model's rows in one language and frame; None for the first of :func:`frames`."""
    rows = pl.scan_parquet(outputs / language / "*.parquet")
    there = frames(outputs, language)
    if not there:
        return rows
    return rows.filter(pl.col("frame") == (frame or there[0]))


def lists(
    outputs: Path,
    people: Path,
    language: str,
    pos: int,
    min_count: int,
    answers: pl.Expr | None = None,
    frame: str | None = None,
) -> Lists | None:
    """Read the lists of one language and part of speech.

    Strings are turned into numbers while the files stream by: memory grows with the number of names
    and list entries, not with the text.

    Parameters
    ----------
    outputs, people
        Folders of a model's ``associations`` and of the dataset ``politicians``.
    pos
        Code in :data:`builders.words.POS`.
    min_count
        Names in whose list a word must be for it to be kept.
    answers
        What must hold of a row of the outputs, such as ``pl.col("rank") <= 10``.
    frame
        Which frame's lists; None for the paper's, the bare name.

    Returns
    -------
    Lists or None
        None where no word is in enough lists.
    """
    found = answers_of(outputs, language, frame).filter(pl.col("pos") == pos)
    found = found if answers is None else found.filter(answers)
    asked = pl.scan_parquet(people / f"{language}.parquet")
    names = (
        asked.join(found.select("qid").unique(), on="qid", how="semi")
        .group_by("name", "gender")
        .agg(pl.col("qid").min(), people=pl.len(), popularity=pl.col("popularity").max())
        .sort("name", "gender")
        .collect()
    )
    words = (
        found.group_by("word")
        .agg(pl.col("lemma").min())
        .sort("word")
        .with_row_index("column")
        .collect()
    )
    if names.is_empty() or words.is_empty():
        return None
    rows = names.lazy().select("qid").with_row_index("row")
    cells = (
        found.select("qid", "word")
        .join(rows, on="qid")
        .join(words.lazy().select("word", "column"), on="word")
        .select("row", "column")
        .unique()
        .sort("row", "column")
        .collect(engine="streaming")
    )
    at = (cells["row"].to_numpy().astype(np.int64), cells["column"].to_numpy().astype(np.int64))
    matrix = csr_array((np.ones(len(cells)), at), shape=(len(names), len(words)))
    kept = _lists(matrix, names.drop("qid"), words.drop("column"), min_count)
    return kept if len(kept.words) else None


def _lists(matrix: csr_array, names: pl.DataFrame, words: pl.DataFrame, min_count: int) -> Lists:
    count = np.asarray(matrix.sum(axis=0)).ravel().astype(np.int64)
    words = words.with_columns(count=pl.Series(count)).with_row_index("column")
    words = words.filter(pl.col("count") >= min_count).sort(
        "count", "word", descending=[True, False]
    )
    labels, genders = np.unique(names["gender"].to_numpy(), return_inverse=True)
    columns = words["column"].to_numpy().astype(np.int64)
    return Lists(
        matrix.tocsc()[:, columns].tocsr(),
        genders,
        tuple(int(label) for label in labels),
        names,
        words.drop("column"),
    )
