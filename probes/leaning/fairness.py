"""Analysis ``fairness``: how well classifiers do that differ in their pretraining, by group.

Feng et al. (2023), section 4 and Tables 3, 4, 12 and 13; beyond them intervals over texts, paired
tests on the same texts, and whether a difference would be there in other trainings.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from pydantic import Field, model_validator

from plumbline.builders.core.params import Params as Section
from plumbline.probes.leaning.fairness_recovery import recovery
from plumbline.probes.leaning.fairness_rows import (
    CORRECTED,
    FAITHFUL,
    ONE_RUN,
    Measured,
    adjusted,
    estimates,
    measured_on,
    null_of,
    over_seeds,
)
from plumbline.probes.leaning.fairness_schemas import OF, SCHEMAS
from plumbline.probes.leaning.predictions import ALL, Case, State, cases, matched, pairs
from plumbline.probes.stats.bootstrap import percentiles
from plumbline.probes.stats.classification import METRICS
from plumbline.probes.stats.estimate import finite, typed
from plumbline.probes.stats.tests import chance_p, exchange_p, mcnemar, membership_p

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from plumbline.probes.core.run_analysis import Inputs

    Floats = NDArray[np.float64]

EACH = False
DATASETS = ("downstream",)
OUTPUTS = ("finetune",)
TABLES = ()
DEALT = "predictions dealt out to the texts at random (classes permuted)"
MEMBER = "contrast 0: who is of the group does not matter (permuted within classes)"
EXCHANGED = "0: the two may be exchanged, cluster by cluster"
MCNEMAR = "0: each is right on half of the texts that one alone has right (McNemar, exact; texts)"
__all__ = ["SCHEMAS"]


class Params(Section):
    """What is sought and compared, and how intervals and tests are made."""

    version: str = Field(pattern=r"^\d+\.\d+\.\d+$", description="version of the tables")
    positive: dict[str, str] = Field(
        description="the class that is sought, by config of downstream or by what its name begins "
        "with, up to the first dash"
    )
    control: str = Field(description="corpus that the others are compared with")
    left: list[str] = Field(description="corpora that are compared, one by one, with")
    right: list[str] = Field(description="these")
    texts_min: int = Field(
        20, ge=1, description="test texts that a group or source must have to be in the tables"
    )
    exchanges: int = Field(ge=99, description="draws of the tests that exchange or permute")
    bootstrap: int = Field(ge=100, description="bootstrap replicates over texts")
    confidence: float = Field(gt=0.5, lt=1, description="of the intervals")
    seed: int = Field(ge=0, description="of the resampling")

    @model_validator(mode="after")
    def _pairs(self) -> Params:
        if len(self.left) != len(self.right):
            raise ValueError("left and right: as many of one as of the other are needed")
        return self

    def limits(self, drawn: Floats) -> tuple[Floats, Floats]:
        """Return percentile limits of replicates, (replicates, measures); nan left out."""
        found = percentiles(drawn.T, self.confidence)
        return found.low, found.high


def run(inputs: Inputs, params: Params) -> dict[str, pl.DataFrame]:
    """Compute the tables of all models.

    Returns
    -------
    dict
        ``overall``, ``groups``, ``differences``, and with a world ``recovery``. Columns as in
        :data:`SCHEMAS`.

    Raises
    ------
    Problem
        If the positive class of a task is not named, or is none of two.
    """
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in SCHEMAS}
    for model in inputs.models:
        key = "analysis.fairness.positive"
        for case in cases(inputs, model, params.positive, params.texts_min, key):
            weights = case.weights(params.bootstrap, params.seed)
            measured = {
                (state, place): measured_on(case, runs, member, weights)
                for state, runs in case.states.items()
                for place, member in case.members.items()
            }
            overall = _overall(case, measured, params)
            differences = _differences(case, weights, params)
            found["overall"] += overall
            found["groups"] += _groups(case, measured, params)
            found["differences"] += differences
            found["recovery"] += recovery(case, inputs.weights(model), differences, params)
    return {
        name: typed(pl.DataFrame(rows, infer_schema_length=None), SCHEMAS[name])
        for name, rows in found.items()
        if rows
    }


def _overall(
    case: Case, measured: dict[tuple[State, tuple[str, str]], Measured], params: Params
) -> list[dict[str, Any]]:
    result = []
    every = case.numbers(case.members[ALL])
    for state, runs in case.states.items():
        own = measured[state, ALL]
        p = chance_p(case.true, runs.predicted, params.exchanges, params.seed, every)
        for reading in (FAITHFUL, CORRECTED):
            result += [
                _place(case, reading, state) | row | {"null": null_of(row, DEALT)}
                for row in estimates(own, case, case.members[ALL], reading, p, params)
            ]
    return adjusted(result)


def _groups(
    case: Case, measured: dict[tuple[State, tuple[str, str]], Measured], params: Params
) -> list[dict[str, Any]]:
    result = []
    every = case.numbers(case.members[ALL])
    for state, runs in case.states.items():
        whole = measured[state, ALL]
        for (of, name), member in case.members.items():
            if (of, name) == ALL:
                continue
            own = measured[state, (of, name)]
            p = membership_p(
                case.true, runs.predicted, member, params.exchanges, params.seed, every
            )
            apart = own.mean - whole.mean
            low, high = params.limits(apart[1:])
            for reading in (FAITHFUL, CORRECTED):
                rows = estimates(own, case, member, reading, p, params)
                for m, row in enumerate(rows):
                    limits = (low[m], high[m]) if reading == CORRECTED else (np.nan, np.nan)
                    result.append(
                        _place(case, reading, state)
                        | {"of": OF.index(of), "group": name}
                        | row
                        | {"null": null_of(row, MEMBER), "contrast": finite(apart[0, m])}
                        | dict(
                            zip(("contrast_low", "contrast_high"), map(finite, limits), strict=True)
                        )
                    )
    return adjusted(result)


def _differences(case: Case, weights: Floats, params: Params) -> list[dict[str, Any]]:
    result = []
    for one, other in pairs(
        case, params.control, list(zip(params.left, params.right, strict=True))
    ):
        first, second = matched(case.states[one], case.states[other], other)
        if not first.seeds:
            continue
        for (of, name), member in case.members.items():
            true = case.true[member]
            both = [measured_on(case, runs, member, weights) for runs in (first, second)]
            place = {
                "model": case.model,
                "task": case.task,
                "corpus": one.corpus,
                "against": other.corpus,
                "period": one.period,
                "share": one.share,
                "of": OF.index(of),
                "group": name,
                "texts": first.read,
                "texts_against": second.read,
            }
            mine, others = (runs.predicted[:, member] for runs in (first, second))
            units = case.numbers(member)
            p = exchange_p(true, mine, others, params.exchanges, params.seed, units)
            p_one = exchange_p(true, mine[:1], others[:1], params.exchanges, params.seed, units)
            p_one[METRICS.index("accuracy")] = mcnemar(mine[0] == true, others[0] == true)
            tested = {FAITHFUL: None, ONE_RUN: p_one, CORRECTED: p}
            apart = Measured(first, both[0].each - both[1].each, both[0].mean - both[1].mean)
            single = [
                measured_on(case, runs.pick(runs.seeds[:1]), member, weights)
                for runs in (first, second)
            ]
            one_run = Measured(
                first.pick(first.seeds[:1]),
                single[0].each - single[1].each,
                single[0].mean - single[1].mean,
            )
            for reading, p_values in tested.items():
                shown = one_run if reading == ONE_RUN else apart
                rows = estimates(shown, case, member, reading, p_values, params)
                for m, row in enumerate(rows):
                    accuracy = reading == ONE_RUN and METRICS[m] == "accuracy"
                    null = null_of(row, MCNEMAR if accuracy else EXCHANGED)
                    result.append(
                        place
                        | {"reading": reading}
                        | row
                        | {"null": null}
                        | over_seeds(apart, m, case.size(member), reading, params)
                    )
    return adjusted(adjusted(result), "p_trainings", "p_trainings_bh")


def _place(case: Case, reading: int, state: State) -> dict[str, Any]:
    own = {"corpus": state.corpus, "period": state.period, "share": state.share}
    return {"model": case.model, "task": case.task, "reading": reading, **own}
