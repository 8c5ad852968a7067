"""Analysis ``lexicon_evaluation`` on simulated texts and lexica.

Words form groups of four with the same frequency and the same association with labels. A lexicon's
error for one word equals another lexicon's error for the next word of the group, so that all lexica
are equally good over many texts, although they differ in every word. Simplifications: labels are
equally frequent, the words of a text are drawn independently given its label, and all lexica have
the same words.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from pydantic import Field
from sklearn.metrics import f1_score

from calibration.truth import Array, Bools, Drawn, Generator, Integers, Tables, Truth, outcomes_by
from plumbline.builders.core.params import Params
from plumbline.builders.datasets.labelled_texts.build import LABELS, SPLITS
from plumbline.probes.core.run_analysis import Inputs
from plumbline.probes.politicians.lexicon_evaluation import CODES, MEASURES
from plumbline.probes.stats.classification import chance

LANGUAGE = "en"
LEXICA = ("combination", "plain mean", "view a", "view b")
FAMILY = ("language",)
FRESH = 20_000  # number of texts from which true values are computed


class Shape(Params):
    """Shape of the texts and of the lexica."""

    tuning: int = Field(400, description="number of texts for the choice of cut-offs")
    testing: int = Field(400, description="number of texts for the evaluation of lexica")
    length: int = Field(10, description="mean number of words in a text")
    fours: int = Field(60, description="number of groups of four similar words")
    known: float = Field(0.8, description="share of words in the lexica")
    noise: float = Field(0.7, description="SD of a lexicon's errors; the SD of scores is 1")
    common: float = Field(0.5, description="share of the error variance common to all lexica")


SHAPES = {
    "400 texts to tune and 400 to test": Shape(),
    "60 texts to tune and 60 to test": Shape(tuning=60, testing=60),
}
TRUTHS = {
    # the errors of each lexicon are in different words
    "lexica as good as each other": Truth("null", signal=(0.5,)),
    # SD of additional errors in the plain mean and in the views
    "errors planted": Truth("planted", signal=(0.5,), worse=(0.7, 1.5, 5)),
    # log-odds of words by label; each value is planted in its own corpus
    "signal planted": Truth("planted", signal=(0.1, 0.2, 0.4)),
    # labels are independent of words
    "words say nothing": Truth("decoy", signal=(0.0,)),
}
PARAMS: dict[str, Any] = {"n_bootstrap": 400, "n_permutations": 199}


class Language(NamedTuple):
    """Words and their scores in the lexica."""

    frequency: Array  # (words,): logarithm
    side: Array  # (words,): association with positive labels
    scores: Array  # (lexica, words): -1 to 1
    known: Bools  # (words,): True if the lexica contain the word


def language(truth: Truth, shape: Shape, rng: Generator) -> Language:
    """Draw words and lexica."""
    four = np.repeat(np.arange(shape.fours), 4)
    frequency, side = rng.normal(size=(2, shape.fours))
    both = rng.normal(size=(2, shape.fours, 4))
    scores = []
    for lexicon, extra in enumerate((0.0, *truth.get("worse", (0, 0, 0)))):
        shifted = np.roll(both[1], lexicon, axis=1)
        errors = shape.noise * (shape.common**0.5 * both[0] + (1 - shape.common) ** 0.5 * shifted)
        errors += extra * rng.normal(size=errors.shape)
        scores.append(np.tanh((side[:, None] + errors) / 2).ravel().round(4))
    known = np.repeat(rng.random(shape.fours) < shape.known, 4)
    return Language(frequency[four], side[four], np.array(scores), known)


def texts(
    drawn: Language, number: int, signal: float, shape: Shape, rng: Generator
) -> tuple[Integers, Integers]:
    """Draw words, (texts, 2 length), padded with -1, and labels from -1 to 1."""
    labels = rng.integers(-1, 2, number)
    weight = np.exp(drawn.frequency + signal * np.arange(-1, 2)[:, None] * drawn.side)
    running = weight.cumsum(axis=1)
    running /= running[:, -1:]
    running += np.arange(3)[:, None]  # each label has an interval of length 1
    kind = labels[:, None] + 1
    uniform = rng.random((number, 2 * shape.length)) + kind
    words = np.searchsorted(running.ravel(), uniform) - kind * len(drawn.side)
    short = rng.integers(1, 2 * shape.length, number)
    return np.where(np.arange(2 * shape.length) <= short[:, None], words, -1), labels


def draw(folder: Path, truth: Truth, shape: Shape, rng: Generator) -> Drawn:
    """Write one replicate."""
    drawn = language(truth, shape, rng)
    inputs = Inputs((), {"lexica": folder / "lexica", "labelled_texts": folder / "texts"}, folder)
    names = np.array([f"{chr(97 + n // 26)}{chr(97 + n % 26)}" for n in range(len(drawn.side))])
    views = [name.removeprefix("view ") for name in LEXICA[2:]]
    lexicon = pl.DataFrame({"word": names, "score": drawn.scores[1]}).with_columns(
        q_positive=pl.Series(0.5 + drawn.scores[0] / 2),
        q_negative=pl.Series(0.5 - drawn.scores[0] / 2),
        view_names=pl.lit(pl.Series([views])).first(),
        view_scores=pl.Series(drawn.scores[2:].T.tolist()),
    )
    paths = {name: path / f"{LANGUAGE}.parquet" for name, path in inputs.datasets.items()}
    lexicon.filter(drawn.known).write_parquet(paths["lexica"], mkdir=True)
    codes = [CODES[label] - 1 for label in LABELS]
    parts, truths = [], []
    for signal in truth.settings["signal"]:
        for split, number in zip(SPLITS, (shape.tuning, shape.testing), strict=True):
            words, labels = texts(drawn, number, signal, shape, rng)
            joined = [" ".join(names[row[row >= 0]]) for row in words]
            table: dict[str, Any] = {"text": [f"{text} {n}" for n, text in enumerate(joined)]}
            table["label"] = [codes.index(label) for label in labels.tolist()]
            where = {"split": SPLITS.index(split), "source": f"signal {signal:g}"}
            parts.append(pl.DataFrame(table | where))
        words, labels = texts(drawn, FRESH, signal, shape, rng)
        truths.append((f"signal {signal:g}", signal, _means(drawn, words), labels))
    pl.concat(parts).write_parquet(paths["labelled_texts"], mkdir=True)
    return Drawn(inputs, truths, truth)


def _means(drawn: Language, words: Integers) -> Array:
    """Return the mean score of each text's words, an array of shape (lexica, texts)."""
    counted = (words >= 0) & drawn.known[words]
    with np.errstate(invalid="ignore"):
        means: Array = (drawn.scores[:, words] * counted).sum(axis=2) / counted.sum(axis=1)
    return means


def outcomes(tables: Tables, sample: Drawn) -> Tables:
    """Return the rows of each test; true values are computed for the chosen cut-offs."""
    truth = sample.truth
    worse = dict(zip(LEXICA[1:], truth.get("worse", (0, 0, 0)), strict=True))
    true_rows = []
    for source, signal, means, labels in sample.known:
        first: dict[str, float] = {}
        chosen = tables["agreement"].filter(source=source, measure=MEASURES[0])
        for row in chosen.iter_rows(named=True):
            lexicon = row["lexicon"]
            lexicon = lexicon if lexicon in LEXICA else f"view {lexicon}"
            if lexicon not in LEXICA:
                continue
            scores = means[LEXICA.index(lexicon)]
            negative, positive = row["negative_below"], row["positive_above"]
            guess = np.where(scores > positive, 1, np.where(scores < negative, -1, 0))
            f1 = f1_score(labels, guess, labels=(-1, 0, 1), average="macro", zero_division=0)
            measured = ((guess == labels).mean(), f1)
            nothing = chance(labels + 1, guess + 1)  # for accuracy also the majority class
            for measure, true, by_chance in zip(MEASURES, measured, nothing, strict=True):
                less = first.setdefault(measure, true) - true
                levels = (float(signal), float(worse.get(lexicon, 0)))
                where = (source, row["lexicon"], measure)
                true_rows.append((*where, *levels, true, less, by_chance))
    keys = ["source", "lexicon", "measure"]
    names = [*keys, "signal", "worse", "true", "less", "nothing"]
    rows = pl.DataFrame(true_rows, names, orient="row")
    agreement, differences = (tables[n].join(rows, on=keys) for n in ("agreement", "differences"))
    blind = truth.kind == "null" or "worse" in truth.settings
    effect = None if blind else "signal"
    # differences from the values expected for random labels
    relative = agreement.with_columns(pl.col("value", "low", "high", "true") - pl.col("nothing"))
    test = "agreement: {measure}"
    result = outcomes_by(relative, test, effect=effect, target="true", family=FAMILY)
    test = "differences: {measure}"
    return result | outcomes_by(differences, test, effect="worse", target="less", family=FAMILY)
