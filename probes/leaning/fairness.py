"""Analysis ``fairness``: how well classifiers do that differ in their pretraining, by group.

Feng et al. (2023), section 4 and Tables 3, 4, 12 and 13; beyond them intervals over texts, paired
tests on the same texts, and whether a difference would be there in other trainings.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from plumbline.probes.leaning.predictions import (
    ALL,
    Case,
    Runs,
    State,
    cases,
    grid,
    matched,
    over_seeds,
    pairs,
    tables,
)
from plumbline.probes.leaning.schemas import FAIRNESS as SCHEMAS
from plumbline.probes.leaning.schemas import FAIRNESS_READINGS, LEVELS
from plumbline.probes.leaning.schemas import FairnessParams as Params
from plumbline.probes.stats.bootstrap import percentiles
from plumbline.probes.stats.classification import METRICS, cells, metrics
from plumbline.probes.stats.crossed import Contrast, over_trainings
from plumbline.probes.stats.estimate import Estimate, finite
from plumbline.probes.stats.tests import chance_p, exchange_p, mcnemar, membership_p

if TYPE_CHECKING:
    import polars as pl
    from numpy.typing import NDArray

    from plumbline.probes.core.run_analysis import Inputs

    Floats = NDArray[np.float64]
    Table = dict[tuple[State, tuple[str, str]], "Measured"]

EACH = False
DATASETS = ("downstream",)
OUTPUTS = ("finetuned_classifiers",)
TABLES = ()
FAITHFUL, ONE_RUN, CORRECTED = range(len(FAIRNESS_READINGS))
TESTED = ("accuracy", "balanced accuracy", "F1")
TRAINING = "training"
OVER_TEXTS = "bootstrap percentile over clusters (Poisson weights)"
SPREAD = "minus and plus one SD over trainings"
UNTESTED = "none: no test"
DEALT = "predictions dealt out to the texts at random (classes permuted)"
MEMBER = "contrast 0: who is of the group does not matter (permuted within classes)"
EXCHANGED = "0: the two may be exchanged, cluster by cluster"
MCNEMAR = "0: each is right on half of the texts that one alone has right (McNemar, exact; texts)"
__all__ = ["SCHEMAS", "Params"]


class Measured(NamedTuple):
    """The measures of one state on some texts."""

    runs: Runs
    each: Floats  # (runs, measures)
    mean: Floats  # (1 + replicates, measures) over runs, the sample first


def measured_on(case: Case, runs: Runs, member: NDArray[np.bool_], weights: Floats) -> Measured:
    """Return the measures of runs on some texts, in the sample and in every replicate."""
    drawn = metrics(cells(case.true[member], runs.predicted[:, member], weights[member]))
    return Measured(runs, drawn[:, 0], drawn.mean(axis=0))


def estimates(
    own: Measured,
    case: Case,
    member: NDArray[np.bool_],
    reading: int,
    p: Floats | None,
    null: str,
    params: Params,
) -> list[dict[str, Any]]:
    """Return what a row has of each measure; ``null`` is what those with a test are judged by."""
    runs = len(own.each)
    sd = own.each.std(axis=0, ddof=1) if runs > 1 else np.full(len(METRICS), np.nan)
    low, high = limits(own.mean[1:], params)
    if reading == FAITHFUL:
        low, high, p = own.mean[0] - sd, own.mean[0] + sd, None
    cluster, n = (TRAINING, runs) if reading == FAITHFUL else (case.cluster, case.size(member))
    result = []
    for m, metric in enumerate(METRICS):
        tested = p is not None and metric in TESTED and np.isfinite(p[m])
        method = SPREAD if reading == FAITHFUL else OVER_TEXTS
        result.append(
            Estimate(own.mean[0, m], low[m], high[m], n, method).row(
                cluster=cluster,
                null=null if tested else UNTESTED,
                p=p[m] if p is not None and tested else None,
                metric=metric,
                runs=runs,
                sd_runs=finite(sd[m]),
            )
        )
    return result


def limits(drawn: Floats, params: Params) -> tuple[Floats, Floats]:
    """Return percentile limits of replicates, (replicates, measures); nan left out."""
    found = percentiles(drawn.T, params.confidence)
    return found.low, found.high


def run(inputs: Inputs, params: Params) -> dict[str, pl.DataFrame]:
    """Compute the tables of all models.

    Returns
    -------
    dict
        ``overall``, ``groups`` and ``differences``, with the columns of :data:`SCHEMAS`.

    Raises
    ------
    UserError
        If the positive class of a task is not named, or is none of two.
    """
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in SCHEMAS}
    for model in inputs.models:
        key = "analysis.fairness.positive"
        for case in cases(inputs, model, params.positive, params.texts_min, key):
            weights = case.weights(params.n_bootstrap, params.seed)
            measured = {
                (state, place): measured_on(case, runs, member, weights)
                for state, runs in case.states.items()
                for place, member in case.members.items()
            }
            found["overall"] += _overall(case, measured, params)
            found["groups"] += _groups(case, measured, params)
            found["differences"] += _differences(case, weights, params)
    return tables(found, SCHEMAS)


def _overall(case: Case, measured: Table, params: Params) -> list[dict[str, Any]]:
    result = []
    every = case.numbers(case.members[ALL])
    for state, runs in case.states.items():
        own = measured[state, ALL]
        p = chance_p(case.true, runs.predicted, params.n_permutations, params.seed, every)
        for reading in (FAITHFUL, CORRECTED):
            result += [
                _place(case, reading, state) | row
                for row in estimates(own, case, case.members[ALL], reading, p, DEALT, params)
            ]
    return result


def _groups(case: Case, measured: Table, params: Params) -> list[dict[str, Any]]:
    result = []
    every = case.numbers(case.members[ALL])
    for state, runs in case.states.items():
        whole = measured[state, ALL]
        for (of, name), member in case.members.items():
            if (of, name) == ALL:
                continue
            own = measured[state, (of, name)]
            p = membership_p(
                case.true, runs.predicted, member, params.n_permutations, params.seed, every
            )
            apart = own.mean - whole.mean
            low, high = limits(apart[1:], params)
            for reading in (FAITHFUL, CORRECTED):
                rows = estimates(own, case, member, reading, p, MEMBER, params)
                for m, row in enumerate(rows):
                    ends = (low[m], high[m]) if reading == CORRECTED else (np.nan, np.nan)
                    result.append(
                        _place(case, reading, state)
                        | {"level": LEVELS.index(of), "group": name}
                        | row
                        | {"contrast": finite(apart[0, m])}
                        | {"contrast_low": finite(ends[0]), "contrast_high": finite(ends[1])}
                    )
    return result


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
            place = {
                "model": case.model,
                "task": case.task,
                "corpus": one.corpus,
                "baseline": other.corpus,
                "period": one.period,
                "share": one.share,
                "level": LEVELS.index(of),
                "group": name,
                "texts": first.read,
                "baseline_texts": second.read,
            }
            mine, others = (runs.predicted[:, member] for runs in (first, second))
            units = case.numbers(member)
            p = exchange_p(true, mine, others, params.n_permutations, params.seed, units)
            p_one = exchange_p(
                true, mine[:1], others[:1], params.n_permutations, params.seed, units
            )
            p_one[METRICS.index("accuracy")] = mcnemar(mine[0] == true, others[0] == true)
            tested = {FAITHFUL: None, ONE_RUN: p_one, CORRECTED: p}
            apart, one_run = (
                Measured(a, x.each - y.each, x.mean - y.mean)
                for a, b in ((first, second), (_single(first), _single(second)))
                for x, y in ([measured_on(case, runs, member, weights) for runs in (a, b)],)
            )
            for reading, p_values in tested.items():
                shown = one_run if reading == ONE_RUN else apart
                rows = estimates(shown, case, member, reading, p_values, EXCHANGED, params)
                for m, row in enumerate(rows):
                    accuracy = reading == ONE_RUN and METRICS[m] == "accuracy"
                    null = {"null": MCNEMAR} if accuracy and row["p"] is not None else {}
                    result.append(
                        place
                        | {"reading": reading}
                        | row
                        | null
                        | over_seeds(
                            _contrast(apart, m, case.size(member), params)
                            if reading == CORRECTED
                            else None,
                            tested=METRICS[m] in TESTED,
                        )
                    )
    return result


def _single(runs: Runs) -> Runs:
    return runs.pick(runs.seeds[:1])


def _contrast(own: Measured, m: int, clusters: int, params: Params) -> Contrast:
    """Return a difference over texts and trainings."""
    drawn = own.mean[1:, m]
    variance = float(np.nanvar(drawn, ddof=1)) if np.isfinite(drawn).sum() > 1 else float("nan")
    return over_trainings(grid(own.runs, own.each[:, m]), variance, clusters, params.confidence)


def _place(case: Case, reading: int, state: State) -> dict[str, Any]:
    own = {"corpus": state.corpus, "period": state.period, "share": state.share}
    return {"model": case.model, "task": case.task, "reading": reading, **own}
