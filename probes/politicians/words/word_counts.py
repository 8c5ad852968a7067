"""Counting the words in the lists of ``associations``, by gender and by name.

Lists are read batch by batch and added up. Held are a batch at a time, the sums (words by genders,
and by replicates), of each person an item number, a gender and a hash of the name, about 30 bytes,
and a bit for each lemma. All sums are of whole numbers and so the same however rows are spread over
files.

Stańczak et al. (2023), 3.2 and section 4, count lemmas, so that a form that agrees with a person's
gender is no bias. A list has a lemma if it has a form of it, and a form is of the lemma that the
outputs give it.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from scipy.sparse import csr_array

from plumbline.builders.core.errors import UserError
from plumbline.builders.datasets.politicians.person import GENDERS
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
    unit: Unit = "lemma"  # what is counted


class Cells(NamedTuple):
    """Which person's list has which word, each once."""

    person: Integers  # (cells,) index of the person in :class:`People`
    word: Integers  # (cells,) index of the word in ``words``
    words: list[str]  # lemmas or forms, as is counted
    pairs: Counter[tuple[str, str]]  # rows of the lists with a form and its lemma
    pieces: Integers | None = None  # (cells,) of the prompts, where they were read

    def columns(self, code: dict[str, int], other: int) -> Integers:
        """Return the code of each cell's word, ``other`` for a word without one."""
        return np.array([code.get(w, other) for w in self.words], dtype=np.int64)[self.word]

    def only(self, kept: NDArray[Any]) -> Cells:
        """Return some of the cells."""
        pieces = None if self.pieces is None else self.pieces[kept]
        return self._replace(person=self.person[kept], word=self.word[kept], pieces=pieces)


class Once:
    """Knows what a person's list was met to have before: a lemma in another form."""

    def __init__(self, people: int) -> None:
        self._people = people
        self._code: dict[str, int] = {}
        self._met = np.zeros(0, dtype=np.uint8)  # a bit for each word and person

    def new(self, part: Cells) -> NDArray[np.intp]:
        """Return the places of the cells that were not met before."""
        code = [self._code.setdefault(word, len(self._code)) for word in part.words]
        if (more := len(self._code) * self._people // 8 + 1 - len(self._met)) > 0:
            self._met = np.pad(self._met, (0, more))
        place, first = np.unique(
            np.array(code, dtype=np.int64)[part.word] * self._people + part.person,
            return_index=True,
        )
        byte, bit = place >> 3, (1 << (place & 7)).astype(np.uint8)
        new = (self._met[byte] & bit) == 0
        np.bitwise_or.at(self._met, byte, bit)
        return np.asarray(first[new])


class Vocabulary:
    """The words that were met, with their codes, lemmas and forms."""

    def __init__(self, unit: Unit) -> None:
        self._own = 1 if unit == "lemma" else 0  # of a pair of form and lemma
        self._pairs: Counter[tuple[str, str]] = Counter()
        self.code: dict[str, int] = {}

    def add(self, part: Cells) -> None:
        """Give words that are met for the first time a code, and note their forms."""
        self._pairs.update(part.pairs)
        for pair in part.pairs:
            self.code.setdefault(pair[self._own], len(self.code))

    def rows(self) -> int:
        """Return how many rows the lists had, one for each form."""
        return self._pairs.total()

    def table(self) -> pl.DataFrame:
        """Return word, its lemma, and its form in most lists, in the order of the codes.

        Of forms that are in as many lists the first by the alphabet; so of lemmas.
        """
        most: dict[str, tuple[str, str]] = {}
        for pair, _ in sorted(self._pairs.items(), key=lambda item: (-item[1], item[0])):
            most.setdefault(pair[self._own], pair)
        found = {"word": list(self.code)}
        found |= {name: [most[w][i] for w in self.code] for i, name in enumerate(("form", "lemma"))}
        return pl.DataFrame(found, schema=dict.fromkeys(("word", "form", "lemma"), pl.String))


class Counts(NamedTuple):
    """How many lists have a word; the words sorted, the genders those that somebody has."""

    source: Lists
    persons: People  # whose lists were counted
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
    lengths: Integers  # (people,) words in a person's list, of several models in all

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
    genders: Integers  # (names,): codes of the genders there are, from 0 without gaps
    labels: tuple[int, ...]  # the code in builders.politicians.GENDERS of each of them
    names: pl.DataFrame  # name, gender, people (who bear it), popularity (of the best known)
    # and pieces: those of its prompt, in which names of one frame differ by their own alone
    words: pl.DataFrame  # word, form, lemma (see :class:`Vocabulary`), count (names in whose list
    # it is); most frequent first

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
        own = tuple(folder / language for folder in folders if (folder / language).is_dir())
        for pos in range(len(POS)):
            people = inputs.datasets["politicians"] / f"{language}.parquet"
            yield language, Lists(own, pos, **how), people


def frames(folder: Path) -> list[str]:
    """Return the frames of a model's prompts: the paper's first, then in their order.

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


def cells(source: Lists, people: People) -> Iterator[Cells]:
    """Yield the rows of lists, those of other people left out, a batch at a time.

    Raises UserError if there is no file, or a list has a form twice.
    """
    for folder in source.folders:
        paths = sorted(map(str, folder.glob("*.parquet")))
        if not paths:
            raise UserError(f"{folder}: no outputs there; run `make repro STAGE=associations`")
        wanted = pc.field("pos") == source.pos
        frame = source.frame or next(iter(frames(folder)), None)
        if frame is not None:
            wanted &= pc.field("frame") == frame
        for column, most in source.most:
            wanted &= pc.field(column) <= most
        options = ds.ParquetReadOptions(dictionary_columns=["qid", "word", "lemma"])
        columns = ["qid", "word", "lemma", *([PIECES] if source.pieces else [])]
        batches = ds.dataset(paths, format=ds.ParquetFileFormat(options)).to_batches(
            columns=columns, filter=wanted, use_threads=False, batch_readahead=1
        )
        once = Once(len(people.items))
        for batch in batches:
            if not len(batch):
                continue
            part = _cells(batch, people, source.unit)
            kept = once.new(part)
            if source.unit == "form" and len(kept) < len(part.word):
                at = np.setdiff1d(np.arange(len(part.word)), kept)[0]
                raise UserError(
                    f"{folder}: the list of Q{people.items[part.person[at]]} has "
                    f"{part.words[part.word[at]]!r} twice; run the probe again"
                )
            yield part.only(kept)


def _cells(batch: pa.RecordBatch, people: People, unit: Unit) -> Cells:
    qids = batch["qid"]
    items = pc.cast(pc.utf8_slice_codeunits(qids.dictionary, 1), pa.int64()).to_numpy()
    place = np.searchsorted(people.items, items)
    known = np.zeros(len(items), dtype=bool)
    there = place < len(people.items)
    known[there] = people.items[place[there]] == items[there]
    kept = np.flatnonzero(known[qids.indices.to_numpy()])
    batch = batch if len(kept) == len(batch) else batch.take(kept)
    (form, forms), (lemma, lemmas) = (
        (batch[name].indices.to_numpy().astype(np.int64), batch[name].dictionary.to_pylist())
        for name in ("word", "lemma")
    )
    pairs, rows = np.unique(form * len(lemmas) + lemma, return_counts=True)
    found: Counter[tuple[str, str]] = Counter()
    for pair, number in zip(pairs.tolist(), rows.tolist(), strict=True):
        found[forms[pair // len(lemmas)], lemmas[pair % len(lemmas)]] += number
    return Cells(
        place[batch["qid"].indices.to_numpy()],
        *((lemma, lemmas) if unit == "lemma" else (form, forms)),
        found,
        batch[PIECES].to_numpy().astype(np.int64) if PIECES in batch.schema.names else None,
    )


def count(source: Lists, people: People) -> Counts:
    """Count lists by word and gender.

    Several models' lists of one name are counted each; people and names once.
    """
    met = Vocabulary(source.unit)
    size = 2 * len(GENDERS)  # for each gender: people who repeat a name, and the first ones
    group = people.genders * 2 + people.first
    found = np.zeros((0, size), dtype=np.int64)
    seen = np.zeros(len(people.items), dtype=bool)
    lengths = np.zeros(len(people.items), dtype=np.int64)
    for part in cells(source, people):
        met.add(part)
        found = np.pad(found, ((0, len(met.code) - len(found)), (0, 0)))
        at = part.columns(met.code, 0) * size + group[part.person]
        found += np.bincount(at, minlength=found.size).reshape(found.shape)
        seen[part.person] = True
        lengths += np.bincount(part.person, minlength=len(lengths))
    words = met.table().with_row_index("code").sort("word")
    table = found[words["code"].to_numpy()].reshape(len(words), len(GENDERS), 2)
    persons = np.bincount(people.genders[seen], minlength=len(GENDERS))
    names = np.bincount(people.genders[seen & people.first], minlength=len(GENDERS))
    genders = np.flatnonzero(persons)
    return Counts(
        source,
        people,
        words["word"].to_list(),
        words["lemma"].to_list(),
        words["form"].to_list(),
        met.rows(),
        genders,
        persons[genders],
        names[genders],
        len(np.unique(people.names[seen])),
        table.sum(axis=2)[:, genders],
        table[:, genders, 1],
        seen,
        lengths,
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
    code, people = counts.code(chosen), counts.persons
    units = np.flatnonzero(people.first & counts.seen)
    lengths, stratum = np.unique(counts.lengths[units], return_inverse=True)
    number, times = len(chosen), len(counts.source.folders) + 1
    found = np.zeros((number, len(lengths) * times), dtype=np.int64)
    sizes = np.zeros((len(lengths), len(counts.genders)), dtype=np.int64)
    np.add.at(sizes, (stratum, np.searchsorted(counts.genders, people.genders[units])), 1)
    each = max(1, NAMES_BY_WORDS // max(number, 1))
    for start in range(0, len(units), each):
        some = units[start : start + each]
        place = np.full(len(people.items), -1)
        place[some] = np.arange(len(some))
        having = np.zeros((number, len(some)), dtype=np.int16)
        for part in cells(counts.source, people):
            columns, rows = part.columns(code, -1), place[part.person]
            kept = (rows >= 0) & (columns >= 0)
            having[columns[kept], rows[kept]] += 1  # a word is once in a list: no index twice
        for word, lists in enumerate(having):
            at = stratum[start : start + each] * times + lists
            found[word] += np.bincount(at, minlength=found.shape[1])
    return found.reshape(number, len(lengths), times), sizes


def by_name(source: Lists, path: Path, min_count: int) -> Named | None:
    """Read the lists of one model as a matrix, a row for each distinct name.

    Held are two numbers for each entry of a list, and the people.

    ``path``: file of the dataset ``politicians``, of the language of the lists.
    ``min_count``: names in whose list a word must be for it to be kept.

    Returned: none where no word is in enough lists.
    """
    people = read_people(path)
    met = Vocabulary(source.unit)
    persons, columns = [], []
    pieces = np.zeros(len(people.items), dtype=np.int64)
    for part in cells(source, people):
        met.add(part)
        persons.append(part.person.astype(np.int32))
        columns.append(part.columns(met.code, 0).astype(np.int32))
        if part.pieces is not None:
            pieces[part.person] = part.pieces
    if not met.code:
        return None
    person, column = np.concatenate(persons), np.concatenate(columns)
    names, row = _names(path, people, np.unique(person), pieces)
    kept = row[person] >= 0
    at = (row[person[kept]], column[kept].astype(np.int64))
    matrix = csr_array((np.ones(len(at[0])), at), shape=(len(names), len(met.code)))
    matrix.data[:] = 1
    found = _named(matrix, names, met.table(), min_count)
    return found if len(found.words) else None


def _names(
    path: Path, people: People, seen: NDArray[np.int32], pieces: Integers
) -> tuple[pl.DataFrame, Integers]:
    """Return the distinct names of the people seen, and which one's row each person's list is.

    Lists follow from the name alone: one person's stands for all who have it; the rest have -1.
    """
    table = pl.read_parquet(path, columns=["qid", "name", "gender", "popularity"])
    item = pl.col("qid").str.slice(1).cast(pl.Int64)
    table = table.sort(item).with_row_index("person")[seen]
    assert table.select(item).to_series().equals(pl.Series("qid", people.items[seen]))
    names = (
        table.group_by("name", "gender")
        .agg(pl.col("person").min(), people=pl.len(), popularity=pl.col("popularity").max())
        .sort("name", "gender")
    )
    row = np.full(len(people.items), -1)
    person = names["person"].to_numpy()
    row[person] = np.arange(len(names))
    return names.drop("person").with_columns(pieces=pieces[person]), row


def _named(matrix: csr_array, names: pl.DataFrame, words: pl.DataFrame, min_count: int) -> Named:
    number = np.asarray(matrix.sum(axis=0)).ravel().astype(np.int64)
    words = words.with_columns(count=pl.Series(number)).with_row_index("column")
    words = words.filter(pl.col("count") >= min_count).sort(
        "count", "word", descending=[True, False]
    )
    labels, genders = np.unique(names["gender"].to_numpy(), return_inverse=True)
    columns = words["column"].to_numpy().astype(np.int64)
    kept = matrix.tocsc()[:, columns].tocsr()
    return Named(kept, genders, tuple(labels.tolist()), names, words.drop("column"))
