"""Counting the words in the lists of ``associations``, by gender and by name.

Stańczak et al. (2023), 3.2 and section 4, count lemmas, so that a form that agrees with a person's
gender is no bias. A list has a lemma if it has a form of it, and a form is of the lemma that the
outputs give it. All sums are of integers and so the same however rows are spread over files.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl
from scipy.sparse import csr_array

from plumbline.builders.core.errors import UserError
from plumbline.builders.datasets.words.build import POS
from plumbline.probes.prompts import BARE
from plumbline.probes.stats import bootstrap

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from numpy.typing import NDArray

    from plumbline.probes.core.run_analysis import Inputs
    from plumbline.probes.politicians.words.columns import Unit

    Integers = NDArray[np.int64]

PIECES = "prompt_pieces"
COVERED = "coverage"  # no language, but how much of the words a model has


class People(NamedTuple):
    """The people of one language, sorted by number of item; arrays (people,)."""

    items: Integers  # numbers of the Wikidata items
    genders: Integers  # codes, as in ``politicians``
    names: NDArray[np.uint64]  # key of the name, see :mod:`plumbline.probes.stats.bootstrap`
    first: NDArray[np.bool_]  # one person of each distinct name and gender

    def where(self, wanted: NDArray[np.bool_]) -> People:
        """Return some of the people, given a (people,) array."""
        return People(
            self.items[wanted], self.genders[wanted], self.names[wanted], self.first[wanted]
        )


class Lists(NamedTuple):
    """Where lists are: those of one part of speech, from one model or several."""

    folders: tuple[Path, ...]  # of each model, with the files of one language
    pos: str
    frame: str | None = None  # None: each model's own, the first of :func:`frames`
    most: tuple[tuple[str, int], ...] = ()  # columns, and the most that rows may have in them
    unit: Unit = "lemma"  # what is counted


class Entries(NamedTuple):
    """Which words are in whose lists."""

    matrix: csr_array  # (people, words): lists of the person that have the word, one of each model
    words: pl.DataFrame  # word, form (that in most lists), lemma; by the alphabet
    rows: int  # of the lists, one for each form


class Counts(NamedTuple):
    """How many lists have a word; the words sorted, the genders those that somebody has."""

    source: Lists
    persons: People  # whose lists were counted
    matrix: csr_array  # (people, words), as in :class:`Entries`
    words: list[str]  # lemmas or forms, as was counted
    lemmas: list[str]
    forms: list[str]  # of each word the one in most lists
    rows: int  # of the lists, one for each form
    genders: Integers  # (groups,) codes
    people: Integers  # (groups,) people with lists
    names: Integers  # (groups,) distinct names, each once for every gender that it has
    clusters: int  # distinct names
    lists: Integers  # (words, groups) lists with the word
    distinct: Integers  # (words, groups) the same, of distinct names and genders
    seen: NDArray[np.bool_]  # (people,) who has a list

    def common(self, least: int) -> NDArray[np.intp]:
        """Return the indices of the words that are in at least so many lists."""
        return np.flatnonzero(self.lists.sum(axis=1) >= least)


class Named(NamedTuple):
    """Which words are in the list of which name, for one language and part of speech.

    A name that people of two genders bear is there once for each of them.
    """

    matrix: csr_array  # (names, words): 1 where the word is in the name's list
    genders: Integers  # (names,): codes of the genders there are, from 0 without gaps
    labels: tuple[int, ...]  # the code in builders.politicians.GENDERS of each of them
    names: pl.DataFrame  # name, gender, qid (of one), people (who bear it), popularity (the best)
    words: pl.DataFrame  # word, form, lemma, count (names in whose list it is); most frequent first

    def only(self, names: NDArray[np.bool_], min_count: int) -> Named:
        """Return the part of some names, with the words that ``min_count`` of them have."""
        rows = np.flatnonzero(names)
        return _named(self.matrix[rows], self.names.filter(names), self.words, min_count)

    def of_gender(self) -> dict[int, int]:
        """Return how many distinct names each gender (code) has."""
        return dict(zip(self.labels, np.bincount(self.genders).tolist(), strict=True))


def languages(outputs: Path) -> list[str]:
    """Return the languages in a model's outputs."""
    return sorted(p.name for p in outputs.iterdir() if p.is_dir() and p.name != COVERED)


def sources(inputs: Inputs, *models: str, **how: Any) -> Iterator[tuple[str, Lists, Path]]:
    """Yield language, lists, and file of people for all languages and parts of speech of models.

    ``how``: other fields of :class:`Lists`.
    """
    folders = [inputs.outputs("associations", model) for model in models]
    for language in sorted({language for folder in folders for language in languages(folder)}):
        there = tuple(folder / language for folder in folders if (folder / language).is_dir())
        for pos in POS:
            people = inputs.datasets["politicians"] / f"{language}.parquet"
            yield language, Lists(there, pos, **how), people


def frames(folder: Path) -> list[str]:
    """Return the frames of a model's prompts: the paper's first, then in their order.

    The lists of the first one count. All files have the same frames, or none has any.
    """
    for path in sorted(folder.glob("*.parquet")):
        rows = pl.scan_parquet(path)
        if "frame" not in rows.collect_schema():
            return []
        names = rows.select(pl.col("frame").unique(maintain_order=True)).collect()["frame"]
        if len(names):
            return sorted(names.to_list(), key=lambda frame: frame != BARE)
    return []


def read_people(path: Path, only: pl.Series | None = None) -> People:
    """Read the people of one language, all or those whose items are in ``only``."""
    frame = pl.read_parquet(path, columns=["qid", "name", "gender"])
    if only is not None:
        frame = frame.filter(pl.col("qid").is_in(only.implode()))
    frame = frame.with_columns(item=pl.col("qid").str.slice(1).cast(pl.Int64)).sort("item")
    return People(
        frame["item"].to_numpy(),
        frame["gender"].cast(pl.Int64).to_numpy(),
        bootstrap.keys(frame["name"]),
        frame.select(pl.struct("name", "gender").is_first_distinct()).to_series().to_numpy(),
    )


def _scanned(source: Lists, folder: Path) -> Iterator[pl.LazyFrame]:
    """Yield the rows of lists in each file of a model."""
    paths = sorted(folder.glob("*.parquet"))
    if not paths:
        raise UserError(f"{folder}: no outputs there; run `make repro STAGE=associations`")
    frame = source.frame or next(iter(frames(folder)), None)
    wanted = [pl.col(column) <= most for column, most in source.most]
    wanted += [pl.col("frame") == frame] if frame is not None else []
    for path in paths:
        yield pl.scan_parquet(path).filter(pl.col("pos") == source.pos, *wanted)


def read_entries(source: Lists, people: People) -> Entries:
    """Read which words are in the lists of these people, those of others left out.

    Raises UserError if there is no file.
    """
    item = pl.col("qid").str.slice(1).cast(pl.Int64).alias("item")
    known = pl.DataFrame({"item": people.items, "person": np.arange(len(people.items))})
    words = pl.col("word", "lemma").cast(pl.Categorical)
    read = [
        rows.select(item, words, model=pl.lit(number))
        .join(known.lazy(), on="item")
        .drop("item")
        .collect()
        for number, folder in enumerate(source.folders)
        for rows in _scanned(source, folder)
    ]
    table = pl.concat(read).rename({"word": "form"})
    counted = pl.col("lemma" if source.unit == "lemma" else "form")
    texts = pl.col("form", "lemma").cast(pl.String)
    vocabulary = (  # of forms that are in as many lists the first by the alphabet; so of lemmas
        table.group_by("form", "lemma", word=counted)
        .len()
        .with_columns(texts, text=pl.col("word").cast(pl.String))
        .sort("len", "form", "lemma", descending=[True, False, False])
        .unique("word", keep="first", maintain_order=True)
        .sort("text")
    )
    code = vocabulary.select("word", code=pl.int_range(pl.len()))
    cells = table.select("model", "person", word=counted).unique().join(code, on="word")
    at = cells["person"].to_numpy(), cells["code"].to_numpy()
    shape = len(people.items), len(vocabulary)
    matrix = csr_array((np.ones(len(cells), np.int64), at), shape=shape)  # models are added up
    words_of = vocabulary.select("form", "lemma", word="text").select("word", "form", "lemma")
    return Entries(matrix, words_of, len(table))


def count(source: Lists, people: People) -> Counts:
    """Count lists by word and gender.

    Several models' lists of one name are counted each; people and names once.
    """
    matrix, words, rows = read_entries(source, people)
    seen = np.diff(matrix.indptr) > 0
    genders = np.unique(people.genders[seen])
    of_gender = people.genders == genders[:, None]
    return Counts(
        source,
        people,
        matrix,
        words["word"].to_list(),
        words["lemma"].to_list(),
        words["form"].to_list(),
        rows,
        genders,
        (of_gender & seen).sum(axis=1),
        (of_gender & seen & people.first).sum(axis=1),
        len(np.unique(people.names[seen])),
        (of_gender.astype(np.int64) @ matrix).T,
        ((of_gender & people.first).astype(np.int64) @ matrix).T,
        seen,
    )


def overlaps(counts: Counts, chosen: NDArray[np.intp]) -> tuple[Integers, Integers]:
    """Count distinct names and genders by list length and by how many lists have a word.

    Returns
    -------
    (words, lengths, models + 1) array
        For the chosen words, how many names whose lists have one length have the word in 0, 1,
        2, ... lists.
    (lengths, groups) array
        How many names there are, by gender.
    """
    people = counts.persons
    units = np.flatnonzero(people.first & counts.seen)
    lists = counts.matrix[units]
    lengths, stratum = np.unique(lists.sum(axis=1), return_inverse=True)
    sizes = np.zeros((len(lengths), len(counts.genders)), dtype=np.int64)
    np.add.at(sizes, (stratum, np.searchsorted(counts.genders, people.genders[units])), 1)
    cells = lists[:, chosen].tocoo()
    times = np.zeros((len(chosen), len(lengths), len(counts.source.folders) + 1), dtype=np.int64)
    np.add.at(times, (cells.col, stratum[cells.row], cells.data), 1)
    times[:, :, 0] = sizes.sum(axis=1) - times.sum(axis=2)
    return times, sizes


def by_name(source: Lists, path: Path, min_count: int) -> Named | None:
    """Return the lists of one model as a matrix, a row for each distinct name.

    Lists follow from the name alone: one person's stands for all who have it.

    Parameters
    ----------
    path
        File of the dataset ``politicians``, of the language of the lists.
    min_count
        Names in whose list a word must be for it to be kept.

    Returns
    -------
    Named or None
        None where no word is in enough lists.
    """
    people = read_people(path)
    matrix, words, _ = read_entries(source, people)
    persons = np.flatnonzero(np.diff(matrix.indptr))
    if not len(persons):
        return None
    table = pl.read_parquet(path, columns=["qid", "name", "gender", "popularity"])
    item = pl.col("qid").str.slice(1).cast(pl.Int64)
    names = (
        table.sort(item)
        .with_row_index("person")[persons]
        .group_by("name", "gender")
        .agg(
            pl.col("person", "qid").first(),
            people=pl.len(),
            popularity=pl.col("popularity").max(),
        )
        .sort("name", "gender")
    )
    named = _named(matrix[names["person"].to_numpy()], names.drop("person"), words, min_count)
    return named if len(named.words) else None


def read_pieces(source: Lists, names: pl.DataFrame) -> Integers:
    """Return the pieces of the prompt of each name (:attr:`Named.names`), (names,).

    In one frame prompts differ by the pieces of the name alone.
    """
    (folder,) = source.folders
    rows = pl.concat(_scanned(source, folder)).group_by("qid").agg(pl.col(PIECES).first())
    pieces = names.lazy().join(rows, on="qid", how="left", maintain_order="left").collect()[PIECES]
    return pieces.cast(pl.Int64).to_numpy()


def _named(matrix: csr_array, names: pl.DataFrame, words: pl.DataFrame, min_count: int) -> Named:
    number = np.asarray(matrix.sum(axis=0)).ravel().astype(np.int64)
    words = words.with_columns(count=pl.Series(number)).with_row_index("column")
    words = words.filter(pl.col("count") >= min_count).sort(
        "count", "word", descending=[True, False]
    )
    labels, genders = np.unique(names["gender"].to_numpy(), return_inverse=True)
    columns = words["column"].to_numpy().astype(np.int64)
    kept = matrix.tocsc()[:, columns].tocsr().astype(np.float64)
    return Named(kept, genders, tuple(labels.tolist()), names, words.drop("column"))
