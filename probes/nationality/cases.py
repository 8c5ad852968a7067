"""The rows of ``counterfactuals`` with the predictions of a classifier, as arrays.

Of millions of rows: texts are known by their hashes, and what stands in many rows by its number.
"""

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

    Part = tuple[NDArray[np.uint64], NDArray[np.int32], NDArray[np.float64]]  # of Said

CONTRAST = "positive minus negative"
EVERY = "all"
COMPARED = READINGS[1:]  # faithful, corrected, placebo
SEXES = (EVERY, "male", "female")
OTHER = "other"
BLOCK = 100_000  # names looked up at once


class Said(NamedTuple):
    """What a model said of texts."""

    keys: NDArray[np.uint64]  # (texts,) their hashes, rising
    tokens: NDArray[np.int32]  # (texts,)
    values: NDArray[np.float64]  # (texts, measures)

    @classmethod
    def read(
        cls, paths: Sequence[Path], number: int, measures: int, part: Callable[[Path], Part]
    ) -> Said:
        """Return what files say of so many texts, in arrays that are filled file by file."""
        keys, tokens = np.empty(number, np.uint64), np.empty(number, np.int32)
        values, at = np.empty((number, measures), order="F"), 0
        for path in paths:
            own = part(path)
            rows = slice(at, at := at + len(own[0]))
            keys[rows], tokens[rows], values[rows] = own
        order = keys.argsort()
        for column in (keys, tokens, *values.T):
            column[:] = column[order]
        if (keys[1:] == keys[:-1]).any():
            where = paths[0].parent
            raise UserError(f"{where}: has a text twice; take the folder away and run the probe")
        return cls(keys, tokens, values)

    def places(self, keys: NDArray[np.uint64]) -> NDArray[np.int32]:
        """Return where texts are, -1 of those that are not."""
        return _places(self.keys, keys)

    def of_texts(self, rows: NDArray[np.int32]) -> NDArray[np.float64]:
        """Return the values of texts by place, (rows, measures), one measure after the other."""
        found = np.empty((len(rows), self.values.shape[1]), order="F")
        for column, values in zip(found.T, self.values.T, strict=True):
            column[:] = values[rows]
        return found

    def classes(self) -> NDArray[np.int16]:
        """Return the most probable class of each text of a classifier, the first of equal ones."""
        found = np.empty(len(self.keys), np.int16)
        for start in range(0, len(found), BLOCK):
            rows = slice(start, start + BLOCK)
            found[rows] = self.values[rows, 1:].argmax(axis=1)
        return found


class Case(NamedTuple):
    """Counterfactuals of one config and reading, n rows, and one classifier's predictions."""

    reading: str
    measures: tuple[str, ...]  # P+ - P-, then the classes
    said: Said  # of all texts, the measures
    countries: list[str]
    sentences: int  # source texts
    sentence: NDArray[np.int32]  # (n,) numbers of source texts
    country: NDArray[np.int32]  # (n,) places in countries
    gender: NDArray[np.int32]  # (n,) of the name put in, places in GENDERS
    words: pl.Series  # of all names, sorted: their first words, and what follows
    name: NDArray[np.int32]  # (n, 2) places of both in words: what is put in
    other: NDArray[np.int32]  # (n, 2) the name in the text that it is compared with
    row: NDArray[np.int32]  # (n,) places in said
    compared: NDArray[np.int32]  # (n,) of what it is compared with

    @property
    def after(self) -> NDArray[np.float64]:
        """Return the measures of the counterfactuals, (n, measures)."""
        return self.said.of_texts(self.row)

    @property
    def before(self) -> NDArray[np.float64]:
        """Return the measures of what they are compared with, (n, measures)."""
        return self.said.of_texts(self.compared)

    @property
    def change(self) -> NDArray[np.float64]:
        """Return counterfactual minus what it is compared with, (n, measures)."""
        found = self.after
        for measure, before in enumerate(self.said.values.T):  # bounds memory
            found[:, measure] -= before[self.compared]
        return found

    @property
    def tokens(self) -> NDArray[np.float64]:
        """Return how many tokens more than that a counterfactual has, (n,)."""
        found = self.said.tokens[self.row] - self.said.tokens[self.compared]
        return found.astype(np.float64)

    @property
    def shape(self) -> tuple[int, int]:
        """Return how many source texts and countries there are."""
        return self.sentences, len(self.countries)

    def units(self) -> list[NDArray[np.int32]]:
        """Return numbers of what rows share beside their texts, (n,) each.

        First words of names and what follows; of placebo swaps first words on both sides. A row
        that has none shares it with no other.
        """
        sides = (self.name, self.other) if self.reading == "placebo" else (self.name, self.name)
        found = []
        for part, side in enumerate(sides):
            number = side[:, 0 if side is self.other else part].copy()
            none = (self.words == "").to_numpy()[number]
            number[none] = len(self.words) + np.flatnonzero(none)
            found.append(number)
        return found

    def looked_up(
        self, of: NDArray[np.int32], known: Callable[[str, str, str], float]
    ) -> NDArray[np.float64]:
        """Return what is known of names by country, gender and the name in small letters, (n,)."""
        number = len(self.words)
        place = self.country.astype(np.int64) * len(GENDERS) + self.gender
        for part in of.T:
            place = place * number + part
        each, inverse = np.unique(place, return_inverse=True)
        found = np.empty(len(each))
        for start in range(0, len(each), BLOCK):
            rows = slice(start, start + BLOCK)
            group, first, rest = np.unravel_index(
                each[rows], (len(self.countries) * len(GENDERS), number, number)
            )
            names = self.words.gather(first) + " " + self.words.gather(rest)
            country, gender = np.divmod(group, len(GENDERS))
            texts = names.str.strip_chars().to_list()
            asked = zip(country.tolist(), gender.tolist(), texts, strict=True)
            found[rows] = [known(self.countries[c], GENDERS[g], t.casefold()) for c, g, t in asked]
        return found[inverse]

    def chosen(self, rows: NDArray[np.int64]) -> Case:
        """Return some rows alone."""
        columns = ("sentence", "country", "gender", "name", "other", "row", "compared")
        changed: dict[str, Any] = {name: getattr(self, name)[rows] for name in columns}
        return self._replace(**changed)

    def of_countries(self, kept: NDArray[np.bool_]) -> Case:
        """Return the rows of some countries alone, (countries,), numbered anew."""
        case = self.chosen(np.flatnonzero(kept[self.country]))
        places = [c for c, k in zip(self.countries, kept, strict=True) if k]
        number = (np.cumsum(kept) - 1).astype(np.int32)
        return case._replace(countries=places, country=number[case.country])


def table(
    countries: Sequence[str], of: str, names: Sequence[str] | range, columns: Mapping[str, Any]
) -> pl.DataFrame:
    """Return a row for each country and name, such as a class; nan is null.

    ``of``: what the column of the names is called.
    ``columns``: arrays (countries, names), or what can be broadcast to it.
    """
    shape = len(countries), len(names)
    keys = {"country": list(np.repeat(countries, shape[1])), of: list(names) * shape[0]}
    values = {name: np.broadcast_to(own, shape).ravel() for name, own in columns.items()}
    return pl.DataFrame(keys | values).fill_nan(None)


def classified(
    outputs: Path, model: str, known: Mapping[str, Mapping[str, Sequence[str]]]
) -> tuple[Said, tuple[str, ...]]:
    """Return the predictions of a classifier for a config, and what its measures are.

    ``outputs``: what the probe ``classification`` has of it.
    ``known``: for each side, ``positive`` and ``negative``, its classes by model, or for those not
    named under ``other``, in any case.

    Raises UserError if a side has none of the model's classes.
    """
    paths = sorted(outputs.glob("*.parquet"))
    classes = pl.read_parquet(paths[0], columns=["class"])["class"].unique(maintain_order=True)
    signs = np.zeros(len(classes))
    for side, sign in (("positive", 1), ("negative", -1)):
        of = {name.casefold() for name in known[side].get(model, known[side].get(OTHER, ()))}
        there = np.array([name.casefold() in of for name in classes])
        if not there.any():
            raise UserError(
                f"analysis.nationality.{side}: none of the classes of {model} "
                f"({', '.join(classes)}); say which, under {model} or {OTHER}"
            )
        signs += sign * there

    def part(path: Path) -> Part:
        frame = pl.read_parquet(path, columns=["text", "class", "logprob_nats", "tokens"])
        frame = frame.with_columns(
            pl.col("text").hash().alias("key"), pl.col("tokens").cast(pl.Int32)
        )
        wide = frame.pivot(on="class", index=["key", "tokens"], values="logprob_nats")
        shares = np.exp(wide.select(classes.to_list()).to_numpy())
        both = np.column_stack([shares @ signs, shares])
        return wide["key"].to_numpy(), wide["tokens"].to_numpy(), both

    number = pl.scan_parquet(paths).select(pl.len()).collect().item() // len(classes)
    return Said.read(paths, number, 1 + len(classes), part), (CONTRAST, *classes)


def keys(path: Path) -> NDArray[np.uint64]:
    """Return the hashes of the texts of a config, each once, rising."""
    return np.unique(pl.read_parquet(path, columns=["text"])["text"].hash().to_numpy())


def cases(path: Path, said: Said, measures: tuple[str, ...]) -> Iterator[Case]:
    """Return the readings of a config of the dataset that have rows, one made after the other.

    A UserError if a text was not classified.
    """
    rows, parts = pl.scan_parquet(path), pl.col("name").str.splitn(" ", 2).struct
    named = {"first": parts.field("field_0"), "rest": parts.field("field_1").fill_null("")}
    columns = {"target": pl.col("target"), "country": pl.col("country")} | named
    each = {name: _distinct(rows, column) for name, column in columns.items()}
    words = pl.concat([each.pop(name) for name in named]).unique().sort()
    coded = {
        name: column.cast(pl.Enum(each.get(name, words))).to_physical().cast(pl.Int32)
        for name, column in columns.items()
    }
    text = pl.col("text").hash()

    def case(code: int) -> Case:
        reading = READINGS[code]
        of = READINGS.index("corrected" if reading == "placebo" else "original")
        own = _read(
            rows.filter(pl.col("reading") == code),
            {**coded, "gender": pl.col("gender").cast(pl.Int8), "text": text}
            | {"reference": pl.col("reference_id").hash()},
        )
        others = _read(
            rows.filter(pl.col("reading") == of),
            {"reference": pl.col("id").hash(), "text": text}
            | {name: coded[name] for name in named},
        )
        order = others["reference"].argsort()
        at = _places(others.pop("reference")[order], own.pop("reference"))
        order, found = order[at], at.min()
        del at
        compared, row = said.places(others.pop("text"))[order], said.places(own.pop("text"))
        if min(found, row.min(), compared.min()) < 0:
            raise UserError(
                f"{path}: has texts that were not classified; run `make repro STAGE=classification`"
            )
        sentences, sentence = np.unique(own.pop("target"), return_inverse=True)
        countries, country = np.unique(own.pop("country"), return_inverse=True)
        return Case(
            reading=reading,
            measures=measures,
            said=said,
            countries=each["country"].gather(countries).to_list(),
            sentences=len(sentences),
            sentence=sentence.astype(np.int32),
            country=country.astype(np.int32),
            gender=own["gender"],
            words=words,
            name=np.stack([own[name] for name in named], axis=1),
            other=np.stack([others[name][order] for name in named], axis=1),
            row=row,
            compared=compared,
        )

    there = rows.select(pl.col("reading").unique().sort()).collect(engine="streaming")
    # none is kept here while the next is made: bounds memory
    return (case(code) for code in there["reading"].to_list() if READINGS[code] in COMPARED)


def _distinct(rows: pl.LazyFrame, column: pl.Expr) -> pl.Series:
    return rows.select(column.unique().sort()).collect(engine="streaming").to_series()


def _read(rows: pl.LazyFrame, columns: Mapping[str, pl.Expr]) -> dict[str, NDArray[Any]]:
    """Return columns as arrays, in the dataset's order: two classifiers are paired by place."""
    frame = rows.select(**columns).collect(engine="streaming")
    return {name: column.to_numpy() for name, column in frame.to_dict().items()}


def _places(known: NDArray[np.uint64], wanted: NDArray[np.uint64]) -> NDArray[np.int32]:
    """Return where keys are among known ones, which rise; -1 of those that are not."""
    at = np.searchsorted(known, wanted).clip(max=len(known) - 1)
    return np.where(known[at] == wanted, at, -1).astype(np.int32)
