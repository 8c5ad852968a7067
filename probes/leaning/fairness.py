"""Analysis ``fairness``: how well classifiers do that differ in their pretraining, by group.

Feng et al. (2023), section 4 and Tables 3, 4, 12 and 13; beyond them intervals over texts, paired
tests on the same texts, and whether a difference would be there in other trainings.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from plumbline.probes.leaning.predictions import (
    ALL,
    Case,
    Measured,
    by_pretraining,
    cases,
    grid,
    matched,
    over_trainings,
    pairs,
    tables,
)
from plumbline.probes.leaning.schemas import FAIRNESS as SCHEMAS
from plumbline.probes.leaning.schemas import FAIRNESS_READINGS, LEVELS
from plumbline.probes.leaning.schemas import FairnessParams as Params
from plumbline.probes.stats import crossed
from plumbline.probes.stats.bootstrap import percentiles
from plumbline.probes.stats.classification import METRICS
from plumbline.probes.stats.estimate import finite
from plumbline.probes.stats.tests import chance_p, exchange_p, membership_p

if TYPE_CHECKING:
    from collections.abc import Iterator

    import polars as pl

    from plumbline.probes.core.run_analysis import Inputs
    from plumbline.probes.leaning.predictions import Bools, Floats

    Rows = Iterator[tuple[str, dict[str, Any]]]

EACH = False
DATASETS = ("downstream",)
OUTPUTS = ("finetuned_classifiers",)
TABLES = ()
FAITHFUL, ONE_RUN, CORRECTED = range(len(FAIRNESS_READINGS))
TRAINING = "training"
OVER_TEXTS = "bootstrap percentile over clusters (Poisson weights)"
SPREAD = "minus and plus one SD over trainings"
DEALT = "predictions dealt out to the texts at random (classes permuted)"
MEMBER = "contrast 0: who is of the group does not matter (permuted within classes)"
EXCHANGED = "0: the two may be exchanged, cluster by cluster"
__all__ = ["SCHEMAS", "Params"]


def run(inputs: Inputs, params: Params) -> dict[str, pl.DataFrame]:
    """Compute the tables of all models.

    A UserError if the positive class of a task is not named, or is none of two.

    Returns
    -------
    dict
        ``overall``, ``groups`` and ``differences``, with the columns of :data:`SCHEMAS`.
    """

    def rows(case: Case) -> Rows:
        weights = case.weights(params.n_bootstrap, params.seed)
        yield from _values(case, weights, params)
        yield from _differences(case, weights, params)

    return tables(cases(inputs, params.positive, params.texts_min, "fairness"), rows, SCHEMAS)


def estimates(
    case: Case,
    own: Measured,
    member: Bools,
    reading: int,
    p: tuple[Floats, str] | None,
    params: Params,
    **columns: Any,
) -> Iterator[dict[str, Any]]:
    """Yield the row of each measure in a reading; see :meth:`Case.rows`."""
    columns |= {"reading": reading, "runs": len(own.each), "sd_runs": own.sd}
    tested = None if reading == FAITHFUL else p
    rows = case.rows(own.mean, member, OVER_TEXTS, params.confidence, tested, **columns)
    for m, row in enumerate(rows):
        if reading == FAITHFUL:
            low, high = (finite(own.mean[0, m] + side * own.sd[m]) for side in (-1, 1))
            row |= {"low": low, "high": high, "n": len(own.each)}
            row |= {"cluster": TRAINING, "method": SPREAD}
        yield row


def _values(case: Case, weights: Floats, params: Params) -> Rows:
    """Yield how well classifiers do on all texts, and on those of each group."""
    drawn = (params.n_permutations, params.seed, case.numbers(case.every))
    for state, runs in case.states.items():
        whole = case.measured(runs.predicted, case.every, weights)
        for (of, name), member in case.members.items():
            about = state._asdict()
            if (of, name) == ALL:
                p = (chance_p(case.true, runs.predicted, *drawn), DEALT)
                for reading in (FAITHFUL, CORRECTED):
                    for row in estimates(case, whole, member, reading, p, params, **about):
                        yield "overall", row
                continue
            own = case.measured(runs.predicted, member, weights)
            p = (membership_p(case.true, runs.predicted, member, *drawn), MEMBER)
            apart = own.mean - whole.mean
            ends = percentiles(apart[1:].T, params.confidence)
            about |= {"level": LEVELS.index(of), "group": name, "contrast": apart[0]}
            for reading in (FAITHFUL, CORRECTED):
                low, high = ends if reading == CORRECTED else (None, None)
                about |= {"contrast_low": low, "contrast_high": high}
                for row in estimates(case, own, member, reading, p, params, **about):
                    yield "groups", row


def _differences(case: Case, weights: Floats, params: Params) -> Rows:
    """Yield by how much one state does better than another, on the same texts."""
    sides = list(zip(params.left, params.right, strict=True))
    for one, other in pairs(case, params.control, sides):
        first, second = matched(case.states[one], case.states[other], other)
        if not first.seeds:
            continue
        for (of, name), member in case.members.items():
            about = one._asdict() | {"baseline": other.corpus, "texts": first.read}
            about |= {"baseline_texts": second.read, "level": LEVELS.index(of), "group": name}
            both = [runs.predicted for runs in (first, second)]
            one_drawn, other_drawn = (case.drawn(side, member, weights) for side in both)
            drawn_apart = one_drawn - other_drawn  # (runs, 1 + replicates, measures)
            apart, single = (
                Measured(some[:, 0], some.mean(axis=0)) for some in (drawn_apart, drawn_apart[:1])
            )
            drawn = (params.n_permutations, params.seed, case.numbers(member))
            true, (mine, others) = case.true[member], (side[:, member] for side in both)
            p = exchange_p(true, mine, others, *drawn)
            p_one = exchange_p(true, mine[:1], others[:1], *drawn)
            seeds: list[crossed.Contrast | None] = []
            for m in range(len(METRICS)):
                values = apart.mean[1:, m]
                several = np.isfinite(values).sum() > 1
                variance = float(np.nanvar(values, ddof=1)) if several else np.nan
                layout, texts = grid(first, apart.each[:, m]), int(drawn[2].max()) + 1
                at = np.isfinite(values)
                own = crossed.own_part(by_pretraining(first, drawn_apart[:, 1:, m])[:, at])
                found = (layout, variance, texts, params.confidence)
                seeds.append(crossed.over_trainings(*found, own=own if several else 0.0))
            for reading, shown, tested in (
                (FAITHFUL, apart, p),
                (ONE_RUN, single, p_one),
                (CORRECTED, apart, p),
            ):
                more = about | over_trainings(
                    seeds if reading == CORRECTED else [None] * len(seeds)
                )
                null = (tested, EXCHANGED)
                for row in estimates(case, shown, member, reading, null, params, **more):
                    yield "differences", row
