"""Axes of a political questionnaire: how far apart two models stand.

Of each axis: the coordinate of one model less that of the other, over the same statements, each
with its opposite, and over prompts where both had the same; as shifts after training are tested.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from plumbline.builders.core.params import section
from plumbline.probes.comparison.difference import Difference
from plumbline.probes.leaning import schemas
from plumbline.probes.leaning.responses import ITSELF, Reading, outputs, readings
from plumbline.probes.leaning.scoring import moved, scales
from plumbline.probes.stats.crossed import estimated, of_mean, of_total
from plumbline.probes.stats.estimate import Estimate

if TYPE_CHECKING:
    from collections.abc import Iterator

    from plumbline.probes.comparison.difference import Params
    from plumbline.probes.core.run_analysis import Inputs

PROBE = "stances"
UNIT = "percent of the axis"
PREFERRED = ("continuous", "likeliest", "corrected")  # readings, the first that there is


def read(inputs: Inputs, model: str, _: Params) -> dict[str, Reading]:
    """Return a model's answers to each questionnaire, before any training."""
    params = section("analysis.compass", schemas.CompassParams)
    found: dict[str, Reading] = {}
    for asked in schemas.FORMATS:
        told = outputs(inputs.outputs(PROBE, model), asked)
        if told is None:
            continue
        known = scales(inputs.datasets["statements"], set(told["questionnaire"]) - {""})
        for reading in readings(asked, told, known, params):
            name = reading.scale.name
            if reading.name in PREFERRED and ITSELF in reading.states:
                best = PREFERRED.index(found[name].name) if name in found else len(PREFERRED)
                if PREFERRED.index(reading.name) < best:
                    found[name] = reading
    return found


def apart(_: str, one: Reading, other: Reading, params: Params) -> Iterator[Difference]:
    """Yield a difference for each axis of a questionnaire."""
    scale, start = one.scale, one.scale.start(one.rounded)
    sides = [reading.added(ITSELF).mean(axis=0, keepdims=True) for reading in (one, other)]
    if one.prompts != other.prompts:  # which are then no pairs
        sides = [side.mean(axis=1, keepdims=True) for side in sides]
    for a, axis in enumerate(scale.axes):
        found = moved(scale, a, sides[0][:, :, a], sides[1][:, :, a])
        crossed = of_total(found.totals), of_mean(found.prompts)
        value, low, high, p = estimated(found.value, crossed, params.confidence)[:4]
        where = Estimate(value, low, high, len(found.totals))
        first = float(start[a] + moved(scale, a, sides[0][:, :, a]).value)
        yield Difference(scale.language, scale.name, axis, first, where, p, 0.0)
