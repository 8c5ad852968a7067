"""Shifts: the distance by which a training moves a model, and that between two states.

Trainings are the sample: interval and p are over trainings, statements and prompts as they are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from plumbline.probes.leaning.responses import ITSELF
from plumbline.probes.leaning.scoring import NATS_UNIT
from plumbline.probes.stats.crossed import estimated, of_difference, of_mean
from plumbline.probes.stats.estimate import DF, TESTED_ERROR, Estimate, finite

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from plumbline.probes.leaning.responses import Reading, State
    from plumbline.probes.leaning.schemas import CompassParams as Params
    from plumbline.probes.leaning.scoring import Array, Scale

SIGNS = (1.0, -1.0, -1.0, 1.0)  # of states: first - second - (third - fourth)
GRADED = ("continuous", "expected")  # readings of stances between options; others are choices


class Axis(NamedTuple):
    """Contributions of the responses of one state, or the difference of two, to one axis."""

    totals: Array  # (clusters,)
    prompts: Array  # (prompts,)
    sides: list[Array]  # (seeds,) of each state

    @property
    def value(self) -> float:
        """Return the sum, mean over prompts and trainings."""
        return float(self.totals.sum())


def moved(scale: Scale, a: int, *sides: Array, moving: NDArray[np.bool_] | None = None) -> Axis:
    """Return the contributions of responses to an axis, minus those of other responses.

    ``sides``, (seeds, prompts, statements) each: contributions of the answers of one state; minus
    another; or minus the difference of two others. ``moving``: statements, by default all that move
    the axis.
    """
    moving = scale.moving()[a] if moving is None else moving
    clusters = np.unique(np.array(scale.clusters)[moving], return_inverse=True)[1]
    parts = [side[:, :, moving] for side in sides]
    signs = np.array(SIGNS[: len(sides)])
    difference = np.tensordot(signs, [part.mean(axis=0) for part in parts], 1)
    totals = np.bincount(clusters, difference.mean(axis=0)).astype(np.float64)
    return Axis(totals, difference.sum(axis=1), [p.mean(axis=1).sum(axis=1) for p in parts])


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
    for contrast, state, others in contrasts(reading, params):
        states, itself = (state, *others), others == (ITSELF,)
        added = [(reading.leaned if nats else reading.added)(side) for side in states]
        steps = [reading.states[side].steps for side in states]
        unequal = not itself and params.unequal(min(steps), max(steps))
        for a, axis in enumerate(scale.axes):
            sums = moved(scale, a, *(side[:, :, a] for side in added))
            parts = [of_mean(sums.sides[0])] if itself else of_difference(*sums.sides)
            parts = parts if all(part.df for part in parts) else []
            value, low, high, p, error, df = estimated(sums.value, parts, params.confidence)
            reasons = {
                "unequal steps": unequal,
                "missing responses": np.isnan(value),
                "single model": itself and choices,
                "single training": np.isnan(p),
            }
            reason = next((name for name, holds in reasons.items() if holds), None)
            if not nats:
                most = width[a] * (2 if len(states) > 2 else 1)
                low, high = np.clip([low, high], -most, most)
            yield Estimate(value, low, high, len(sums.sides[0])).row(
                **reading.about(state),
                p=None if reason else p,
                # not from the interval, which is cut at the ends of the scale
                **{DF: finite(df), TESTED_ERROR: finite(error)},
                contrast=contrast,
                baseline="before" if contrast == "period" else others[-1].corpus,
                axis=axis,
                unit=NATS_UNIT if nats else scale.unit,
                reason=reason,
            )


def contrasts(reading: Reading, params: Params) -> Iterator[tuple[str, State, tuple[State, ...]]]:
    """Yield each contrast, its state, and one or three others that are subtracted.

    The growth after 2017 of the distance between two corpora is the paper's polarisation: a
    difference of differences, of four states.
    """
    for state in reading.states:
        if state == ITSELF:
            continue
        opposite = params.contrasts.get(state.corpus)
        others = {"base model": (ITSELF,)}
        if (control := params.against(state.corpus)) != state.corpus:
            others["control"] = (state._replace(corpus=control),)
        if state.period == "from":
            others["period"] = (state._replace(period="before"),)
        if opposite:
            others["corpora"] = (state._replace(corpus=opposite),)
            if state.period == "from":
                pairs = (*others["period"], *others["corpora"])
                last = pairs[0]._replace(corpus=opposite)
                others["polarisation"] = (*pairs, last)
        for contrast, compared in others.items():
            if set(compared) <= set(reading.states):
                yield contrast, state, compared
