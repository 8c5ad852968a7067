"""True values of a world (a control model with planted effects) for infinitely many names.

For a word w and a name with gender g,

    p(w | name)  is proportional to  exp(frequency_w + side_g * log_ratio_w / 2 + noise_{name, w})

where side is +1 for female, -1 for male and 0 for non-binary names, and ``log_ratio_w`` is the
planted log-odds ratio of female to male. True values are computed from the planted probabilities,
independently of the analyses.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl

from plumbline.builders.datasets.lexica.build import SENTIMENTS
from plumbline.builders.datasets.politicians.person import GENDERS
from plumbline.builders.datasets.words.build import POS
from plumbline.probes.controls.compare import PLANTED, read_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from plumbline.probes.core.run_analysis import Inputs

    Array = NDArray[np.float64]

SIDES = {"male": -1.0, "female": 1.0, "non-binary": 0.0}
SETTINGS = ("language", "name_noise", "seed", "sentiment_effect")
EFFECTS = ("word_effect", "sentiment_effect", "supersense_effect")
OWN = {"word", "pos", "frequency_nats", "log_ratio_nats", "sentiment"}
SAMPLES = 30  # number of draws of names
HALF = 0.5  # added to every count before ranking, as the analyses do by default


class Planted(NamedTuple):
    """Planted values for the words of one part of speech, as arrays of shape (words,)."""

    words: tuple[str, ...]
    frequency: Array
    log_ratio: Array
    sentiment: NDArray[np.int64]  # indices into SENTIMENTS
    supersense: tuple[str, ...]  # empty string if missing


def tastes(
    planted: Planted, genders: Sequence[str], noise: float, rng: np.random.Generator
) -> Array:
    """Draw p(word | name), of shape (names, words), with noise for each name."""
    sides = np.array([SIDES[g] for g in genders])[:, None]
    taste = rng.normal(0.0, noise, (len(genders), len(planted.frequency)))
    logits = planted.frequency + sides * planted.log_ratio / 2 + taste
    odds = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.asarray(odds / odds.sum(axis=1, keepdims=True))


def _counted(taste: Array, lemmas: NDArray[np.int64], length: int) -> Array:
    """Count, per lemma, the names that have it among their ``length`` most probable words."""
    top = np.argpartition(-taste, min(length, taste.shape[1]) - 1, axis=1)[:, :length]
    listed = np.zeros((len(taste), lemmas.max() + 1))
    listed[np.arange(len(taste))[:, None], lemmas[top]] = 1
    return np.asarray(listed.sum(axis=0))


def expected_counts(
    planted: Planted,
    shares: dict[str, float],
    noise: float,
    top_k: int,
    seed: int,
    lemmas: Sequence[int] | None = None,
) -> Array:
    """Return the expected share of lists that contain a word, for infinitely many names.

    Shares are simulated with 20,000 names of each gender; their PMI is the true value of the
    estimates. The result has shape (words, genders), or (lemmas, genders).

    ``shares``: share of each gender among the names.
    ``top_k``: length of the lists.
    ``lemmas``: index of each word's lemma, from 0 without gaps.
    """
    lemma = np.arange(len(planted.frequency)) if lemmas is None else np.array(lemmas)
    rng = np.random.default_rng(seed)
    blocks, block = 10, 2_000
    counts = [
        sum(_counted(tastes(planted, [g] * block, noise, rng), lemma, top_k) for _ in range(blocks))
        for g in shares
    ]
    return np.array(counts).T * [share / (blocks * block) for share in shares.values()]


@dataclass(frozen=True, eq=False)  # hashed by identity, so that it can be a cache key
class World:
    """A control model with planted effects of gender: its true values and its tables."""

    inputs: Inputs
    model: str
    language: str
    name_noise: float
    seed: int
    sentiment_effect: float  # planted effect on words with a sentiment, in nats
    null: bool  # True if no difference between genders was planted
    words: pl.DataFrame  # one row per lemma (in `word`), with the columns OWN
    forms: pl.DataFrame  # one row per planted form, with the columns OWN and lemma

    @property
    def key(self) -> dict[str, str]:
        """Return the model, language and kind of world, as in the table ``recovery``."""
        world = "null" if self.null else "planted"
        return {"model": self.model, "language": self.language, "world": world}

    def read(self, analysis: str, name: str, model: str | None = None) -> pl.DataFrame:
        """Return a table of the model, restricted to lemmas and to the language of the world.

        ``model``: another model, or "" for analyses over all models.
        """
        folder = self.inputs.tables(analysis, self.model if model is None else model)
        table = read_table(folder / f"{name}.parquet")
        values = {"language": self.language, "unit": "lemma"}
        values |= {"model": self.model} if model == "" else {}
        return table.filter(**{name: values[name] for name in values if name in table.columns})


def truth(inputs: Inputs, model: str) -> World | None:
    """Return the true values of a world, or None if the model is not a world.

    The lemma of a form is its most frequent lemma in the dataset ``words``. Forms that are not in
    the dataset are their own lemmas.
    """
    weights = inputs.weights(model)
    path = weights / PLANTED
    if not path.is_file() or not set(pl.read_parquet_schema(path)) >= OWN:
        return None
    settings = json.loads((weights / "world.json").read_text(encoding="utf-8"))
    forms = pl.read_parquet(path)
    lemmas = pl.DataFrame(schema={"pos": pl.String, "word": pl.String, "lemma": pl.String})
    words = inputs.datasets.get("words")
    if words and (words / f"{settings['language']}.parquet").is_file():
        table = pl.read_parquet(words / f"{settings['language']}.parquet")
        table = table.sort("count", "lemma", descending=[True, False])
        pos = pl.col("pos").cast(pl.Int64).replace_strict(dict(enumerate(POS)))
        lemmas = table.select(pos, "lemma", word="form")
        lemmas = lemmas.unique(["pos", "word"], keep="first", maintain_order=True)
    forms = forms.join(lemmas, on=["pos", "word"], how="left", maintain_order="left")
    forms = forms.with_columns(pl.col("lemma").fill_null(pl.col("word")))
    planted = {name: settings[name] for name in SETTINGS}
    null = not any(settings[effect] for effect in EFFECTS)
    return World(inputs, model, **planted, null=null, words=_add_forms(forms), forms=forms)


def _add_forms(forms: pl.DataFrame) -> pl.DataFrame:
    """Return the true values of lemmas; the odds of a lemma are the sum over its forms.

    The sentiment is that of the lemma or, if the lemma was not planted, of its most probable form.
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


def true_pmi(world: World, pmi: pl.DataFrame) -> pl.DataFrame:
    """Return the PMI of words and genders for infinitely many names.

    The columns are pos, word, sentiment, gender and value (nats), with a row for each planted lemma
    and gender.

    ``pmi``: rows of the table ``pmi`` for one part of speech, which contain the numbers of people
    and the list length.
    """
    pos, length = pmi.row(0, named=True)["pos"], pmi["list_length"][0]
    cells = true_cells(
        world, pos, dict(pmi.select("gender", "people").unique().iter_rows()), length
    )
    return cells.with_columns(value=pmi_of(cells), pos=pl.lit(pos)).drop("expected")


def with_true(
    table: pl.DataFrame, true: dict[Any, float], keys: Sequence[str] = ("pos", "sentiment")
) -> pl.DataFrame:
    """Return the rows whose key has a true value, with the column ``true`` added."""
    values = [true.get(key) for key in table.select(keys).iter_rows()]
    return table.with_columns(true=pl.Series(values, dtype=pl.Float64)).drop_nulls("true")


def by_language(worlds: Sequence[World]) -> list[list[World]]:
    """Return the worlds of each language, in alphabetical order of the languages."""
    languages = sorted({world.language for world in worlds})
    return [[w for w in worlds if w.language == language] for language in languages]


def pmi_of(cells: pl.DataFrame) -> pl.Series:
    """Compute the PMI of words and genders, in nats, from the ``expected`` numbers of lists."""
    total, expected = pl.col("expected").sum(), pl.col("expected")
    by_word, by_gender = expected.sum().over("word"), expected.sum().over("gender")
    return cells.select((expected * total / by_word / by_gender).log()).to_series()


def true_cells(world: World, pos: str, people: dict[str, int], length: int) -> pl.DataFrame:
    """Return the expected numbers of lists, in the columns word, sentiment, gender, expected.

    ``people``: number of people of each gender; ``length``: number of forms in a list.
    """
    lemmas = world.words.filter(pos=pos)
    genders = tuple(gender for gender in GENDERS if gender in people)
    chance = _chances(world, pos, genders, length)
    return pl.concat(
        lemmas.select("word", "sentiment").with_columns(
            gender=pl.lit(gender), expected=pl.Series(chance[:, i]) * people[gender]
        )
        for i, gender in enumerate(genders)
    )


def _forms(world: World, pos: str) -> tuple[Planted, NDArray[np.int64], pl.DataFrame]:
    """Return the forms of a part of speech, the row number of each form's lemma, and the lemmas."""
    lemmas = world.words.filter(pos=pos)
    numbers = lemmas.select(lemma="word", number=pl.int_range(pl.len()))
    forms = world.forms.filter(pos=pos).join(numbers, on="lemma", maintain_order="left")
    frequency, ratio = (forms[f"{name}_nats"].to_numpy() for name in ("frequency", "log_ratio"))
    planted = Planted((), frequency, ratio, np.zeros(0, np.int64), ())
    return planted, forms["number"].to_numpy(), lemmas


@lru_cache(maxsize=64)  # valid for any shares of the genders
def _chances(world: World, pos: str, genders: tuple[str, ...], length: int) -> Array:
    """Return the probability that a list contains each lemma, of shape (lemmas, genders)."""
    planted, lemmas, _ = _forms(world, pos)
    shares = dict.fromkeys(genders, 1.0)
    size = min(length, len(lemmas))
    return expected_counts(planted, shares, world.name_noise, size, world.seed, lemmas.tolist())


def class_differences(
    words: pl.DataFrame, classes: pl.DataFrame, size: int, first: str, second: str
) -> dict[str, float]:
    """Return the planted difference in the share of each class, first minus second gender.

    ``words``: from :func:`true_pmi`; shares are among the ``size`` words with the largest values
    for a gender.
    ``classes``: columns word, class and share (the part of the word in the class); words without
    a class are omitted.
    """
    words = words.filter(pl.col("word").is_in(classes["word"].implode()))
    differences = dict.fromkeys(classes["class"].unique(), 0.0)
    for gender, sign in ((first, 1), (second, -1)):
        of_gender = words.filter(gender=gender)
        largest = of_gender.sort("value", descending=True, maintain_order=True).head(size)
        inside = classes.join(largest, on="word", maintain_order="left")
        shares = inside.group_by("class", maintain_order=True).agg(pl.col("share").sum())
        for name, share in shares.iter_rows():
            differences[name] += sign * share / max(len(largest), 1)
    return differences


def sampled_shares(
    world: World, pos: str, people: dict[str, int], size: int, candidates: int, length: int
) -> dict[str, float]:
    """Return the expected difference, male minus female, of each sentiment's share.

    The expectation is a mean over ``SAMPLES`` draws of as many names as there are people. An
    interval over few names should cover this expectation: with few names, unbiased words are among
    those with the largest PMI by chance, and differences are smaller than for infinitely many
    names.

    ``people``: number of people of each gender; ``length``: number of forms in a list.

    ``size``: number of lemmas selected for each gender.
    ``candidates``: number of candidates, which are the most frequent lemmas.
    """
    if world.null:
        return dict.fromkeys(SENTIMENTS, 0.0)
    lemmas, codes = world.words.filter(pos=pos), {s: i for i, s in enumerate(SENTIMENTS)}
    kinds = lemmas["sentiment"].replace_strict(codes).to_numpy()
    differences = np.zeros(len(SENTIMENTS))
    for counts in _counts(world, pos, tuple(people.items()), length):
        frequent = np.argsort(-counts.sum(axis=0), kind="stable")[:candidates]
        cells = counts + HALF
        lift = np.log(cells / cells.sum(axis=0) / cells.sum(axis=1, keepdims=True))[:, frequent]
        for gender, sign in (("male", 1), ("female", -1)):
            largest = frequent[np.argsort(-lift[list(people).index(gender)], kind="stable")[:size]]
            differences += sign * np.bincount(kinds[largest], minlength=len(SENTIMENTS)) / size
    return dict(zip(SENTIMENTS, (differences / SAMPLES).tolist(), strict=True))


@lru_cache(maxsize=64)  # analyses differ only in the number of selected words
def _counts(world: World, pos: str, people: tuple[tuple[str, int], ...], length: int) -> Array:
    """Draw names and count the lists with each lemma, of shape (draws, genders, lemmas)."""
    planted, lemmas, _ = _forms(world, pos)
    noise, sizes = world.name_noise, dict(people).values()
    rng = np.random.default_rng((world.seed, POS.index(pos), *sizes))
    counts = [
        [_counted(tastes(planted, [g] * n, noise, rng), lemmas, length) for g, n in people]
        for _ in range(SAMPLES)
    ]
    return np.array(counts)
