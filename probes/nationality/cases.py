"""The rows of ``counterfactuals`` with the predictions of a classifier, as arrays."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import polars as pl

from plumbline.builders.core import parquet
from plumbline.builders.core.errors import UserError
from plumbline.builders.datasets.counterfactuals.build import GENDERS, READINGS
from plumbline.builders.readers.name_lists import KINDS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

CONTRAST = "positive minus negative"
EVERY = "all"
COMPARED = READINGS[1:]  # faithful, corrected, placebo
SEXES = (EVERY, "male", "female")
OTHER = "other"


class Case(NamedTuple):
    """Counterfactuals of one config and reading, n rows, and one classifier's predictions."""

    reading: str
    measures: tuple[str, ...]  # P+ - P-, then the classes
    countries: list[str]
    sentences: list[str]  # source texts
    sentence: NDArray[np.int64]  # (n,) places in sentences
    country: NDArray[np.int64]  # (n,) places in countries
    gender: NDArray[np.str_]  # (n,) of the name put in
    names: list[str]  # (n,) put in
    text: list[str]  # (n,)
    compared: list[str]  # (n,) the text that it is compared with
    after: NDArray[np.float64]  # (n, measures) probabilities
    before: NDArray[np.float64]  # (n, measures) of what it is compared with
    tokens: NDArray[np.float64]  # (n,) tokens more than that has

    @property
    def change(self) -> NDArray[np.float64]:
        """Return counterfactual minus what it is compared with, (n, measures)."""
        return self.after - self.before

    @property
    def shape(self) -> tuple[int, int]:
        """Return how many source texts and countries there are."""
        return len(self.sentences), len(self.countries)


class Predictions(NamedTuple):
    """A classifier's predictions of texts."""

    classes: tuple[str, ...]  # in the order of the model's config
    texts: pl.DataFrame  # text, row
    logprobs: NDArray[np.float64]  # (texts, classes)
    tokens: NDArray[np.int64]  # (texts,)

    @classmethod
    def read(cls, folder: Path) -> Predictions:
        """Read the outputs of the probe ``classification`` in one config."""
        frame = pl.read_parquet(folder / "*.parquet")
        classes = tuple(frame["class"].unique(maintain_order=True).to_list())
        wide = frame.pivot(on="class", index=["text", "tokens"], values="logprob_nats").sort("text")
        logprobs = wide.select(classes).to_numpy().astype(np.float64)
        tokens = wide["tokens"].to_numpy().astype(np.int64)
        return cls(classes, wide.select("text").with_row_index("row"), logprobs, tokens)

    def contrast(self, positive: Sequence[str], negative: Sequence[str]) -> NDArray[np.float64]:
        """Return P+ - P- and the probability of each class, (texts, measures)."""
        shares = np.exp(self.logprobs)
        signs = [float(c in positive) - float(c in negative) for c in self.classes]
        return np.column_stack([shares @ np.array(signs), shares])

    def rows(self, texts: pl.Series) -> NDArray[np.int64] | None:
        """Return where texts stand; None if one was not classified."""
        wanted = texts.alias("text").to_frame()
        found = wanted.join(self.texts, on="text", how="left", maintain_order="left")["row"]
        return None if found.null_count() else found.cast(pl.Int64).to_numpy()


def sides(
    key: str, model: str, classes: Sequence[str], known: Mapping[str, Sequence[str]]
) -> list[str]:
    """Return those of a model's classes that are on one side.

    Parameters
    ----------
    key
        Where in params.yaml ``known`` stands.
    known
        Classes by model, or for those not named under ``other``, in any case.

    Raises
    ------
    UserError
        If the model has none of them.
    """
    names = {name.casefold() for name in known.get(model, known.get(OTHER, ()))}
    if found := [name for name in classes if name.casefold() in names]:
        return found
    raise UserError(
        f"{key}: none of the classes of {model} ({', '.join(classes)}); say which, under {model} "
        f"or {OTHER}"
    )


def cases(
    path: Path, predictions: Predictions, positive: Sequence[str], negative: Sequence[str]
) -> Iterator[Case]:
    """Yield the readings of a config that have rows.

    Raises
    ------
    UserError
        If a text was not classified.
    """
    frame = pl.read_parquet(path).sort("id")
    original = frame.select(reference_id="id", compared="text")
    measured = predictions.contrast(positive, negative)
    for reading in COMPARED:
        own = frame.filter(pl.col("reading") == READINGS.index(reading))
        own = own.join(original, on="reference_id", how="left", maintain_order="left")
        if own.is_empty():
            continue
        after, before = (predictions.rows(own[side]) for side in ("text", "compared"))
        if after is None or before is None:
            raise UserError(
                f"{path}: has texts that were not classified; run `make repro STAGE=classification`"
            )
        sentences, sentence = np.unique(own["target"].to_list(), return_inverse=True)
        countries, country = np.unique(own["country"].to_list(), return_inverse=True)
        yield Case(
            reading,
            (CONTRAST, *predictions.classes),
            countries.tolist(),
            sentences.tolist(),
            sentence,
            country,
            np.array([GENDERS[g] for g in own["gender"]]),
            own["name"].to_list(),
            own["text"].to_list(),
            own["compared"].to_list(),
            measured[after],
            measured[before],
            (predictions.tokens[after] - predictions.tokens[before]).astype(np.float64),
        )


def frequency(folder: Path, case: Case) -> NDArray[np.float64]:
    """Return the mean logarithm of the rank of the words of each name, (n,); nan where none is.

    A whole name is looked up before its words; gendered first names before last names.
    """
    ranks: dict[tuple[str, str], dict[str, int]] = {}
    for country in set(case.countries) & set(parquet.configs(folder)):
        table = pl.read_parquet(folder / f"{country}.parquet", columns=["kind", "name", "rank"])
        for kind, name, rank in table.sort("kind", "name").iter_rows():
            ranks.setdefault((country, KINDS[kind]), {})[name.casefold()] = rank
    each = [
        (case.countries[c], str(gender), name.casefold())
        for name, c, gender in zip(case.names, case.country, case.gender, strict=True)
    ]
    known = {key: log_rank(ranks, *key) for key in set(each)}
    return np.array([known[key] for key in each])


def log_rank(
    ranks: Mapping[tuple[str, str], Mapping[str, int]], country: str, gender: str, name: str
) -> float:
    """Return the logarithm of the rank of a name, or the mean of those of its two parts.

    Parameters
    ----------
    ranks
        By country and kind, and by name in lower case.
    """
    kinds = sorted(KINDS, key=lambda kind: (kind != gender, kind == "last"))

    def one(part: str, order: Sequence[str]) -> int | None:
        return next((t[part] for k in order if part in (t := ranks.get((country, k), {}))), None)

    if whole := one(name, kinds):
        return float(np.log(whole))
    words = [word for word in re.split(r"\s+", name) if word]
    for cut in range(1, len(words)):
        first, last = one(" ".join(words[:cut]), kinds), one(" ".join(words[cut:]), kinds[::-1])
        if first and last:
            return float(np.log(first) + np.log(last)) / 2
    return float("nan")
