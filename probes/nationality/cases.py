"""Counterfactuals, the text that each is compared with, and a classifier's predictions for both."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl

from plumbline.builders.core.errors import UserError
from plumbline.builders.datasets.counterfactuals.build import GENDERS, READINGS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

CONTRAST = "positive minus negative"
EVERY = "all"
COMPARED = READINGS[1:]  # faithful, corrected, placebo
SEXES = (EVERY, "male", "female")
OTHER = "other"
KEY = pl.col("text").hash()


class Scores(NamedTuple):
    """What a model predicts for each text; rows are sorted by the hashes of the texts."""

    keys: NDArray[np.uint64]  # (texts,)
    tokens: NDArray[np.int32]  # (texts,)
    values: NDArray[np.float64]  # (texts, measures)

    def places(self, keys: NDArray[np.uint64]) -> NDArray[np.int32]:
        """Return the rows of texts, -1 of a text without scores."""
        at = np.searchsorted(self.keys, keys).clip(max=len(self.keys) - 1)
        return np.where(self.keys[at] == keys, at, -1).astype(np.int32)


class Case(NamedTuple):
    """Counterfactuals of one config and reading, n rows, and one classifier's predictions."""

    reading: str
    measures: tuple[str, ...]  # P+ - P-, then the classes
    scores: Scores  # of all texts
    countries: list[str]
    sentences: int  # number of source texts
    sentence: NDArray[np.int32]  # (n,) numbers of source texts
    country: NDArray[np.int32]  # (n,) places in countries
    gender: NDArray[np.int32]  # (n,) of the name put in, places in GENDERS
    row: NDArray[np.int32]  # (n,) rows of scores
    compared: NDArray[np.int32]  # (n,) rows of scores of the texts they are compared with
    names: pl.DataFrame  # first word and rest of both names: first, rest, first_other, rest_other

    @property
    def change(self) -> NDArray[np.float64]:
        """Return counterfactual minus the text it is compared with, (n, measures)."""
        return self.scores.values[self.row] - self.scores.values[self.compared]

    @property
    def tokens(self) -> NDArray[np.float64]:
        """Return how many tokens more a counterfactual has, (n,)."""
        found = self.scores.tokens[self.row] - self.scores.tokens[self.compared]
        return found.astype(np.float64)

    @property
    def shape(self) -> tuple[int, int]:
        """Return the numbers of source texts and countries."""
        return self.sentences, len(self.countries)

    def units(self) -> list[NDArray[np.int32]]:
        """Return clusters of names, (n,) each: by first words, and by what follows.

        In placebo swaps by first words on both sides. A row without such words is a cluster of
        its own.
        """
        found = []
        for column in ("first", "first_other" if self.reading == "placebo" else "rest"):
            words = self.names[column]
            number = words.rank("dense").cast(pl.Int32).to_numpy().copy()
            none = (words == "").to_numpy()
            number[none] = len(words) + 1 + np.flatnonzero(none)
            found.append(number)
        return found

    def by_name(
        self, side: str, value: Callable[[str, str, str], float | None]
    ) -> NDArray[np.float64]:
        """Return a value of each name by country, gender and name in lower case, (n,); or nan.

        ``side``: "" for the names put in, "_other" for those they are compared with.
        """
        key = ["country", "gender", f"first{side}", f"rest{side}"]
        rows = self.names.with_columns(country=self.country, gender=self.gender).select(key)
        distinct = rows.unique()
        values = [
            value(self.countries[country], GENDERS[gender], f"{first} {rest}".strip().casefold())
            for country, gender, first, rest in distinct.iter_rows()
        ]
        known = distinct.with_columns(pl.Series("value", values, dtype=pl.Float64))
        found = rows.join(known, on=key, how="left", maintain_order="left")["value"]
        return found.fill_null(np.nan).to_numpy()

    def where(self, kept: NDArray[np.bool_]) -> Case:
        """Return some of the rows."""
        columns = ("sentence", "country", "gender", "row", "compared")
        changed: dict[str, Any] = {name: getattr(self, name)[kept] for name in columns}
        return self._replace(names=self.names.filter(kept), **changed)

    def of_countries(self, kept: NDArray[np.bool_]) -> Case:
        """Return the rows of some countries, (countries,), which are numbered again."""
        case = self.where(kept[self.country])
        countries = [c for c, keep in zip(self.countries, kept, strict=True) if keep]
        number = (np.cumsum(kept) - 1).astype(np.int32)
        return case._replace(countries=countries, country=number[case.country])


def table(
    countries: Sequence[str], key: str, names: Sequence[str] | range, columns: Mapping[str, Any]
) -> pl.DataFrame:
    """Return a row for each country and name, such as a class; nan is null.

    ``key``: the column of the names.
    ``columns``: arrays (countries, names), or what can be broadcast to it.
    """
    shape = len(countries), len(names)
    keys = {"country": list(np.repeat(countries, shape[1])), key: list(names) * shape[0]}
    values = {name: np.broadcast_to(own, shape).ravel() for name, own in columns.items()}
    return pl.DataFrame(keys | values).fill_nan(None)


def read_outputs(folder: Path, *columns: str | pl.Expr) -> pl.DataFrame:
    """Return outputs of a probe for a config, with the hashes of texts as ``key``."""
    rows = pl.scan_parquet(sorted(folder.glob("*.parquet")))
    return rows.select(pl.col("tokens").cast(pl.Int32), *columns, key=KEY).collect()


def check_unique(folder: Path, keys: NDArray[np.uint64]) -> None:
    """Raise a UserError if a text occurs twice; ``keys``: sorted."""
    if (keys[1:] == keys[:-1]).any():
        raise UserError(f"{folder}: has a text twice; delete the folder and run the probe again")


def classified(
    folder: Path, model: str, sides: Mapping[str, Mapping[str, Sequence[str]]]
) -> tuple[Scores, tuple[str, ...]]:
    """Return the predictions of a classifier for a config, and the names of its measures.

    ``folder``: outputs of the probe ``classification`` for it.
    ``sides``: for each side, ``positive`` and ``negative``, its classes by model, or for those not
    named under ``other``, in any case.

    Raises UserError if a side has none of the model's classes.
    """
    first = next(iter(sorted(folder.glob("*.parquet"))))
    classes = pl.read_parquet(first, columns=["class"])["class"].unique(maintain_order=True)
    signs = np.zeros(len(classes))
    for side, sign in (("positive", 1), ("negative", -1)):
        wanted = {name.casefold() for name in sides[side].get(model, sides[side].get(OTHER, ()))}
        has = np.array([name.casefold() in wanted for name in classes])
        if not has.any():
            raise UserError(
                f"analysis.nationality.{side}: none of the classes of {model} "
                f"({', '.join(classes)}); name some under {model} or {OTHER}"
            )
        signs += sign * has
    label = pl.col("class").cast(pl.Enum(classes))
    rows = read_outputs(folder, label, "logprob_nats").sort("key", "class")
    # of each text one row a class
    keys, tokens = (rows[name].to_numpy()[:: len(classes)] for name in ("key", "tokens"))
    check_unique(folder, keys)
    shares = np.exp(rows["logprob_nats"].to_numpy().reshape(-1, len(classes)))
    values = np.column_stack([shares @ signs, shares])
    return Scores(keys.copy(), tokens.copy(), values), (CONTRAST, *classes)


def cases(path: Path, scores: Scores, measures: tuple[str, ...]) -> Iterator[Case]:
    """Yield the readings of a config of ``counterfactuals`` that have rows.

    Rows keep the order of the dataset: two classifiers are paired by place.

    Raises UserError if a text was not classified.
    """
    words = pl.col("name").str.splitn(" ", 2).struct
    columns = {
        "id": pl.col("id").hash(),
        "reference": pl.col("reference_id").hash(),
        "key": KEY,
        "first": words.field("field_0"),
        "rest": words.field("field_1").fill_null(""),
    }
    rows = pl.scan_parquet(path).select("reading", "target", "country", "gender", **columns)
    for reading in COMPARED:
        compared = "corrected" if reading == "placebo" else "original"
        if case := _case(path, rows, (reading, compared), scores, measures):
            yield case


def _case(
    path: Path,
    rows: pl.LazyFrame,
    readings: tuple[str, str],
    scores: Scores,
    measures: tuple[str, ...],
) -> Case | None:
    """Return the rows of a reading; None if it has none.

    ``readings``: its own, and that of the texts which its rows are compared with.
    """
    own, other = (rows.filter(reading=READINGS.index(name)).collect() for name in readings)
    if own.is_empty():
        return None
    both = own.join(
        other.select("id", "key", "first", "rest"),
        left_on="reference",
        right_on="id",
        suffix="_other",
        maintain_order="left",
    )
    places = [scores.places(both[key].to_numpy()) for key in ("key", "key_other")]
    if len(both) < len(own) or min(place.min() for place in places) < 0:
        raise UserError(
            f"{path}: has texts that were not classified; run `make repro STAGE=classification`"
        )
    sentence, country = (
        both[name].rank("dense").cast(pl.Int32).to_numpy() - 1 for name in ("target", "country")
    )
    return Case(
        reading=readings[0],
        measures=measures,
        scores=scores,
        countries=both["country"].unique().sort().to_list(),
        sentences=both["target"].n_unique(),
        sentence=sentence,
        country=country,
        gender=both["gender"].cast(pl.Int32).to_numpy(),
        row=places[0],
        compared=places[1],
        names=both.select("first", "rest", "first_other", "rest_other"),
    )
