"""Shifts: how far a training moves a model, and how far two states are from each other.

Trainings are the sample: interval and p are over trainings, statements and prompts as they are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from plumbline.probes.leaning.responses import ITSELF
from plumbline.probes.leaning.scoring import NATS_UNIT
from plumbline.probes.stats.crossed import estimated, of_difference, of_mean, of_total
from plumbline.probes.stats.estimate import DF, TESTED_ERROR, Estimate, finite

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from plumbline.probes.leaning.responses import Reading, State
    from plumbline.probes.leaning.schemas import CompassParams as Params
    from plumbline.probes.leaning.scoring import Array, Scale

SIGNS = (1.0, -1.0, -1.0, 1.0)  # of states: one - other - (third - fourth)
GRADED = ("continuous", "expected")  # readings of stances between options; others are choices


class Axis(NamedTuple):
    """What the responses of one state, or the difference of two, add to one axis."""

    totals: Array  # (clusters,)
    prompts: Array  # (prompts,)
    sides: list[Array]  # (seeds,) of each state

    @property
    def value(self) -> float:
        """Return the sum, mean over prompts and trainings."""
        return float(self.totals.sum())

    def estimate(self, start: float, confidence: float) -> Estimate:
        """Return the coordinate, with its interval over statements and trainings."""
        parts = of_total(self.totals), of_mean(self.sides[0])
        _, low, high = estimated(self.value, parts, confidence)[:3]
        return Estimate(start + self.value, start + low, start + high, len(self.totals))


def moved(scale: Scale, a: int, *sides: Array, keep: NDArray[np.bool_] | None = None) -> Axis:
    """Return what responses add to an axis, minus what others do.

    ``sides``, (seeds, prompts, statements) each: what each answer adds in one state; minus another;
    or minus the difference of two others. ``keep``: statements, by default all that move the axis.
    """
    keep = scale.moving()[a] if keep is None else keep
    clusters = np.unique(np.array(scale.clusters)[keep], return_inverse=True)[1]
    some = [side[:, :, keep] for side in sides]
    means = [side.mean(axis=0) for side in some]  # (prompts, statements)
    difference = np.sum([sign * mean for sign, mean in zip(SIGNS, means, strict=False)], axis=0)
    totals = np.bincount(clusters, difference.mean(axis=0)).astype(np.float64)
    by_seed = [side.mean(axis=1).sum(axis=1) for side in some]
    return Axis(totals, difference.sum(axis=1), by_seed)


def shifts(reading: Reading, params: Params) -> Iterator[dict[str, Any]]:
    """Yield the differences of states, over the same statements and prompts.

    `corrected` of masked models is in log-odds, see
    :meth:`plumbline.probes.leaning.responses.Reading.leaned`.

    States are not tested if their numbers of steps differ too much: more of them move a model
    further whatever the texts say. Trainings are not tested against the model itself where
    responses are samples, of which it is one (.15 to .26 of true nulls were rejected), nor
    in readings of choices: its responses are at any distance from the edges between options, and
    every training moves them to the same mean (.12 to .26 with ten trainings).
    """
    scale, nats = reading.scale, reading.in_nats
    choices = reading.format == "generation" or not (nats or reading.name in GRADED)
    width = np.ptp(scale.ends(reading.rounded), axis=1)  # no shift is beyond the ends of the scale
    for state, others, contrast, baseline in contrasts(reading, params):
        states, itself = (state, *others), others == (ITSELF,)
        added = [(reading.leaned if nats else reading.added)(side) for side in states]
        steps = [reading.states[side].steps for side in states]
        unequal = not itself and params.unequal(min(steps), max(steps))
        for a, axis in enumerate(scale.axes):
            sums = moved(scale, a, *(side[:, :, a] for side in added))
            parts = [of_mean(sums.sides[0])] if itself else of_difference(*sums.sides)
            known = parts if all(part.df for part in parts) else []
            value, low, high, p, error, df = estimated(sums.value, known, params.confidence)
            reasons = {
                "unequal steps": unequal,
                "missing responses": np.isnan(value),
                "single model": itself and choices,
                "single training": np.isnan(p),
            }
            reason = next((name for name, holds in reasons.items() if holds), None)
            if not nats:
                most = width[a] * len(others[1:] or others)
                low, high = np.clip([low, high], -most, most)
            trainings = sums.sides[0]
            yield Estimate(value, low, high, len(trainings)).row(
                **reading.about(state),
                p=None if reason else p,
                # not from the interval, which is cut at the ends of the scale
                **{DF: finite(df), TESTED_ERROR: finite(error)},
                contrast=contrast,
                baseline=baseline,
                axis=axis,
                unit=NATS_UNIT if nats else scale.unit,
                seed_sd=finite(trainings.std(ddof=1)) if len(trainings) > 1 else None,
                reason=reason,
            )


def contrasts(
    reading: Reading, params: Params
) -> Iterator[tuple[State, tuple[State, ...], str, str]]:
    """Yield a state, one or three that it is compared with, the contrast, and their name.

    How far one corpus is from another after 2017, beyond how far it was before, is the paper's
    polarisation: a difference of differences, of four states.
    """
    for state in reading.states:
        if state == ITSELF:
            continue
        control, other = params.against(state.corpus), params.contrasts.get(state.corpus)
        before = state._replace(period="before")
        found: list[tuple[tuple[State, ...], str, str]] = [((ITSELF,), "base model", "")]
        if control != state.corpus:
            found.append(((state._replace(corpus=control),), "control", control))
        if state.period == "from":
            found.append(((before,), "period", "before"))
        if other:
            opposed = state._replace(corpus=other)
            found.append(((opposed,), "corpora", other))
            if state.period == "from":
                three = before, opposed, before._replace(corpus=other)
                found.append((three, "polarisation", other))
        yield from ((state, *one) for one in found if set(one[0]) <= set(reading.states))
