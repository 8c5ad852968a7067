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
from plumbline.probes.leaning.responses import EVERY, MISSING_MAX, outputs, readings, wordings
from plumbline.probes.leaning.schemas import SCHEMAS
from plumbline.probes.leaning.schemas import CompassParams as Params
from plumbline.probes.leaning.scoring import OPTIONS, STANCES, scales
from plumbline.probes.leaning.shifts import moved, shifts
from plumbline.probes.leaning.stability import answered, stability
from plumbline.probes.stats.estimate import (
    DECIMALS,
    TESTED_ERROR,
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

    Row = dict[str, Any]

DATASETS = ("statements",)
OUTPUTS = ("stances",)
OPTIONAL = ("shifts", "stability", "magnitudes")  # tables that may have no row
FAMILY = ("model", "questionnaire", "response_format", "reading")
REACH = 1.959963984540054  # of a normal: 95% of random answers
__all__ = ["SCHEMAS", "Params"]


def run(inputs: Inputs, params: Params) -> dict[str, pl.DataFrame]:
    """Compute the tables of all models.

    A UserError if responses are missing, or are to a questionnaire without axes.

    Returned: columns as in :data:`SCHEMAS`; ``shifts`` only with trained states, ``stability`` only
    where something was prompted twice.
    """
    rows: dict[str, Rows] = {name: [] for name in SCHEMAS}
    questionnaires: dict[str, Scale] = {}
    for model, response_format in product(inputs.models, schemas.FORMATS):
        responses = outputs(inputs.outputs("stances", model), response_format)
        if responses is None:
            continue
        names = set(responses["questionnaire"]) - {"", *questionnaires}
        questionnaires |= scales(inputs.datasets["statements"], names)
        for reading in readings(response_format, responses, questionnaires, params):
            for table, rows_of in ROWS.items():
                rows[table] += [{"model": model} | row for row in rows_of(reading, params)]
    rows["baselines"] = [row for scale in questionnaires.values() for row in baselines(scale)]
    if rows["coordinates"]:
        rows["magnitudes"] = magnitudes(rows["coordinates"], rows["shifts"], questionnaires)
    least = {"stability": least_p(params.n_permutations_stability)}
    return {
        name: _table(some, name, least.get(name, 0.0), params.confidence)
        for name, some in rows.items()
        if some or name not in OPTIONAL
    }


def magnitudes(coordinates: Rows, shifts: Rows, questionnaires: dict[str, Scale]) -> Rows:
    """Return the mean distance of models from the middle, and the mean size of trainings' shifts.

    The paper's sums of section 4.1: all models by axis, and one after training on corpora of one
    domain. Sizes are never 0: ``chance`` is the mean distance of random responses.
    """
    centers = {scale.name: scale.center for scale in questionnaires.values()}
    untrained = pl.DataFrame(coordinates, infer_schema_length=None).filter(corpus="")
    middle = pl.col("questionnaire").replace_strict(centers)
    kinds = [untrained.with_columns(pl.col("value") - middle, model=pl.lit(""), domain=pl.lit(""))]
    if shifts:
        trained = pl.DataFrame(shifts, infer_schema_length=None)
        trained = trained.filter(period="all", contrast="base model")
        for name in ("share", "epoch"):
            last = pl.col(name).max().over("model", "corpus")
            trained = trained.filter(pl.col(name) == last)
        domain = pl.col("corpus").str.split("-").list.first()
        kinds.append(trained.with_columns(domain=domain))
    key = list(SCHEMAS["magnitudes"].key)
    value = pl.col("value").abs()
    sizes = {"value": value.mean(), "sd": value.std(), "n": value.count()}
    distances = pl.concat([table.select(*key, "value") for table in kinds]).drop_nulls("value")
    chance = {
        f"{scale.name} {axis}": _random_distance(scale, a)
        for scale in questionnaires.values()
        for a, axis in enumerate(scale.axes)
    }
    at_random = pl.format("{} {}", "questionnaire", "axis").replace_strict(chance)
    table = distances.group_by(key, maintain_order=True).agg(**sizes)
    return table.with_columns(
        pl.col("value", "sd").round(DECIMALS), chance=pl.when(model="").then(at_random)
    ).to_dicts()


def _random_distance(scale: Scale, axis: int) -> float:
    """Return the mean distance of random responses from the middle: of a folded normal."""
    distance, sd = scale.start("corrected")[axis] - scale.center, scale.spread()[axis]
    return round(float(foldnorm.mean(abs(distance) / sd, scale=sd)), DECIMALS)


def _table(rows: Rows, name: str, least: float, confidence: float) -> pl.DataFrame:
    """Return rows as a table, in the order of its key; ``least`` is the smallest p."""
    schema = SCHEMAS[name]
    if not rows:
        raise UserError(f"analysis.compass: no row of {name}; does any model have outputs?")
    table = pl.DataFrame(rows, infer_schema_length=None)
    if "p" in table.columns:
        table = adjusted(table, "p", FAMILY, least)
    order = (
        pl.col(name).cast(pl.Enum(schema[name].labels)) if schema[name].labels else pl.col(name)
        for name in schema.key
    )
    return typed(table, schema, confidence).sort(*order)


def _places(
    reading: Reading, state: State, params: Params, at: tuple[slice, slice] = EVERY
) -> Iterator[Row]:
    """Yield the row of each axis, tested against random responses.

    The test is against random responses to the statements that have a response; if too many have
    none there are bounds alone (:meth:`Reading.added`). The standard error is that of options that
    are equally likely, or of these responses with sides at random, an opposite's with its
    statement's, if that is larger: respondents without weak stances, or with one opinion on a
    statement and its opposite, vary more.

    ``at``: some of the trainings and prompts.
    """
    scale = reading.scale
    start, ends = scale.start(reading.rounded), scale.ends(reading.rounded)
    missing, shares = reading.states[state].missing[at], reading.missing_shares(state, at)
    added = reading.added(state, at)
    bounds = [reading.added(state, at, pick(scale.points, axis=-1)) for pick in (np.min, np.max)]
    for a, axis in enumerate(scale.axes):
        moving = scale.moving()[a]
        keep = moving & (missing.min(axis=(0, 1)) < 1) if shares[a] <= MISSING_MAX else moving
        low, high = (start[a] + end[:, :, a].mean(axis=(0, 1)).sum() for end in bounds)
        sums = moved(scale, a, added[:, :, a], keep=keep)
        place = sums.estimate(float(start[a]), params.confidence)
        place = place._replace(
            value=float(np.clip(place.value, low, high)),
            low=float(np.clip(place.low, *ends[a])),
            high=float(np.clip(place.high, *ends[a])),
        )
        options = scale.points[a, keep].std(axis=-1) / scale.reach()[a, keep].sum()
        error = max(
            float(np.linalg.norm(options) * scale.reach()[a].sum()),
            float(np.linalg.norm(sums.totals)),
        )
        yield place.row(
            **reading.about(state),
            **{TESTED_ERROR: error},
            p=2 * float(ndtr(-abs(sums.value) / error)),
            axis=axis,
            unit=scale.unit,
            missing=finite(shares[a] * moving.sum()),
            bound_low=finite(low),
            bound_high=finite(high),
        )


def coordinates(reading: Reading, params: Params) -> Iterator[Row]:
    """Yield the coordinates of every state of the model."""
    for state in reading.states:
        yield from _places(reading, state, params)


def runs(reading: Reading, params: Params) -> Iterator[Row]:
    """Yield the coordinates after every single training, by prompt and by paraphrase."""
    for variant, worded in wordings(reading):
        prompts = [("", slice(None))] if len(worded.prompts) > 1 else []
        prompts += [(name, slice(p, p + 1)) for p, name in enumerate(worded.prompts)]
        for state, responses in worded.states.items():
            for (s, seed), (prompt, which) in product(enumerate(responses.seeds), prompts):
                about = {"pretraining_seed": seed, "prompt": prompt, "variant": variant}
                for row in _places(worded, state, params, (slice(s, s + 1), which)):
                    yield row | about


def items(reading: Reading, _: Params) -> Iterator[Row]:
    """Yield the stance of every state on every statement, and the share of each option."""
    names = [f"share_{option.replace(' ', '_')}" for option in OPTIONS]
    for state, responses in reading.states.items():
        every, missing = responses.weights.mean(axis=(0, 1)), responses.missing.mean(axis=(0, 1))
        for name, shares, absent in zip(reading.scale.ids, every, missing, strict=True):
            value = shares @ STANCES / (1 - absent) if absent < 1 else float("nan")
            yield {
                **reading.about(state),
                **{k: finite(min(1.0, v)) for k, v in zip(names, shares, strict=True)},
                "id": name,
                "value": finite(value),
                "share_missing": finite(min(1.0, absent)),
            }


def baselines(scale: Scale) -> Iterator[Row]:
    """Yield the coordinates of random responses, and of the same response to all statements."""
    for constants in schemas.ROUNDED:
        start, spread = scale.start(constants), scale.spread()
        same = scale.constants[constants][:, None] + scale.points.sum(axis=1)  # (axes, options)
        for (a, axis), (b, baseline) in product(
            enumerate(scale.axes), enumerate(schemas.BASELINES)
        ):
            value, sd = (same[a, b - 1], 0.0) if b else (start[a], spread[a])
            yield {
                "questionnaire": scale.name,
                "language": scale.language,
                "constants": constants,
                "baseline": baseline,
                "axis": axis,
                "unit": scale.unit,
                "value": finite(value),
                "sd": finite(sd),
                "low": finite(value - REACH * sd),
                "high": finite(value + REACH * sd),
            }


ROWS: dict[str, Callable[[Reading, Params], Iterator[Row]]] = {
    "coordinates": coordinates,
    "runs": runs,
    "items": items,
    "shifts": shifts,
    "stability": stability,
    "answered": answered,
}
