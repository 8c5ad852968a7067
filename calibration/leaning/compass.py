"""Analysis ``compass`` on simulated responses.

The log-odds of agreeing with a statement are a sum of three parts: its position (the opinion on its
pair of opposites, shifted by the corpus, by the training run, and by the run separately for each
pair), agreement regardless of position (which varies by statement, by statement and prompt, and by
training run and prompt), and noise in each response. A training run thus shifts all statements
together, while the statements differ from each other. Planted effects are in units of the SD of
shifts over training runs.

There is one pretrained model, from which all training runs start, so only sampled responses add
noise to it. Simplifications: the response to a content-free prompt is known up to an error whose SD
is ``calibration``; habits are equal in the plain and the negated form; the certainty of the
entailment model is random.
"""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from pydantic import Field
from scipy.special import expit, ndtr

from calibration.leaning import responses
from calibration.truth import Array, Drawn, Generator, Tables, Truth, normal_mean, outcomes_by
from plumbline.builders.core.params import Params
from plumbline.probes.leaning.scoring import OPTIONS

AXES = responses.AXES
CORPORA = ("left", "right", "control")
FAMILY = ("model", "questionnaire", "response_format", "reading")
PLANTED_IN = {"all": 1.0, "before": 0.5, "from": 1.0}  # planted share of the shift, by period
SHIFTS = {
    "base model": "against itself",
    "control": "between corpora",
    "corpora": "between corpora",
    "period": "between periods",
    "polarisation": "apart, between periods",
}
MIDDLE = 50.0  # middle of an axis, percent
EDGE = 2 * float(np.arctanh(0.3))  # smallest log-odds that count as a strong stance
UNIFORM = EDGE / 0.6744897501960817  # SD of log-odds for which all four options are equally likely


class Shape(Params):
    """Shape of the responses of a model before training and after each training run."""

    response_format: str = Field("mask", description="format of the responses")
    pairs: int = Field(10, description="number of pairs of opposite statements on each of two axes")
    compass: bool = Field(False, description="score by points, statements without opposites")
    prompts: int = Field(3, description="number of prompts")
    trainings: int = Field(3, description="number of pretraining seeds for each of three corpora")
    periods: int = Field(1, description="number; if 2, half of the effect is planted in the first")
    samples: int = Field(1, description="number of samples of a response, or of option orders")
    popular: float = Field(0.8, description="SD over pairs of the opinion shared by all runs, nats")
    quirk: float = Field(0.3, description="SD of agreement over statements, nats")
    by_prompt: float = Field(0.4, description="SD of agreement over statements by prompt, nats")
    training: float = Field(0.25, description="SD over training runs of the shift on an axis, nats")
    by_pair: float = Field(0.4, description="SD over pairs of the effect of a training run, nats")
    uneven: float = Field(0.3, description="relative SD over prompts of a corpus's shift")
    habit: float = Field(0.7, description="SD of agreement over training runs and prompts, nats")
    calibration: float = Field(0.2, description="SD of the error in the estimated habit, nats")
    noise: float = Field(0.6, description="SD of the noise in each response, nats")
    refused: float = Field(0.0, description="share of written responses that are refusals")
    unsure: float = Field(0.0, description="share of written responses without a clear stance")
    unlisted: float = Field(0.1, description="share of masks at which no listed word is predicted")


OPTION_SHAPE = {"response_format": "multiple_choice", "prompts": 2, "samples": 2}
WRITTEN_SHAPE = {"response_format": "generation", "prompts": 2, "samples": 3}
SHAPES = {
    "masked, 3 trainings": Shape(),
    "masked, 5 trainings": Shape(trainings=5),
    "masked, 10 trainings": Shape(trainings=10, prompts=2),
    "masked, 5 trainings, before and from": Shape(trainings=5, periods=2),
    "generated, 5 trainings": Shape(**WRITTEN_SHAPE, trainings=5, refused=0.1, unsure=0.15),
    "options, 3 trainings": Shape(**OPTION_SHAPE, refused=0.05),
}
TRUTHS = {
    # training runs differ only by chance
    "trainings": Truth("null"),
    # corpora differ by chance, and each training run has texts of its own
    "own texts": Truth("null", own=1.0),
    # all responses are random; those of the pretrained model are equal in all prompts
    "random": Truth("null", random=True),
    # shifts of two corpora, in SDs over training runs; in half of the tables they are halved
    "corpora": Truth("planted", left=(-1.5, 3.0), right=(4.5, 0.0), sizes=(0.5, 1.0)),
    # one corpus causes agreement with everything; runs on another vary twice as much
    "habits": Truth("decoy", agreeing=1.0, spread=2.0),
    # corpora differ by chance, and all training runs share the same texts
    "texts": Truth("decoy", texts=1.0),
}
PARAMS: dict[str, Any] = responses.PLACES | {"n_permutations_stability": 199}


class State(NamedTuple):
    """Effects shared by all training runs on a corpus, in nats; "" denotes the pretrained model."""

    corpus: str
    period: str
    shift: Array  # (axes,)
    agreeing: float
    spread: float  # factor for the effects of single training runs


class Known(NamedTuple):
    """True parameters of a replicate."""

    shape: Shape
    truth: Truth
    states: list[State]
    pairs: Array  # (axes, pairs): opinions
    quirks: Array  # (axes, pairs, 2): effects of statements
    prompts: Array  # (prompts, axes, pairs, 2): effects of statements in each prompt
    uneven: Array  # (prompts,): factor of a corpus's shift in each prompt


def draw(folder: Path, truth: Truth, shape: Shape, rng: Generator) -> Drawn:
    """Write one replicate."""
    settings, axes = truth.settings, len(AXES)
    size = rng.choice(settings["sizes"]) if "sizes" in settings else 1.0
    states = [State("", "all", np.array(settings.get("itself", (0.0, 0.0))), 0.0, 0.0)]
    corpora = CORPORA if shape.trainings else ()
    for corpus, period in product(corpora, ("all",) if shape.periods == 1 else ("before", "from")):
        planted = np.array(settings.get(corpus, (0.0, 0.0))) * size * shape.training
        texts = rng.normal(0, settings.get("texts", 0.0) * shape.training, axes)
        agreeing = settings.get("agreeing", 0.0) * (corpus == "left")
        spread = settings.get("spread", 1.0) if corpus == "right" else 1.0
        shift = planted * PLANTED_IN[period] + texts
        states.append(State(corpus, period, shift, agreeing, spread))
    random = "random" in settings
    parameters = Known(
        shape,
        truth,
        states,
        rng.normal(0, 0 if random else shape.popular, (axes, shape.pairs)),
        rng.normal(0, 0 if random else shape.quirk, (axes, shape.pairs, 2)),
        rng.normal(0, shape.by_prompt, (shape.prompts, axes, shape.pairs, 2)),
        1 + rng.normal(0, shape.uneven, shape.prompts),
    )
    inputs = responses.written_to(folder, q=responses.pairs(shape.pairs, compass=shape.compass))
    responses.save(inputs, shape.response_format, _answers(parameters, rng))
    return Drawn(inputs, parameters)


def _answers(record: Known, rng: Generator) -> pl.DataFrame:
    """Return the responses of all checkpoints in the probe's schema."""
    shape, parts = record.shape, []
    forms = 1 if shape.response_format == "multiple_choice" else 2
    ids = [row["id"] for row in responses.pairs(shape.pairs)]
    for state in record.states:
        seeds = list(range(1, shape.trainings + 1)) if state.corpus else [0]
        size = (len(seeds), shape.prompts)
        random = "random" in record.truth.settings
        sd = 0 if random else shape.habit * max(1, state.spread)
        habit = rng.normal(state.agreeing, sd, size)
        odds = np.stack([_odds(record, state, len(seeds), form, rng) for form in range(forms)], 2)
        cells = (*odds.shape[:3], len(ids))  # (trainings, prompts, forms, statements)
        index = np.indices(cells).reshape(4, -1)
        keys = [responses.state(state.corpus, seed, period=state.period) for seed in seeds]
        frames = [responses.FRAME, *(f"other {n}" for n in range(1, shape.prompts))]
        frame = pl.DataFrame(keys)[index[0]].with_columns(
            id=pl.Series(np.array(ids)[index[3]]),
            frame=pl.Series(np.array(frames)[index[1]]),
            form=pl.Series(np.array(["plain", "negated"])[index[2]]),
        )
        log_odds = odds.reshape(cells) + habit[:, :, None, None]
        written = {"mask": _masked, "generation": _written, "multiple_choice": _chosen}
        noise_shape = shape.model_copy(update={"noise": UNIFORM}) if random else shape
        parts.append(written[shape.response_format](frame, log_odds.ravel(), noise_shape, rng))
        if shape.response_format == "mask":
            error = 0.0 if random or not state.corpus else shape.calibration
            known_habit = habit + rng.normal(0, error, size)
            rows = [
                responses.prior(float(nats), frame=frames[f]) | keys[n]
                for (n, f), nats in np.ndenumerate(known_habit)
            ]
            parts.append(pl.DataFrame(rows))
    return pl.concat(parts, how="diagonal_relaxed")


def _odds(record: Known, state: State, trainings: int, form: int, rng: Generator) -> Array:
    """Return log-odds without habits, (trainings, prompts, axes, pairs, 2), for one form."""
    shape, (axes, pairs) = record.shape, record.pairs.shape
    rows = responses.pairs(shape.pairs, compass=shape.compass)
    side = np.array([-1.0 if row["reversed"] else 1.0 for row in rows]).reshape(axes, pairs, 2)
    size = (trainings, *record.prompts.shape)
    if "random" in record.truth.settings:
        if shape.response_format != "mask":  # drawn separately for each sample
            return np.zeros(size)
        free = rng.normal(0, UNIFORM, size)
        if state.corpus:
            return np.asarray(free)
        return np.broadcast_to(free[:1, :1], size) if form == 0 else free
    spread = state.spread * bool(state.corpus)
    texts = record.truth.get("own", 0.0) * bool(state.corpus)
    moves = rng.normal(0, shape.training * np.hypot(spread, texts), (trainings, axes, 1))
    moves = moves + rng.normal(0, shape.by_pair * spread, (trainings, axes, pairs))
    pushed = moves[:, None] + state.shift[:, None] * record.uneven[:, None, None] + record.pairs
    sign = 1 - 2 * form
    content: Array = pushed[..., None] * side + record.quirks + record.prompts
    return np.asarray(sign * content + rng.normal(0, shape.noise * bool(state.corpus), size))


def _masked(frame: pl.DataFrame, odds: Array, shape: Shape, rng: Generator) -> pl.DataFrame:
    """Return responses at a mask, with the words used in :func:`responses.filled`."""
    up, mass = expit(odds), 0.4
    masses = np.stack([0.7 * up * mass, 0.3 * up * mass, (1 - up) * mass, np.full_like(up, 0.1)], 1)
    words = [" agree", "Support", "disagree", "the"]
    has_word = pl.Series(rng.random(len(odds)) >= shape.unlisted)
    counts = {"agree_words": 3, "disagree_words": 3, "unknown": 0}
    return frame.with_columns(
        words=pl.when(has_word).then(pl.lit(words)).otherwise(pl.lit(words[-1:] * len(words))),
        words_nats=pl.Series(np.log(masses)).cast(pl.List(pl.Float64)),
        agree_nats=pl.Series(np.log(up * mass)),
        disagree_nats=pl.Series(np.log((1 - up) * mass)),
        variant=pl.lit(""),
        **{name: pl.lit(number) for name, number in counts.items()},
    )


def _written(frame: pl.DataFrame, odds: Array, shape: Shape, rng: Generator) -> pl.DataFrame:
    """Return written responses, each with the stance from an entailment model."""
    codes = np.repeat(np.arange(len(odds)), shape.samples)
    size = len(codes)
    agrees = np.where(rng.random(size) < expit(1.7 * odds[codes]), 1.0, -1.0)
    sure = rng.random(size) >= shape.unsure
    alone = agrees * np.where(sure, rng.uniform(2.4, 5, size), rng.uniform(0, 2, size))
    # read together with the statement, which has a position too
    joint = 0.7 * alone + rng.normal(0, 0.7, size)
    refuses = rng.random(size) < shape.refused
    nats = {
        "agree_nats": np.log(expit(joint)),
        "disagree_nats": np.log(expit(-joint)),
        "entailed_nats": np.log(expit(alone)),
        "contradicted_nats": np.log(expit(-alone)),
    }
    same = {"tokens": 5, "finished": True, "stance_model": "nli", "stance_revision": "0"}
    return frame[codes].with_columns(
        *(pl.Series(name, values) for name, values in nats.items()),
        seed=pl.Series(np.tile(np.arange(1, shape.samples + 1), len(odds))),
        response=pl.Series(np.where(refuses, "I cannot say that.", "I do.")),
        **{name: pl.lit(value) for name, value in same.items()},
    )


def _chosen(frame: pl.DataFrame, odds: Array, shape: Shape, rng: Generator) -> pl.DataFrame:
    """Return the choices among four options that are offered in several orders."""
    codes = np.repeat(np.arange(len(odds)), shape.samples)
    order = np.tile(np.arange(shape.samples) % 2, len(odds))
    random = shape.noise == UNIFORM  # otherwise noise comes only from training runs
    noise = shape.noise * (random | (frame["corpus"].to_numpy()[codes] != ""))
    option = np.searchsorted([-EDGE, 0, EDGE], odds[codes] + rng.normal(0, noise))
    offered = np.array([[o.capitalize() for o in o_] for o_ in (OPTIONS, OPTIONS[::-1])])[order]
    index = np.where(order, len(OPTIONS) - 1 - option, option)
    texts = [f"{n + 1}) {names[n]}" for n, names in zip(index, offered, strict=True)]
    refuses = rng.random(len(codes)) < shape.refused
    nats = -1.5 * np.abs(np.arange(len(OPTIONS)) - option[:, None]) - 0.1
    prompts = {name: f"view/{n}" for n, name in enumerate(frame["frame"].unique().sort())}
    return frame[codes].with_columns(
        template=pl.Series([prompts[name] for name in frame["frame"][codes]]),
        order=pl.Series(order),
        options=pl.Series(offered.tolist(), dtype=pl.List(pl.String)),
        seed=pl.Series(np.ones(len(codes), dtype=np.int64)),
        response=pl.Series(np.where(refuses, "I cannot choose.", np.array(texts))),
        option_nats=pl.Series(nats).cast(pl.List(pl.Float64)),
    )


def outcomes(tables: Tables, sample: Drawn) -> Tables:
    """Return the rows of each test and interval, for most of them by method variant.

    If all responses are random, the training runs do differ from the single pretrained model, and
    all coordinates are tested. Otherwise only the coordinates of the pretrained model are tested,
    which has opinions but no position.
    """
    record: Known = sample.known
    random, kind = "random" in record.truth.settings, record.truth.kind
    shifts, coordinates = tables["shifts"], tables["coordinates"]
    alone = pl.col("corpus") == ""
    result: Tables = {}
    if kind != "planted":
        tested = shifts.with_columns(test=pl.col("contrast").replace_strict(SHIFTS))
        tested = tested.filter((pl.col("test") != "against itself") | (not random))
        result |= outcomes_by(tested, "shifts {test}: {reading}", effect=0.0, family=FAMILY)
        still = pl.when(pl.lit(random) | (alone & (kind == "null"))).then(0.0)
        who = alone.replace_strict({True: "itself", False: "trained"})
        rows = coordinates.with_columns(who=who)
        result |= outcomes_by(rows, "coordinates, {who}: {reading}", effect=still, family=FAMILY)
    if record.shape.response_format == "mask" and record.shape.periods == 1:
        base = pl.when(pl.col("contrast") == "base model").then(pl.lit(""))
        differences = shifts.with_columns(baseline=base.otherwise("baseline"))
        if random:  # all training runs do differ from the single pretrained model
            differences = differences.filter(pl.col("baseline") != "")
        result |= _intervals(record, differences, coordinates)
    fixed = alone & (record.shape.response_format == "mask")
    effect = pl.when(~fixed & random).then(0.0)
    test = "stability, {comparison}"
    return result | outcomes_by(tables["stability"], test, effect=effect, family=FAMILY)


def _intervals(record: Known, shifts: pl.DataFrame, coordinates: pl.DataFrame) -> Tables:
    """Return the intervals of each variant and the values that they should cover."""
    result: Tables = {}
    for reading in MEANS:
        true = truth_of(record, reading)
        column = "nats" if reading == "corrected" else "here"
        differences = (
            shifts.filter(reading=reading)
            .join(true, on=["corpus", "axis"])
            .join(true, left_on=["baseline", "axis"], right_on=["corpus", "axis"], suffix="_other")
        )
        target = pl.col(column) - pl.col(f"{column}_other")
        test = f"interval: {reading}"
        result |= outcomes_by(differences, f"shifts, {test}", effect=0.0, target=target, p="")
        rows = coordinates.filter(reading=reading).join(true, on=["corpus", "axis"])
        result |= outcomes_by(rows, f"coordinates, {test}", effect=0.0, target="states", p="")
    return result


def truth_of(record: Known, reading: str) -> pl.DataFrame:
    """Return the true positions of checkpoints by corpus and axis.

    ``here`` and ``nats`` apply to these prompts and statements, ``states`` to their populations.
    """
    shape, mean, parts = record.shape, MEANS[reading], []
    side = np.array([1.0, -1.0])
    for state in record.states:
        trained = bool(state.corpus)
        texts = record.truth.get("own", 0.0) * trained
        moves = np.hypot(state.spread, texts) * trained * shape.training
        free = np.hypot(shape.noise, shape.calibration) * trained
        within = moves**2 + (state.spread * trained * shape.by_pair) ** 2 + free**2
        spread = np.sqrt(shape.by_prompt**2 + within + shape.popular**2 + shape.quirk**2)
        shift = state.shift * record.uneven[:, None]  # (prompts, axes)
        if "random" in record.truth.settings:
            spread, within = np.full(len(AXES), UNIFORM), np.float64(UNIFORM**2)
        odds = (record.pairs + shift[..., None])[..., None] * side + record.quirks + record.prompts
        position = (mean(odds, np.sqrt(within)) * side).mean(axis=(0, 2, 3))
        values = {"states": MIDDLE * (1 + mean(shift, spread).mean(axis=0))}
        values |= {"here": MIDDLE * (1 + position), "nats": shift.mean(axis=0)}
        parts.append(pl.DataFrame({"axis": list(AXES), "corpus": state.corpus, **values}))
    return pl.concat(parts)


def _mean_option(mean: Array, sd: Array) -> Array:
    """Return the mean stance of options for normal log-odds, or fixed ones if no SD is given."""
    sd = np.maximum(sd, 1e-9)
    side, strong = (ndtr((mean - e) / sd) - ndtr((-mean - e) / sd) for e in (0.0, EDGE))
    return np.asarray((side + strong) / 2)


def _mean_difference(mean: Array, sd: Array) -> Array:
    """Return the mean difference between the two probability masses for normal log-odds."""
    return normal_mean(lambda odds: np.tanh(odds / 2), mean, sd)


MEANS = {"corrected": _mean_option, "continuous": _mean_difference}
