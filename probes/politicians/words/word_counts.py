"""Counts of words in the lists of ``associations`` by gender and name, and their resampling.

Stańczak et al. (2023), sections 3.2 and 4, count lemmas, so that grammatical agreement of a form
with a person's gender does not count as bias. A list contains a lemma if it contains any of its
forms; the outputs give the lemma of each form. All sums are integers, so they do not depend on how
rows are distributed over files. Weights and labels depend only on the name (``stats.bootstrap``),
so models and subgroups of people are resampled together.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

import numpy as np
import polars as pl
from scipy.sparse import csr_array, hstack

from plumbline.builders.core.errors import UserError
from plumbline.builders.core.schema import Column, Schema
from plumbline.builders.datasets.lexica.build import SENTIMENTS
from plumbline.builders.datasets.politicians.person import GENDERS
from plumbline.builders.datasets.words.build import POS
from plumbline.probes.prompts import BARE
from plumbline.probes.stats import bootstrap
from plumbline.probes.stats.estimate import Table, adjusted, rounded, typed
from plumbline.probes.stats.pmi import weighted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from plumbline.probes.core.run_analysis import Inputs

    Integers = NDArray[np.int64]
    Floats = NDArray[np.float64]

Unit = Literal["lemma", "form"]  # the unit that is counted in lists
UNITS: tuple[Unit, ...] = get_args(Unit)
OF_PMI = ("plug-in", "smoothed")  # estimators of PMI
MALE, FEMALE, NON_BINARY = (GENDERS.index(g) for g in ("male", "female", "non-binary"))
DIFFERENCE = "male minus female"
RESPONSES = (*GENDERS, DIFFERENCE)
MODELS = ("models", "worlds", "null worlds")  # never pooled
CONTROLS = dict(zip((None, "positive", "negative"), MODELS, strict=True))
LANGUAGE = Column("language", "string", "language of the names and words")
PART = Column("pos", "category", "universal part of speech", labels=POS)
MODEL = Column("model", "string", "name of the model in params.yaml")
PLACE = (MODEL, LANGUAGE, PART)
LEMMA = Column("word", "string", "counted lemma")
GENDER = Column("gender", "category", "gender, grouped as in the paper", labels=GENDERS)
SENTIMENT = Column("sentiment", "category", "most probable sentiment of a word", labels=SENTIMENTS)
TOP_K = Column("top_k", "int64", "number of words or pairs that are selected", minimum=0)
CANDIDATES = Column("candidates", "int64", "number of candidate words or pairs", minimum=0)
COVERED = "coverage"  # folder of the vocabulary coverage, next to those of the languages
ITEM = pl.col("qid").str.slice(1).cast(pl.Int64)  # the number of a Wikidata item
PERSONS = 1024  # number of people whose weights are in memory at once
LABELS = 64  # number of permutations in memory at once


def schema(key: Iterable[Column], *others: Column) -> Schema:
    """Return the schema of a model's table, with the key language, part of speech and ``key``."""
    first = (LANGUAGE, PART, *key)
    return Schema((MODEL, *first, *others), tuple(column.name for column in first))


def category(name: str, labels: tuple[str, ...], about: str, *, nullable: bool = False) -> Column:
    """Return a categorical column."""
    return Column(name, "category", about, nullable=nullable, labels=labels)


def share(name: str, about: str, *, nullable: bool = False) -> Column:
    """Return a column of shares or probabilities."""
    return Column(name, "float64", about, nullable=nullable, minimum=0, maximum=1)


def sort_by_key(table: pl.DataFrame, schema: Schema) -> pl.DataFrame:
    """Sort rows by the key of a schema, with categories in their declared order."""
    declared = (schema[name] for name in schema.key)
    return table.sort(
        pl.col(c.name).cast(pl.Enum(c.labels)) if c.labels else pl.col(c.name) for c in declared
    )


def table_of(
    schema: Schema,
    parts: Iterable[pl.DataFrame],
    confidence: float | None,
    over: Sequence[str] = (),
    least: float | str = 0.0,
    **same: Any,
) -> pl.DataFrame:
    """Concatenate tables with the same schema; if there are none, the result is empty.

    Parameters
    ----------
    confidence
        Level of the intervals; see :func:`typed`.
    over, least
        Columns that define a family of tests, and the smallest possible p (see :func:`adjusted`);
        ignored for tables without the column p.
    same
        Columns with the same value in all rows.
    """
    filled = [part for part in parts if len(part)]
    if not filled:
        return Table(schema, confidence).frame()
    table = pl.concat(filled, how="diagonal_relaxed")
    table = table.with_columns(pl.lit(value).alias(name) for name, value in same.items())
    if "p" in table.columns:
        table = adjusted(table, over=over, least=least)
    return typed(table, schema, confidence)


def with_difference(table: pl.DataFrame, on: Sequence[str], values: Sequence[str]) -> pl.DataFrame:
    """Add the differences men minus women; ``response`` contains the gender or the difference.

    ``on``: columns that identify the rows to compare.
    ``values``: columns with the values to subtract; the table also has a column ``gender``.
    """
    single = table.select(*on, pl.col("gender").alias("response"), *values)
    men, women = (single.filter(response=gender) for gender in ("male", "female"))
    pairs = men.join(women, on=on, suffix="_women").with_columns(response=pl.lit(DIFFERENCE))
    gaps = pairs.with_columns(pl.col(name) - pl.col(f"{name}_women") for name in values)
    return pl.concat([single, gaps.select(single.columns)])


def rows_of(axes: Mapping[str, Any], estimate: Iterable[Floats], **columns: Any) -> pl.DataFrame:
    """Return a row for each cell of arrays; numbers are rounded, or null if not finite.

    Parameters
    ----------
    axes
        For each axis of the arrays, the column name and the coordinates.
    estimate
        Values and, optionally, lower and upper limits.
    columns
        Arrays that can be broadcast to all axes, or constants.

    Examples
    --------
    >>> rows_of({"word": ["a", "b"]}, [np.array([0.5, np.nan])], n=9).rows()
    [('a', 0.5, 9), ('b', None, 9)]
    """
    shape = tuple(len(labels) for labels in axes.values())
    columns = dict(zip(("value", "low", "high"), estimate, strict=False)) | columns
    places = np.indices(shape).reshape(len(shape), -1)
    frame = pl.DataFrame(
        {name: pl.Series(axes[name]).gather(i) for name, i in zip(axes, places, strict=True)}
    ).with_columns(
        **{
            name: np.broadcast_to(values, shape).ravel()
            if isinstance(values, np.ndarray)
            else pl.lit(values)
            for name, values in columns.items()
        }
    )
    floats = [name for name in columns if frame[name].dtype.is_float() and name != "p"]
    frame = rounded(frame, floats, ["p"] if "p" in columns else [])
    return frame.with_columns(pl.col("p").fill_nan(None)) if "p" in columns else frame


class People(NamedTuple):
    """The people of one language, sorted by item number, as arrays of shape (people,)."""

    items: Integers  # numbers of their Wikidata items
    genders: Integers  # codes as in the dataset ``politicians``
    names: NDArray[np.uint64]  # key of each name, see :mod:`plumbline.probes.stats.bootstrap`
    first: NDArray[np.bool_]  # True for the first person with each name and gender


class Lists(NamedTuple):
    """Locations of lists for one part of speech, from one or more models."""

    folders: tuple[Path, ...]  # one folder per model, with the files of one language
    pos: str
    unit: Unit = "lemma"  # the unit that is counted


class Counts(NamedTuple):
    """Numbers of lists that contain a word, by word (sorted) and by gender (those that occur)."""

    source: Lists
    persons: People  # the people whose lists were counted
    matrix: csr_array  # (people, words): number of lists with the word, at most one per model
    words: pl.DataFrame  # word (the counted unit), its most frequent form, lemma
    rows: int  # number of rows in the lists, one for each form
    genders: Integers  # (groups,): codes
    people: Integers  # (groups,): number of people with lists
    names: Integers  # (groups,): number of distinct pairs of name and gender
    clusters: int  # number of distinct names
    lists: Integers  # (words, groups): number of lists with the word
    distinct: Integers  # (words, groups): the same for distinct pairs of name and gender
    seen: NDArray[np.bool_]  # (people,): True for people with a list

    def common(self, least: int) -> NDArray[np.intp]:
        """Return the indices of words that are in at least ``least`` lists."""
        return np.flatnonzero(self.lists.sum(axis=1) >= least)

    def groups(self) -> Integers:
        """Return the group index of each person's gender, of shape (people,)."""
        return np.searchsorted(self.genders, self.persons.genders)

    def with_rest(self, chosen: NDArray[np.intp]) -> csr_array:
        """Return the chosen words' columns and the sum of the others, of shape (people, words).

        The last column, for the other words, is omitted if all words are chosen.
        """
        table = self.matrix[:, chosen]
        if len(chosen) == len(self.words):
            return table
        others = self.matrix.sum(axis=1) - table.sum(axis=1)
        return hstack([table, csr_array(others[:, None])], format="csr")


class Draws(NamedTuple):
    """Bootstrap replicates of counts over names, as arrays of shape (words, groups, replicates).

    If not all words were chosen, the last row is the sum of the others.
    """

    ordinary: Floats  # with Poisson weights
    bayesian: Floats  # with exponential weights, for people or distinct names
    merged: int  # number of words summed in the last row; 0 if all were chosen


class Named(NamedTuple):
    """Words in the list of each name, for one language and part of speech.

    A name shared by people of two genders has one row per gender.
    """

    matrix: csr_array  # (names, words): 1 if the word is in the name's list
    genders: Integers  # (names,): indices into ``labels``
    labels: tuple[int, ...]  # code of each gender that occurs, an index into GENDERS
    names: pl.DataFrame  # name, gender
    words: pl.DataFrame  # word, form, lemma, number of names; most frequent first

    def of_gender(self) -> dict[int, int]:
        """Return the number of distinct names by gender code."""
        return dict(zip(self.labels, np.bincount(self.genders).tolist(), strict=True))


def languages(outputs: Path) -> list[str]:
    """Return the languages in a model's outputs."""
    return sorted(p.name for p in outputs.iterdir() if p.is_dir() and p.name != COVERED)


def sources(inputs: Inputs, *models: str) -> Iterator[tuple[str, Lists, Path]]:
    """Yield the language, lists and file of people, for each language and part of speech."""
    folders = [inputs.outputs("associations", model) for model in models]
    for language in sorted({language for folder in folders for language in languages(folder)}):
        present = tuple(folder / language for folder in folders if (folder / language).is_dir())
        for pos in POS:
            yield (
                language,
                Lists(present, pos),
                inputs.datasets["politicians"] / f"{language}.parquet",
            )


def read_people(path: Path, chosen: pl.Expr | None = None) -> People:
    """Read the people of one language, or only those for whom the condition ``chosen`` is true."""
    frame = pl.read_parquet(path, columns=["qid", "name", "gender"])
    if chosen is not None:
        frame = frame.filter(chosen)
    frame = frame.sort(ITEM)
    return People(
        frame.select(ITEM).to_series().to_numpy(),
        frame["gender"].cast(pl.Int64).to_numpy(),
        bootstrap.keys(frame["name"]),
        frame.select(pl.struct("name", "gender").is_first_distinct()).to_series().to_numpy(),
    )


def read_lists(source: Lists, people: People) -> tuple[csr_array, pl.DataFrame, int]:
    """Return the fields matrix, words and rows of :class:`Counts` for these people.

    If outputs contain several templates (frames), only the lists of the paper's template are read
    or, if it is missing, those of the model's first template.

    Raises UserError if a folder has no outputs, or a list contains a form twice.
    """
    persons = pl.LazyFrame({"item": people.items, "person": np.arange(len(people.items))})
    words, frame = pl.col("word", "lemma").cast(pl.Categorical), pl.col("frame")
    read = []
    for model, folder in enumerate(source.folders):
        if not any(folder.glob("*.parquet")):
            raise UserError(f"{folder}: outputs are missing; run `make repro STAGE=associations`")
        rows = pl.scan_parquet(folder / "*.parquet").filter(pl.col("pos") == source.pos)
        if "frame" in rows.collect_schema():
            first = pl.coalesce(frame.filter(frame == BARE).first(), frame.first())
            rows = rows.filter(frame.eq_missing(first))
        read.append(
            rows.select(words, item=ITEM, model=pl.lit(model)).join(persons, on="item").collect()
        )
    table = pl.concat(read).rename({"word": "form"})
    form = pl.col("form")
    twice = table.group_by("model", "person").agg(form.filter(form.is_duplicated()).first())
    for model, person, word in twice.drop_nulls().sort("model", "person").head(1).iter_rows():
        raise UserError(
            f"{source.folders[model]}: the list of Q{people.items[person]} contains a word twice "
            f"({word!r}); run the probe `associations` again"
        )
    counted = pl.col("lemma" if source.unit == "lemma" else "form")
    texts = pl.col("form", "lemma").cast(pl.String)
    vocabulary = (  # ties between forms, and between lemmas, are broken alphabetically
        table.group_by("form", "lemma", word=counted)
        .len()
        .with_columns(texts, text=pl.col("word").cast(pl.String))
        .sort("len", "form", "lemma", descending=[True, False, False])
        .unique("word", keep="first", maintain_order=True)
        .sort("text")
    )
    code = vocabulary.select("word", code=pl.int_range(pl.len()))
    cells = table.select("model", "person", word=counted).unique().join(code, on="word")
    places = cells["person"].to_numpy(), cells["code"].to_numpy()
    shape = len(people.items), len(vocabulary)
    matrix = csr_array((np.ones(len(cells), np.int64), places), shape=shape)  # sums over models
    return matrix, vocabulary.select("text", "form", "lemma").rename({"text": "word"}), len(table)


def count(source: Lists, people: People) -> Counts:
    """Count lists by word and gender.

    A person's lists from several models count separately; the person and the name count once.
    """
    matrix, words, rows = read_lists(source, people)
    seen = np.diff(matrix.indptr) > 0
    genders = np.unique(people.genders[seen])
    of_gender = people.genders == genders[:, None]
    return Counts(
        source,
        people,
        matrix,
        words,
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
    """Count distinct pairs of name and gender by list length and number of lists with a word.

    Returns
    -------
    (words, lengths, models + 1) array
        For each chosen word and list length, the number of names whose 0, 1, 2, ... lists
        contain the word.
    (lengths, groups) array
        Number of names by list length and gender.
    """
    units = np.flatnonzero(counts.persons.first & counts.seen)
    lists = counts.matrix[units]
    lengths, stratum = np.unique(lists.sum(axis=1), return_inverse=True)
    sizes = np.zeros((len(lengths), len(counts.genders)), dtype=np.int64)
    np.add.at(sizes, (stratum, counts.groups()[units]), 1)
    cells = lists[:, chosen].tocoo()
    times = np.zeros((len(chosen), len(lengths), len(counts.source.folders) + 1), dtype=np.int64)
    np.add.at(times, (cells.col, stratum[cells.row], cells.data), 1)
    times[:, :, 0] = sizes.sum(axis=1) - times.sum(axis=2)
    return times, sizes


def bootstrap_counts(
    counts: Counts, chosen: NDArray[np.intp], n_bootstrap: int, seed: int, *, once: bool = False
) -> Draws:
    """Count lists again with bootstrap weights for distinct names.

    ``chosen``: indices, of shape (words,), of the words that get their own rows.
    ``once``: True if Bayesian replicates count each pair of name and gender only once.
    """
    people, table, groups = counts.persons, counts.with_rest(chosen), counts.groups()
    ordinary, bayesian = np.zeros((2, table.shape[1], len(counts.genders), n_bootstrap))
    persons = np.flatnonzero(counts.seen)
    for block in np.split(persons, range(PERSONS, len(persons), PERSONS)):
        uniform = bootstrap.bits(people.names[block], n_bootstrap, seed)
        arguments = table[block], groups[block], len(counts.genders)
        ordinary += weighted(*arguments, bootstrap.poisson(uniform))
        weights = bootstrap.exponential(uniform) * (people.first[block, None] | (not once))
        bayesian += weighted(*arguments, weights)
    bayesian /= bootstrap.GRAIN
    return Draws(ordinary, bayesian, len(counts.words) - len(chosen))


def permute_counts(
    counts: Counts,
    chosen: NDArray[np.intp],
    genders: tuple[int, int],
    n_permutations: int,
    seed: int,
) -> Floats:
    """Count the lists of distinct names after permuting two gender labels over the names.

    Other labels are fixed, and the number of names per label is preserved. The permutations depend
    only on the names whose labels are permuted.

    ``genders``: codes of the two genders, both of which must occur.

    Returns
    -------
    (words, groups, permutations) array
        If not all words are chosen, the last row is the sum of the others.
    """
    people = counts.persons
    names = np.flatnonzero(people.first)
    by_word = counts.with_rest(chosen)[names].T.tocsr().astype(np.float64)
    pair, groups = np.searchsorted(counts.genders, genders), counts.groups()[names]
    free = np.isin(people.genders[names], genders)
    units = people.names[names] ^ ((people.genders[names].astype(np.uint64) + 1) << np.uint64(61))
    size = int((people.genders[names] == genders[0]).sum())
    blocks = []
    for start in range(0, n_permutations, LABELS):
        # these random numbers are independent of the bootstrap weights
        stream = seed + ((start // LABELS + 1) << 32)
        uniform = bootstrap.bits(units[free], min(LABELS, n_permutations - start), stream)
        labels = np.repeat(groups[:, None], uniform.shape[1], axis=1)
        inside = uniform <= np.partition(uniform, size - 1, axis=0)[size - 1]
        labels[free] = np.where(inside, *pair)
        groups_there = range(len(counts.genders))
        blocks.append(
            np.stack([by_word @ (labels == g).astype(np.float64) for g in groups_there], axis=1)
        )
    return np.concatenate(blocks, axis=2)


def by_name(source: Lists, path: Path, min_count: int) -> Named | None:
    """Return one model's lists by name and gender, or None if no word is in enough lists.

    Since lists depend only on the name, one person's list represents all people with that name.

    ``path``: file of the dataset ``politicians`` in the language of the lists.
    ``min_count``: a word is retained if at least this number of names have it in their lists.
    """
    people = read_people(path)
    matrix, words, _ = read_lists(source, people)
    persons = np.flatnonzero(people.first & (np.diff(matrix.indptr) > 0))
    table = pl.read_parquet(path, columns=["qid", "name", "gender"]).sort(ITEM)[persons]
    names = table.with_columns(person=persons).sort("name", "gender")
    matrix = matrix[names["person"].to_numpy()]
    words = words.with_columns(count=matrix.sum(axis=0)).with_row_index("column")
    order = ["count", "word"]
    words = words.filter(pl.col("count") >= min_count).sort(order, descending=[True, False])
    if words.is_empty():
        return None
    labels, genders = np.unique(names["gender"].to_numpy(), return_inverse=True)
    chosen = matrix.tocsc()[:, words["column"].to_numpy()].tocsr().astype(np.float64)
    names, words = names.select("name", "gender"), words.drop("column")
    return Named(chosen, genders, tuple(labels.tolist()), names, words)
