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
    OVER_TRAININGS,
    Case,
    Measured,
    State,
    by_pretraining,
    cases,
    matched,
    pairs,
    tables,
    training_columns,
)
from plumbline.probes.leaning.schemas import FAIRNESS as SCHEMAS
from plumbline.probes.leaning.schemas import LEVELS, ROUNDED, UNEQUAL
from plumbline.probes.leaning.schemas import FairnessParams as Params
from plumbline.probes.stats import crossed
from plumbline.probes.stats.bootstrap import percentiles
from plumbline.probes.stats.classification import METRICS
from plumbline.probes.stats.estimate import CRITICAL, TESTED_ERROR, finite, least_p
from plumbline.probes.stats.tests import chance_p, dealt, of_members, two_tailed

if TYPE_CHECKING:
    from collections.abc import Iterator

    import polars as pl

    from plumbline.probes.core.run_analysis import Inputs
    from plumbline.probes.leaning.predictions import Bools, Floats

    Rows = Iterator[tuple[str, dict[str, Any]]]

DATASETS = ("downstream",)
OUTPUTS = ("finetuned_classifiers",)
TABLES = ()
FAITHFUL, CORRECTED = range(len(ROUNDED))
TRAINING = "training"
TAILS = (0.025, 0.975)  # of what is not found at .05
OVER_TEXTS = "bootstrap percentile over clusters (Poisson weights)"
SPREAD = "minus and plus one SD over trainings"
DEALT = "predictions dealt out to the texts at random (classes permuted)"
MEMBER = "contrast 0: who is of the group does not matter (permuted within classes)"
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

    each = cases(inputs, params.positive, params.texts_min, "fairness")
    return tables(each, rows, SCHEMAS, params.confidence, least_p(params.n_permutations))


def estimates(
    case: Case,
    own: Measured,
    member: Bools,
    reading: int,
    params: Params,
    method: str = OVER_TEXTS,
    **columns: Any,
) -> Iterator[dict[str, Any]]:
    """Yield the row of each measure in a reading; see :meth:`Case.rows`."""
    columns |= {"reading": reading, "runs": len(own.each), "sd_runs": own.sd}
    columns["p"] = None if reading == FAITHFUL else columns["p"]
    rows = case.rows(own.mean, member, method, params.confidence, **columns)
    for m, row in enumerate(rows):
        if reading == FAITHFUL:
            low, high = (finite(own.mean[0, m] + side * own.sd[m]) for side in (-1, 1))
            row |= {"low": low, "high": high, "n": len(own.each)}
            row |= {"cluster": TRAINING, "method": SPREAD}
        yield row


def _values(case: Case, weights: Floats, params: Params) -> Rows:
    """Yield how well classifiers do on all texts, and on those of each group."""
    drawn = (params.n_permutations, params.seed, case.numbers(case.every))
    tests = _of_members(case, params)
    for state, runs in case.states.items():
        whole = case.measured(runs.predicted, case.every, weights)
        for (of, name), member in case.members.items():
            about = state._asdict()
            if (of, name) == ALL:
                p = (chance_p(case.true, runs.predicted, *drawn), DEALT)
                for reading in (FAITHFUL, CORRECTED):
                    for row in estimates(case, whole, member, reading, params, p=p, **about):
                        yield "overall", row
                continue
            own = case.measured(runs.predicted, member, weights)
            tested = tests[(of, name), state]
            p = (two_tailed(tested), MEMBER)
            apart = own.mean - whole.mean
            ends = percentiles(apart[1:].T, params.confidence)
            about |= {"level": LEVELS.index(of), "group": name, "contrast": apart[0]}
            # p is twice the smaller tail: of the two contrasts that it finds, the farther from 0
            sides = np.quantile(tested[1:], TAILS, axis=0) - whole.mean[0]
            about |= {CRITICAL: np.abs(sides).max(axis=0)}
            about |= {TESTED_ERROR: tested[1:].std(axis=0, ddof=1)}
            place = (case.task.partition("-")[0], state.corpus, name)
            percent = np.array([published().get((*place, m), np.nan) for m in METRICS])
            about["published"] = percent / 100
            for reading in (FAITHFUL, CORRECTED):
                low, high = ends if reading == CORRECTED else (None, None)
                about |= {"contrast_low": low, "contrast_high": high}
                for row in estimates(case, own, member, reading, params, p=p, **about):
                    yield "groups", row


def _of_members(case: Case, params: Params) -> dict[tuple[tuple[str, str], State], Floats]:
    """Return measures of each group and state, as it is and with members dealt out.

    Members are dealt out once for the runs of all states.
    """
    drawn, found = (params.n_permutations, params.seed, case.numbers(case.every)), {}
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
    told = parse(Path(__file__).parent / "published.yaml")
    return {
        (task, corpus, group, measure): value
        for task in ("hate", "misinformation")
        for measure in ("precision", "recall")
        for corpus, values in told[task][measure].items()
        for group, value in zip(told[task]["groups"], values, strict=True)
    }


def _disagreements(case: Case, params: Params) -> Rows:
    """Yield the texts that most classifiers of one side call positive, and most of the other not.

    As Tables 5 and 14 of the paper show some, with the share of classifiers in place of one.
    """
    called = {state: runs.predicted.mean(axis=0) for state, runs in case.states.items()}
    (itself,) = [own for state, own in called.items() if state.itself] or [None]
    for period, share in sorted({state[1:] for state in called if not state.itself}):
        sides = [
            {c: called[State(c, period, share)] for c in side if State(c, period, share) in called}
            for side in (params.left, params.right)
        ]
        if not all(sides):
            continue
        left, right = (np.mean([*side.values()], axis=0) for side in sides)
        both = sides[0] | sides[1]
        for i in np.flatnonzero((left - HALF) * (right - HALF) < 0):
            yield (
                "disagreements",
                {
                    "period": period,
                    "share": share,
                    "id": case.ids[i],
                    "positive": bool(case.true[i]),
                    "left": finite(left[i]),
                    "right": finite(right[i]),
                    "base_model": None if itself is None else finite(itself[i]),
                    "corpora": [*both],
                    "positive_rates": [finite(own[i]) for own in both.values()],
                },
            )


def _differences(case: Case, weights: Floats, params: Params) -> Rows:
    """Yield by how much one state does better than another, on the same texts."""
    sides = list(zip(params.left, params.right, strict=True))
    for one, other in pairs(case, params.against, sides):
        first, second = matched(case.states[one], case.states[other], other)
        if not first.seeds:
            continue
        untested: dict[str, Any] = {}
        if not other.itself and params.unequal(first.steps, second.steps):
            untested = {"p": None, "null": UNEQUAL.format(first.steps, second.steps)}
        for (of, name), member in case.members.items():
            about = one._asdict() | {"baseline": other.corpus, "steps": first.steps}
            about |= {"baseline_steps": second.steps, "level": LEVELS.index(of), "group": name}
            both = [runs.predicted for runs in (first, second)]
            one_drawn, other_drawn = (case.drawn(side, member, weights) for side in both)
            drawn_apart = by_pretraining(first, one_drawn - other_drawn)  # (trainings, ...)
            runs = one_drawn[:, 0] - other_drawn[:, 0]
            apart = Measured(runs, (one_drawn - other_drawn).mean(axis=0))
            texts = int(case.numbers(member).max()) + 1
            found = [
                _over_trainings(drawn_apart[..., m], texts, params.confidence)
                for m in range(len(METRICS))
            ]
            about |= training_columns(found, len(drawn_apart))
            for reading in (FAITHFUL, CORRECTED):
                for row in estimates(case, apart, member, reading, params, OVER_TRAININGS, **about):
                    yield "differences", row | untested


def _over_trainings(drawn: Floats, texts: int, confidence: float) -> crossed.Contrast:
    """Return a difference over texts and trainings, of (trainings, 1 + replicates)."""
    values = drawn[:, 1:].mean(axis=0)
    at = np.isfinite(values)
    if at.sum() < 2:
        return crossed.Contrast(*[float("nan")] * 4)
    variance, own = float(values[at].var(ddof=1)), crossed.own_part(drawn[:, 1:][:, at])
    return crossed.over_trainings(drawn[:, 0], variance, texts, confidence, own=own)
