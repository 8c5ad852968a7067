"""Analysis ``comparison`` on simulated responses of two models to one study.

Both models are prompted about the same names, groups, statements or texts, whose item effects they
share. Under the null hypothesis, both models have the same bias and separate noise. In the planted
truth, only the first model has a bias; in the decoys, the models differ in something else.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from scipy.special import ndtri

from calibration.leaning import responses
from calibration.nationality import swaps
from calibration.politicians import lists
from calibration.stereotypes import completions, recall
from calibration.truth import Array, Drawn, Generator, Tables, Truth, outcomes_by
from calibration.values import answers
from plumbline.builders.datasets.words.build import POS
from plumbline.probes.core.run_analysis import Inputs

MODELS = ("first", "second")


Shape = tuple[str, Any]  # name of the study, and the shape of its simulation
SHAPES: dict[str, Shape] = {
    "politicians: 99 men, 88 women": ("politicians", lists.ListsShape(men=99, women=88, words=90)),
    "politicians: 400 men, 90 women": ("politicians", lists.ListsShape(men=400, women=90)),
    "stereotypes: 36 groups, 3 to 11 attributes": ("stereotypes", recall.Shape()),
    "values: 12 pairs a value": ("values", answers.AnswersShape(pairs=12)),
    "nationality: 55 texts, 13 countries": ("nationality", swaps.SwapsShape()),
    "leaning: 10 pairs an axis, 3 prompts": ("leaning", None),
}
TRUTHS = {
    # both models have the same bias
    "same bias": Truth("null", biased=(True, True)),
    # only the first has a bias, in nats, rating points (`values`) or percent (`nationality`)
    "biases differ": Truth("planted", biased=(True, False)),
    # neither has a bias; the words, noise or acquiescence of one of them differ
    "models differ otherwise": Truth("decoy", biased=(False, False), other=True),
}
PARAMS: dict[str, Any] = {"n_bootstrap": 100}
EFFECTS: dict[str, tuple[float, ...]] = {  # sizes of the first model's bias, in simulation units
    "politicians": (0.5, 1.0, 1.6),  # nats
    "stereotypes": (0.2, 0.4, 0.8),  # nats
    "values": (0.0, 0.15, -0.3, 0.6),  # rating points
    "nationality": (0.2, -0.2, 0.4, -0.4, 0.8, -0.8),  # units; one unit is .05 in P+ - P-
    "leaning": (0.3, -0.6, 1.2),  # nats; the last on one axis, one of the first two on the other
}
WORDS = {True: Truth("planted", effects=EFFECTS["politicians"]), False: Truth("null")}
FRAMES = ("respond", "asked", "claim")  # templates in the params of the study
PAIRS = 10  # pairs of opposite statements on each political axis
ALIKE = 0.5  # share of the variance between texts that is common to both classifiers
POPULAR, OWN, QUIRK, PROMPT, HABIT = 0.8, 0.4, 0.3, 0.4, 0.7  # SDs of effects, nats
Models = list[tuple[str, bool, bool]]  # name; True if biased; True if it differs otherwise
Written = tuple[Inputs, dict[str, float], dict[str, float]]  # inputs, effects, true differences


def draw(folder: Path, truth: Truth, shape: Shape, rng: Generator) -> Drawn:
    """Write one replicate."""
    write: Any = {
        "politicians": _words,
        "stereotypes": _groups,
        "values": _statements,
        "nationality": _texts,
        "leaning": _axes,
    }[shape[0]]
    different = (False, truth.get("other", False))
    models = list(zip(MODELS, truth.settings["biased"], different, strict=True))
    inputs, effects, targets = write(folder, shape[1], models, rng)
    if truth.kind != "planted":  # both models have the same effects
        effects = targets = dict.fromkeys(effects, 0.0)
    return Drawn(inputs, (effects, targets), truth, shape)


def _words(folder: Path, shape: lists.ListsShape, models: Models, rng: Generator) -> Written:
    """Write lists; ``other``: the second model prefers different words for all names."""
    populations = [lists.population(shape, WORDS[True], pos) for pos in range(len(POS))]
    drawn = lists.names(shape, populations[0], rng)
    inputs = lists.write_people(folder, drawn, MODELS)
    for model, biased, other in models:
        parts = [p._replace(effect=biased * p.effect) for p in populations]
        if other:
            moved = np.random.default_rng(5).normal(0, 1, shape.words)
            parts = [p._replace(frequency=moved) for p in parts]
        utility = [lists.utilities(p, drawn.origin, drawn.side()) for p in parts]
        lists.write_lists(inputs, model, drawn, utility, shape.length, rng)
    effects, targets = dict[str, float](), dict[str, float]()
    for pos, population in enumerate(populations):
        names = lists.words_of(pos, shape.words)
        effects |= dict(zip(names, population.effect.tolist(), strict=True))
        chances = [lists.expected(shape, WORDS[biased], pos) for _, biased, _ in models]
        first, second = (100 * (chance[:, 1] - chance[:, 0]) for chance in chances)
        targets |= dict(zip(names, (first - second).tolist(), strict=True))
    return inputs, effects, targets


def _groups(folder: Path, shape: recall.Shape, models: Models, rng: Generator) -> Written:
    """Write lists; ``other``: the second model's scores have twice the standard deviation."""
    number = int(rng.integers(recall.POPULATIONS))
    inputs = completions.datasets(folder, MODELS)
    words, _ = recall.population(shape, number)
    lifts = rng.permutation(EFFECTS["stereotypes"])
    words_of, _ = recall.groups(shape, number, shape.category, lifts[shape.category], 0.0, rng)
    written = completions.write_attributes(
        *(inputs, shape.groups),
        [[(n % shape.templates, f"w{w:03d}", []) for n, w in enumerate(row)] for row in words_of],
    )
    pieces = dict.fromkeys(written["attribute"].unique().sort(), 1)
    for model, biased, other in models:
        planted = np.zeros((len(shape.groups), shape.words))
        for row, words_in, nats in zip(planted, words_of, lifts[shape.category], strict=True):
            row[words_in] = nats * biased
        scores = completions.scores(shape, words, shape.category, planted, rng) * (1 + other)
        completions.write_vocabulary(inputs, model, pieces)
        ranking = scores, words.frequency, shape.top
        table = completions.table(shape.groups, *ranking, pieces=words.pieces)
        completions.write_lists(inputs, model, table)
    effects = dict(zip(shape.categories, map(float, lifts), strict=True))
    return inputs, effects, {}


def _statements(
    folder: Path, shape: answers.AnswersShape, models: Models, rng: Generator
) -> Written:
    """Write responses; ``other``: the second model agrees with all political statements."""
    points = np.array(EFFECTS["values"][: shape.axes])
    inputs = Inputs(MODELS, {}, folder / "data")
    for model, biased, other in models:
        values = shape.noise * ndtri(0.5 + points * biased / 4)
        convictions = answers.convictions(shape)._replace(
            values=np.stack([values, values]), shift=shape.noise * other
        )
        source = answers.write(folder / model, shape, convictions, rng)
        outputs = source.outputs("agreement", answers.MODEL)
        shutil.copytree(outputs, inputs.outputs("agreement", model))
        inputs.datasets.update(source.datasets)
    return inputs, dict(zip(answers.AXES, points.tolist(), strict=False)), {}


def _texts(folder: Path, shape: swaps.SwapsShape, models: Models, rng: Generator) -> Written:
    """Write predictions; ``other``: name effects of the second classifier are twice as large."""
    shift, nothing = np.zeros((2, shape.countries))
    shift[: len(EFFECTS["nationality"])] = EFFECTS["nationality"]
    planted = swaps.Planted(nothing, nothing, nothing + 1, nothing, nothing + 0.3, 0.0)
    written = swaps.write(folder, shape, planted, rng)
    texts = pl.read_parquet(written.datasets["counterfactuals"] / "*.parquet")
    common = _common(texts, shape, rng)
    sums = np.where(texts["country"] != "", 1.0, 0.0)
    index = np.array([int(c[1:]) if c else 0 for c in texts["country"]])
    inputs = Inputs(MODELS, written.datasets, written.data)
    for model, biased, other in models:
        separate = _common(texts, shape, rng, 1 + other)
        moved = np.sqrt(ALIKE) * common + np.sqrt(1 - ALIKE) * separate
        difference = swaps.UNIT * (moved + sums * shift[index] * biased)
        same = {"middle": pl.lit(0.4), "tokens": pl.lit(swaps.BASE, dtype=pl.Int64)}
        table = texts.select("text", apart=pl.Series(difference.clip(-0.55, 0.55)), **same)
        table = table.unique("text", keep="first", maintain_order=True)
        swaps.write_classes(inputs, model, table)
    names = [swaps.code(n) for n in range(shape.countries)]
    effects = dict(zip(names, (100 * swaps.UNIT * shift).tolist(), strict=True))
    return inputs, effects, effects


def _common(rows: pl.DataFrame, shape: swaps.SwapsShape, rng: Generator, names: float = 1) -> Array:
    """Return the summed effects of name, of text by country, and of name by text, units."""
    result = np.zeros(len(rows))
    first = pl.col("name").str.split(" ").list.first()
    # each original has its own name
    person = pl.when(pl.col("name") == "").then("target").otherwise(first)
    terms = (
        (person, names * shape.sd_name),
        (pl.format("{} {}", "target", "country"), shape.sd_text),
        (pl.col("text"), names * shape.sd_rest),
    )
    for of_row, sd in terms:
        codes = rows.select(of_row.rank("dense")).to_series().cast(pl.Int64).to_numpy() - 1
        result += rng.normal(0, sd, codes.max() + 1)[codes]
    return result


def _axes(folder: Path, _: None, models: Models, rng: Generator) -> Written:
    """Write filled masks; ``other``: the second model agrees with everything."""
    rows = responses.pairs(PAIRS)
    inputs = responses.written_to(folder, MODELS, q=rows)
    popular = rng.normal(0, POPULAR, (len(responses.AXES), PAIRS))
    quirk = rng.normal(0, QUIRK, len(rows))
    axis = np.array([responses.AXES.index(row["axis"]) for row in rows])
    pair = np.arange(len(rows)) // 2 % PAIRS
    side = np.where([row["reversed"] for row in rows], -1.0, 1.0)
    *small, large = EFFECTS["leaning"]
    leans = rng.permutation([rng.choice(small), large])
    for model, biased, other in models:
        lean = (leans * biased)[:, None] + popular + rng.normal(0, OWN, popular.shape)
        habit = rng.normal(2.0 * other, HABIT, len(FRAMES))
        filled: list[dict[str, Any]] = []
        for p, frame in enumerate(FRAMES):
            key = {"frame": frame} | responses.state()
            odds = side * lean[axis, pair] + quirk + rng.normal(0, PROMPT, len(rows))
            filled += [
                {"id": row["id"]} | key | responses.filled(float(nats))
                for row, nats in zip(rows, odds + habit[p], strict=True)
            ]
            filled.append(responses.prior(float(habit[p]), **key))
        responses.save(inputs, "mask", filled, model)
    return inputs, dict(zip(responses.AXES, leans.tolist(), strict=True)), {}


def outcomes(tables: Tables, sample: Drawn) -> Tables:
    """Return the rows of the simulated study."""
    study, (effects, targets) = sample.shape[0], sample.known
    if sample.truth.kind == "planted" and study == "politicians":
        # all lists have the same length, so words without an effect change too
        effects = {name: effect or None for name, effect in effects.items()}
    table = tables["comparison"].with_columns(
        pl.col("what").replace_strict(values, default=None, return_dtype=pl.Float64).alias(name)
        for name, values in (("effect", effects), ("target", targets))
    )
    return outcomes_by(table, study, effect="effect", target="target", family=["study"])
