"""Axes of a political questionnaire: how far apart two models stand.

The coordinate of one model less that of the other, over the same statements, each with its
opposite, and over prompts where both had the same; as shifts after training are tested.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from plumbline.builders.core.params import section
from plumbline.probes.comparison.difference import Params, Row, difference
from plumbline.probes.leaning import schemas
from plumbline.probes.leaning.responses import ITSELF, Reading, outputs, readings
from plumbline.probes.leaning.scoring import scales
from plumbline.probes.leaning.shifts import moved
from plumbline.probes.stats.crossed import estimated, of_mean, of_total
from plumbline.probes.stats.estimate import Estimate

if TYPE_CHECKING:
    from collections.abc import Iterator

    from plumbline.probes.core.run_analysis import Inputs

PROBE, UNIT = "stances", "percent of the axis"
PREFERRED = ("continuous", "likeliest", "corrected")  # readings, the first that there is


def read(inputs: Inputs, model: str, _: Params) -> dict[str, Reading]:
    """Return a model's answers to each questionnaire, before any training."""
    params = section("analysis.compass", schemas.CompassParams)
    found: list[Reading] = []
    for form in schemas.FORMATS:
        rows = outputs(inputs.outputs(PROBE, model), form)
        if rows is not None:
            known = scales(inputs.datasets["statements"], set(rows["questionnaire"]) - {""})
            found += readings(form, rows, known, params)
    best: dict[str, Reading] = {}
    found = [r for r in found if r.name in PREFERRED and ITSELF in r.states]
    for reading in sorted(found, key=lambda reading: PREFERRED.index(reading.name)):
        best.setdefault(reading.scale.name, reading)
    return best


def compare(_: str, one: Reading, other: Reading, params: Params) -> Iterator[Row]:
    """Yield a difference for each axis of a questionnaire."""
    scale, start = one.scale, one.scale.start(one.rounded)
    sides = [reading.added(ITSELF).mean(axis=0, keepdims=True) for reading in (one, other)]
    if one.prompts != other.prompts:  # which are then no pairs
        sides = [side.mean(axis=1, keepdims=True) for side in sides]
    for a, axis in enumerate(scale.axes):
        change = moved(scale, a, sides[0][:, :, a], sides[1][:, :, a])
        crossed = of_total(change.totals), of_mean(change.prompts)
        value, low, high, p = estimated(change.value, crossed, params.confidence)[:4]
        first = float(start[a] + moved(scale, a, sides[0][:, :, a]).value)
        estimate = Estimate(value, low, high, len(change.totals))
        yield difference((scale.language, scale.name, axis), first, estimate, p, 0.0)
