"""Analysis ``supersenses`` on simulated lists.

The classes of lemmas have the proportions of the default run. They are drawn in each replicate,
independently of frequency and origin, as are the effects of gender on classes and on single lemmas.
Without effects on classes, words are exchangeable over classes, which is the null hypothesis of the
test. Some lemmas have two forms with the same effects; some verbs belong equally to two classes.
The table ``pmi`` is computed from the same lists by its analysis. Latent deviations have no test.

Intervals should cover the mean over ``SAMPLES`` other samples of as many names for the same words,
since with more names other words would lead.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from pydantic import Field

from calibration.politicians import lists
from calibration.truth import Array, Drawn, Generator, Integers, Tables, Truth, outcomes_by
from plumbline.builders.datasets.supersenses.build import CLASSES
from plumbline.probes.politicians import pmi as pmi_of_lists
from plumbline.probes.politicians.supersenses import PREFIXES
from plumbline.probes.politicians.words.word_counts import FEMALE, MALE
from plumbline.probes.stats.pmi import pmi
from plumbline.probes.stats.shares import leading

SIZES = (  # number of adjectives and of verbs by best class in the default run
    (30, 5, 11, 8, 10, 2, 6, 3, 11, 5, 3, 6, 3),
    (6, 12, 14, 38, 5, 2, 8, 6, 6, 9, 7, 10, 24, 11, 4),
)
TWO = (0.0, 0.4)  # share of lemmas that belong equally to two classes
FIRST = tuple(next(n for n, c in enumerate(CLASSES) if c.startswith(p)) for p in PREFIXES.values())


class Shape(lists.ListsShape):
    """Shape of the lists, and of the classes of words."""

    top_k: int = Field(20, description="number of words compared for each gender")
    forms: float = Field(0.05, description="share of words that are second forms of a lemma")
    known: float = Field(0.95, description="share of lemmas that have a class in the dataset")


SHAPES = {
    "default run: 99 men, 88 women, 6 others": Shape(men=99, women=88, others=6, words=90),
    "4 men to a woman, 400 words": Shape(
        men=320, women=80, words=400, top_k=100, length=40, forms=0.25
    ),
}
TRUTHS = {
    # words differ only in frequency and origin
    "nothing goes with a gender": Truth("null"),
    # log-odds of the words of a class
    "classes planted": Truth("planted", classes=(0.2, 0.5, 1.6), own=0.2),
    # lemmas depend on gender, independently of their class
    "words without classes": Truth("decoy", own=0.6),
    # classes differ in the frequency of their words
    "rare classes": Truth("decoy", rare=1.0),
}
PARAMS: dict[str, Any] = {"n_bootstrap": 100, "n_permutations": 999, "smoothing": 0.5}
LEAST = 5  # minimum number of lists that contain a word
SAMPLES = 20  # number of other samples of as many names


class Lexemes(NamedTuple):
    """Words of one part of speech."""

    population: lists.Population
    lemma: Integers  # (words,): index of each word's lemma
    weights: Array  # (lemmas, classes)
    best: Array  # (lemmas, classes): 0 or 1
    known: Array  # (lemmas,): 1 for lemmas in the dataset, else 0


def draw(folder: Path, truth: Truth, shape: Shape, rng: Generator) -> Drawn:
    """Write one replicate."""
    words = [_lexemes(shape, truth, pos, rng) for pos in range(2)]
    populations = [lexemes.population for lexemes in words]
    lemmas = [[f"l{n}" for n in lexemes.lemma.tolist()] for lexemes in words]
    inputs = lists.write(folder, shape, populations, rng, lemmas=lemmas)
    inputs.datasets["supersenses"] = _write_classes(folder / "supersenses", words)
    settings = {"version": "0.0.0", "min_count": LEAST, "n_bootstrap": 20}  # intervals are not used
    params = pmi_of_lists.Params.model_validate(settings | {"smoothing": PARAMS["smoothing"]})
    path = inputs.tables("pmi", inputs.models[0]) / "pmi.parquet"
    pmi_of_lists.run(inputs, params)["pmi"].write_parquet(path, mkdir=True)
    indices = [lexemes.lemma for lexemes in words]
    samples = [lists.counts(shape, populations, rng, indices) for _ in range(SAMPLES)]
    true_rows = [
        _true(shape, truth, lexemes, [sample[pos] for sample in samples], pos)
        for pos, lexemes in enumerate(words)
    ]
    return Drawn(inputs, pl.concat(true_rows), params={"top_k": shape.top_k})


def _lexemes(shape: Shape, truth: Truth, pos: int, rng: Generator) -> Lexemes:
    """Draw the classes of lemmas and the effects of gender.

    ``truth.settings``: ``classes``: nats planted with both signs in classes of medium size;
    ``own``: SD of the effects on single lemmas; ``rare``: SD of the log-frequency of classes.
    """
    sizes = np.array(SIZES[pos])
    several = round(shape.forms * shape.words)
    number = shape.words - several
    lemma = np.concatenate([np.arange(number), rng.choice(number, several, replace=False)])
    index = np.searchsorted(sizes.cumsum() / sizes.sum(), (np.arange(number) + 0.5) / number)
    of_class = rng.permutation(index)
    best = np.eye(len(sizes))[of_class]
    two = rng.random(number) < TWO[pos]
    best[two] += np.eye(len(sizes))[rng.permutation(of_class)][two]
    best = np.minimum(best, 1.0)
    weights = best / best.sum(axis=1, keepdims=True)
    if pos == 0:  # all weights are positive, as in the output of a classifier
        weights = 0.7 * weights + 0.3 / len(sizes)
    nats = _nats(truth, pos)[of_class] + rng.normal(0, truth.get("own", 0.0), number)
    offset = np.random.default_rng([13, pos]).normal(0, truth.get("rare", 0.0), len(sizes))
    bare = lists.population(shape, truth, pos)
    frequency = rng.permutation(bare.frequency) + offset[of_class[lemma]]
    part = bare._replace(effect=nats[lemma], frequency=frequency)
    return Lexemes(part, lemma, weights, best, (rng.random(number) < shape.known).astype(float))


def _nats(truth: Truth, pos: int) -> Array:
    """Return the planted effect of each class, (classes,); the largest class has none."""
    result = np.zeros(len(SIZES[pos]))
    order = np.argsort(-np.array(SIZES[pos]), kind="stable")
    signed = [s * e for e in truth.get("classes", ()) for s in (1, -1)]
    result[order[1 : len(signed) + 1]] = signed
    return result


def _write_classes(folder: Path, words: list[Lexemes]) -> Path:
    parts = []
    for pos, lexemes in enumerate(words):
        row, column = np.nonzero((lexemes.weights > 0) & (lexemes.known[:, None] > 0))
        columns = {"weight": lexemes.weights[row, column], "best": lexemes.best[row, column] > 0}
        codes = {"lemma": [f"l{n}" for n in row.tolist()], "supersense": column + FIRST[pos]}
        parts.append(pl.DataFrame(codes | columns).with_columns(pos=pl.lit(pos, dtype=pl.Int64)))
    pl.concat(parts).write_parquet(folder / f"{lists.LANGUAGE}.parquet", mkdir=True)
    return folder


def _true(shape: Shape, truth: Truth, lex: Lexemes, samples: list[Array], pos: int) -> pl.DataFrame:
    """Return planted nats, and the mean difference of shares, women minus men, over samples.

    There is one row per class; other pairs of genders have no true values.

    ``samples``: numbers of names of each gender with each lemma, one (lemmas, 3) array per sample.
    """
    nats = _nats(truth, pos)
    parts = lex.best / lex.best.sum(axis=1, keepdims=True)
    sums = np.zeros(len(nats))
    for counts in samples:
        frequent = np.flatnonzero((lex.known > 0) & (counts.sum(axis=1) >= LEAST))
        seen = counts[counts.any(axis=1)][:, counts.any(axis=0)]
        values = np.full(counts.shape, np.nan)
        values[np.ix_(counts.any(axis=1), counts.any(axis=0))] = pmi(seen, PARAMS["smoothing"])
        ranked = values[frequent].T
        one, two = (frequent[leading(ranked[g], shape.top_k)] for g in (FEMALE, MALE))
        sums += parts[one].mean(axis=0) - parts[two].mean(axis=0)
    classes = CLASSES[FIRST[pos] : FIRST[pos] + len(nats)]
    return pl.DataFrame({"supersense": classes, "nats": nats, "target": sums / len(samples)})


def outcomes(tables: Tables, sample: Drawn) -> Tables:
    """Return the rows of each test by deviation.

    ``Bonferroni`` is the adjustment over the classes of a part of speech, as in the paper. Effects
    planted in classes change other classes too: no effect is stated for these, nor for pairs with
    non-binary people.
    """
    table = tables["supersenses"].join(sample.known, on="supersense", how="left")
    planted = bool((sample.known["nats"] != 0).any())
    both = (pl.col("first") == "female") & (pl.col("second") == "male")
    table = table.with_columns(
        effect=pl.when(both & (pl.col("nats") != 0)).then("nats") if planted else 0.0,
        target=pl.when(both).then("target"),
    )
    test, truth = "supersenses: {deviation}", {"effect": "effect", "target": "target"}
    bonferroni: dict[str, Any] = {"p_adjusted": "p_bonferroni", "interval": ["value"]}
    bonferroni["family"] = ["pos", "first", "second", "sentiment"]
    return outcomes_by(table, test, **truth, family=["model"]) | outcomes_by(
        table, test + "; Bonferroni", **truth, **bonferroni
    )
