"""Rows of the tables of the analysis ``fairness``, from measures of runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from plumbline.probes.leaning.fairness_schemas import READINGS
from plumbline.probes.leaning.predictions import grid
from plumbline.probes.stats.classification import METRICS, cells, metrics
from plumbline.probes.stats.crossed import over_trainings
from plumbline.probes.stats.estimate import benjamini_hochberg, finite, significant

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from plumbline.probes.leaning.fairness import Params
    from plumbline.probes.leaning.predictions import Case, Runs

    Floats = NDArray[np.float64]

FAITHFUL, ONE_RUN, CORRECTED = range(len(READINGS))
TESTED = ("accuracy", "balanced accuracy", "F1")
TRAINING = "training"
OVER_TEXTS = "bootstrap percentile over clusters (Poisson weights)"
SPREAD = "minus and plus one SD over trainings"
UNTESTED = "none: no test"


class Measured(NamedTuple):
    """The measures of one state on some texts."""

    runs: Runs
    each: Floats  # (runs, measures)
    mean: Floats  # (1 + replicates, measures) over runs, the sample first


def measured_on(case: Case, runs: Runs, member: NDArray[np.bool_], weights: Floats) -> Measured:
    """Return the measures of runs on some texts, in the sample and in every replicate."""
    drawn = metrics(cells(case.true[member], runs.predicted[:, member], weights[member]))
    return Measured(runs, drawn[:, 0], drawn.mean(axis=0))


def null_of(row: dict[str, Any], null: str) -> str:
    """Return what a row is judged against, if it is."""
    return UNTESTED if row["p"] is None else null


def estimates(
    own: Measured,
    case: Case,
    member: NDArray[np.bool_],
    reading: int,
    p: Floats | None,
    params: Params,
) -> list[dict[str, Any]]:
    """Return what a row has of each measure."""
    runs = len(own.each)
    sd = own.each.std(axis=0, ddof=1) if runs > 1 else np.full(len(METRICS), np.nan)
    low, high = params.limits(own.mean[1:])
    if reading == FAITHFUL:
        low, high, p = own.mean[0] - sd, own.mean[0] + sd, None
    cluster, n = (TRAINING, runs) if reading == FAITHFUL else (case.cluster, case.size(member))
    result = []
    for m, metric in enumerate(METRICS):
        there = p is not None and metric in TESTED and np.isfinite(p[m])
        result.append(
            {
                "metric": metric,
                "value": finite(own.mean[0, m]),
                "low": finite(low[m]),
                "high": finite(high[m]),
                "n": n,
                "cluster": cluster,
                "method": SPREAD if reading == FAITHFUL else OVER_TEXTS,
                "p": significant(p[m]) if there and p is not None else None,
                "p_bh": None,
                "runs": runs,
                "sd_runs": finite(sd[m]),
            }
        )
    return result


def over_seeds(
    own: Measured, m: int, clusters: int, reading: int, params: Params
) -> dict[str, float | None]:
    """Return the difference over texts and trainings, in the reading ``corrected``."""
    names = ("trainings_low", "trainings_high", "p_trainings", "p_trainings_bh")
    result: dict[str, float | None] = dict.fromkeys(names)
    if reading != CORRECTED:
        return result
    drawn = own.mean[1:, m]
    variance = float(np.nanvar(drawn, ddof=1)) if np.isfinite(drawn).sum() > 1 else float("nan")
    found = over_trainings(grid(own.runs, own.each[:, m]), variance, clusters, params.confidence)
    tested = METRICS[m] in TESTED and np.isfinite(found.p)
    limits = {"trainings_low": finite(found.low), "trainings_high": finite(found.high)}
    return result | limits | {"p_trainings": significant(found.p) if tested else None}


def adjusted(
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
