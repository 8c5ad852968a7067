"""Analysis ``compass``: where models stand on the axes of a political questionnaire.

Feng et al. (2023): stances on statements, read off a masked word or an answer, are scored as a
person's would be; before and after further training on partisan texts. Röttger et al. (2024):
options that are offered, and what becomes of the stance when the question changes.
"""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from scipy.special import ndtr
from scipy.stats import foldnorm

from plumbline.builders.core.errors import UserError
from plumbline.probes.leaning import schemas
from plumbline.probes.leaning.responses import (
    CLUSTER,
    EVERY,
    MISSING_MAX,
    NEGATED,
    PLAIN,
    STATE,
    outputs,
    readings,
    worded,
)
from plumbline.probes.leaning.schemas import SCHEMAS
from plumbline.probes.leaning.schemas import CompassParams as Params
from plumbline.probes.leaning.scoring import OPTIONS, STANCES, UNITS, scales
from plumbline.probes.leaning.shifts import GRADED, moved, sd_of, shifts
from plumbline.probes.leaning.stability import answered, stability
from plumbline.probes.prompts.leaning import FORMS
from plumbline.probes.stats.crossed import METHOD, Part, estimated, of_mean, of_total
from plumbline.probes.stats.estimate import (
    CRITICAL,
    DECIMALS,
    TESTED_ERROR,
    Estimate,
    adjusted,
    finite,
    least_p,
    typed,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from plumbline.probes.core.run_analysis import Inputs
    from plumbline.probes.leaning.responses import Reading, Rows, State
    from plumbline.probes.leaning.scoring import Scale
    from plumbline.probes.leaning.shifts import Axis

DATASETS = ("statements",)
OUTPUTS = ("stances",)
OPTIONAL = (
    "questions",
    "shifts",
    "stability",
    "paraphrased",
    "magnitudes",
)  # tables that may have no row
RANDOM = "sides of statements at random, SD {sd:.3f}, of all options at least: mean {mean:.3f}"
UNPLACED = f"no test: above {MISSING_MAX:.0%} of the responses are missing"
UNTESTED = {"p": None, "null": "none: coordinates are tested"}
MIDDLE = 50.0  # of an axis in percent
REACH = 1.959963984540054  # of a normal: 95% of random answers
ITEMS = ": prompts, trainings; none where an answer is missing, or answers are choices"
__all__ = ["SCHEMAS", "Params"]


def run(inputs: Inputs, params: Params) -> dict[str, pl.DataFrame]:
    """Compute the tables of all models.

    A UserError if responses are missing, or are to a questionnaire without axes.

    Returned: columns as in :data:`SCHEMAS`; ``questions`` only of masked models, ``shifts`` only
    with trained states, ``stability`` only where something was prompted twice.
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
    if found["coordinates"]:
        found["magnitudes"] = magnitudes(found["coordinates"], found["shifts"], known).to_dicts()
    least = {"stability": least_p(params.n_permutations_stability)}
    return {
        name: _table(own, name, least.get(name, 0.0), params.confidence)
        for name, own in found.items()
        if own or name not in OPTIONAL
    }


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


def magnitudes(places: Rows, moves: Rows, known: dict[str, Scale]) -> pl.DataFrame:
    """Return how far models are from the middle in the mean, and how far trainings move them.

    The paper's sums of section 4.1: all models by axis, and one after training on corpora of one
    domain. What has no sign is never 0: ``chance`` is the mean of who answers at random.
    """
    whole, itself = schemas.PERIODS.index("all"), schemas.CONTRASTS.index("base model")
    middle = pl.when(unit=UNITS.index("percent")).then(MIDDLE).otherwise(0.0)
    own = pl.DataFrame(places, infer_schema_length=None).filter(corpus="")
    kinds = [own.with_columns(pl.col("value") - middle, model=pl.lit(""), domain=pl.lit(""))]
    if moves:
        every = pl.DataFrame(moves, infer_schema_length=None)
        every = every.filter(period=whole, contrast=itself)
        for name in ("share", "epoch"):
            every = every.filter(pl.col(name) == pl.col(name).max().over("model", "corpus"))
        kinds.append(every.with_columns(domain=pl.col("corpus").str.split("-").list.first()))
    key = [*SCHEMAS["magnitudes"].key, "unit"]
    value = pl.col("value").abs()
    far = {"value": value.mean(), "sd": value.std(), "n": value.count()}
    found = pl.concat([t.select(*key, "value") for t in kinds]).drop_nulls("value")
    chance = {
        f"{scale.name} {axis}": _far_at_random(scale, a)
        for scale in known.values()
        for a, axis in enumerate(scale.axes)
    }
    where = pl.format("{} {}", "questionnaire", "axis").replace_strict(chance)
    by_chance = pl.when(model="").then(where)
    table = found.group_by(key, maintain_order=True).agg(**far)
    return table.with_columns(pl.col("value", "sd").round(DECIMALS), chance=by_chance)


def _far_at_random(scale: Scale, axis: int) -> float:
    """Return the mean distance from the middle of random answers: of a folded normal."""
    middle = MIDDLE if scale.unit == UNITS.index("percent") else 0.0
    off, sd = scale.start("corrected")[axis] - middle, scale.spread()[axis]
    return round(float(foldnorm.mean(abs(off) / sd, scale=sd)), DECIMALS)


def _table(own: Rows, name: str, least: float, confidence: float) -> pl.DataFrame:
    """Return rows as a table, in the order of its key; ``least`` is the smallest p."""
    schema = SCHEMAS[name]
    if not own:
        raise UserError(f"analysis.compass: no row of {name}; does any model have outputs?")
    table = pl.DataFrame(own, infer_schema_length=None)
    if "p" in table.columns:
        family = ("model", "questionnaire", "response_format", "reading")
        table = adjusted(table, "p", family, least)
    return typed(table, schema, confidence).sort(schema.key)


def _axes(
    reading: Reading, state: State, params: Params, at: tuple[slice, slice] = EVERY
) -> Iterator[tuple[dict[str, Any], Axis]]:
    """Yield for each axis its row, and what responses add to it.

    A row is tested against random responses to the statements that have a response, and has bounds
    alone if too many have none (:meth:`Reading.added`). Their SD is that of options that are as
    likely as each other, or of these responses with sides at random, an opposite's with its
    statement's, if that is larger: who says nothing weakly, or is of one opinion on a statement and
    its opposite, is spread wider.

    ``at``: some of the trainings and prompts.
    """
    scale = reading.scale
    start, ends = scale.start(reading.rounded), scale.ends(reading.rounded)
    missing, shares = reading.states[state].missing[at], reading.lost(state, at)
    own = reading.added(state, at)
    bounds = [reading.added(state, at, pick(scale.points, axis=-1)) for pick in (np.min, np.max)]
    for a, axis in enumerate(scale.axes):
        moving = scale.moving()[a]
        keep = moving & (missing.min(axis=(0, 1)) < 1) if shares[a] <= MISSING_MAX else moving
        low, high = (start[a] + end[:, :, a].mean(axis=(0, 1)).sum() for end in bounds)
        found = moved(scale, a, own[:, :, a], keep=keep)
        where = found.estimate(float(start[a]), params.confidence)
        where = where._replace(low=np.clip(where.low, *ends[a]), high=np.clip(where.high, *ends[a]))
        where = where._replace(value=np.clip(where.value, low, high))
        far = scale.points[a, keep].std(axis=-1) / scale.reach()[a, keep].sum()
        spread = np.linalg.norm(far) * scale.reach()[a].sum()
        wide = max(float(spread), float(np.linalg.norm(found.totals)))
        null = RANDOM.format(mean=round(float(start[a]), 3) + 0.0, sd=wide)
        row = where.row(
            **reading.about(state),
            cluster=CLUSTER,
            null=null if np.isfinite(found.value) else UNPLACED,
            p=2 * float(ndtr(-abs(found.value) / wide)),
            **{CRITICAL: REACH * wide, TESTED_ERROR: finite(found.error)},
            axis=axis,
            unit=scale.unit,
            statements=int(moving.sum()),
            missing=finite(shares[a] * moving.sum()),
            bound_low=finite(low),
            bound_high=finite(high),
        )
        yield row, found


def coordinates(reading: Reading, params: Params) -> Iterator[dict[str, Any]]:
    """Yield the coordinates of every state of the model, tested against random responses."""
    start, ends = reading.scale.start(reading.rounded), reading.scale.ends(reading.rounded)
    for state in reading.states:
        for a, (row, found) in enumerate(_axes(reading, state, params)):
            crossed = [of_mean(found.prompts), of_mean(found.seeds)]
            if any(part.df for part in crossed):  # statements without a response are a sample too
                variance, df = of_total(found.totals)
                crossed += [Part(variance * row["missing"] / row["statements"], df)]
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
                yield row | UNTESTED | {"pretraining_seed": seed, "prompt": prompt}


def paraphrased(reading: Reading, params: Params) -> Iterator[dict[str, Any]]:
    """Yield where states are by each paraphrase of the statements, and by these as they stand."""
    for variant, number, own in worded(reading):
        for state in own.states:
            for row, _ in _axes(own, state, params):
                yield row | UNTESTED | {"variant": variant, "reworded": number}


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
                within = estimated(value, parts, params.confidence)
                low, high = np.clip([within.low, within.high], -1, 1)
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


ROWS: dict[str, Callable[[Reading, Params], Iterator[dict[str, Any]]]] = {
    "coordinates": coordinates,
    "runs": runs,
    "paraphrased": paraphrased,
    "items": items,
    "shifts": shifts,
    "stability": stability,
    "answered": answered,
}
