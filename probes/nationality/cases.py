"""The rows of ``counterfactuals`` with what a classifier says of them, as arrays."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import polars as pl

from plumbline.builders.core import parquet
from plumbline.builders.core.errors import Problem
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
    """Counterfactuals of one config and reading, n rows, and what one classifier says of them."""

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

    def of(self, gender: str) -> NDArray[np.bool_]:
        """Return which rows have names of a gender, or of any."""
        found: NDArray[np.bool_] = (self.gender == gender) | (gender == EVERY)
        return found

    @property
    def change(self) -> NDArray[np.float64]:
        """Return counterfactual minus what it is compared with, (n, measures)."""
        return self.after - self.before

    @property
    def shape(self) -> tuple[int, int]:
        """Return how many source texts and countries there are."""
        return len(self.sentences), len(self.countries)


class Answers(NamedTuple):
    """What a classifier says of texts."""

    classes: tuple[str, ...]  # in the order of the model's config
    place: dict[str, int]  # of each text
    logprobs: NDArray[np.float64]  # (texts, classes)
    tokens: NDArray[np.int64]  # (texts,)

    def contrast(self, positive: Sequence[str], negative: Sequence[str]) -> NDArray[np.float64]:
        """Return P+ - P- and the probability of each class, (texts, measures)."""
        shares = np.exp(self.logprobs)
        signs = [float(c in positive) - float(c in negative) for c in self.classes]
        return np.column_stack([shares @ np.array(signs), shares])


def answers(folder: Path) -> Answers:
    """Read the outputs of the probe ``classification`` in one config."""
    frame = pl.read_parquet(folder / "*.parquet")
    classes = tuple(frame["class"].unique(maintain_order=True).to_list())
    wide = frame.pivot(on="class", index=["text", "tokens"], values="logprob_nats").sort("text")
    place = {text: i for i, text in enumerate(wide["text"].to_list())}
    logprobs = wide.select(classes).to_numpy().astype(np.float64)
    return Answers(classes, place, logprobs, wide["tokens"].to_numpy().astype(np.int64))


def sides(
    key: str, model: str, classes: Sequence[str], said: Mapping[str, Sequence[str]]
) -> list[str]:
    """Return those of a model's classes that are on one side.

    Parameters
    ----------
    key
        Where in params.yaml that is said.
    said
        Classes by model, or for those not named under ``other``, in any case.

    Raises
    ------
    Problem
        If the model has none of them.
    """
    wanted = {name.casefold() for name in said.get(model, said.get(OTHER, ()))}
    if found := [name for name in classes if name.casefold() in wanted]:
        return found
    raise Problem(
        f"{key}: none of the classes of {model} ({', '.join(classes)}); say which, under {model} "
        f"or {OTHER}"
    )


def cases(
    rows: Path, told: Answers, positive: Sequence[str], negative: Sequence[str]
) -> Iterator[Case]:
    """Yield the readings of a config that have rows.

    Raises
    ------
    Problem
        If a text was not classified.
    """
    frame = pl.read_parquet(rows).sort("id")
    text_of = dict(zip(frame["id"].to_list(), frame["text"].to_list(), strict=True))
    measured = told.contrast(positive, negative)
    for reading in COMPARED:
        own = frame.filter(pl.col("reading") == READINGS.index(reading))
        if own.is_empty():
            continue
        texts = own["text"].to_list()
        compared = [text_of[i] for i in own["of"].to_list()]
        try:
            after, before = (
                np.array([told.place[text] for text in side]) for side in (texts, compared)
            )
        except KeyError as error:
            raise Problem(
                f"{rows}: has texts that were not classified; run `make repro STAGE=classification`"
            ) from error
        sentences = own["target"].unique().sort().to_list()
        countries = own["country"].unique().sort().to_list()
        yield Case(
            reading,
            (CONTRAST, *told.classes),
            countries,
            sentences,
            _places(own["target"].to_list(), sentences),
            _places(own["country"].to_list(), countries),
            np.array([GENDERS[g] for g in own["gender"].to_list()]),
            own["name"].to_list(),
            texts,
            compared,
            measured[after],
            measured[before],
            (told.tokens[after] - told.tokens[before]).astype(np.float64),
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
    known: dict[tuple[str, str, str], float] = {}
    found = np.full(len(case.names), np.nan)
    for i, (name, c, gender) in enumerate(zip(case.names, case.country, case.gender, strict=True)):
        key = (case.countries[c], str(gender), name.casefold())
        if key not in known:
            known[key] = _rank(ranks, *key)
        found[i] = known[key]
    return found


def _rank(
    ranks: dict[tuple[str, str], dict[str, int]], country: str, gender: str, name: str
) -> float:
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


def _places(values: Sequence[str], of: Sequence[str]) -> NDArray[np.int64]:
    place = {value: i for i, value in enumerate(of)}
    return np.array([place[value] for value in values], dtype=np.int64)
