"""One world of names beside the tables of its model: what is true of it, and rows that compare.

Only tables and the planted truth are read. What is true of names without end follows from the
planted probabilities, by nothing that the analyses compute with.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl
from pydantic import Field

from plumbline.builders.core.params import Params as Section
from plumbline.builders.datasets.lexica.build import SENTIMENTS
from plumbline.builders.datasets.politicians.person import GENDERS
from plumbline.builders.datasets.words.build import POS
from plumbline.probes.controls.recovery import PLANTED, covered, discoveries, signs
from plumbline.probes.politicians.recovery.language import (
    Planted,
    World,
    expected_counts,
    read_world,
)
from plumbline.probes.stats.estimate import ESTIMATE, Estimate, Table
from plumbline.probes.stats.intervals import spearman

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from plumbline.probes.core.run_analysis import Inputs

OWN = {"word", "pos", "frequency_nats", "log_ratio_nats", "sentiment"}
CODES = {sentiment: code for code, sentiment in enumerate(SENTIMENTS)}
MALE, FEMALE = GENDERS.index("male"), GENDERS.index("female")
LEMMA, FORM = 0, 1  # codes of what is counted
SMOOTHED = 1  # code of the reading of PMI that counts names
LEAST = 4  # words or classes that a correlation needs
LARGE = 0.1  # differences of shares whose sign is judged
MANY = "no nominal value: many effects are planted"


class Params(Section):
    """Levels of what is reported."""

    version: str = Field("0.1.0", pattern=r"^\d+\.\d+\.\d+$", description="version of the tables")
    confidence: float = Field(0.95, gt=0.5, lt=1, description="that of the analyses")
    false_discovery_rate: float = Field(0.05, gt=0, lt=1, description="level of p_bh")


class Truth(NamedTuple):
    """What was planted in a model."""

    world: World
    words: pl.DataFrame  # of each lemma, under `word`: columns as in OWN
    forms: pl.DataFrame  # of each form, as it was planted: columns as in OWN, and its lemma


def planted(weights: Path, words: Path | None = None) -> Truth | None:
    """Return what was planted in a model; None of one that is no world of names.

    ``words``: folder of the dataset, which says of what lemma a form is: of the most frequent one
    that it has. A form that it lacks, or without the dataset each, is taken for a lemma.
    """
    path = weights / PLANTED
    if not path.is_file() or not set(pl.read_parquet_schema(path)) >= OWN:
        return None
    world = read_world(weights)
    forms = pl.read_parquet(path)
    known = pl.DataFrame(schema={"pos": pl.String, "word": pl.String, "lemma": pl.String})
    file = words / f"{world.language}.parquet" if words is not None else None
    if file is not None and file.is_file():
        table = pl.read_parquet(file).sort("count", "lemma", descending=[True, False])
        pos = pl.col("pos").cast(pl.Int64).replace_strict(dict(enumerate(POS)))
        known = table.select(pos, "lemma", word="form").unique(
            ["pos", "word"], keep="first", maintain_order=True
        )
    forms = forms.join(known, on=["pos", "word"], how="left", maintain_order="left")
    forms = forms.with_columns(pl.col("lemma").fill_null(pl.col("word")))
    return Truth(world, _lemmas(forms), forms)


def _lemmas(forms: pl.DataFrame) -> pl.DataFrame:
    """Return what is true of lemmas: the odds of one are the sum of those of its forms.

    What it means is what the lemma itself means, or if it was not planted its likeliest form.
    """
    sides = {
        side: (pl.col("frequency_nats") + side * pl.col("log_ratio_nats") / 2).exp().sum().log()
        for side in (-1, 1)
    }
    own = pl.col("word") == pl.col("lemma")
    return (
        forms.sort(own, "frequency_nats", descending=True, maintain_order=True)
        .group_by("pos", word="lemma", maintain_order=True)
        .agg(
            pl.exclude("word", "lemma", "frequency_nats", "log_ratio_nats").first(),
            frequency_nats=(sides[1] + sides[-1]) / 2,
            log_ratio_nats=sides[1] - sides[-1],
        )
    )


def true_pmi(truth: Truth, pos: int, people: dict[int, int], length: int) -> pl.DataFrame:
    """Return the PMI of words and genders in the lists of names without end.

    ``people``: how many people each gender (code) has; those in the lists.
    ``length``: forms in a list.

    Returned: columns word, sentiment, gender (code) and value (nats): a row for each planted lemma
    and each gender.
    """
    cells = true_cells(truth, pos, people, length)
    return cells.with_columns(value=pmi_of(cells)).drop("expected")


def pmi_of(cells: pl.DataFrame) -> pl.Series:
    """Return the PMI of word and gender, nats, in the order of the rows.

    ``cells``: a row for each word and gender with ``expected``, the number of lists with the word.
    """
    all_, expected = pl.col("expected").sum(), pl.col("expected")
    of_word, of_gender = expected.sum().over("word"), expected.sum().over("gender")
    return cells.select((expected * all_ / of_word / of_gender).log()).to_series()


def true_cells(truth: Truth, pos: int, people: dict[int, int], length: int) -> pl.DataFrame:
    """Return how many lists are expected to have a word: columns word, sentiment, gender, expected.

    Parameters as in :func:`true_pmi`.
    """
    part = truth.forms.filter(pl.col("pos") == POS[pos])
    lemmas = truth.words.filter(pl.col("pos") == POS[pos])
    place = {word: i for i, word in enumerate(lemmas["word"])}
    genders = tuple(sorted(people))
    of = tuple(part["frequency_nats"]), tuple(part["log_ratio_nats"])
    of_lemma = tuple(place[lemma] for lemma in part["lemma"])
    world = truth.world
    size = min(length, len(part))
    chance = chances(*of, of_lemma, genders, world.name_noise, size, world.seed)
    columns = lemmas.select("word", "sentiment")
    return pl.concat(
        columns.with_columns(
            gender=pl.lit(g, pl.Int64), expected=pl.Series(chance[:, i]) * people[g]
        )
        for i, g in enumerate(genders)
    )


@lru_cache(maxsize=64)  # the same for every share of men and women
def chances(
    frequency: tuple[float, ...],
    log_ratio: tuple[float, ...],
    lemmas: tuple[int, ...],
    genders: tuple[int, ...],
    noise: float,
    length: int,
    seed: int,
) -> NDArray[np.float64]:
    """Return the chance of lemmas to be in a list of a name of a gender, (lemmas, genders)."""
    number = len(frequency)
    words = Planted(
        ("",) * number,
        np.array(frequency),
        np.array(log_ratio),
        np.zeros(number, dtype=np.int64),
        ("",) * number,
    )
    shares = dict.fromkeys((GENDERS[g] for g in genders), 1.0)
    return expected_counts(words, shares, noise, length, seed, lemmas)


class Control(NamedTuple):
    """One world: the tables of its model, what is true of it, and the rows that compare them."""

    inputs: Inputs
    model: str
    truth: Truth
    table: Table
    params: Params

    @property
    def null(self) -> bool:
        """Whether nothing was planted."""
        return self.truth.world.null

    def read(self, analysis: str, name: str = "", *, each: bool = True) -> pl.DataFrame:
        """Read a table, in the language of the world, of lemmas; codes of labels as numbers."""
        folder = self.inputs.tables(analysis, self.model if each else "")
        path = folder / f"{name or analysis}.parquet"
        if not path.is_file():
            return pl.DataFrame()
        table = pl.read_parquet(path).filter(pl.col("language") == self.truth.world.language)
        if "unit" in table.columns:
            table = table.filter(unit=LEMMA)
        labels = ("pos", "gender", "sentiment", "supersense", "reading", "first", "second")
        return table.with_columns(
            pl.col(name).cast(pl.Int64) for name in labels if name in table.columns
        )

    def true_pmi(self, pmi: pl.DataFrame) -> dict[int, pl.DataFrame]:
        """Return :func:`true_pmi` of each part of speech in the smoothed rows of ``pmi``."""
        return {
            pos: true_pmi(
                self.truth,
                pos,
                dict(part.select("gender", "people").unique().iter_rows()),
                part["list_length"][0],
            )
            for (pos,), part in pmi.filter(reading=SMOOTHED).group_by("pos", maintain_order=True)
        }

    def add(
        self, estimate: Estimate, measure: str, cluster: str, null: str, p: float | None = None
    ) -> None:
        """Add a row."""
        self.copy(estimate.row(cluster=cluster, null=null, p=p), measure, null)

    def copy(self, row: dict[str, Any], measure: str, null: str) -> None:
        """Add a row of a table of estimates."""
        at = {"language": self.truth.world.language, "world": int(self.null), "model": self.model}
        own = {column.name: row.get(column.name) for column in ESTIMATE}
        self.table.rows.append(own | at | {"measure": measure, "null": null})

    def relation(self, both: pl.DataFrame, what: str) -> None:
        """Add how planted log-ratios of words and their measured contrasts go together."""
        true, value = (both[column].to_numpy() for column in ("log_ratio_nats", "contrast"))
        if len(true) >= LEAST:
            title = f"Spearman correlation of planted log-ratio and measured {what}"
            level = self.params.confidence
            self.add(spearman(true, value, level), title, "word", "0: no relation")
            title = "share of words whose measured sign is the planted one"
            self.add(signs(true, value, level), title, "word", "0.5: coin")

    def coverage(self, held: pl.DataFrame, measure: str, cluster: str, note: str = "") -> None:
        """Add how often intervals hold the truth."""
        level = self.params.confidence
        self.add(covered(held, level), measure, cluster, f"{level:g}: nominal{note}")

    def discoveries(
        self, p: pl.Series, limit: float, cluster: str, null: str, tests: str = "tests"
    ) -> None:
        """Add the share of p-values at or below a limit."""
        found = discoveries(p.to_numpy(), limit, self.params.confidence)
        title = f"share of {tests} with {p.name} at or below {limit:g}"
        self.add(found, title, cluster, null)


def contrast(table: pl.DataFrame) -> pl.DataFrame:
    """Return columns word and contrast: the value of women minus that of men."""
    female, male = (
        pl.col("value").filter(pl.col("gender") == gender).first() for gender in (FEMALE, MALE)
    )
    return table.group_by("word").agg(contrast=female - male).drop_nulls().sort("word")


def planted_difference(
    words: pl.DataFrame, parts: pl.DataFrame, size: int, genders: tuple[int, int], number: int
) -> NDArray[np.float64]:
    """Return the planted difference, first minus second, of shares of classes, (number,).

    ``words``: of :func:`true_pmi`: for either gender the ``size`` words of the largest values are
    taken.
    ``parts``: columns word, class (code) and share, the part of the word that is in the class;
    words without a class are left out.
    """
    sides = []
    for gender in genders:
        own = words.filter(
            pl.col("gender") == gender, pl.col("word").is_in(parts["word"].implode())
        )
        largest = own.sort("value", descending=True, maintain_order=True).head(size)
        found = parts.join(largest, on="word")
        shares = np.bincount(found["class"], weights=found["share"], minlength=number)
        sides.append(shares / max(len(largest), 1))
    difference: NDArray[np.float64] = sides[0] - sides[1]
    return difference
