"""Shifts: how far a training moves a model, and two states lie from each other.

A training is what is drawn: interval and p are over trainings, statements and prompts as they are.
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
    from plumbline.probes.stats.crossed import Contrast, Part

SIGNS = (1.0, -1.0, -1.0, 1.0)  # of states: one - other - (third - fourth)
GRADED = ("continuous", "expected")  # readings of stances between options; others are choices


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
        parts = self._parts()
        _, low, high = estimated(self.value, parts, confidence)[:3]
        return Estimate(start + self.value, start + low, start + high, len(self.totals))

    @property
    def error(self) -> float:
        """Return the standard error behind that interval."""
        return estimated(self.value, self._parts()).error

    def _parts(self) -> tuple[Part, Part]:
        return of_total(self.totals), of_mean(self.seeds)

    @property
    def seed_sd(self) -> float | None:
        """Return the standard deviation over seeds, None for one seed."""
        return sd_of(self.seeds)


def moved(scale: Scale, a: int, *sides: Array, keep: NDArray[np.bool_] | None = None) -> Axis:
    """Return what responses add to an axis, minus what others do.

    ``sides``, (seeds, prompts, statements) each: what each answer adds in one state; minus another;
    or minus the difference of two others. ``keep``: statements, by default all that move the axis.
    """
    keep = scale.moving()[a] if keep is None else keep
    place = np.unique(np.array(scale.clusters)[keep], return_inverse=True)[1]
    own = [side[:, :, keep] for side in sides]
    means = [side.mean(axis=0) for side in own]  # (prompts, statements)
    apart = np.sum([sign * mean for sign, mean in zip(SIGNS, means, strict=False)], axis=0)
    totals = np.bincount(place, apart.mean(axis=0)).astype(np.float64)
    return Axis(totals, apart.sum(axis=1), [side.mean(axis=1).sum(axis=1) for side in own])


def sd_of(values: Array) -> float | None:
    """Return the standard deviation over seeds or prompts, None for one."""
    return finite(values.std(ddof=1)) if len(values) > 1 else None


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
        ends = [states[side].steps for side in sides]
        unequal = not itself and params.unequal(min(ends), max(ends))
        for a, axis in enumerate(scale.axes):
            found = moved(scale, a, *(side[:, :, a] for side in read))
            told = over_trainings(found, params.confidence, itself=itself)
            value, low, high, p = told[:4]
            reason = None
            if unequal:
                reason = "unequal steps"
            elif np.isnan(value):
                reason = "missing responses"
            elif itself and alone:
                reason = "single model"
            elif np.isnan(p):
                reason = "single training"
            if not nats:
                most = far[a] * len(rest[1:] or rest)
                low, high = np.clip([low, high], -most, most)
            yield Estimate(value, low, high, len(found.seeds)).row(
                **reading.about(state),
                p=None if reason else p,
                # the interval is cut at the ends of the scale
                **{DF: finite(told.df), TESTED_ERROR: finite(told.error)},
                contrast=contrast,
                baseline=baseline,
                axis=axis,
                unit=NATS_UNIT if nats else scale.unit,
                seed_sd=found.seed_sd,
                reason=reason,
            )


def contrasts(
    reading: Reading, params: Params
) -> Iterator[tuple[State, tuple[State, ...], str, str]]:
    """Yield a state, one or three that it is compared with, how, and the name of these."""
    for state in reading.states:
        if state == ITSELF:
            continue
        found: list[tuple[tuple[State, ...], str, str]] = [((ITSELF,), "base model", "")]
        earlier = state._replace(period="before")
        if (control := params.against(state.corpus)) != state.corpus:
            found.append(((state._replace(corpus=control),), "control", control))
        if state.period == "from":
            found.append(((earlier,), "period", "before"))
        if other := params.contrasts.get(state.corpus):
            beside = state._replace(corpus=other)
            found.append(((beside,), "corpora", other))
            if state.period == "from":
                apart = earlier, beside, earlier._replace(corpus=other)
                found.append((apart, "polarisation", other))
        yield from ((state, *own) for own in found if {*own[0]} <= {*reading.states})


def over_trainings(found: Axis, confidence: float, *, itself: bool) -> Contrast:
    """Return a shift with the trainings as the sample; nan but for the value with too few."""
    sides = [of_mean(found.seeds)] if itself else of_difference(*found.sides)
    return estimated(found.value, sides if all(part.df for part in sides) else [], confidence)
