"""Analysis ``compass`` on simulated responses.

The log-odds of agreeing with a statement are the sum of what is right and left in it (a pair of
opposites has an opinion, and a corpus, a training, and a training by pair move it), of agreeing
with it whatever side it is on (statement, prompt by statement, a habit by training and prompt),
and of noise in every response. So a training moves all statements together, and statements vary
between themselves. Unit of what is planted: the SD over trainings of their own shift.

The model itself is one: trainings start from it, so that all noise is theirs, but for samples.
Simplified: what a prompt does without content is known to the SD ``calibration``, and habits are
the same in the plain and the negated form; an entailment model is sure or not at random.
"""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
import polars as pl
from pydantic import Field
from scipy.special import expit, ndtr

from calibration.leaning import responses
from calibration.truth import DECOY, NULL, PLANTED, Drawn, Truth, outcome
from plumbline.builders.core.params import Params
from plumbline.probes.leaning.scoring import OPTIONS
from plumbline.probes.prompts.leaning import FORMS

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from calibration.leaning.responses import Row

    Array = NDArray[np.float64]
    Tables = dict[str, pl.DataFrame]

AXES = responses.AXES
CORPORA = ("left", "right", "control")
OF = ("coordinates", "shifts")
FAMILY = ("model", "questionnaire", "response_format", "reading")
PLANTED_IN = {"all": 1.0, "before": 0.5, "from": 1.0}  # share of the planted shift, by period
SHIFTS = {
    "base model": "against itself",
    "control": "between corpora",
    "corpora": "between corpora",
    "period": "between periods",
    "polarisation": "apart, between periods",
}
MIDDLE = 50.0  # of an axis, percent
CONTENT = ("popular", "quirk", "by_prompt", "training", "by_pair")  # of a shape
EDGE = 2 * float(np.arctanh(0.3))  # log-odds from which a stance is strong
UNIFORM = EDGE / 0.6744897501960817  # SD of log-odds under which the four options are as likely


class QuestionnaireShape(Params):
    """Shape of what a model answered, before training and after each."""

    response_format: Literal["mask", "generation", "multiple_choice"] = Field(
        "mask", description="how it answered"
    )
    pairs: int = Field(10, ge=2, description="pairs of opposite statements on each of two axes")
    prompts: int = Field(3, ge=1, description="prompts")
    trainings: int = Field(3, ge=1, description="pretraining seeds of each of three corpora")
    periods: int = Field(1, ge=1, le=2, description="2: texts from before, where half is planted")
    samples: int = Field(1, ge=1, description="of each response; of options, their orders")
    popular: float = Field(0.8, ge=0, description="SD over pairs of opinions of all states, nats")
    quirk: float = Field(0.3, ge=0, description="SD over statements of being agreed with, nats")
    by_prompt: float = Field(0.4, ge=0, description="SD over statements in a prompt, nats")
    training: float = Field(0.25, ge=0, description="SD of a training's shift of an axis, nats")
    by_pair: float = Field(0.4, ge=0, description="SD over pairs of what a training does, nats")
    uneven: float = Field(0.3, ge=0, description="SD over prompts of a corpus's shift, parts of it")
    habit: float = Field(0.7, ge=0, description="SD of agreeing, by training and prompt, nats")
    calibration: float = Field(0.2, ge=0, description="SD of the error of that, nats")
    noise: float = Field(0.6, ge=0, description="SD of each response, nats")
    refused: float = Field(0.0, ge=0, le=1, description="share of written responses that refuse")
    unsure: float = Field(0.0, ge=0, le=1, description="share without a clear stance")
    unlisted: float = Field(0.1, ge=0, le=1, description="share of masks without a listed word")


Shape = QuestionnaireShape
SHAPES = {
    "masked, 3 trainings": Shape(),
    "masked, 5 trainings": Shape(trainings=5),
    "masked, 10 trainings": Shape(trainings=10, prompts=2),
    "masked, 5 trainings, before and from": Shape(trainings=5, periods=2),
    "generated, 5 trainings": Shape(
        response_format="generation", trainings=5, prompts=2, samples=3, refused=0.1, unsure=0.15
    ),
    "options, 3 trainings": Shape(
        response_format="multiple_choice", prompts=2, samples=2, refused=0.05
    ),
}
TRUTHS = {
    "trainings": Truth(NULL, "a training's own shift alone"),
    "own texts": Truth(
        NULL,
        "corpora differ by chance, in texts that each training has to itself",
        {"own": 1.0},
    ),
    "random": Truth(
        NULL,
        "all responses are random, and the model itself gives the same one in all prompts",
        {"random": True},
    ),
    "corpora": Truth(
        PLANTED,
        "shifts of two corpora, SDs over trainings; in half of the tables half of them",
        {"left": (-1.5, 3.0), "right": (4.5, 0.0), "sizes": (0.5, 1.0)},
    ),
    "weak opinions": Truth(
        PLANTED, "all that statements differ by is half as large", {"opinions": 0.5}
    ),
    "faint opinions": Truth(PLANTED, "the same: a quarter", {"opinions": 0.25}),
    "habits": Truth(
        DECOY,
        "one corpus makes a model agree with everything, trainings on the other vary twice as much",
        {"agreeing": 1.0, "spread": 2.0},
    ),
    "random habits": Truth(
        DECOY,
        "all responses are random, but that each training agrees with everything, and prompts vary",
        {"random": True, "agreeing": 1.0, "habits": True},
    ),
    "texts": Truth(
        DECOY,
        "corpora differ by chance, in texts that all trainings read",
        {"texts": 1.0},
    ),
}
PARAMS: dict[str, Any] = responses.PLACES | {"n_permutations_stability": 199}


class State(NamedTuple):
    """What all trainings on a corpus have in common, in nats; () where there is no training."""

    corpus: str
    period: str
    shift: Array  # (axes,)
    agreeing: float
    spread: float  # times what a training does by itself


class Known(NamedTuple):
    """What is true of a replicate."""

    shape: Shape
    truth: Truth
    states: list[State]
    pairs: Array  # (axes, pairs): opinions
    quirks: Array  # (axes, pairs, 2): of statements
    prompts: Array  # (prompts, axes, pairs, 2): of statements in each
    uneven: Array  # (prompts,): what of a corpus's shift is in each


def draw(folder: Path, truth: Truth, shape: Shape, rng: np.random.Generator) -> Drawn:
    """Write one replicate."""
    if "sizes" in truth.settings:
        truth = _of_size(truth, rng.choice(truth.settings["sizes"]))
    told = truth.settings
    if "opinions" in told:
        weaker = {name: told["opinions"] * getattr(shape, name) for name in CONTENT}
        shape = shape.model_copy(update=weaker)
    axes = len(AXES)
    itself = np.array(told.get("itself", (0.0,) * axes))
    states = [State("", "all", itself, told.get("agreeing", 0.0) * ("habits" in told), 0.0)]
    for corpus, period in product(CORPORA, ("all",) if shape.periods == 1 else ("before", "from")):
        planted = np.array(told.get(corpus, (0.0, 0.0))) * shape.training * PLANTED_IN[period]
        texts = rng.normal(0, told.get("texts", 0.0) * shape.training, axes)
        agreeing = told.get("agreeing", 0.0) * (corpus == "left" or "habits" in told)
        spread = told.get("spread", 1.0) if corpus == "right" else 1.0
        states.append(State(corpus, period, planted + texts, agreeing, spread))
    random = "random" in told
    known = Known(
        shape,
        truth,
        states,
        rng.normal(0, 0 if random else shape.popular, (axes, shape.pairs)),
        rng.normal(0, 0 if random else shape.quirk, (axes, shape.pairs, 2)),
        rng.normal(0, shape.by_prompt, (shape.prompts, axes, shape.pairs, 2)),
        1 + rng.normal(0, shape.uneven, shape.prompts),
    )
    inputs = responses.written_to(folder, q=responses.pairs(shape.pairs))
    responses.save(inputs, shape.response_format, _answers(known, rng))
    return Drawn(inputs, known)


def _of_size(truth: Truth, size: float) -> Truth:
    """Return the truth with as large a part of the shifts of corpora."""
    told = truth.settings
    shifts = {c: tuple(size * float(sd) for sd in told[c]) for c in CORPORA if c in told}
    return truth._replace(settings={**told, **shifts})


def _answers(known: Known, rng: np.random.Generator) -> pl.DataFrame:
    """Return the responses of all states in the probe's schema."""
    shape, parts = known.shape, []
    forms = 1 if shape.response_format == "multiple_choice" else 2
    ids = sorted(row["id"] for row in responses.pairs(shape.pairs))
    for own in known.states:
        seeds = list(range(1, shape.trainings + 1)) if own.corpus else [0]
        size = (len(seeds), shape.prompts)
        random = "random" in known.truth.settings
        still = random and "habits" not in known.truth.settings
        habit = rng.normal(own.agreeing, 0 if still else shape.habit * max(1, own.spread), size)
        odds = np.stack([_odds(known, own, len(seeds), form, rng) for form in range(forms)], 2)
        every = (*odds.shape[:3], len(ids))  # (trainings, prompts, forms, statements)
        place = np.indices(every).reshape(4, -1)
        about = [responses.state(own.corpus, seed, period=own.period) for seed in seeds]
        frames = [responses.FRAME, *(f"other {n}" for n in range(1, shape.prompts))]
        frame = pl.DataFrame(about)[place[0]].with_columns(
            id=pl.Series(np.array(ids)[place[3]]),
            frame=pl.Series(np.array(frames)[place[1]]),
            form=pl.Series(np.array(FORMS)[place[2]]),
        )
        told = odds.reshape(every) + habit[:, :, None, None]
        written = {"mask": _masked, "generation": _written, "multiple_choice": _chosen}
        given = shape.model_copy(update={"noise": UNIFORM}) if random else shape
        parts.append(written[shape.response_format](frame, told.ravel(), given, rng))
        if shape.response_format == "mask":
            error = 0.0 if still or not own.corpus else shape.calibration
            parts.append(_priors(about, frames, habit + rng.normal(0, error, size)))
    return pl.concat(parts, how="diagonal_relaxed")


def _odds(
    known: Known,
    own: State,
    trainings: int,
    form: int,
    rng: np.random.Generator,
) -> Array:
    """Return log-odds without habits, (trainings, prompts, axes, pairs, 2); of what is denied."""
    shape, (axes, pairs) = known.shape, known.pairs.shape
    side = np.array([1.0, -1.0])
    size = (trainings, *known.prompts.shape)
    if "random" in known.truth.settings:
        if shape.response_format != "mask":  # each sample by itself
            return np.zeros(size)
        free = rng.normal(0, UNIFORM, size)
        if own.corpus:
            return np.asarray(free)
        return np.broadcast_to(free[:1, :1], size) if form == 0 else free
    spread = own.spread * bool(own.corpus)
    texts = known.truth.settings.get("own", 0.0) * bool(own.corpus)
    moves = rng.normal(0, shape.training * np.hypot(spread, texts), (trainings, axes, 1))
    moves = moves + rng.normal(0, shape.by_pair * spread, (trainings, axes, pairs))
    pushed = moves[:, None] + own.shift[:, None] * known.uneven[:, None, None] + known.pairs
    sign = 1 - 2 * form
    content: Array = pushed[..., None] * side + known.quirks + known.prompts
    return np.asarray(sign * content + rng.normal(0, shape.noise * bool(own.corpus), size))


def _masked(
    frame: pl.DataFrame, odds: Array, shape: Shape, rng: np.random.Generator
) -> pl.DataFrame:
    """Return responses at a mask, with the words of :func:`responses.filled`."""
    up, mass = expit(odds), 0.4
    masses = np.stack([0.7 * up * mass, 0.3 * up * mass, (1 - up) * mass, np.full_like(up, 0.1)], 1)
    words = [" agree", "Support", "disagree", "the"]
    listed = pl.Series(rng.random(len(odds)) >= shape.unlisted)
    return frame.with_columns(
        words=pl.when(listed).then(pl.lit(words)).otherwise(pl.lit(words[-1:] * len(words))),
        words_nats=pl.Series(np.log(masses)).cast(pl.List(pl.Float64)),
        agree_nats=pl.Series(np.log(up * mass)),
        disagree_nats=pl.Series(np.log((1 - up) * mass)),
        agree_words=pl.lit(3),
        disagree_words=pl.lit(3),
        unknown=pl.lit(0),
        variant=pl.lit(""),
    )


def _priors(about: list[Row], frames: list[str], odds: Array) -> pl.DataFrame:
    """Return what prompts do to texts without content; ``odds`` (trainings, prompts)."""
    rows = [
        responses.prior(float(odds[s, f]), frame=frame) | own
        for s, own in enumerate(about)
        for f, frame in enumerate(frames)
    ]
    return pl.DataFrame(rows)


def _written(
    frame: pl.DataFrame, odds: Array, shape: Shape, rng: np.random.Generator
) -> pl.DataFrame:
    """Return written responses, a stance of an entailment model beside each."""
    at = np.repeat(np.arange(len(odds)), shape.samples)
    size = len(at)
    agrees = np.where(rng.random(size) < expit(1.7 * odds[at]), 1.0, -1.0)
    sure = rng.random(size) >= shape.unsure
    alone = agrees * np.where(sure, rng.uniform(2.4, 5, size), rng.uniform(0, 2, size))
    joint = 0.7 * alone + rng.normal(0, 0.7, size)  # with the statement, which has a side too
    refuses = rng.random(size) < shape.refused
    nats = {
        "agree_nats": np.log(expit(joint)),
        "disagree_nats": np.log(expit(-joint)),
        "entailed_nats": np.log(expit(alone)),
        "contradicted_nats": np.log(expit(-alone)),
    }
    return frame[at].with_columns(
        *(pl.Series(name, values) for name, values in nats.items()),
        seed=pl.Series(np.tile(np.arange(1, shape.samples + 1), len(odds))),
        response=pl.Series(np.where(refuses, "I cannot say that.", "I do.")),
        tokens=pl.lit(5),
        finished=pl.lit(value=True),
        stance_model=pl.lit("nli"),
        stance_revision=pl.lit("0"),
    )


def _chosen(
    frame: pl.DataFrame, odds: Array, shape: Shape, rng: np.random.Generator
) -> pl.DataFrame:
    """Return options chosen of four that are offered in several orders."""
    at = np.repeat(np.arange(len(odds)), shape.samples)
    order = np.tile(np.arange(shape.samples) % 2, len(odds))
    random = shape.noise == UNIFORM  # else the model itself is one, and trainings start from it
    noise = shape.noise * (random | (frame["corpus"].to_numpy()[at] != ""))
    option = np.searchsorted([-EDGE, 0, EDGE], odds[at] + rng.normal(0, noise))
    offered = np.array([[o.capitalize() for o in o_] for o_ in (OPTIONS, OPTIONS[::-1])])[order]
    place = np.where(order, len(OPTIONS) - 1 - option, option)
    told = [f"{n + 1}) {names[n]}" for n, names in zip(place, offered, strict=True)]
    refuses = rng.random(len(at)) < shape.refused
    nats = -1.5 * np.abs(np.arange(len(OPTIONS)) - option[:, None]) - 0.1
    prompts = {name: f"view/{n}" for n, name in enumerate(frame["frame"].unique().sort())}
    return frame[at].with_columns(
        template=pl.Series([prompts[name] for name in frame["frame"][at]]),
        order=pl.Series(order),
        options=pl.Series(offered.tolist(), dtype=pl.List(pl.String)),
        seed=pl.Series(np.ones(len(at), dtype=np.int64)),
        response=pl.Series(np.where(refuses, "I cannot choose.", np.array(told))),
        option_nats=pl.Series(nats).cast(pl.List(pl.Float64)),
    )


def outcomes(tables: Tables, drawn: Drawn) -> Tables:
    """Return the rows of each test and interval, most of them in each reading.

    That of a shift is told against the model itself, which is one (and where it is random, its
    trainings do differ from it), and between corpora. That of a place is told where all is random,
    and of the model itself, which has opinions and no side.
    """
    known: Known = drawn.known
    found = {}
    for reading in sorted(set(tables["shifts"]["reading"])):
        own = {name: table.filter(reading=reading) for name, table in tables.items() if name in OF}
        for test, frame in _tests(known, own).items():
            found[f"{test}: {reading}"] = frame
        alone = known.shape.response_format == "mask" and known.shape.periods == 1
        if alone and reading in MEANS:
            for test, frame in _intervals(known, own, reading).items():
                found[f"{test}, interval: {reading}"] = frame
    for name, own_rows in tables["stability"].partition_by("comparison", as_dict=True).items():
        strength = known.truth.settings.get("opinions", 1.0)
        effect = strength if known.truth.kind == PLANTED else None
        itself = pl.col("corpus") == ""  # as sure of weak opinions as of others: without noise
        fixed = itself & (known.shape.response_format == "mask")
        random = "random" in known.truth.settings
        told = pl.when(~fixed).then(0.0) if random else pl.lit(effect, pl.Float64)
        told = told if strength == 1 else pl.when(~itself).then(told)
        apart = own_rows.with_columns(pl.col("value", "low", "high") - pl.col("chance"))
        found[f"stability, {name[0]}"] = outcome(apart, effect=told, family=FAMILY)
    return found


def _tests(known: Known, own: Tables) -> Tables:
    """Return the tests of one reading."""
    random, kind = "random" in known.truth.settings, known.truth.kind
    named = pl.col("contrast")
    part = pl.col("period").replace_strict(PLANTED_IN)
    later = named.is_in(["period", "polarisation"])
    part = pl.when(later).then(PLANTED_IN["from"] - PLANTED_IN["before"]).otherwise(part)
    apart = _planted(known, "corpus") - _planted(known, "baseline")
    shifts = own["shifts"].with_columns(effect=part * apart, test=named.replace(SHIFTS))
    effect = pl.col("effect")
    found = {
        f"shifts {test}": outcome(rows.drop("test"), effect=effect, family=FAMILY)
        for (test,), rows in shifts.filter((pl.col("test") != "against itself") | (not random))
        .partition_by("test", as_dict=True, maintain_order=True)
        .items()
    }
    part = pl.col("period").replace_strict(PLANTED_IN)
    rows = own["coordinates"].with_columns(effect=part * _planted(known, "corpus"))
    still = pl.lit(random) | (pl.lit(kind == NULL) & (pl.col("corpus") == ""))
    sides = still | ((pl.col("effect") != 0) & (kind == PLANTED))
    told, alone = pl.when(sides).then(effect), pl.col("corpus") == ""
    for name, some in (("itself", rows.filter(alone)), ("trained", rows.filter(~alone))):
        of = outcome(some, effect=told, family=FAMILY, null_value=MIDDLE)
        found[f"coordinates, {name}"] = of
    return found


def _planted(known: Known, column: str) -> pl.Expr:
    """Return what was planted in a corpus on an axis, in SDs of a training's own shift."""
    told = known.truth.settings
    values = {f"{c} {a}": told[c][i] for c in told if c in CORPORA for i, a in enumerate(AXES)}
    key = pl.format("{} {}", column, "axis")
    return key.replace_strict(values, default=0.0, return_dtype=pl.Float64)


def _intervals(known: Known, own: Tables, reading: str) -> Tables:
    """Return intervals of a reading with what they should cover; see :func:`truth_of`."""
    true = truth_of(known, reading)
    untested = {"p": pl.lit(None, pl.Float64), "p_bh": pl.lit(None, pl.Float64)}
    here = true["nats" if reading == "corrected" else "here"]
    base = pl.when(pl.col("contrast") == "base model").then(pl.lit(""))
    shifts = own["shifts"].with_columns(**untested, baseline=base.otherwise("baseline"))
    if "random" in known.truth.settings:  # from the model itself, which is one, trainings do differ
        shifts = shifts.filter(pl.col("baseline") != "")
    shifts = shifts.join(here, on=["corpus", "axis"])
    others = here.rename({"corpus": "baseline", "target": "other"})
    shifts = shifts.join(others, on=["baseline", "axis"])
    places = own["coordinates"].with_columns(**untested).join(true["states"], on=["corpus", "axis"])
    return {
        "shifts": outcome(shifts, effect=0.0, target=pl.col("target") - pl.col("other")),
        "coordinates": outcome(places, effect=0.0, target=pl.col("target")),
    }


def truth_of(known: Known, reading: str) -> Tables:
    """Return where states are, in these prompts and on these statements (``here``, ``nats``).

    ``states``: over all statements that there could be.
    """
    shape, mean = known.shape, MEANS[reading]
    side = np.array([1.0, -1.0])
    found: dict[str, list[pl.DataFrame]] = {}
    for own in known.states:
        corpus = own.corpus
        texts = known.truth.settings.get("own", 0.0) * bool(corpus)
        moves = np.hypot(own.spread, texts) * bool(corpus) * shape.training
        free = np.hypot(shape.noise, shape.calibration) * bool(corpus)
        within = moves**2 + (own.spread * bool(corpus) * shape.by_pair) ** 2 + free**2
        every = np.sqrt(shape.by_prompt**2 + within + shape.popular**2 + shape.quirk**2)
        shift = own.shift * known.uneven[:, None]  # (prompts, axes)
        if "random" in known.truth.settings:
            every, within = np.full(len(AXES), UNIFORM), np.float64(UNIFORM**2)
        each = (known.pairs + shift[..., None])[..., None] * side + known.quirks + known.prompts
        here = (mean(each, np.sqrt(within)) * side).mean(axis=(0, 2, 3))
        where = {"corpus": [corpus] * len(AXES), "axis": list(AXES)}
        for name, values in {
            "states": MIDDLE * (1 + mean(shift, every).mean(axis=0)),
            "here": MIDDLE * (1 + here),
            "nats": shift.mean(axis=0),
        }.items():
            found.setdefault(name, []).append(pl.DataFrame(where | {"target": values}))
    return {name: pl.concat(own) for name, own in found.items()}


def _mean_option(mean: Array, sd: Array) -> Array:
    """Return the mean stance of options at normal log-odds; without an SD, at fixed ones."""
    sd = np.maximum(sd, 1e-9)
    side, strong = (ndtr((mean - e) / sd) - ndtr((-mean - e) / sd) for e in (0.0, EDGE))
    return np.asarray((side + strong) / 2)


def _mean_difference(mean: Array, sd: Array) -> Array:
    """Return the mean difference of the two masses at normal log-odds."""
    at, weights = np.polynomial.hermite_e.hermegauss(21)
    odds = np.asarray(mean)[..., None] + np.asarray(sd)[..., None] * at
    return np.asarray(np.tanh(odds / 2) @ weights / weights.sum())


MEANS = {"corrected": _mean_option, "continuous": _mean_difference}
