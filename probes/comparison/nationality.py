"""Names of countries: how much more they move one classifier than another.

The mean change of P+ - P- when names of a country are put into the same texts, of one classifier
less the same of the other; clustered by texts and names, as in the study itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from plumbline.builders.core.params import section
from plumbline.probes.comparison.difference import Params, Row, t_difference
from plumbline.probes.nationality import schemas
from plumbline.probes.nationality.cases import Case, cases, classified
from plumbline.probes.stats.counterfactual import delta, gather
from plumbline.probes.stats.two_way import two_way

if TYPE_CHECKING:
    from collections.abc import Iterator

    from plumbline.probes.core.run_analysis import Inputs

PROBE, UNIT = "classification", "points, positive less negative"
READING = "corrected"


def read(inputs: Inputs, model: str, _: Params) -> dict[str, Case]:
    """Return the changes of a classifier's predictions, by config."""
    own = section("analysis.nationality", schemas.Params)
    known = {"positive": own.positive, "negative": own.negative}
    found = {}
    for path in sorted(inputs.datasets["counterfactuals"].glob("*.parquet")):
        folder = inputs.outputs(PROBE, model) / path.stem
        for case in cases(path, *classified(folder, model, known)) if folder.is_dir() else ():
            if case.reading == READING:
                found[path.stem] = case
    return found


def compare(config: str, one: Case, other: Case, params: Params) -> Iterator[Row]:
    """Yield a difference for each country, in points of a hundred."""
    moved, change = one.change[:, :1], one.change[:, :1] - other.change[:, :1]
    at = one.sentence, one.country, one.shape
    cells = gather(change, *at)
    value, first = delta(cells)[:, 0], delta(gather(moved, *at))[:, 0]
    tested = two_way(100 * change, one.country, one.sentence, one.units(), np.eye(one.shape[1]))
    number = (cells.counts > 0).sum(axis=0)
    for c, country in enumerate(one.countries):
        error, freedom = float(tested.se[c, 0]), float(tested.freedom[c, 0])
        known = (error, freedom) if np.isfinite(error) else (np.nan, 0.0)
        numbers = (float(first[c]), float(value[c]), *known, int(number[c]))
        yield t_difference(("", config, country), *numbers, params)
