"""Analysis ``compass``: where models stand on the axes of a political questionnaire.

Feng et al. (2023): stances on statements, read off a masked word or an answer, are scored as a
person's would be; before and after further training on partisan texts. Röttger et al. (2024):
options that are offered, and what becomes of the stance when the question changes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl
from scipy.special import ndtr

from plumbline.builders.core.errors import UserError
from plumbline.probes.leaning.responses import (
    CLUSTER,
    ITSELF,
    NEGATED,
    PLAIN,
    STATE,
    ModelReading,
    answers,
    outputs,
    readings,
)
from plumbline.probes.leaning.schemas import (
    BASELINES,
    CONTRASTS,
    FORMATS,
    PERIODS,
    ROUNDED,
    SCHEMAS,
)
from plumbline.probes.leaning.schemas import CompassParams as Params
from plumbline.probes.leaning.scoring import OPTIONS, STANCES, scales
from plumbline.probes.leaning.stability import answered, stability
from plumbline.probes.prompts.leaning import FORMS
from plumbline.probes.stats.crossed import METHOD, Part, half_width, of_mean, of_total, two_sided_p
from plumbline.probes.stats.estimate import Estimate, adjusted, finite, significant, typed
from plumbline.probes.stats.tests import sign_flip_p

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from plumbline.probes.core.run_analysis import Inputs
    from plumbline.probes.leaning.responses import Answers, Rows, State
    from plumbline.probes.leaning.scoring import Scale

    Array = NDArray[np.float64]

EACH = False
DATASETS = ("statements",)
OUTPUTS = ("stances",)
TABLES = ()
OPTIONAL = ("questions", "shifts", "stability")  # tables that may have no row
RANDOM = "who answers every statement at random: mean {mean:.3f}, SD {sd:.3f}"
REACH = 1.959963984540054  # of a normal: 95% of random answers
UNEQUAL = "no test: trained on {own:g} texts, the other side on {other:g}"
FLIPPED = "these trainings: sides exchanged in statements, {n} sign patterns or all"
__all__ = ["SCHEMAS", "Params"]


def run(inputs: Inputs, params: Params) -> dict[str, pl.DataFrame]:
    """Compute the tables of all models.

    Returns
    -------
    dict
        Columns as in :data:`SCHEMAS`; ``questions`` only of masked models, ``shifts`` only with
        trained states, ``stability`` only where something was prompted twice.

    Raises
    ------
    UserError
        If responses are missing, or are to a questionnaire without axes.
    """
    found: dict[str, Rows] = {name: [] for name in SCHEMAS}
    known: dict[str, Scale] = {}
    for model in inputs.models:
        for asked in FORMATS:
            told = outputs(inputs.outputs("stances", model), asked)
            if told is None:
                continue
            names = set(told["questionnaire"]) - {""}
            known |= scales(inputs.datasets["statements"], names - set(known))
            tables = {"questions": _questions(told)} if asked == "mask" else {}
            for judged in readings(asked, told, params):
                for name in sorted(names):
                    own = ModelReading(asked, judged.reading, answers(judged.answers, known[name]))
                    for table, rows in (
                        ("coordinates", coordinates(own, params)),
                        ("runs", runs(own, params)),
                        ("items", items(own, params)),
                        ("shifts", shifts(own, params)),
                        ("stability", stability(own, judged, params)),
                        ("answered", answered(own, judged, params)),
                    ):
                        tables.setdefault(table, []).extend(rows)
            for table, rows in tables.items():
                found[table] += [{"model": model} | row for row in rows]
    for scale in known.values():
        found["baselines"] += baselines(scale)
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


def _table(own: list[dict[str, Any]], name: str) -> pl.DataFrame:
    """Return rows as a table, in the order of its key."""
    schema = SCHEMAS[name]
    if not own:
        raise UserError(f"analysis.compass: no row of {name}; does any model have outputs?")
    table = pl.DataFrame(own, infer_schema_length=None)
    for column in {"shifts": ("p", "p_seeds")}.get(name, ("p",)):
        if "p" in table.columns:
            table = adjusted(
                table, column, ("model", "questionnaire", "response_format", "reading")
            )
    return typed(table, schema).sort(schema.key)


class Axis(NamedTuple):
    """What the responses of one state, or the difference of two, add to one axis."""

    value: float
    parts: tuple[Part, ...]  # of statements, prompts and trainings
    totals: Array  # (clusters,)
    prompts: Array  # (prompts,)
    seeds: Array  # (seeds,)
    others: Array  # (seeds,) of the state that is taken off


def moved(scale: Scale, a: int, own: Array, other: Array | None = None) -> Axis:
    """Return what responses add to an axis, minus what others do.

    Parameters
    ----------
    own, other : (seeds, prompts, statements)
        What each answer adds.
    """
    keep = scale.moving()[a]
    names = [name for name, kept in zip(scale.clusters, keep, strict=True) if kept]
    place = np.unique(names, return_inverse=True)[1]
    one = own[:, :, keep]
    two = np.zeros_like(one[:1]) if other is None else other[:, :, keep]
    apart = one.mean(axis=0) - two.mean(axis=0)  # (prompts, statements)
    totals = np.bincount(place, apart.mean(axis=0)).astype(np.float64)
    prompts, seeds, others = apart.sum(axis=1), *(x.mean(axis=1).sum(axis=1) for x in (one, two))
    parts = (of_total(totals), of_mean(prompts), of_mean(seeds), of_mean(others))
    return Axis(float(totals.sum()), parts, totals, prompts, seeds, others)


def estimate(value: float, found: Axis, confidence: float) -> Estimate:
    """Return an estimate with its interval over statements, prompts and trainings."""
    half, method = half_width(found.parts, confidence), f"{METHOD}: {', '.join(_sampled(found))}"
    return Estimate(value, value - half, value + half, len(found.totals), method)


def _sampled(found: Axis) -> Iterator[str]:
    names = ("statements", "prompts", "trainings")
    for name, part in zip(names, (*found.parts[:2], found.parts[2]), strict=True):
        if part.df:
            yield name


def coordinates(reading: ModelReading, params: Params) -> Rows:
    """Return the coordinates of every state of the model, tested against random responses."""
    rows: Rows = []
    for state, told in reading.answers.weights.items():
        for placed, found, ends in _axes(reading, _added(reading.answers, state), params):
            fixed = half_width(found.parts[1:], params.confidence)
            value = float(ends[2]) + found.value
            rows.append(
                reading.about(state)
                | placed
                | {
                    "seeds": told.shape[0],
                    "prompts": told.shape[1],
                    "seed_sd": sd_of(found.seeds),
                    "prompt_sd": sd_of(found.prompts),
                    "low_fixed": finite(np.clip(value - fixed, *ends[:2])),
                    "high_fixed": finite(np.clip(value + fixed, *ends[:2])),
                }
            )
    return rows


def runs(reading: ModelReading, params: Params) -> Rows:
    """Return where the model is after every single training, in every prompt and in all."""
    rows: Rows = []
    own = reading.answers
    every = [("", slice(None))] if len(own.prompts) > 1 else []
    each = [(name, slice(p, p + 1)) for p, name in enumerate(own.prompts)]
    for state, seeds in own.seeds.items():
        told = _added(own, state)
        for s, seed in enumerate(seeds):
            for prompt, which in [*every, *each]:
                about = reading.about(state) | {"pretraining_seed": seed, "prompt": prompt}
                part = Added(*(array[s : s + 1, which] for array in told))
                rows += [about | placed for placed, _, _ in _axes(reading, part, params)]
    return rows


class Added(NamedTuple):
    """What responses add, (seeds, prompts, axes, statements), with the least and most possible."""

    own: Array
    low: Array
    high: Array
    missing: Array  # share, (seeds, prompts, statements)


def _added(own: Answers, state: State) -> Added:
    low, high = (own.added(state, pick(own.scale.points, axis=-1)) for pick in (np.min, np.max))
    return Added(own.added(state), low, high, own.missing[state])


def _axes(
    reading: ModelReading, told: Added, params: Params
) -> Iterator[tuple[dict[str, Any], Axis, Array]]:
    """Yield for each axis its row, what responses add to it, and its ends and its middle.

    A row is tested against random responses, and has no value without any response.
    """
    scale = reading.answers.scale
    start, spread = scale.start(reading.rounded), scale.spread()
    limits = scale.ends(reading.rounded)
    missing = told.missing.mean(axis=(0, 1))
    for a, axis in enumerate(scale.axes):
        keep = scale.moving()[a]
        low, high = (
            start[a] + end[:, :, a].mean(axis=(0, 1)).sum() for end in (told.low, told.high)
        )
        found = moved(scale, a, told.own[:, :, a])
        at = estimate(float(start[a]) + found.value, found, params.confidence)
        at = at._replace(low=np.clip(at.low, *limits[a]), high=np.clip(at.high, *limits[a]))
        lost, p = finite(missing[keep].sum()), 2 * float(ndtr(-abs(found.value) / spread[a]))
        if lost == keep.sum():
            at, p = at._replace(value=np.nan, low=np.nan, high=np.nan), np.nan
        place = {
            "axis": axis,
            "unit": scale.unit,
            "statements": int(keep.sum()),
            "missing": lost,
            "bound_low": finite(low),
            "bound_high": finite(high),
        }
        null = RANDOM.format(mean=round(float(start[a]), 3) + 0.0, sd=float(spread[a]))
        row = at.row(cluster=CLUSTER, null=null, p=p, **place)
        yield row, found, np.append(limits[a], start[a])


def sd_of(values: Array) -> float | None:
    """Return the standard deviation over seeds, None for one seed."""
    return finite(values.std(ddof=1)) if len(values) > 1 else None


def items(reading: ModelReading, params: Params) -> Rows:
    """Return the stance of every state on every statement, and how often each option was it."""
    rows: Rows = []
    own = reading.answers
    names = [f"share_{option.replace(' ', '_')}" for option in OPTIONS]
    for state, told in own.weights.items():
        given = 1 - own.missing[state]
        stances = np.where(given > 0, told @ np.array(STANCES), 0.0)
        shares, absent = told.mean(axis=(0, 1)), own.missing[state].mean(axis=(0, 1))
        for i, name in enumerate(own.scale.ids):
            answered = float(given[:, :, i].sum())
            value = float(stances[:, :, i].sum()) / answered if answered else float("nan")
            half = float("nan")
            if not absent[i]:
                parts = [of_mean(stances[:, :, i].mean(axis=axis)) for axis in (0, 1)]
                half = half_width(parts, params.confidence)
            limits = np.clip([value - half, value + half], -1, 1)
            method = METHOD + ": prompts, trainings; none where an answer is missing"
            row = Estimate(value, limits[0], limits[1], max(told.shape[:2]), method).row(
                **reading.about(state),
                cluster="prompt" if told.shape[1] >= told.shape[0] else "training",
                null="none: -1 disagrees strongly, 1 agrees strongly",
                id=name,
                share_missing=finite(min(1.0, absent[i])),
            )
            shared = {k: finite(min(1.0, v)) for k, v in zip(names, shares[i], strict=True)}
            rows.append(row | shared)
    return rows


def baselines(scale: Scale) -> Rows:
    """Return the coordinates of random responses, and of the same response to all statements."""
    rows: Rows = []
    for reading in ROUNDED:
        start, sd = scale.start(reading), scale.spread()
        for a, axis in enumerate(scale.axes):
            told: Sequence[tuple[str, float, float]] = [
                (BASELINES[0], start[a], sd[a]),
                *(
                    (f"always {o}", scale.constants[reading][a] + scale.points[a, :, k].sum(), 0.0)
                    for k, o in enumerate(OPTIONS)
                ),
            ]
            rows += [
                {
                    "questionnaire": scale.name,
                    "language": scale.language,
                    "constants": ROUNDED.index(reading),
                    "baseline": BASELINES.index(name),
                    "axis": axis,
                    "unit": scale.unit,
                    "value": finite(value),
                    "sd": finite(spread),
                    "low": finite(value - REACH * spread),
                    "high": finite(value + REACH * spread),
                    "statements": int(scale.moving()[a].sum()),
                }
                for name, value, spread in told
            ]
    return rows


def shifts(reading: ModelReading, params: Params) -> Rows:
    """Return the differences of states, over the same statements and prompts."""
    rows: Rows = []
    own, scale = reading.answers, reading.answers.scale
    for state, other, contrast, baseline in contrasts(own, params):
        one, two = own.added(state), own.added(other)
        unequal = _unequal(own.texts[state], own.texts[other], params) if other != ITSELF else ""
        for a, axis in enumerate(scale.axes):
            found = moved(scale, a, one[:, :, a], two[:, :, a])
            flipped = sign_flip_p(found.totals[:, None], params.n_permutations, params.seed)
            rows.append(
                estimate(found.value, found, params.confidence).row(
                    **reading.about(state),
                    cluster=CLUSTER,
                    null=unequal or FLIPPED.format(n=params.n_permutations),
                    p=None if unequal else float(flipped[0]),
                    contrast=CONTRASTS.index(contrast),
                    baseline=baseline,
                    axis=axis,
                    unit=scale.unit,
                    seed_sd=sd_of(found.seeds),
                    p_seeds=None if unequal else seeds_p(found, itself=other == ITSELF),
                    seeds=len(found.seeds),
                    texts=own.texts[state],
                    baseline_texts=own.texts[other],
                )
            )
    return rows


def _unequal(texts: float, others: float, params: Params) -> str:
    """Return why two states are not tested, if their numbers of texts differ too much; else ''.

    More texts are more steps, which move a model further whatever the texts say.
    """
    far = abs(texts - others) > params.max_size_difference * max(texts, others)
    return UNEQUAL.format(own=texts, other=others) if far else ""


def contrasts(own: Answers, params: Params) -> Iterator[tuple[State, State, str, str]]:
    """Yield two states that are compared, how, and the name of the second."""
    before, later = PERIODS.index("before"), PERIODS.index("from")
    for state in own.weights:
        if state == ITSELF:
            continue
        others = [(ITSELF, "itself", "")]
        control = params.control.get(state.corpus, params.control.get("other", ""))
        if control != state.corpus:
            others.append((state._replace(corpus=control), "control", control))
        if state.period == later:
            others.append((state._replace(period=before), "period", PERIODS[before]))
        if other := params.contrasts.get(state.corpus):
            others.append((state._replace(corpus=other), "corpora", other))
        for second, contrast, baseline in others:
            if second in own.weights:
                yield state, second, contrast, baseline


def seeds_p(found: Axis, *, itself: bool) -> float | None:
    """Return the two-sided p of a shift with the trainings as the sample; None with too few."""
    sides = found.parts[2:3] if itself else found.parts[2:]
    if not all(part.df for part in sides):
        return None
    p = two_sided_p(found.value, sides)
    return significant(p) if np.isfinite(p) else None
