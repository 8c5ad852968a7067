"""Names of countries: how much more they move one classifier than another.

Of each country: the mean change of P+ - P- when its names are put into the same texts, of one
classifier less the same of the other; clustered by texts and names, as in the study itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from plumbline.builders.core.params import section
from plumbline.probes.comparison.difference import of_t
from plumbline.probes.nationality import schemas
from plumbline.probes.nationality.cases import cases, classified
from plumbline.probes.stats.counterfactual import delta, gather
from plumbline.probes.stats.two_way import two_way

if TYPE_CHECKING:
    from collections.abc import Iterator

    from plumbline.probes.comparison.difference import Difference, Params
    from plumbline.probes.core.run_analysis import Inputs
    from plumbline.probes.nationality.cases import Case

PROBE = "classification"
UNIT = "points, positive less negative"
READING = "corrected"
PIECES = "pieces"  # no texts


def read(inputs: Inputs, model: str, _: Params) -> dict[str, Case]:
    """Return the changes of a classifier's predictions, by config."""
    own = section("analysis.nationality", schemas.Params)
    known = {"positive": own.positive, "negative": own.negative}
    return {
        folder.name: case
        for folder in inputs.outputs(PROBE, model).iterdir()
        if folder.is_dir() and folder.name != PIECES
        if (path := inputs.datasets["counterfactuals"] / f"{folder.name}.parquet").is_file()
        for case in cases(path, *classified(folder, model, known))
        if case.reading == READING
    }


def apart(config: str, one: Case, other: Case, params: Params) -> Iterator[Difference]:
    """Yield a difference for each country, in points of a hundred."""
    moved, change = one.change[:, :1], one.change[:, :1] - other.change[:, :1]
    at = one.sentence, one.country, one.shape
    cells = gather(change, *at)
    value, first = delta(cells)[:, 0], delta(gather(moved, *at))[:, 0]
    found = two_way(100 * change, one.country, one.sentence, one.units(), np.eye(one.shape[1]))
    number = (cells.counts > 0).sum(axis=0)
    for c, country in enumerate(one.countries):
        error, freedom = float(found.se[c, 0]), float(found.freedom[c, 0])
        known = (error, freedom) if np.isfinite(error) else (np.nan, 0.0)
        told = (float(first[c]), float(value[c]), *known, int(number[c]), params)
        yield of_t(("", config, country), *told)
