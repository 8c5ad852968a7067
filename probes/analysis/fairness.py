"""Analysis ``fairness``: how well classifiers do that differ in their pretraining, by group.

Feng et al. (2023), section 4 and Tables 3, 4, 12 and 13; beyond them intervals over texts, paired
tests on the same texts, and whether a difference would be there in other trainings.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl
from pydantic import Field, model_validator

from builders.lib.params import Params as Section
from probes.analysis._fairness_recovery import recovery
from probes.analysis._fairness_runs import ALL, OF, Case, Runs, State, cases, grid
from probes.analysis._fairness_tables import READINGS, SCHEMAS
from probes.estimates import finite, significant, typed
from probes.stats.dealt import chance_p, membership_p
from probes.stats.exchange import exchange_p, mcnemar
from probes.stats.multiplicity import benjamini_hochberg
from probes.stats.pmi import percentiles
from probes.stats.trainings import over_trainings
from probes.stats.two_classes import METRICS, cells, metrics

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from probes.tables import Inputs

    Floats = NDArray[np.float64]

EACH = False
DATASETS = ("downstream",)
OUTPUTS = ("finetune",)
TABLES = ()
FAITHFUL, ONE_RUN, CORRECTED = range(len(READINGS))
TESTED = ("accuracy", "balanced accuracy", "F1")
TEXT, TRAINING = "text", "training"
OVER_TEXTS = "bootstrap percentile over texts (Poisson weights)"
SPREAD = "minus and plus one SD over trainings"
UNTESTED = "none: no test"
DEALT = "predictions dealt out to the texts at random (classes permuted)"
MEMBER = "contrast 0: who is of the group does not matter (permuted within classes)"
EXCHANGED = "0: the two may be exchanged, text by text"
MCNEMAR = "0: each is right on half of the texts that one alone has right (McNemar, exact)"
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


class Measured(NamedTuple):
    """The measures of one state on some texts."""

    runs: Runs
    each: Floats  # (runs, measures)
    mean: Floats  # (1 + replicates, measures) over runs, the sample first


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
                (state, place): _measured(case, runs, member, weights)
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


def _measured(case: Case, runs: Runs, member: NDArray[np.bool_], weights: Floats) -> Measured:
    drawn = metrics(cells(case.true[member], runs.predicted[:, member], weights[member]))
    return Measured(runs, drawn[:, 0], drawn.mean(axis=0))


def _overall(
    case: Case, measured: dict[tuple[State, tuple[str, str]], Measured], params: Params
) -> list[dict[str, Any]]:
    result = []
    for state, runs in case.states.items():
        own = measured[state, ALL]
        p = chance_p(case.true, runs.predicted, params.exchanges, params.seed)
        for reading in (FAITHFUL, CORRECTED):
            result += [
                _place(case, reading, state) | row | {"null": _null(row, DEALT)}
                for row in _estimates(own, len(case.ids), reading, p, params)
            ]
    return _adjusted(result)


def _groups(
    case: Case, measured: dict[tuple[State, tuple[str, str]], Measured], params: Params
) -> list[dict[str, Any]]:
    result = []
    for state, runs in case.states.items():
        whole = measured[state, ALL]
        for (of, name), member in case.members.items():
            if (of, name) == ALL:
                continue
            own = measured[state, (of, name)]
            p = membership_p(case.true, runs.predicted, member, params.exchanges, params.seed)
            apart = own.mean - whole.mean
            low, high = params.limits(apart[1:])
            for reading in (FAITHFUL, CORRECTED):
                rows = _estimates(own, int(member.sum()), reading, p, params)
                for m, row in enumerate(rows):
                    limits = (low[m], high[m]) if reading == CORRECTED else (np.nan, np.nan)
                    result.append(
                        _place(case, reading, state)
                        | {"of": OF.index(of), "group": name}
                        | row
                        | {"null": _null(row, MEMBER), "contrast": finite(apart[0, m])}
                        | dict(
                            zip(("contrast_low", "contrast_high"), map(finite, limits), strict=True)
                        )
                    )
    return _adjusted(result)


def _differences(case: Case, weights: Floats, params: Params) -> list[dict[str, Any]]:
    result = []
    for one, other in pairs(case, params):
        first, second = matched(case.states[one], case.states[other], other)
        if not first.seeds:
            continue
        for (of, name), member in case.members.items():
            true = case.true[member]
            sides = [_measured(case, runs, member, weights) for runs in (first, second)]
            place = {
                "model": case.model,
                "task": case.task,
                "corpus": one.corpus,
                "against": other.corpus,
                "period": one.period,
                "share": one.share,
                "of": OF.index(of),
                "group": name,
            }
            mine, others = (runs.predicted[:, member] for runs in (first, second))
            p = exchange_p(true, mine, others, params.exchanges, params.seed)
            p_one = exchange_p(true, mine[:1], others[:1], params.exchanges, params.seed)
            p_one[METRICS.index("accuracy")] = mcnemar(mine[0] == true, others[0] == true)
            tested = {FAITHFUL: None, ONE_RUN: p_one, CORRECTED: p}
            apart = Measured(first, sides[0].each - sides[1].each, sides[0].mean - sides[1].mean)
            single = [
                _measured(case, runs.pick(runs.seeds[:1]), member, weights)
                for runs in (first, second)
            ]
            one_run = Measured(
                first.pick(first.seeds[:1]),
                single[0].each - single[1].each,
                single[0].mean - single[1].mean,
            )
            for reading, p_values in tested.items():
                shown = one_run if reading == ONE_RUN else apart
                rows = _estimates(shown, int(member.sum()), reading, p_values, params)
                for m, row in enumerate(rows):
                    accuracy = reading == ONE_RUN and METRICS[m] == "accuracy"
                    null = _null(row, MCNEMAR if accuracy else EXCHANGED)
                    result.append(
                        place
                        | {"reading": reading}
                        | row
                        | {"null": null}
                        | _trainings(apart, m, int(member.sum()), reading, params)
                    )
    return _adjusted(_adjusted(result), "p_trainings", "p_trainings_bh")


def pairs(case: Case, params: Params) -> list[tuple[State, State]]:
    """Return what is compared: with the model itself, with the control, left with right."""
    found = []
    for state in case.states:
        if state.itself:
            continue
        found += [(state, other) for other in case.states if other.itself]
        control = state._replace(corpus=params.control)
        if control in case.states and control != state:
            found.append((state, control))
    for left, right in zip(params.left, params.right, strict=True):
        found += [
            (state, state._replace(corpus=right))
            for state in case.states
            if state.corpus == left and state._replace(corpus=right) in case.states
        ]
    return list(dict.fromkeys(found))


def matched(one: Runs, other: Runs, state: State) -> tuple[Runs, Runs]:
    """Return the runs of both that have the same seeds; the model itself has none of pretraining.

    Its runs stand beside those of each pretraining seed.
    """
    if state.itself:
        by_seed = {seed: own for own in other.seeds for seed in own[1:]}
        seeds = [own for own in one.seeds if own[1] in by_seed]
        return one.pick(seeds), other.pick([by_seed[seed] for _, seed in seeds])
    seeds = [own for own in one.seeds if own in other.seeds]
    return one.pick(seeds), other.pick(seeds)


def _place(case: Case, reading: int, state: State) -> dict[str, Any]:
    own = {"corpus": state.corpus, "period": state.period, "share": state.share}
    return {"model": case.model, "task": case.task, "reading": reading, **own}


def _null(row: dict[str, Any], null: str) -> str:
    return UNTESTED if row["p"] is None else null


def _estimates(
    own: Measured, texts: int, reading: int, p: Floats | None, params: Params
) -> list[dict[str, Any]]:
    """Return what a row has of each measure."""
    runs = len(own.each)
    sd = own.each.std(axis=0, ddof=1) if runs > 1 else np.full(len(METRICS), np.nan)
    low, high = params.limits(own.mean[1:])
    if reading == FAITHFUL:
        low, high, p = own.mean[0] - sd, own.mean[0] + sd, None
    cluster = TRAINING if reading == FAITHFUL else TEXT
    result = []
    for m, metric in enumerate(METRICS):
        there = p is not None and metric in TESTED and np.isfinite(p[m])
        result.append(
            {
                "metric": metric,
                "value": finite(own.mean[0, m]),
                "low": finite(low[m]),
                "high": finite(high[m]),
                "n": runs if reading == FAITHFUL else texts,
                "cluster": cluster,
                "method": SPREAD if reading == FAITHFUL else OVER_TEXTS,
                "p": significant(p[m]) if there and p is not None else None,
                "p_bh": None,
                "runs": runs,
                "sd_runs": finite(sd[m]),
            }
        )
    return result


def _trainings(
    own: Measured, m: int, texts: int, reading: int, params: Params
) -> dict[str, float | None]:
    """Return the difference over texts and trainings, in the reading ``corrected``."""
    names = ("trainings_low", "trainings_high", "p_trainings", "p_trainings_bh")
    result: dict[str, float | None] = dict.fromkeys(names)
    if reading != CORRECTED:
        return result
    drawn = own.mean[1:, m]
    variance = float(np.nanvar(drawn, ddof=1)) if np.isfinite(drawn).sum() > 1 else float("nan")
    found = over_trainings(grid(own.runs, own.each[:, m]), variance, texts, params.confidence)
    tested = METRICS[m] in TESTED and np.isfinite(found.p)
    limits = {"trainings_low": finite(found.low), "trainings_high": finite(found.high)}
    return result | limits | {"p_trainings": significant(found.p) if tested else None}


def _adjusted(
    rows: list[dict[str, Any]], name: str = "p", into: str = "p_bh"
) -> list[dict[str, Any]]:
    """Adjust over all tests of a reading; of one task of one model there are no others here."""
    for reading in range(len(READINGS)):
        own = [row for row in rows if row["reading"] == reading]
        tested = [row for row in own if row[name] is not None]
        if name == "p":
            for row in own:
                row["family"] = len(tested)
        values = np.array([row[name] for row in tested], dtype=np.float64)
        for row, value in zip(tested, benjamini_hochberg(values), strict=True):
            row[into] = significant(value)
    return rows
