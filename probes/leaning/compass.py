"""Analysis ``compass``: where models stand on the axes of a political questionnaire.

Feng et al. (2023): stances on statements, read off a masked word or an answer, are scored as a
person's would be; before and after further training on partisan texts. Röttger et al. (2024):
options that are offered, and what becomes of the stance when the question changes.
"""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl
from scipy.special import ndtr

from plumbline.builders.core.errors import UserError
from plumbline.probes.leaning import schemas
from plumbline.probes.leaning.responses import (
    CLUSTER,
    EVERY,
    ITSELF,
    NEGATED,
    PLAIN,
    STATE,
    outputs,
    readings,
    worded,
)
from plumbline.probes.leaning.schemas import SCHEMAS
from plumbline.probes.leaning.schemas import CompassParams as Params
from plumbline.probes.leaning.scoring import NATS_UNIT, OPTIONS, STANCES, UNITS, scales
from plumbline.probes.leaning.stability import answered, stability
from plumbline.probes.prompts.leaning import FORMS
from plumbline.probes.stats.crossed import METHOD, estimated, of_difference, of_mean, of_total
from plumbline.probes.stats.estimate import Estimate, adjusted, finite, typed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from plumbline.probes.core.run_analysis import Inputs
    from plumbline.probes.leaning.responses import Reading, Rows, State
    from plumbline.probes.leaning.scoring import Array, Scale
    from plumbline.probes.stats.crossed import Contrast

EACH = False
DATASETS = ("statements",)
OUTPUTS = ("stances",)
TABLES = ()
OPTIONAL = ("questions", "shifts", "stability", "paraphrased")  # tables that may have no row
RANDOM = "sides of statements at random, SD {sd:.3f}, of all options at least: mean {mean:.3f}"
SIGNS = (1.0, -1.0, -1.0, 1.0)  # of states: one - other - (third - fourth)
REACH = 1.959963984540054  # of a normal: 95% of random answers
OVER = "0: trainings on other texts of the kind, the same statements and prompts"
ALONE = "no test: one training, or answers that are samples or choices, of one model"
STUDENT = "t interval over trainings (Student; Welch of unequally many)"
GRADED = ("continuous", "expected")  # readings of stances between options; others are choices
ITEMS = ": prompts, trainings; none where an answer is missing, or answers are choices"
__all__ = ["SCHEMAS", "Params"]


def run(inputs: Inputs, params: Params) -> dict[str, pl.DataFrame]:
    """Compute the tables of all models.

    A UserError if responses are missing, or are to a questionnaire without axes.

    Returns
    -------
    dict
        Columns as in :data:`SCHEMAS`; ``questions`` only of masked models, ``shifts`` only with
        trained states, ``stability`` only where something was prompted twice.
    """
    found: dict[str, Rows] = {name: [] for name in SCHEMAS}
    known: dict[str, Scale] = {}
    for model, asked in product(inputs.models, schemas.FORMATS):
        told = outputs(inputs.outputs("stances", model), asked)
        if told is None:
            continue
        names = set(told["questionnaire"]) - {"", *known}
        known |= scales(inputs.datasets["statements"], names)
        tables = {"questions": _questions(told)} if asked == "mask" else {}
        for reading in readings(asked, told, known, params):
            for table, rows_of in ROWS.items():
                tables.setdefault(table, []).extend(rows_of(reading, params))
        for table, rows in tables.items():
            found[table] += [{"model": model} | row for row in rows]
    found["baselines"] = [row for scale in known.values() for row in baselines(scale)]
    return {name: _table(own, name) for name, own in found.items() if own or name not in OPTIONAL}


def _questions(told: pl.DataFrame) -> Rows:
    """Return the log-odds of agreeing with each statement in each prompt, as it is and denied."""
    real = told.filter(pl.col("form").is_in([PLAIN, NEGATED]) & (pl.col("variant") == ""))
    key = [*STATE, "questionnaire", "id", "frame", "form"]
    odds = (pl.col("agree_nats") - pl.col("disagree_nats")).mean()
    rows = real.group_by(key).agg(log_odds_nats=odds).sort(key).to_dicts()
    return [
        row | {"form": FORMS[row["form"]], "log_odds_nats": finite(row["log_odds_nats"])}
        for row in rows
    ]


def _table(own: Rows, name: str) -> pl.DataFrame:
    """Return rows as a table, in the order of its key."""
    schema = SCHEMAS[name]
    if not own:
        raise UserError(f"analysis.compass: no row of {name}; does any model have outputs?")
    table = pl.DataFrame(own, infer_schema_length=None)
    if "p" in table.columns:
        table = adjusted(table, "p", ("model", "questionnaire", "response_format", "reading"))
    return typed(table, schema).sort(schema.key)


class Axis(NamedTuple):
    """What the responses of one state, or the difference of two, add to one axis."""

    totals: Array  # (clusters,)
    prompts: Array  # (prompts,)
    sides: list[Array]  # (seeds,) of each state

    @property
    def seeds(self) -> Array:
        """Return those of the first state."""
        return self.sides[0]

    @property
    def value(self) -> float:
        """Return the sum, mean over prompts and trainings."""
        return float(self.totals.sum())

    def estimate(self, start: float, confidence: float) -> Estimate:
        """Return where it leads to, with its interval over statements and trainings."""
        parts = of_total(self.totals), of_mean(self.seeds)
        names = zip(("statements", "trainings"), parts, strict=True)
        _, low, high, _ = estimated(self.value, parts, confidence)
        method = f"{METHOD}: {', '.join(name for name, part in names if part.df)}"
        return Estimate(start + self.value, start + low, start + high, len(self.totals), method)

    @property
    def seed_sd(self) -> float | None:
        """Return the standard deviation over seeds, None for one seed."""
        return sd_of(self.seeds)


def moved(scale: Scale, a: int, *sides: Array) -> Axis:
    """Return what responses add to an axis, minus what others do.

    Parameters
    ----------
    sides : (seeds, prompts, statements) each
        What each answer adds in one state; minus another; or minus the difference of two others.
    """
    keep = scale.moving()[a]
    place = np.unique(np.array(scale.clusters)[keep], return_inverse=True)[1]
    own = [side[:, :, keep] for side in sides]
    means = [side.mean(axis=0) for side in own]  # (prompts, statements)
    apart = np.sum([sign * mean for sign, mean in zip(SIGNS, means, strict=False)], axis=0)
    totals = np.bincount(place, apart.mean(axis=0)).astype(np.float64)
    return Axis(totals, apart.sum(axis=1), [side.mean(axis=1).sum(axis=1) for side in own])


def sd_of(values: Array) -> float | None:
    """Return the standard deviation over seeds or prompts, None for one."""
    return finite(values.std(ddof=1)) if len(values) > 1 else None


def _axes(
    reading: Reading, state: State, params: Params, at: tuple[slice, slice] = EVERY
) -> Iterator[tuple[dict[str, Any], Axis]]:
    """Yield for each axis its row, and what responses add to it.

    A row is tested against random responses, and has no value without any response. Their SD is
    that of options that are as likely as each other, or of these responses with sides at random,
    an opposite's with its statement's, if that is larger: who says nothing weakly, or is of one
    opinion on a statement and its opposite, is spread wider.

    Parameters
    ----------
    at
        Some of the trainings and prompts.
    """
    scale = reading.scale
    start, spread, ends = (
        scale.start(reading.rounded),
        scale.spread(),
        scale.ends(reading.rounded),
    )
    missing = reading.states[state].missing[at].mean(axis=(0, 1))
    own = reading.added(state, at)
    bounds = [reading.added(state, at, pick(scale.points, axis=-1)) for pick in (np.min, np.max)]
    for a, axis in enumerate(scale.axes):
        keep = scale.moving()[a]
        low, high = (start[a] + end[:, :, a].mean(axis=(0, 1)).sum() for end in bounds)
        found = moved(scale, a, own[:, :, a])
        where = found.estimate(float(start[a]), params.confidence)
        where = where._replace(low=np.clip(where.low, *ends[a]), high=np.clip(where.high, *ends[a]))
        wide = max(float(spread[a]), float(np.linalg.norm(found.totals)))
        lost, p = finite(missing[keep].sum()), 2 * float(ndtr(-abs(found.value) / wide))
        if lost == keep.sum():
            where, p = where._replace(value=np.nan, low=np.nan, high=np.nan), np.nan
        row = where.row(
            **reading.about(state),
            cluster=CLUSTER,
            null=RANDOM.format(mean=round(float(start[a]), 3) + 0.0, sd=wide),
            p=p,
            axis=axis,
            unit=scale.unit,
            statements=int(keep.sum()),
            missing=lost,
            bound_low=finite(low),
            bound_high=finite(high),
        )
        yield row, found


def coordinates(reading: Reading, params: Params) -> Iterator[dict[str, Any]]:
    """Yield the coordinates of every state of the model, tested against random responses."""
    start, ends = reading.scale.start(reading.rounded), reading.scale.ends(reading.rounded)
    for state in reading.states:
        for a, (row, found) in enumerate(_axes(reading, state, params)):
            crossed = of_mean(found.prompts), of_mean(found.seeds)
            fixed = estimated(float(start[a]) + found.value, crossed, params.confidence)
            low, high = (np.clip(end, *ends[a]) for end in (fixed.low, fixed.high))
            yield row | {
                "seeds": len(found.seeds),
                "prompts": len(found.prompts),
                "seed_sd": found.seed_sd,
                "prompt_sd": sd_of(found.prompts),
                "low_fixed": finite(low),
                "high_fixed": finite(high),
            }


def runs(reading: Reading, params: Params) -> Iterator[dict[str, Any]]:
    """Yield where the model is after every single training, in every prompt and in all."""
    prompts = [("", slice(None))] if len(reading.prompts) > 1 else []
    prompts += [(name, slice(p, p + 1)) for p, name in enumerate(reading.prompts)]
    for state, told in reading.states.items():
        for (s, seed), (prompt, which) in product(enumerate(told.seeds), prompts):
            for row, _ in _axes(reading, state, params, (slice(s, s + 1), which)):
                yield row | {"pretraining_seed": seed, "prompt": prompt}


def paraphrased(reading: Reading, params: Params) -> Iterator[dict[str, Any]]:
    """Yield where states are by each paraphrase of the statements, and by these as they stand."""
    untested = {"p": None, "null": "none: coordinates are tested"}
    for variant, number, own in worded(reading):
        for state in own.states:
            for row, _ in _axes(own, state, params):
                yield row | untested | {"variant": variant, "reworded": number}


def items(reading: Reading, params: Params) -> Iterator[dict[str, Any]]:
    """Yield the stance of every state on every statement, and how often each option was it."""
    names = [f"share_{option.replace(' ', '_')}" for option in OPTIONS]
    for state, told in reading.states.items():
        given = 1 - told.missing
        stances = np.where(given > 0, told.weights @ np.array(STANCES), 0.0)
        shares, absent = told.weights.mean(axis=(0, 1)), told.missing.mean(axis=(0, 1))
        trainings, prompts = given.shape[:2]
        for i, name in enumerate(reading.scale.ids):
            valid = float(given[:, :, i].sum())
            value = float(stances[:, :, i].sum()) / valid if valid else float("nan")
            low = high = float("nan")
            if not absent[i] and reading.name in GRADED:
                parts = [of_mean(stances[:, :, i].mean(axis=axis)) for axis in (0, 1)]
                _, *both, _ = estimated(value, parts, params.confidence)
                low, high = np.clip(both, -1, 1)
            method = METHOD + ITEMS
            shared = {k: finite(min(1.0, v)) for k, v in zip(names, shares[i], strict=True)}
            yield Estimate(value, low, high, max(trainings, prompts), method).row(
                **reading.about(state),
                **shared,
                cluster="prompt" if prompts >= trainings else "training",
                null="none: -1 disagrees strongly, 1 agrees strongly",
                id=name,
                share_missing=finite(min(1.0, absent[i])),
            )


def baselines(scale: Scale) -> Iterator[dict[str, Any]]:
    """Yield the coordinates of random responses, and of the same response to all statements."""
    for r, reading in enumerate(schemas.ROUNDED):
        start, spread = scale.start(reading), scale.spread()
        same = scale.constants[reading][:, None] + scale.points.sum(axis=1)  # (axes, options)
        for (a, axis), b in product(enumerate(scale.axes), range(len(schemas.BASELINES))):
            value, sd = (same[a, b - 1], 0.0) if b else (start[a], spread[a])
            yield {
                "questionnaire": scale.name,
                "language": scale.language,
                "constants": r,
                "baseline": b,
                "axis": axis,
                "unit": scale.unit,
                "value": finite(value),
                "sd": finite(sd),
                "low": finite(value - REACH * sd),
                "high": finite(value + REACH * sd),
                "statements": int(scale.moving()[a].sum()),
            }


def shifts(reading: Reading, params: Params) -> Iterator[dict[str, Any]]:
    """Yield the differences of states, over the same statements and prompts.

    A training is what is drawn: the interval and p are over trainings, statements and prompts as
    they are. `corrected` of masked models is in log-odds, see
    :meth:`plumbline.probes.leaning.responses.Reading.leaned`.

    How far one corpus is from another after 2017, beyond how far it was before, is the paper's
    polarisation: a difference of differences, of four states.

    States are not tested if their numbers of steps differ too much: more of them move a model
    further whatever the texts say. Trainings are not tested against the model
    itself where responses are samples, of which it is one (they would differ from it in .15 to .26
    of cases without a cause), nor in readings of choices: its answers lie where they lie between
    options, and whatever moves them evens that out (.12 to .26 with ten trainings, .03 to .08 with
    three).
    """
    scale, states = reading.scale, reading.states
    nats = reading.in_nats
    alone = reading.asked == "generation" or not (nats or reading.name in GRADED)
    far = np.ptp(scale.ends(reading.rounded), axis=1)  # no shift is beyond the ends of the scale
    for state, rest, contrast, baseline in contrasts(reading, params):
        sides, itself = (state, *rest), rest == (ITSELF,)
        read = [(reading.leaned if nats else reading.added)(side) for side in sides]
        steps = states[state].steps
        others = max((states[side].steps for side in rest), key=lambda of: abs(of - steps))
        ends = [states[side].steps for side in sides]
        unequal = not itself and params.unequal(min(ends), max(ends))
        for a, axis in enumerate(scale.axes):
            found = moved(scale, a, *(side[:, :, a] for side in read))
            value, low, high, p = over_trainings(found, params.confidence, itself=itself)
            null = OVER
            if unequal:
                null, p = schemas.UNEQUAL.format(steps, others), float("nan")
            elif (itself and alone) or np.isnan(p):
                null, p = ALONE, float("nan")
            if not nats:
                most = far[a] * len(rest[1:] or rest)
                low, high = np.clip([low, high], -most, most)
            yield Estimate(value, low, high, len(found.seeds), STUDENT).row(
                **reading.about(state),
                cluster="training",
                null=null,
                p=p,
                contrast=schemas.CONTRASTS.index(contrast),
                baseline=baseline,
                axis=axis,
                unit=UNITS.index(NATS_UNIT) if nats else scale.unit,
                seed_sd=found.seed_sd,
                statements=len(found.totals),
                steps=steps,
                baseline_steps=others,
            )


def contrasts(
    reading: Reading, params: Params
) -> Iterator[tuple[State, tuple[State, ...], str, str]]:
    """Yield a state, one or three that it is compared with, how, and the name of these."""
    before, later = schemas.PERIODS.index("before"), schemas.PERIODS.index("from")
    for state in reading.states:
        if state == ITSELF:
            continue
        found: list[tuple[tuple[State, ...], str, str]] = [((ITSELF,), "itself", "")]
        earlier = state._replace(period=before)
        if (control := params.against(state.corpus)) != state.corpus:
            found.append(((state._replace(corpus=control),), "control", control))
        if state.period == later:
            found.append(((earlier,), "period", schemas.PERIODS[before]))
        if other := params.contrasts.get(state.corpus):
            beside = state._replace(corpus=other)
            found.append(((beside,), "corpora", other))
            if state.period == later:
                apart = earlier, beside, earlier._replace(corpus=other)
                found.append((apart, "polarisation", other))
        yield from ((state, *own) for own in found if {*own[0]} <= {*reading.states})


def over_trainings(found: Axis, confidence: float, *, itself: bool) -> Contrast:
    """Return a shift with the trainings as the sample; nan but for the value with too few."""
    sides = [of_mean(found.seeds)] if itself else of_difference(*found.sides)
    return estimated(found.value, sides if all(part.df for part in sides) else [], confidence)


ROWS: dict[str, Callable[[Reading, Params], Iterator[dict[str, Any]]]] = {
    "coordinates": coordinates,
    "runs": runs,
    "paraphrased": paraphrased,
    "items": items,
    "shifts": shifts,
    "stability": stability,
    "answered": answered,
}
