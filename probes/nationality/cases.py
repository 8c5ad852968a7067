"""Counterfactuals, the texts they are compared with, and a classifier's predictions for both.

Names are ranked by frequency in the gazetteer of their country.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl

from plumbline.builders.core import parquet
from plumbline.builders.core.errors import UserError
from plumbline.builders.datasets.counterfactuals.build import GENDERS, READINGS
from plumbline.builders.readers.name_lists import KINDS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    Ranks = dict[tuple[str, str], dict[str, int]]  # (country, kind) -> casefolded name -> rank

CONTRAST = "positive minus negative"
EVERY = "all"
COMPARED = READINGS[1:]  # all but original: faithful, corrected, placebo
SEXES = (EVERY, "male", "female")
OTHER = "other"


class Scores(NamedTuple):
    """A model's predictions for each text."""

    texts: pl.Series  # (texts,) distinct
    tokens: NDArray[np.int32]  # (texts,)
    values: NDArray[np.float64]  # (texts, measures)

    @classmethod
    def of(cls, folder: Path, table: pl.DataFrame, values: NDArray[np.float64]) -> Scores:
        """Return the scores of the texts in a table; raise UserError if a text occurs twice."""
        if table["text"].is_duplicated().any():
            raise UserError(f"{folder}: a text occurs twice; delete the folder and rerun the probe")
        return cls(table["text"], table["tokens"].cast(pl.Int32).to_numpy(), values)

    def places(self, texts: pl.Series) -> NDArray[np.int32]:
        """Return the row number of each text; -1 for a text without scores."""
        rows = pl.int_range(len(self.texts), dtype=pl.Int32, eager=True)
        return texts.replace_strict(self.texts, rows, default=-1).to_numpy()


class Case(NamedTuple):
    """The n counterfactuals of a config and method variant, and a classifier's predictions."""

    reading: str
    measures: tuple[str, ...]  # first P+ - P-, then the classes
    scores: Scores  # scores of all texts
    countries: list[str]
    sentences: int  # number of source texts
    sentence: NDArray[np.int32]  # (n,) index of the source text
    country: NDArray[np.int32]  # (n,) index into ``countries``
    gender: NDArray[np.int32]  # (n,) gender of the inserted name, index into GENDERS
    row: NDArray[np.int32]  # (n,) row of scores
    compared: NDArray[np.int32]  # (n,) row of scores for the compared text
    names: pl.DataFrame  # first word and rest of each name: first, rest, first_other, rest_other

    @property
    def change(self) -> NDArray[np.float64]:
        """Return the difference in scores, counterfactual minus compared text, (n, measures)."""
        return self.scores.values[self.row] - self.scores.values[self.compared]

    @property
    def tokens(self) -> NDArray[np.float64]:
        """Return the difference in token counts, counterfactual minus compared text."""
        difference = self.scores.tokens[self.row] - self.scores.tokens[self.compared]
        return difference.astype(np.float64)

    @property
    def shape(self) -> tuple[int, int]:
        """Return the number of source texts and the number of countries."""
        return self.sentences, len(self.countries)

    def units(self) -> list[NDArray[np.int32]]:
        """Return each row's cluster by the first word of the name, and by the rest of the name.

        For placebo swaps, the clusters are the first words of both names. A row without such a word
        is a cluster of its own.
        """
        clusters = []
        for column in ("first", "first_other" if self.reading == "placebo" else "rest"):
            words = self.names[column]
            number = words.rank("dense").cast(pl.Int32).to_numpy().copy()
            none = (words == "").to_numpy()
            number[none] = len(words) + 1 + np.flatnonzero(none)
            clusters.append(number)
        return clusters

    def by_name(
        self, side: str, value: Callable[[str, str, str], float | None]
    ) -> NDArray[np.float64]:
        """Return each row's value, a function of its country, gender and casefolded name; or nan.

        ``side``: "" for the inserted names, "_other" for the names in the compared texts.
        """
        key = ["country", "gender", f"first{side}", f"rest{side}"]
        rows = self.names.with_columns(country=self.country, gender=self.gender).select(key)
        distinct = rows.unique()
        values = [
            value(self.countries[country], GENDERS[gender], f"{first} {last}".strip().casefold())
            for country, gender, first, last in distinct.iter_rows()
        ]
        table = distinct.with_columns(pl.Series("value", values, dtype=pl.Float64))
        column = rows.join(table, on=key, how="left", maintain_order="left")["value"]
        return column.fill_null(np.nan).to_numpy()

    def where(self, mask: NDArray[np.bool_]) -> Case:
        """Return only the rows selected by a mask."""
        columns = ("sentence", "country", "gender", "row", "compared")
        changed: dict[str, Any] = {name: getattr(self, name)[mask] for name in columns}
        return self._replace(names=self.names.filter(mask), **changed)

    def of_countries(self, mask: NDArray[np.bool_]) -> Case:
        """Return only the rows of the countries selected by a mask, with countries renumbered."""
        case, number = self.where(mask[self.country]), (np.cumsum(mask) - 1).astype(np.int32)
        countries = np.array(self.countries)[mask].tolist()
        return case._replace(countries=countries, country=number[case.country])


def table(
    countries: Sequence[str], key: str, names: Sequence[str] | range, columns: Mapping[str, Any]
) -> pl.DataFrame:
    """Return a row for each country and name (such as a class); nan is replaced with null.

    ``key``: column for the names. ``columns``: arrays that broadcast to shape (countries, names).
    """
    shape = len(countries), len(names)
    keys = {"country": list(np.repeat(countries, shape[1])), key: list(names) * shape[0]}
    values = {name: np.broadcast_to(array, shape).ravel() for name, array in columns.items()}
    return pl.DataFrame(keys | values).fill_nan(None)


def with_constants(table: pl.DataFrame, **values: object) -> pl.DataFrame:
    """Add columns that contain the same value in all rows."""
    return table.with_columns(pl.lit(value).alias(name) for name, value in values.items())


def classified(
    folder: Path, model: str, sides: Mapping[str, Mapping[str, Sequence[str]]]
) -> tuple[Scores, tuple[str, ...]]:
    """Return a classifier's predictions for a config, and the names of its measures.

    ``folder``: outputs of the probe ``classification`` for the config. ``sides``: the classes that
    are ``positive`` and ``negative``, by model or for ``other`` models; case is ignored. Raises
    UserError if a side contains none of the model's classes, or lists for this model a class that
    it does not have.
    """
    columns = ["text", "tokens", "class", "logprob_nats"]
    rows = pl.read_parquet(sorted(folder.glob("*.parquet")), columns=columns)
    classes = rows["class"].unique(maintain_order=True).to_list()
    signs = np.zeros(len(classes))
    for side, sign in (("positive", 1), ("negative", -1)):
        listed = sides[side].get(model, sides[side].get(OTHER, ()))
        names = {name.casefold() for name in listed}
        matching = np.array([name.casefold() in names for name in classes])
        unknown = sorted(names - {name.casefold() for name in classes})
        if (unknown and model in sides[side]) or not matching.any():
            raise UserError(
                f"analysis.nationality.{side}: {', '.join(unknown)} is no class of {model} "
                f"({', '.join(classes)}); list its classes under {model} or {OTHER}"
            )
        signs += sign * matching
    rows = rows.sort("text", pl.col("class").cast(pl.Enum(classes)))
    shares = np.exp(rows["logprob_nats"].to_numpy().reshape(-1, len(classes)))
    values = np.column_stack([shares @ signs, shares])
    return Scores.of(folder, rows.gather_every(len(classes)), values), (CONTRAST, *classes)


def cases(path: Path, scores: Scores, measures: tuple[str, ...]) -> Iterator[Case]:
    """Yield a config's method variants in row order; raise UserError for unclassified texts."""
    words = pl.col("name").str.splitn(" ", 2).struct
    rows = pl.read_parquet(path).with_columns(
        first=words.field("field_0"), rest=words.field("field_1").fill_null("")
    )
    others = rows.select("reading", "text", "first", "rest", reference_id="id")
    for reading in COMPARED:
        compared = "corrected" if reading == "placebo" else "original"
        table = rows.filter(reading=READINGS.index(reading)).join(
            others.filter(reading=READINGS.index(compared)),
            on="reference_id",
            how="left",
            suffix="_other",
            maintain_order="left",
        )
        if table.is_empty():
            continue
        row, compared_row = (scores.places(table[column]) for column in ("text", "text_other"))
        if min(row.min(), compared_row.min()) < 0:
            raise UserError(
                f"{path}: contains unclassified texts; run `make repro STAGE=classification`"
            )
        sentence, country = (
            table[name].rank("dense").cast(pl.Int32).to_numpy() - 1
            for name in ("target", "country")
        )
        yield Case(
            reading=reading,
            measures=measures,
            scores=scores,
            countries=table["country"].unique().sort().to_list(),
            sentences=table["target"].n_unique(),
            sentence=sentence,
            country=country,
            gender=table["gender"].cast(pl.Int32).to_numpy(),
            row=row,
            compared=compared_row,
            names=table.select("first", "rest", "first_other", "rest_other"),
        )


def split_halves(ranks: Ranks, case: Case) -> Case:
    """Return placebo swaps as changes from names of even rank to names of odd rank in a country.

    The two halves of the names are the same for all texts, so estimates vary with the names. Swaps
    within a half are omitted.
    """

    def odd(country: str, gender: str, name: str) -> int | None:
        rank = rank_of(ranks, country, gender, name.split(" ", 1)[0])
        return None if rank is None else rank % 2

    after, before = case.by_name("", odd), case.by_name("_other", odd)
    mask = np.abs(after - before) == 1
    case, swapped = case.where(mask), (after == 0)[mask]
    columns = case.names.columns  # the first two belong to the inserted name
    names = case.names.with_columns(
        pl.when(pl.lit(pl.Series(swapped))).then(other).otherwise(name).alias(name)
        for name, other in zip(columns, columns[2:] + columns[:2], strict=True)
    )
    row, compared = np.where(swapped, [case.compared, case.row], [case.row, case.compared])
    return case._replace(names=names, row=row, compared=compared)


def read_ranks(folder: Path, countries: Sequence[str]) -> Ranks:
    """Return the rank of each name of the countries in the dataset ``names``."""
    ranks: Ranks = {}
    for country in sorted({*countries} & {*parquet.configs(folder)}):
        table = pl.read_parquet(folder / f"{country}.parquet", columns=["kind", "name", "rank"])
        for kind, name, rank in table.sort("kind", "name").iter_rows():
            ranks.setdefault((country, KINDS[kind]), {})[name.casefold()] = rank
    return ranks


def rank_of(ranks: Ranks, country: str, gender: str, part: str, last: bool = False) -> int | None:
    """Return the rank of a name part, preferably as a first name of this gender."""
    kinds = sorted(KINDS, key=lambda kind: (kind != gender, kind == "last"))
    order = kinds[::-1] if last else kinds
    return next((t[part] for k in order if part in (t := ranks.get((country, k), {}))), None)


def log_rank(ranks: Ranks, country: str, gender: str, name: str) -> float | None:
    """Return the log rank of a name, or else the mean log rank of its two parts."""
    if complete := rank_of(ranks, country, gender, name):
        return float(np.log(complete))
    words = [word for word in re.split(r"\s+", name) if word]
    for cut in range(1, len(words)):
        first = rank_of(ranks, country, gender, " ".join(words[:cut]))
        last = rank_of(ranks, country, gender, " ".join(words[cut:]), last=True)
        if first and last:
            return float(np.log(first) + np.log(last)) / 2
    return None
