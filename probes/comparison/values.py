"""Values of a questionnaire: how much more one model agrees with them than another.

The mean rating of a value's statements, 1 to 5, each with its opposite turned round, of one model
less the same of the other. The error is that of pairs of opposites and, as each model is
calibrated on the same apolitical statements, that of its lines; degrees of freedom are
Satterthwaite's, see :func:`plumbline.probes.values.ratings.apart_error`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import polars as pl

from plumbline.builders.core.params import section
from plumbline.probes.comparison.difference import Params, Row, t_difference
from plumbline.probes.values import schemas
from plumbline.probes.values.calibration import facing, fit, mean, ratings
from plumbline.probes.values.ratings import apart_error, balanced
from plumbline.probes.values.responses import Block, answers, block, statements

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from plumbline.probes.core.run_analysis import Inputs

    Array = NDArray[np.float64]

PROBE, UNIT = "agreement", "of 1 to 5"
METHODS = ("l2r", "sequence")  # of the corrected reading


class Rated(NamedTuple):
    """A model's answers to the statements of a questionnaire."""

    items: Block
    side: Array  # ratings (statements, draws)
    neutral: int  # statements that it is calibrated on


def read(inputs: Inputs, model: str, params: Params) -> dict[tuple[str, str], Rated]:
    """Return a model's answers by language and questionnaire."""
    how = section("analysis.values", schemas.Params)
    how = how.model_copy(update={"n_bootstrap": params.n_bootstrap})
    every = statements(inputs.datasets["statements"])
    folder, found = inputs.outputs(PROBE, model), {}
    for language in (path.name for path in folder.iterdir() if path.is_dir()):
        rows, about = answers(folder, language), every.filter(language=language)
        neutral = about.filter(pl.col("polarity").is_not_null())
        method = next(m for m in METHODS if m in rows["method"])
        lines = fit(block(rows, neutral, method, how))
        for (scale,), bearing in about.filter(pl.col("axis") != "").group_by("scale"):
            items = block(rows, bearing, method, how)
            rated = facing(items, ratings(items, lines)).mean(axis=1)
            found[language, str(scale)] = Rated(items, rated, len(neutral))
    return found


def compare(place: tuple[str, str], one: Rated, other: Rated, params: Params) -> Iterator[Row]:
    """Yield a difference for each value of a questionnaire."""
    items, neutral = other.items, other.neutral
    signed, axis = items.about["bearing"].to_numpy(), items.about["axis"].to_numpy()
    for name in sorted(set(axis.tolist())):
        rows = axis == name
        load, pairs, still = (
            np.abs(signed[rows]),
            items.place[rows],
            np.ones_like(items.drawn[rows]),
        )
        change = (one.side - other.side)[rows]
        drawn = mean(change, load, still)  # over draws the lines alone are others
        spread = float(np.nanstd(drawn[1:]) * np.sqrt(neutral / (neutral - 1)))
        error, freedom = apart_error((change[:, 0], signed[rows], pairs), spread, neutral)
        clusters = len(np.unique(pairs))
        first = float(mean(one.side[rows][:, :1], load, still[:, :1])[0])
        numbers = (first, float(drawn[0]), error, freedom if clusters > 1 else 0.0, clusters)
        tested = balanced(signed[rows], pairs)
        yield t_difference((*place, name), *numbers, params, tested=tested)
