"""What is true of a world of names: of its words, and of lists for names without end.

It follows from the planted probabilities, by nothing that the analyses compute with.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import polars as pl

from plumbline.builders.datasets.lexica.build import SENTIMENTS
from plumbline.builders.datasets.politicians.person import GENDERS
from plumbline.builders.datasets.words.build import POS
from plumbline.probes.controls.compare import PLANTED, read_table
from plumbline.probes.politicians.recovery import language
from plumbline.probes.politicians.recovery.language import Planted, expected_counts, tastes

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from plumbline.probes.core.run_analysis import Inputs

    Forms = tuple[tuple[float, float, int], ...]  # frequency, log-ratio, number of the lemma

OWN = {"word", "pos", "frequency_nats", "log_ratio_nats", "sentiment"}
SAMPLES = 30  # of as many names
HALF = 0.5  # added to every count before words are ranked, as the analyses do by default


class World(NamedTuple):
    """A model of a world of names: what was planted, and its tables."""

    inputs: Inputs
    model: str
    settings: language.World
    words: pl.DataFrame  # of each lemma, under `word`: columns as in OWN
    forms: pl.DataFrame  # of each form, as it was planted: columns as in OWN, and its lemma

    @property
    def key(self) -> dict[str, str]:
        """Return model, language and kind of the world, as in the tables of recovery."""
        world = "null" if self.settings.null else "planted"
        return {"model": self.model, "language": self.settings.language, "world": world}

    def read(self, analysis: str, name: str, model: str | None = None) -> pl.DataFrame:
        """Return a table of the model, in the language of the world and of lemmas.

        ``model``: another one; "" where an analysis is over all models.
        """
        folder = self.inputs.tables(analysis, self.model if model is None else model)
        table = read_table(folder / f"{name}.parquet")
        if len(table):
            table = table.filter(language=self.settings.language)
        return table.filter(unit="lemma") if "unit" in table.columns else table


def truth(inputs: Inputs, model: str) -> World | None:
    """Return what was planted in a model; None where it is no world of names.

    The lemma of a form is the most frequent one of the dataset ``words``. A form that it lacks, or
    without the dataset each, is taken for a lemma.
    """
    weights = inputs.weights(model)
    path = weights / PLANTED
    if not path.is_file() or not set(pl.read_parquet_schema(path)) >= OWN:
        return None
    settings, forms = language.read_world(weights), pl.read_parquet(path)
    lemmas = pl.DataFrame(schema={"pos": pl.String, "word": pl.String, "lemma": pl.String})
    words = inputs.datasets.get("words")
    if words and (words / f"{settings.language}.parquet").is_file():
        table = pl.read_parquet(words / f"{settings.language}.parquet")
        table = table.sort("count", "lemma", descending=[True, False])
        pos = pl.col("pos").cast(pl.Int64).replace_strict(dict(enumerate(POS)))
        lemmas = table.select(pos, "lemma", word="form")
        lemmas = lemmas.unique(["pos", "word"], keep="first", maintain_order=True)
    forms = forms.join(lemmas, on=["pos", "word"], how="left", maintain_order="left")
    forms = forms.with_columns(pl.col("lemma").fill_null(pl.col("word")))
    return World(inputs, model, settings, _add_forms(forms), forms)


def _add_forms(forms: pl.DataFrame) -> pl.DataFrame:
    """Return what is true of lemmas: the odds of one are the sum of those of its forms.

    Its sentiment is that of the lemma itself, or if it was not planted of its likeliest form.
    """
    sides = {
        side: (pl.col("frequency_nats") + side * pl.col("log_ratio_nats") / 2).exp().sum().log()
        for side in (-1, 1)
    }
    itself = pl.col("word") == pl.col("lemma")
    return (
        forms.sort(itself, "frequency_nats", descending=True, maintain_order=True)
        .group_by("pos", word="lemma", maintain_order=True)
        .agg(
            pl.exclude("word", "lemma", "frequency_nats", "log_ratio_nats").first(),
            frequency_nats=(sides[1] + sides[-1]) / 2,
            log_ratio_nats=sides[1] - sides[-1],
        )
    )


def list_sizes(pmi: pl.DataFrame) -> tuple[dict[str, int], int]:
    """Return the people of each gender, and the length of lists, in rows of one part of speech."""
    people = dict(pmi.select("gender", "people").unique().iter_rows())
    return {gender: people[gender] for gender in GENDERS if gender in people}, pmi["list_length"][0]


def true_pmi(world: World, pos: str, people: dict[str, int], length: int) -> pl.DataFrame:
    """Return the PMI of words and genders in the lists of names without end.

    Parameters
    ----------
    people
        How many people of each gender the lists are of.
    length
        Forms in a list.

    Returns
    -------
    DataFrame
        Columns word, sentiment, gender and value (nats), for each planted lemma and gender.
    """
    cells = true_cells(world, pos, people, length)
    return cells.with_columns(value=pmi_of(cells)).drop("expected")


def pmi_of(cells: pl.DataFrame) -> pl.Series:
    """Return the PMI of word and gender, nats, from the ``expected`` numbers of lists."""
    total, expected = pl.col("expected").sum(), pl.col("expected")
    by_word, by_gender = expected.sum().over("word"), expected.sum().over("gender")
    return cells.select((expected * total / by_word / by_gender).log()).to_series()


def true_cells(world: World, pos: str, people: dict[str, int], length: int) -> pl.DataFrame:
    """Return how many lists are expected to have a word: columns word, sentiment, gender, expected.

    Parameters as in :func:`true_pmi`.
    """
    forms, lemmas = _forms(world, pos)
    genders = tuple(gender for gender in GENDERS if gender in people)
    size, settings = min(length, len(forms)), world.settings
    chance = _chances(forms, genders, settings.name_noise, size, settings.seed)
    return pl.concat(
        lemmas.select("word", "sentiment").with_columns(
            gender=pl.lit(gender), expected=pl.Series(chance[:, i]) * people[gender]
        )
        for i, gender in enumerate(genders)
    )


def _forms(world: World, pos: str) -> tuple[Forms, pl.DataFrame]:
    """Return the forms of a part of speech and its lemmas, whose rows the forms refer to."""
    lemmas = world.words.filter(pos=pos)
    number = {word: i for i, word in enumerate(lemmas["word"])}
    forms = world.forms.filter(pos=pos).select("frequency_nats", "log_ratio_nats", "lemma")
    return tuple((f, r, number[lemma]) for f, r, lemma in forms.iter_rows()), lemmas


def _planted(forms: Forms) -> Planted:
    """Return words of which the sentiments do not matter."""
    frequency, log_ratio, _ = np.array(forms).T
    size = len(forms)
    return Planted(("",) * size, frequency, log_ratio, np.zeros(size, dtype=int), ("",) * size)


@lru_cache(maxsize=64)  # the same for every share of men and women
def _chances(
    forms: Forms, genders: tuple[str, ...], noise: float, length: int, seed: int
) -> NDArray[np.float64]:
    """Return the chance of lemmas to be in a list of a name of a gender, (lemmas, genders)."""
    lemmas = [lemma for *_, lemma in forms]
    shares = dict.fromkeys(genders, 1.0)
    return expected_counts(_planted(forms), shares, noise, length, seed, lemmas)


def class_differences(
    words: pl.DataFrame, classes: pl.DataFrame, size: int, first: str, second: str
) -> dict[str, float]:
    """Return the planted difference, first minus second gender, of the share of each class.

    ``words``: from :func:`true_pmi`; for either gender the ``size`` words of the largest values
    count.
    ``classes``: columns word, class and share, the part of the word that is in the class; words
    without a class are left out.
    """
    words = words.filter(pl.col("word").is_in(classes["word"].implode()))
    differences = dict.fromkeys(classes["class"].unique(), 0.0)
    for gender, sign in ((first, 1), (second, -1)):
        of_gender = words.filter(gender=gender)
        largest = of_gender.sort("value", descending=True, maintain_order=True).head(size)
        held = classes.join(largest, on="word", maintain_order="left")
        shares = held.group_by("class", maintain_order=True).agg(pl.col("share").sum())
        for name, share in shares.iter_rows():
            differences[name] += sign * share / max(len(largest), 1)
    return differences


def sampled_shares(
    world: World, pos: str, people: dict[str, int], size: int, candidates: int, length: int
) -> dict[str, float]:
    """Return the differences of sentiments, male minus female, that as many other names give.

    The mean over ``SAMPLES`` draws of names with lists that are read off the planted probabilities:
    what an interval over names is for where names are few, since then ordinary words are among
    those that deviate most, and differences are smaller than among names without end.

    ``size``, ``candidates``: lemmas taken for each gender, and how many they are taken from: the
    most frequent ones.
    """
    if world.settings.null:
        return dict.fromkeys(SENTIMENTS, 0.0)
    forms, lemmas = _forms(world, pos)
    kinds = lemmas["sentiment"].replace_strict({s: i for i, s in enumerate(SENTIMENTS)}).to_numpy()
    settings = world.settings
    seed = (settings.seed, POS.index(pos), *people.values())
    differences = np.zeros(len(SENTIMENTS))
    for counts in _counts(forms, settings.name_noise, tuple(people.items()), length, seed):
        known = np.argsort(-counts.sum(axis=0), kind="stable")[:candidates]
        cells = counts + HALF
        lift = np.log(cells / cells.sum(axis=0) / cells.sum(axis=1, keepdims=True))[:, known]
        for gender, sign in (("male", 1), ("female", -1)):
            largest = known[np.argsort(-lift[list(people).index(gender)], kind="stable")[:size]]
            differences += sign * np.bincount(kinds[largest], minlength=len(SENTIMENTS)) / size
    return dict(zip(SENTIMENTS, (differences / SAMPLES).tolist(), strict=True))


@lru_cache(maxsize=64)  # analyses ask for the same names with other sizes
def _counts(
    forms: Forms,
    noise: float,
    people: tuple[tuple[str, int], ...],
    length: int,
    seed: tuple[int, ...],
) -> NDArray[np.float64]:
    """Draw names and count whose lists have each lemma, (draws, genders, lemmas)."""
    lemmas, planted = np.array([lemma for *_, lemma in forms]), _planted(forms)
    rng = np.random.default_rng(seed)
    counts = np.zeros((SAMPLES, len(people), lemmas.max() + 1))
    for sample in counts:
        for row, (gender, number) in zip(sample, people, strict=True):
            taste = tastes(planted, [gender] * number, noise, rng)
            top = np.argsort(-taste, axis=1)[:, :length]
            has = np.zeros((number, len(row)))
            has[np.arange(number)[:, None], lemmas[top]] = 1
            row[:] = has.sum(axis=0)
    return counts
