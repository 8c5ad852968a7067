"""Rows of the tables of ``compass`` that come from one model's answers in one reading."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.special import ndtr

from plumbline.probes.leaning.schemas import ASKED, BASELINES, READINGS, ROUNDED
from plumbline.probes.leaning.scoring import OPTIONS, STANCES
from plumbline.probes.stats.crossed import METHOD, Part, half_width, of_mean, of_total
from plumbline.probes.stats.estimate import benjamini_hochberg, finite, significant

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from plumbline.probes.leaning.answers import Answers, State
    from plumbline.probes.leaning.compass import Params
    from plumbline.probes.leaning.scale import Scale

    Array = NDArray[np.float64]

Rows = list[dict[str, Any]]
CLUSTER = "statement, with its opposite"
RANDOM = "who answers every statement at random: mean {mean:.3f}, SD {sd:.3f}"
REACH = 1.959963984540054  # of a normal: 95% of who answers at random


class Reading(NamedTuple):
    """Answers of a model in one reading, and where its rows stand."""

    asked: str
    name: str
    answers: Answers

    @property
    def rounded(self) -> str:
        """Return which constants of the compass belong to it."""
        return "faithful" if self.name in ("faithful", "paper") else "corrected"

    def about(self, state: State) -> dict[str, Any]:
        """Return the columns that its rows share."""
        return {
            **state.facts(),
            "questionnaire": self.answers.scale.name,
            "asked": ASKED.index(self.asked),
            "reading": READINGS.index(self.name),
        }


class Axis(NamedTuple):
    """What the answers of one state, or of two less each other, add to one axis."""

    value: float
    parts: tuple[Part, ...]  # of statements, prompts and trainings
    totals: Array  # (clusters,)
    prompts: Array  # (prompts,)
    seeds: Array  # (seeds,)
    others: Array  # (seeds,) of the state that is taken off


def moved(scale: Scale, a: int, own: Array, other: Array | None = None) -> Axis:
    """Return what answers add to an axis, less what others do.

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


def estimate(value: float, found: Axis, confidence: float) -> dict[str, Any]:
    """Return the columns of an estimate, without its test."""
    half = half_width(found.parts, confidence)
    return {
        "value": finite(value),
        "low": finite(value - half),
        "high": finite(value + half),
        "n": len(found.totals),
        "cluster": CLUSTER,
        "method": f"{METHOD}: {', '.join(_sampled(found))}",
        "p": None,
        "p_bh": None,
    }


def _sampled(found: Axis) -> Iterator[str]:
    names = ("statements", "prompts", "trainings")
    for name, part in zip(names, (*found.parts[:2], found.parts[2]), strict=True):
        if part.df:
            yield name


def coordinates(reading: Reading, params: Params) -> Rows:
    """Return where every state of the model is, and whether a random answerer would be there."""
    rows: Rows = []
    for state, told in reading.answers.weights.items():
        for place, found in _axes(reading, _added(reading.answers, state)):
            start = place.pop("start")
            fixed = half_width(found.parts[1:], params.confidence)
            value = start + found.value
            rows.append(
                reading.about(state)
                | place
                | _placed(place, estimate(value, found, params.confidence), start, found.value)
                | {
                    "seeds": told.shape[0],
                    "prompts": told.shape[1],
                    "seed_sd": sd_of(found.seeds),
                    "prompt_sd": sd_of(found.prompts),
                    "low_fixed": finite(np.clip(value - fixed, *place["ends"])),
                    "high_fixed": finite(np.clip(value + fixed, *place["ends"])),
                }
            )
    adjust(rows, "p")
    return [_bare(row) for row in rows]


def runs(reading: Reading, params: Params) -> Rows:
    """Return where the model is after every single training, in every prompt and in all."""
    rows: Rows = []
    own = reading.answers
    for state, seeds in own.seeds.items():
        told = _added(own, state)
        for s, seed in enumerate(seeds):
            every = [("", slice(None))] if len(own.prompts) > 1 else []
            each = [(name, slice(p, p + 1)) for p, name in enumerate(own.prompts)]
            for prompt, which in [*every, *each]:
                for place, found in _axes(reading, told.part(slice(s, s + 1), which)):
                    start = place.pop("start")
                    value = start + found.value
                    rows.append(
                        reading.about(state)
                        | {"pretraining_seed": seed, "prompt": prompt}
                        | place
                        | _placed(
                            place, estimate(value, found, params.confidence), start, found.value
                        )
                    )
    adjust(rows, "p")
    return [_bare(row) for row in rows]


class Added(NamedTuple):
    """What answers add, (seeds, prompts, axes, statements); and could add at least, and most."""

    own: Array
    low: Array
    high: Array
    missing: Array  # share, (seeds, prompts, statements)

    def part(self, seeds: slice, prompts: slice) -> Added:
        """Return some trainings and prompts."""
        return Added(
            self.own[seeds, prompts],
            self.low[seeds, prompts],
            self.high[seeds, prompts],
            self.missing[seeds, prompts],
        )


def _added(own: Answers, state: State) -> Added:
    low, high = (own.added(state, pick(own.scale.points, axis=-1)) for pick in (np.min, np.max))
    return Added(own.added(state), low, high, own.missing[state])


def _axes(reading: Reading, told: Added) -> Iterator[tuple[dict[str, Any], Axis]]:
    """Yield each axis with its columns, and what the answers add to it."""
    scale = reading.answers.scale
    start = scale.start(reading.rounded)
    missing = told.missing.mean(axis=(0, 1))
    for a, axis in enumerate(scale.axes):
        keep = scale.moving()[a]
        low, high = (
            start[a] + end[:, :, a].mean(axis=(0, 1)).sum() for end in (told.low, told.high)
        )
        place = {
            "axis": axis,
            "unit": scale.unit,
            "statements": int(keep.sum()),
            "missing": finite(missing[keep].sum()),
            "bound_low": finite(low),
            "bound_high": finite(high),
            "start": float(start[a]),
            "sd": float(scale.spread()[a]),
            "ends": scale.ends(reading.rounded)[a],
        }
        yield place, moved(scale, a, told.own[:, :, a])


def _placed(
    place: dict[str, Any], row: dict[str, Any], start: float, apart: float
) -> dict[str, Any]:
    """Return an estimate with its test against random answers; no value without any answer."""
    sd, ends = place["sd"], place["ends"]
    row["null"] = RANDOM.format(mean=round(start, 3) + 0.0, sd=sd)
    for end in ("low", "high"):
        row[end] = None if row[end] is None else finite(np.clip(row[end], *ends))
    if place["missing"] == place["statements"]:
        return row | {"value": None, "low": None, "high": None}
    return row | {"p": significant(2 * float(ndtr(-abs(apart) / sd)))}


def _bare(row: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name not in ("sd", "start", "ends")}


def sd_of(values: Array) -> float | None:
    """Return the standard deviation over seeds, None for one seed."""
    return finite(values.std(ddof=1)) if len(values) > 1 else None


def adjust(rows: Rows, name: str) -> None:
    """Put adjusted p-values in, over all rows that have one."""
    for row in rows:
        row[f"{name}_bh"] = None
    tested = [row for row in rows if row[name] is not None]
    if tested:
        adjusted = benjamini_hochberg(np.array([row[name] for row in tested]))
        for row, p in zip(tested, adjusted, strict=True):
            row[f"{name}_bh"] = significant(float(p))


def items(reading: Reading, params: Params) -> Rows:
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
            rows.append(
                reading.about(state)
                | {
                    "id": name,
                    "value": finite(value),
                    "low": finite(np.clip(value - half, -1, 1)),
                    "high": finite(np.clip(value + half, -1, 1)),
                    "n": max(told.shape[:2]),
                    "cluster": "prompt" if told.shape[1] >= told.shape[0] else "training",
                    "method": METHOD + ": prompts, trainings; none where an answer is missing",
                    "null": "none: -1 disagrees strongly, 1 agrees strongly",
                    "p": None,
                    "p_bh": None,
                    "share_missing": finite(min(1.0, absent[i])),
                }
                | {k: finite(min(1.0, v)) for k, v in zip(names, shares[i], strict=True)}
            )
    return rows


def baselines(scale: Scale) -> Rows:
    """Return where who answers at random is, and who always gives the same answer."""
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
