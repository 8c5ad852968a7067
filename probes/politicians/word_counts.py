"""Reading the lists that ``associations`` got, row group by row group, and adding them up.

Held are a row group at a time, what is added up (words by genders, and by replicates), and of each
person an item number, a gender and a hash of the name, about 30 bytes. All sums are of whole
numbers and so the same however rows are spread over files.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from scipy.sparse import csr_array

from plumbline.builders.core.errors import Problem
from plumbline.builders.datasets.politicians.build import GENDERS
from plumbline.probes.prompts import BARE
from plumbline.probes.stats import bootstrap

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from numpy.typing import NDArray

    Integers = NDArray[np.int64]
    Wanted = dict[str, int | str]  # column: the value that rows must have in it

PIECES = "prompt_pieces"
COVERED = "coverage"  # no language, but how much of the words a model has
NAMES_BY_WORDS = 64_000_000  # names by words in memory at once, where models are compared


class People(NamedTuple):
    """The people of one language, sorted by number of item; arrays (people,)."""

    items: Integers  # numbers of the Wikidata items
    genders: Integers  # codes, as in ``politicians``
    names: NDArray[np.uint64]  # key of the name, see :mod:`plumbline.probes.stats.bootstrap`
    first: NDArray[np.bool_]  # one person of each distinct name and gender


class Lists(NamedTuple):
    """Where lists are: those of one part of speech, from one model or several."""

    folders: tuple[Path, ...]  # of each model, with the files of one language
    pos: int  # code
    frame: str | None = None  # None: each model's own, the first of :func:`frames`
    most: tuple[tuple[str, int], ...] = ()  # columns, and the most that rows may have in them
    pieces: bool = False  # whether pieces of prompts are read too


class Cells(NamedTuple):
    """Rows of the outputs: which person's list has which word."""

    person: Integers  # (rows,) index of the person in :class:`People`
    form: Integers  # (rows,) index of the word in ``forms``
    forms: list[str]
    path: Path  # of the file
    group: int  # row group
    pieces: Integers | None = None  # (rows,) of the prompts, where they were asked for

    def columns(self, code: dict[str, int], other: int) -> Integers:
        """Return the code of each row's word, ``other`` for a word without one."""
        return np.array([code.get(f, other) for f in self.forms], dtype=np.int64)[self.form]


class Counts(NamedTuple):
    """How many lists have a word; the words sorted, the genders those that somebody has."""

    words: list[str]
    lemmas: list[str]
    genders: Integers  # (groups,) codes
    people: Integers  # (groups,) people with lists
    names: Integers  # (groups,) distinct names, each once for every gender that it has
    clusters: int  # distinct names
    lists: Integers  # (words, groups) lists with the word
    distinct: Integers  # (words, groups) the same, of distinct names and genders

    def common(self, least: int) -> NDArray[np.intp]:
        """Return the indices of the words that are in at least so many lists."""
        return np.flatnonzero(self.lists.sum(axis=1) >= least)

    def code(self, chosen: NDArray[np.intp]) -> dict[str, int]:
        """Return the place of each chosen word among the chosen ones."""
        return {self.words[w]: i for i, w in enumerate(chosen)}


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


def languages(outputs: Path) -> list[str]:
    """Return the languages in a model's outputs."""
    return sorted(p.name for p in outputs.iterdir() if p.is_dir() and p.name != COVERED)


def frames(folder: Path) -> list[str]:
    """Return the frames that a model was asked in: the paper's first, then in their order.

    The lists of the first one count. All files have the same frames, or none has any.
    """
    for path in sorted(folder.glob("*.parquet")):
        rows = pl.scan_parquet(path)
        if "frame" not in rows.collect_schema():
            return []
        found = rows.select(pl.col("frame").unique(maintain_order=True)).collect()["frame"]
        if len(found):
            return sorted(found.to_list(), key=lambda frame: frame != BARE)
    return []


def people(path: Path, only: pl.Series | None = None) -> People:
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


def cells(source: Lists, folk: People) -> Iterator[Cells]:
    """Yield the rows of lists, those of other people left out, a row group at a time.

    Raises
    ------
    Problem
        If there is no file.
    """
    for folder in source.folders:
        paths = sorted(folder.glob("*.parquet"))
        if not paths:
            raise Problem(f"{folder}: no outputs there; run `make repro STAGE=associations`")
        frame = source.frame or next(iter(frames(folder)), None)
        most = dict(source.most)
        columns = ["qid", "word", *most, *([PIECES] if source.pieces else [])]
        for path in paths:
            with pq.ParquetFile(path, read_dictionary=["qid", "word"]) as file:
                wanted: Wanted = {"pos": source.pos}
                if frame is not None:
                    wanted["frame"] = frame
                for group in range(file.num_row_groups):
                    to_test = _to_test(file, group, wanted)
                    if to_test is None:
                        continue
                    table = file.read_row_group(group, [*columns, *to_test])
                    for batch in table.to_batches():
                        chosen = _chosen(batch, to_test, most)
                        yield _cells(batch, folk, chosen, path, group)


def _to_test(file: pq.ParquetFile, group: int, wanted: Wanted) -> Wanted | None:
    """Return what rows of a group must be tested for, by its statistics; None: none is wanted."""
    facts = file.metadata.row_group(group)
    found = {}
    for i in range(facts.num_columns):
        column = facts.column(i)
        if column.path_in_schema not in wanted:
            continue
        value, limits = wanted[column.path_in_schema], column.statistics
        if limits is not None and limits.has_min_max:
            if not limits.min <= value <= limits.max:
                return None
            if limits.min == limits.max and not limits.null_count:
                continue
        found[column.path_in_schema] = value
    return found


def _chosen(
    batch: pa.RecordBatch, to_test: Wanted, most: dict[str, int]
) -> NDArray[np.bool_] | None:
    """Return which rows are wanted; None: all."""
    tests = [pc.equal(batch[column], value) for column, value in to_test.items()]
    tests += [pc.less_equal(batch[column], value) for column, value in most.items()]
    if not tests:
        return None
    found = [test.to_numpy(zero_copy_only=False) for test in tests]
    every: NDArray[np.bool_] = np.logical_and.reduce(found)
    return every


def _cells(
    batch: pa.RecordBatch,
    folk: People,
    chosen: NDArray[np.bool_] | None,
    path: Path,
    group: int,
) -> Cells:
    qids, words = batch["qid"], batch["word"]
    items = pc.cast(pc.utf8_slice_codeunits(qids.dictionary, 1), pa.int64()).to_numpy()
    place = np.searchsorted(folk.items, items)
    place[place == len(folk.items)] = 0
    known = folk.items[place] == items if len(folk.items) else np.zeros(len(items), dtype=bool)
    at = qids.indices.to_numpy()
    form = words.indices.to_numpy()
    if not known.all():
        chosen = known[at] if chosen is None else known[at] & chosen
    if chosen is not None:
        at, form = at[chosen], form[chosen]
    forms, pieces = words.dictionary.to_pylist(), None
    if PIECES in batch.schema.names:
        pieces = batch[PIECES].to_numpy().astype(np.int64)
        pieces = pieces if chosen is None else pieces[chosen]
    return Cells(place[at], form.astype(np.int64), forms, path, group, pieces)


def count(source: Lists, folk: People) -> Counts:
    """Count lists by word and gender.

    Several models' lists of one name are counted each; people and names once.
    """
    code: dict[str, int] = {}
    lemma: dict[str, str] = {}
    size = 2 * len(GENDERS)  # for each gender: people who repeat a name, and the first ones
    group = folk.genders * 2 + folk.first
    found = np.zeros((0, size), dtype=np.int64)
    seen = np.zeros(len(folk.items), dtype=bool)
    for part in cells(source, folk):
        _meet(part, source.pos, code, lemma)
        found = np.concatenate([found, np.zeros((len(code) - len(found), size), dtype=np.int64)])
        at = part.columns(code, 0) * size + group[part.person]
        found += np.bincount(at, minlength=found.size).reshape(found.shape)
        seen[part.person] = True
    words = sorted(code)
    table = found[[code[word] for word in words]].reshape(len(words), len(GENDERS), 2)
    persons = np.bincount(folk.genders[seen], minlength=len(GENDERS))
    names = np.bincount(folk.genders[seen & folk.first], minlength=len(GENDERS))
    genders = np.flatnonzero(persons)
    return Counts(
        words,
        [lemma[word] for word in words],
        genders,
        persons[genders],
        names[genders],
        len(np.unique(folk.names[seen])),
        table.sum(axis=2)[:, genders],
        table[:, genders, 1],
    )


def _meet(part: Cells, pos: int, code: dict[str, int], lemma: dict[str, str]) -> None:
    """Give words that are met for the first time a code, and read their lemmas there."""
    there = np.bincount(part.form, minlength=len(part.forms))
    new = [f for i, f in enumerate(part.forms) if f not in code and there[i]]
    if not new:
        return
    code.update({form: len(code) + i for i, form in enumerate(new)})
    table = pq.ParquetFile(part.path).read_row_group(part.group, ["word", "lemma", "pos"])
    frame = pl.from_arrow(table)
    assert isinstance(frame, pl.DataFrame)
    frame = frame.filter((pl.col("pos") == pos) & pl.col("word").is_in(new))
    lemma.update(frame.group_by("word").agg(pl.col("lemma").min()).iter_rows())


def overlaps(
    source: Lists, folk: People, counts: Counts, chosen: NDArray[np.intp]
) -> NDArray[np.int64]:
    """Count distinct names and genders by how many models' lists of them have a word.

    Returns
    -------
    (words, models + 1) array
        For the chosen words, how many names have the word in 0, 1, 2, ... lists.
    """
    code = counts.code(chosen)
    units = np.flatnonzero(folk.first)
    number, models = len(chosen), len(source.folders)
    found = np.zeros((number, models + 1), dtype=np.int64)
    each = max(1, NAMES_BY_WORDS // max(number, 1))
    for start in range(0, len(units), each):
        some = units[start : start + each]
        place = np.full(len(folk.items), -1)
        place[some] = np.arange(len(some))
        having = np.zeros((number, len(some)), dtype=np.int16)
        seen = np.zeros(len(some), dtype=bool)
        for part in cells(source, folk):
            columns = part.columns(code, -1)
            rows = place[part.person]
            seen[rows[rows >= 0]] = True
            kept = (rows >= 0) & (columns >= 0)
            having[columns[kept], rows[kept]] += 1  # a word is once in a list: no index twice
        for times in range(models + 1):
            found[:, times] += (having[:, seen] == times).sum(axis=1)
    return found


def by_name(source: Lists, path: Path, min_count: int) -> Named | None:
    """Read the lists of one model as a matrix, a row for each distinct name.

    Held are two numbers for each entry of a list, and the people.

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
    folk = people(path)
    code: dict[str, int] = {}
    lemma: dict[str, str] = {}
    persons, columns = [], []
    pieces = np.zeros(len(folk.items), dtype=np.int64)
    for part in cells(source, folk):
        _meet(part, source.pos, code, lemma)
        persons.append(part.person.astype(np.int32))
        columns.append(part.columns(code, 0).astype(np.int32))
        if part.pieces is not None:
            pieces[part.person] = part.pieces
    if not code:
        return None
    person, column = np.concatenate(persons), np.concatenate(columns)
    names, row = _names(path, folk, np.unique(person), pieces)
    kept = row[person] >= 0
    at = (row[person[kept]], column[kept].astype(np.int64))
    matrix = csr_array((np.ones(len(at[0])), at), shape=(len(names), len(code)))
    matrix.data[:] = 1
    words = pl.DataFrame({"word": list(code), "lemma": [lemma[form] for form in code]})
    found = _named(matrix, names, words, min_count)
    return found if len(found.words) else None


def _names(
    path: Path, folk: People, seen: NDArray[np.int32], pieces: NDArray[np.int64]
) -> tuple[pl.DataFrame, NDArray[np.int64]]:
    """Return the distinct names of the people seen, and which one's row each person's list is.

    Lists follow from the name alone: one person's stands for all who have it; the rest have -1.
    """
    table = pl.read_parquet(path, columns=["qid", "name", "gender", "popularity"])
    item = pl.col("qid").str.slice(1).cast(pl.Int64)
    table = table.sort(item).with_row_index("person")[seen]
    assert table.select(item).to_series().equals(pl.Series("qid", folk.items[seen]))
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
