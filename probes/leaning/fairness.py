"""Analysis ``fairness``: how well classifiers do that differ in their pretraining, by group.

Feng et al. (2023), section 4 and Tables 3, 4, 12 and 13; beyond them intervals over texts, and
tests whether a difference would be there on other texts and in other trainings.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from plumbline.builders.core.params import parse
from plumbline.probes.leaning.predictions import (
    ALL,
    HALF,
    State,
    cases,
    contrast_rows,
    metric_rows,
    spread,
    tables,
)
from plumbline.probes.leaning.schemas import FAIRNESS as SCHEMAS
from plumbline.probes.leaning.schemas import FairnessParams as Params
from plumbline.probes.stats import crossed
from plumbline.probes.stats.bootstrap import percentiles
from plumbline.probes.stats.classification import METRICS
from plumbline.probes.stats.estimate import TESTED_ERROR, finite, least_p
from plumbline.probes.stats.tests import chance_p, dealt, of_members, two_tailed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import polars as pl

    from plumbline.probes.core.run_analysis import Inputs
    from plumbline.probes.leaning.predictions import Bools, Case, Floats, Measured, Row, Runs

    Rows = Iterator[tuple[str, Row]]

DATASETS = ("downstream",)
OUTPUTS = ("finetuned_classifiers",)
TABLES = ()
__all__ = ["SCHEMAS", "Params"]


def run(inputs: Inputs, params: Params) -> dict[str, pl.DataFrame]:
    """Compute the tables of all models.

    A UserError if the positive class of a task is not named, or is none of two.

    Returns
    -------
    dict
        ``overall``, ``groups``, ``differences`` and ``disagreements``, with the columns of
        :data:`SCHEMAS`.
    """

    def rows(case: Case) -> Rows:
        weights = case.weights(params.n_bootstrap, params.seed)
        yield from _values(case, weights, params)
        yield from _differences(case, weights, params)
        yield from _disagreements(case, params)

    tasks = cases(inputs, params.positive, params.texts_min, "fairness")
    least = 2 * least_p(params.n_permutations)  # p is twice the smaller tail
    return tables(tasks, rows, SCHEMAS, params.confidence, least)


def _value_rows(
    case: Case, measured: Measured, member: Bools, p: Floats, params: Params, **columns: Any
) -> Iterator[Row]:
    """Yield the row of each measure in both readings."""
    value, sd, runs = measured.mean[0], spread(measured.runs), len(measured.runs)
    columns |= {"runs": runs, "sd_runs": sd}
    yield from metric_rows(value, (value - sd, value + sd), runs, reading="faithful", **columns)
    ends = percentiles(measured.mean[1:].T, params.confidence)
    clusters = int(case.clusters(member).max()) + 1
    yield from metric_rows(value, ends, clusters, p, reading="corrected", **columns)


def _values(case: Case, weights: Floats, params: Params) -> Rows:
    """Yield how well classifiers do on all texts, and on those of each group."""
    drawn = (params.n_permutations, params.seed, case.clusters(case.every))
    null = _permuted_members(case, params)
    for state, runs in case.states.items():
        whole = case.measured(runs.predicted, case.every, weights)
        p = chance_p(case.true, runs.predicted, *drawn)
        for row in _value_rows(case, whole, case.every, p, params, **state._asdict()):
            yield "overall", row
        for (level, group), member in case.members.items():
            if (level, group) == ALL:
                continue
            measured = case.measured(runs.predicted, member, weights)
            permuted = null[(level, group), state]
            contrast = measured.mean - whole.mean
            ends = percentiles(contrast[1:].T, params.confidence)
            columns = state._asdict() | {
                "level": level,
                "group": group,
                "contrast": contrast[0],
                "contrast_low": ends.low,
                "contrast_high": ends.high,
                TESTED_ERROR: permuted[1:].std(axis=0, ddof=1),
            }
            p = two_tailed(permuted)
            for row in _value_rows(case, measured, member, p, params, **columns):
                if row["reading"] == "faithful":
                    row |= {"contrast_low": None, "contrast_high": None}
                yield "groups", row


def _permuted_members(case: Case, params: Params) -> dict[tuple[tuple[str, str], State], Floats]:
    """Return measures of each group and state, as it is and with its members permuted.

    Members are permuted once for the runs of all states.
    """
    drawn, found = (params.n_permutations, params.seed, case.clusters(case.every)), {}
    for group, member in case.members.items():
        if group == ALL:
            continue
        members = dealt(member, case.true, *drawn)
        for state, runs in case.states.items():
            found[group, state] = of_members(case.true, runs.predicted, members)
    return found


@cache
def published() -> dict[tuple[str, str, str, str], float]:
    """Return what the paper reports in percent, by task, corpus, group and measure."""
    tree = parse(Path(__file__).parent / "published.yaml")
    return {
        (task, corpus, group, measure): value
        for task in ("hate", "misinformation")
        for measure in ("precision", "recall")
        for corpus, values in tree[task][measure].items()
        for group, value in zip(tree[task]["groups"], values, strict=True)
    }


def _disagreements(case: Case, params: Params) -> Rows:
    """Yield the texts that most classifiers of one side call positive, and most of the other not.

    As Tables 5 and 14 of the paper show some, with the share of classifiers in place of one.
    """
    called = {state: runs.predicted.mean(axis=0) for state, runs in case.states.items()}
    itself = next((rates for state, rates in called.items() if state.itself), None)
    for period, share in sorted({state[1:] for state in called if not state.itself}):
        sides = [
            [called[state] for c in side if (state := State(c, period, share)) in called]
            for side in (params.left, params.right)
        ]
        if not all(sides):
            continue
        left, right = (np.mean(side, axis=0) for side in sides)
        for i in np.flatnonzero((left - HALF) * (right - HALF) < 0):
            row = {
                "period": period,
                "share": share,
                "id": case.ids[i],
                "positive": bool(case.true[i]),
                "left": finite(left[i]),
                "right": finite(right[i]),
                "base_model": None if itself is None else finite(itself[i]),
            }
            yield "disagreements", row


def _differences(case: Case, weights: Floats, params: Params) -> Rows:
    """Yield by how much one state does better than another, on the same texts."""
    sides = list(zip(params.left, params.right, strict=True))
    for one, other in pairs(case, params.against, sides):
        first, second = matched(case.states[one], case.states[other], other)
        if not first.seeds:
            continue
        tested = other.itself or not params.unequal(first.steps, second.steps)
        for (level, group), member in case.members.items():
            resampled = [
                case.resampled(runs.predicted, member, weights) for runs in (first, second)
            ]
            difference = resampled[0] - resampled[1]  # (runs, 1 + replicates, measures)
            trainings = by_pretraining(first, difference)
            clusters = int(case.clusters(member).max()) + 1
            contrasts = [
                _over_trainings(trainings[..., m], clusters, params.confidence)
                for m in range(len(METRICS))
            ]
            columns = one._asdict() | {"baseline": other.corpus, "level": level, "group": group}
            columns |= {"runs": len(difference), "sd_runs": spread(difference[:, 0])}
            for row in contrast_rows(contrasts, clusters, **columns):
                yield "differences", row if tested else row | {"p": None}


def pairs(
    case: Case, against: Callable[[str], str], sides: list[tuple[str, str]]
) -> list[tuple[State, State]]:
    """Return the states to compare: with the model itself, with the control, left with right."""
    itself = [state for state in case.states if state.itself]
    found = []
    for one in case.states:
        if not one.itself:
            corpora = [against(one.corpus), *(right for left, right in sides if left == one.corpus)]
            others = [*itself, *(one._replace(corpus=corpus) for corpus in corpora)]
            found += [(one, other) for other in others if other in case.states and other != one]
    return list(dict.fromkeys(found))


def matched(one: Runs, other: Runs, state: State) -> tuple[Runs, Runs]:
    """Return the runs of both that have the same seeds; ``other`` belongs to ``state``.

    The model itself has no pretraining seeds: its runs are compared with those of each.
    """
    start = int(state.itself)  # of the seeds that must be the same
    by_seed = {seeds[start:]: seeds for seeds in other.seeds}
    both = [seeds for seeds in one.seeds if seeds[start:] in by_seed]
    return one.pick(both), other.pick([by_seed[seeds[start:]] for seeds in both])


def by_pretraining(runs: Runs, values: Floats) -> Floats:
    """Return the mean over the runs of each pretraining seed of values (runs, ...)."""
    seeds = np.array([seeds[0] for seeds in runs.seeds])
    return np.stack([values[seeds == seed].mean(axis=0) for seed in np.unique(seeds)])


def _over_trainings(drawn: Floats, texts: int, confidence: float) -> crossed.Contrast:
    """Return a difference over texts and trainings, from (trainings, 1 + replicates)."""
    replicates = drawn[:, 1:].mean(axis=0)
    at = np.isfinite(replicates)
    if at.sum() < 2:
        return crossed.Contrast(float(drawn[:, 0].mean()), *[float("nan")] * 3)
    variance = float(replicates[at].var(ddof=1))
    shared = crossed.own_part(drawn[:, 1:][:, at])
    return crossed.over_trainings(drawn[:, 0], variance, texts, confidence, own=shared)
