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

CONTRAST = "positive minus negative"
EVERY = "all"
COMPARED = READINGS[1:]  # faithful, corrected, placebo
SEXES = (EVERY, "male", "female")
OTHER = "other"


class Said(NamedTuple):
    """What a model said of texts."""

    keys: NDArray[np.uint64]  # (texts,) their hashes, rising
    tokens: NDArray[np.int32]  # (texts,)
    values: NDArray[np.float64]  # (texts, measures)

    @classmethod
    def of(cls, frame: pl.DataFrame, where: Path) -> Said:
        """Return the columns ``key``, ``tokens`` and the rest as arrays."""
        frame = frame.sort("key")
        keys = frame["key"].to_numpy()
        if (keys[1:] == keys[:-1]).any():
            raise UserError(f"{where}: has a text twice; take the folder away and run the probe")
        tokens = frame["tokens"].cast(pl.Int32).to_numpy()
        return cls(keys, tokens, frame.drop("key", "tokens").to_numpy())

    def places(self, keys: NDArray[np.uint64]) -> NDArray[np.int32]:
        """Return where texts are, -1 of those that are not."""
        at = np.searchsorted(self.keys, keys).clip(max=len(self.keys) - 1)
        return np.where(self.keys[at] == keys, at, -1).astype(np.int32)


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
    names: pl.Series  # of all rows, once each
    name: NDArray[np.int32]  # (n,) places in names: what is put in
    other: NDArray[np.int32]  # (n,) the name in the text that it is compared with, empty if none
    row: NDArray[np.int32]  # (n,) places in said
    compared: NDArray[np.int32]  # (n,) of what it is compared with

    @property
    def after(self) -> NDArray[np.float64]:
        """Return the measures of the counterfactuals, (n, measures)."""
        return self.said.values[self.row]

    @property
    def before(self) -> NDArray[np.float64]:
        """Return the measures of what they are compared with, (n, measures)."""
        return self.said.values[self.compared]

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

    def units(self) -> list[NDArray[np.int64]]:
        """Return numbers of what rows share beside their texts, (n,) each.

        First words of names and what follows; of placebo swaps first words on both sides. A row
        that has none shares it with no other.
        """
        parts = self.names.str.splitn(" ", 2).struct
        first, rest = parts.field("field_0"), parts.field("field_1")
        swapped = self.reading == "placebo"
        found = []
        for words, of in (
            (first, self.name),
            (first, self.other) if swapped else (rest, self.name),
        ):
            filled = words.fill_null("")
            number = filled.rank("dense").cast(pl.Int64).to_numpy()[of]
            none = (filled == "").to_numpy()[of]
            number[none] = len(words) + 1 + np.flatnonzero(none)
            found.append(number)
        return found

    def looked_up(
        self, of: NDArray[np.int32], known: Callable[[str, str, str], float]
    ) -> NDArray[np.float64]:
        """Return what is known of names by country, gender and the name in small letters, (n,)."""
        group = self.country * len(GENDERS) + self.gender
        place = group.astype(np.int64) * len(self.names) + of
        each, inverse = np.unique(place, return_inverse=True)
        group, name = np.divmod(each, len(self.names))
        country, gender = np.divmod(group, len(GENDERS))
        names = self.names.gather(name).to_list()
        rows = zip(country.tolist(), gender.tolist(), names, strict=True)
        found = [known(self.countries[c], GENDERS[g], text.casefold()) for c, g, text in rows]
        return np.array(found, dtype=np.float64)[inverse]

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

    Parameters
    ----------
    of
        What the column of the names is called.
    columns
        Arrays (countries, names), or what can be broadcast to it.
    """
    shape = len(countries), len(names)
    keys = {"country": list(np.repeat(countries, shape[1])), of: list(names) * shape[0]}
    values = {name: np.broadcast_to(own, shape).ravel() for name, own in columns.items()}
    return pl.DataFrame(keys | values).fill_nan(None)


def classified(
    outputs: Path, model: str, known: Mapping[str, Mapping[str, Sequence[str]]]
) -> tuple[Said, tuple[str, ...]]:
    """Return the predictions of a classifier for a config, and what its measures are.

    Parameters
    ----------
    outputs
        What the probe ``classification`` has of it.
    known
        For each side, ``positive`` and ``negative``, its classes by model, or for those not named
        under ``other``, in any case.

    Raises
    ------
    UserError
        If a side has none of the model's classes.
    """
    parts: list[pl.DataFrame] = []
    classes: tuple[str, ...] = ()
    for path in sorted(outputs.glob("*.parquet")):  # shards: bounds memory
        frame = pl.read_parquet(path, columns=["text", "class", "logprob_nats", "tokens"])
        classes = classes or tuple(frame["class"].unique(maintain_order=True).to_list())
        frame = frame.with_columns(pl.col("text").hash().alias("key"))
        wide = frame.pivot(on="class", index=["key", "tokens"], values="logprob_nats")
        parts.append(wide.select("key", "tokens", *classes))
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
    said = Said.of(pl.concat(parts), outputs)
    shares = np.exp(said.values)
    return said._replace(values=np.column_stack([shares @ signs, shares])), (CONTRAST, *classes)


def keys(path: Path) -> NDArray[np.uint64]:
    """Return the hashes of the texts of a config, each once, rising."""
    return np.unique(pl.read_parquet(path, columns=["text"])["text"].hash().to_numpy())


def cases(path: Path, said: Said, measures: tuple[str, ...]) -> Iterator[Case]:
    """Yield the readings of a config of the dataset that have rows.

    A UserError if a text was not classified.
    """
    rows, columns = pl.scan_parquet(path), ("target", "country", "name")
    each = [pl.col(name).unique().sort().implode() for name in columns]
    words = {
        name: own[0]
        for name, own in rows.select(each).collect(engine="streaming").to_dict().items()
    }
    coded = [pl.col(name).cast(pl.Enum(words[name])).to_physical() for name in columns]
    for code, reading in enumerate(COMPARED, start=1):
        of = READINGS.index("corrected" if reading == "placebo" else "original")
        others = rows.filter(pl.col("reading") == of).select(
            reference=pl.col("id").hash(), compared=pl.col("text").hash(), other=coded[-1]
        )
        own = rows.filter(pl.col("reading") == code)
        own = own.select(
            *coded, "gender", key=pl.col("text").hash(), reference=pl.col("reference_id").hash()
        )
        joined = own.join(others, on="reference", how="left", maintain_order="left")
        frame = joined.collect(engine="streaming")  # rows of two classifiers are paired by place
        if frame.is_empty():
            continue
        row, compared = (said.places(frame[name].to_numpy()) for name in ("key", "compared"))
        if frame["compared"].null_count() or min(row.min(), compared.min()) < 0:
            raise UserError(
                f"{path}: has texts that were not classified; run `make repro STAGE=classification`"
            )
        coded_rows = frame.select(pl.col(*columns, "gender", "other").cast(pl.Int32)).to_dict()
        del frame
        number = {name: own.to_numpy() for name, own in coded_rows.items()}
        sentences, sentence = np.unique(number["target"], return_inverse=True)
        countries, country = np.unique(number["country"], return_inverse=True)
        yield Case(
            reading=reading,
            measures=measures,
            said=said,
            countries=words["country"].gather(countries).to_list(),
            sentences=len(sentences),
            sentence=sentence.astype(np.int32),
            country=country.astype(np.int32),
            gender=number["gender"],
            names=words["name"],
            name=number["name"],
            other=number["other"],
            row=row,
            compared=compared,
        )
