"""The rows of ``counterfactuals`` with the predictions of a classifier, as arrays."""

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
    others: list[str]  # (n,) names put into that, empty for originals
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

    def units(self) -> list[NDArray[np.int64]]:
        """Return numbers of what rows share beside their texts, (n,) each.

        First words of names and what follows; of placebo swaps first words on both sides. A row
        that has none shares it with no other.
        """
        parts = [name.split(" ", 1) for name in self.names]
        kinds = [[part[0] for part in parts], [" ".join(part[1:]) for part in parts]]
        if self.reading == "placebo":
            kinds[1] = [name.split(" ", 1)[0] for name in self.others]
        shared = [[word or f"\t{i}" for i, word in enumerate(words)] for words in kinds]
        return [np.unique(words, return_inverse=True)[1] for words in shared]


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


def cases(
    path: Path, outputs: Path, model: str, known: Mapping[str, Mapping[str, Sequence[str]]]
) -> Iterator[Case]:
    """Yield the readings of a config that have rows.

    Parameters
    ----------
    path
        The config of the dataset.
    outputs
        What the probe ``classification`` has of it.
    known
        For each side, ``positive`` and ``negative``, its classes by model, or for those not named
        under ``other``, in any case.

    Raises
    ------
    UserError
        If a side has none of the model's classes, or a text was not classified.
    """
    frame = pl.read_parquet(outputs / "*.parquet")
    classes = tuple(frame["class"].unique(maintain_order=True).to_list())
    wide = frame.pivot(on="class", index=["text", "tokens"], values="logprob_nats").sort("text")
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
    shares = np.exp(wide.select(classes).to_numpy().astype(np.float64))
    measured = np.column_stack([shares @ signs, shares])
    places = wide.select("text", "tokens").with_row_index("row")
    frame = pl.read_parquet(path).sort("id")
    frame = frame.join(places, on="text", how="left", maintain_order="left")
    original = frame.select("row", "tokens", "name", reference_id="id", compared="text")
    for reading in COMPARED:
        own = frame.filter(pl.col("reading") == READINGS.index(reading))
        own = own.join(
            original, on="reference_id", how="left", maintain_order="left", suffix="_before"
        )
        if own.is_empty():
            continue
        if own["row"].null_count() or own["row_before"].null_count():
            raise UserError(
                f"{path}: has texts that were not classified; run `make repro STAGE=classification`"
            )
        sentences, sentence = np.unique(own["target"].to_list(), return_inverse=True)
        countries, country = np.unique(own["country"].to_list(), return_inverse=True)
        yield Case(
            reading,
            (CONTRAST, *classes),
            countries.tolist(),
            sentences.tolist(),
            sentence,
            country,
            np.array([GENDERS[g] for g in own["gender"]]),
            own["name"].to_list(),
            own["text"].to_list(),
            own["compared"].to_list(),
            own["name_before"].to_list(),
            measured[own["row"].to_numpy()],
            measured[own["row_before"].to_numpy()],
            (own["tokens"] - own["tokens_before"]).cast(pl.Float64).to_numpy(),
        )


def halved(folder: Path, case: Case) -> Case:
    """Return placebo swaps as names of odd ranks minus names of even ranks of the same country.

    The halves of a country's names are the same in all texts, so that other halves might differ,
    as names do. Swaps within a half are left out.

    Parameters
    ----------
    folder
        The dataset ``names``.
    """
    ranks = _ranks(folder, case)
    places = [case.countries[c] for c in case.country]

    def odd(names: Sequence[str]) -> NDArray[np.int64]:
        firsts = (name.split(" ", 1)[0].casefold() for name in names)
        each = list(zip(places, map(str, case.gender), firsts, strict=True))
        known = {key: rank_of(ranks, *key) for key in set(each)}
        return np.array([-1 if (rank := known[key]) is None else rank % 2 for key in each])

    after, before = odd(case.names), odd(case.others)
    kept = np.flatnonzero((after >= 0) & (before >= 0) & (after != before))
    swapped = (after == 0)[kept]

    def sides(one: Sequence[str], other: Sequence[str]) -> tuple[list[str], list[str]]:
        pairs = [(one[i], other[i]) for i in kept.tolist()]
        pairs = [pair[::-1] if back else pair for pair, back in zip(pairs, swapped, strict=True)]
        return [pair[0] for pair in pairs], [pair[1] for pair in pairs]

    names, others = sides(case.names, case.others)
    text, compared = sides(case.text, case.compared)
    back = swapped[:, None]
    return case._replace(
        sentence=case.sentence[kept],
        country=case.country[kept],
        gender=case.gender[kept],
        names=names,
        text=text,
        compared=compared,
        others=others,
        after=np.where(back, case.before[kept], case.after[kept]),
        before=np.where(back, case.after[kept], case.before[kept]),
        tokens=np.where(swapped, -1, 1) * case.tokens[kept],
    )


def of_countries(case: Case, kept: NDArray[np.bool_]) -> Case:
    """Return the rows of some countries alone, (countries,), numbered anew."""
    rows = np.flatnonzero(kept[case.country])
    changed: dict[str, Any] = {
        "countries": [c for c, k in zip(case.countries, kept, strict=True) if k]
    }
    for name in ("sentence", "gender", "after", "before", "tokens"):
        changed[name] = getattr(case, name)[rows]
    for name in ("names", "text", "compared", "others"):
        own = getattr(case, name)
        changed[name] = [own[row] for row in rows.tolist()]
    return case._replace(country=(np.cumsum(kept) - 1)[case.country[rows]], **changed)


def frequency(folder: Path, case: Case) -> NDArray[np.float64]:
    """Return the mean logarithm of the rank of the words of each name, (n,); nan where none is.

    A whole name is looked up before its words; gendered first names before last names.
    """
    ranks = _ranks(folder, case)
    places, names = (case.countries[c] for c in case.country), map(str.casefold, case.names)
    each = list(zip(places, map(str, case.gender), names, strict=True))
    known = {key: log_rank(ranks, *key) for key in set(each)}
    return np.array([known[key] for key in each])


def _ranks(folder: Path, case: Case) -> dict[tuple[str, str], dict[str, int]]:
    """Return ranks by country and kind, and by name in small letters."""
    ranks: dict[tuple[str, str], dict[str, int]] = {}
    for country in set(case.countries) & set(parquet.configs(folder)):
        table = pl.read_parquet(folder / f"{country}.parquet", columns=["kind", "name", "rank"])
        for kind, name, rank in table.sort("kind", "name").iter_rows():
            ranks.setdefault((country, KINDS[kind]), {})[name.casefold()] = rank
    return ranks


def rank_of(
    ranks: Mapping[tuple[str, str], Mapping[str, int]],
    country: str,
    gender: str,
    part: str,
    last: bool = False,
) -> int | None:
    """Return the rank of a part of a name: of a first name of the gender, or a last one, first."""
    kinds = sorted(KINDS, key=lambda kind: (kind != gender, kind == "last"))
    order = kinds[::-1] if last else kinds
    return next((t[part] for k in order if part in (t := ranks.get((country, k), {}))), None)


def log_rank(
    ranks: Mapping[tuple[str, str], Mapping[str, int]], country: str, gender: str, name: str
) -> float:
    """Return the logarithm of the rank of a name, or the mean of those of its two parts.

    Parameters
    ----------
    ranks
        By country and kind, and by name in lower case.
    """
    if whole := rank_of(ranks, country, gender, name):
        return float(np.log(whole))
    words = [word for word in re.split(r"\s+", name) if word]
    for cut in range(1, len(words)):
        first = rank_of(ranks, country, gender, " ".join(words[:cut]))
        last = rank_of(ranks, country, gender, " ".join(words[cut:]), last=True)
        if first and last:
            return float(np.log(first) + np.log(last)) / 2
    return float("nan")
