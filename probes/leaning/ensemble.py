"""Analysis ``ensemble``: votes of classifiers of partisan corpora, and of others.

Feng et al. (2023), section 5 and Table 6: the partisan ensemble against the mean and the best of
its members. Beyond them: ensembles of the same size whose members differ in their seeds alone, so
that one sees whether it is partisanship that helps, or voting.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl
from pydantic import Field, model_validator
from scipy.special import ndtr

from plumbline.builders.core.params import Params as Section
from plumbline.probes.leaning.ensemble_schemas import READINGS, SCHEMAS
from plumbline.probes.leaning.predictions import Case, Runs, cases
from plumbline.probes.leaning.voters import PARTISAN, Voters, all_runs, first_run, without_each_seed
from plumbline.probes.stats.bootstrap import percentiles
from plumbline.probes.stats.classification import METRICS, cells, metrics
from plumbline.probes.stats.crossed import combined, left_out
from plumbline.probes.stats.estimate import benjamini_hochberg, finite, significant, typed

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from plumbline.probes.core.run_analysis import Inputs
    from plumbline.probes.leaning.voters import Gains

    Floats = NDArray[np.float64]

EACH = False
DATASETS = ("downstream",)
OUTPUTS = ("finetune",)
TABLES = ()
FAITHFUL, CORRECTED = range(len(READINGS))
TESTED = ("accuracy", "balanced accuracy", "F1")
OVER_TEXTS = "bootstrap percentile over clusters (Poisson weights), these trainings"
NORMAL = "0: equally good on other texts (normal, SE of the bootstrap)"
UNTESTED = "none: no test"
__all__ = ["SCHEMAS"]


class Params(Section):
    """Who votes, and how intervals are made."""

    version: str = Field(pattern=r"^\d+\.\d+\.\d+$", description="version of the tables")
    partisan: list[str] = Field(
        min_length=2, description="corpora of the partisan ensemble; those not trained on are out"
    )
    positive: dict[str, str] = Field(description="the class that is sought, as in fairness")
    draws: int = Field(
        100, ge=1, description="ensembles of one corpus at most; all choices if they are no more"
    )
    bootstrap: int = Field(ge=100, description="bootstrap replicates over texts")
    confidence: float = Field(gt=0.5, lt=1, description="of the intervals")
    seed: int = Field(ge=0, description="of the resampling and of the choice of ensembles")

    @model_validator(mode="after")
    def _once(self) -> Params:
        if len(set(self.partisan)) < len(self.partisan):
            raise ValueError("partisan: one stands twice")
        return self


class Scored(NamedTuple):
    """The measures of ensembles of one kind."""

    voters: Voters
    each: Floats  # (ensembles, measures)
    mean: Floats  # (1 + replicates, measures) over the ensembles, the sample first


def run(inputs: Inputs, params: Params) -> dict[str, pl.DataFrame]:
    """Compute the tables of all models.

    Returns
    -------
    dict
        ``scores`` and ``differences``; nothing of a model that was trained on fewer than two of
        the partisan corpora. Columns as in :data:`SCHEMAS`.

    Raises
    ------
    Problem
        If the positive class of a task is not named, or is none of two.
    """
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in SCHEMAS}
    for model in inputs.models:
        for case in cases(inputs, model, params.positive, 1, "analysis.ensemble.positive"):
            weights = case.weights(params.bootstrap, params.seed)
            itself = next((runs for state, runs in case.states.items() if state.itself), None)
            differences = []
            for (period, share), members in _partisan(case, params).items():
                drawn = (case, members, itself, params.draws, params.seed)
                every = {
                    FAITHFUL: list(first_run(case, list(members.values()))),
                    CORRECTED: list(all_runs(*drawn)),
                }
                without = without_each_seed(*drawn)
                for reading, voters in every.items():
                    place = {"model": model, "task": case.task, "reading": reading}
                    place |= {"period": period, "share": share}
                    scored = [_scored(case, own, weights) for own in voters]
                    for own in scored:
                        found["scores"] += [place | row for row in _rows(own, case, params)]
                    differences += [
                        place | row
                        for row in _differences(
                            scored, case, without if reading == CORRECTED else [], params
                        )
                    ]
            found["differences"] += _adjusted(
                _adjusted(differences), "p_trainings", "p_trainings_bh"
            )
    return {
        name: typed(pl.DataFrame(rows, infer_schema_length=None), SCHEMAS[name])
        for name, rows in found.items()
        if rows
    }


def _partisan(case: Case, params: Params) -> dict[tuple[int, float], dict[str, Runs]]:
    """Return the runs of the partisan corpora, two at least, by period and share."""
    found: dict[tuple[int, float], dict[str, Runs]] = {}
    for state, runs in case.states.items():
        if state.corpus in params.partisan:
            found.setdefault((state.period, state.share), {})[state.corpus] = runs
    return {key: found[key] for key in sorted(found) if len(found[key]) > 1}


def _scored(case: Case, voters: Voters, weights: Floats) -> Scored:
    drawn = metrics(cells(case.true, voters.predicted, weights))
    return Scored(voters, drawn[:, 0], drawn.mean(axis=0))


def _rows(own: Scored, case: Case, params: Params) -> list[dict[str, Any]]:
    every = np.ones(len(case.ids), dtype=np.bool_)
    several = len(own.each) > 1
    sd = own.each.std(axis=0, ddof=1) if several else np.full(len(METRICS), np.nan)
    limits = percentiles(own.mean[1:].T, params.confidence)
    return [
        {
            "ensemble": own.voters.name,
            "vote": own.voters.vote,
            "metric": metric,
            "value": finite(own.mean[0, m]),
            "low": finite(limits.low[m]),
            "high": finite(limits.high[m]),
            "n": case.size(every),
            "cluster": case.cluster,
            "method": OVER_TEXTS,
            "null": UNTESTED,
            "p": None,
            "p_bh": None,
            "size": own.voters.size,
            "ensembles": len(own.each),
            "sd": finite(sd[m]),
        }
        for m, metric in enumerate(METRICS)
    ]


def _differences(
    scored: list[Scored],
    case: Case,
    without: list[list[Gains]],
    params: Params,
) -> list[dict[str, Any]]:
    """Compare the partisan ensemble with all else, each way of voting by itself.

    Parameters
    ----------
    without
        The same without each seed; see :func:`without_each_seed`.
    """
    result = []
    every = np.ones(len(case.ids), dtype=np.bool_)
    for own in (each for each in scored if each.voters.name == PARTISAN):
        for other in scored:
            if other.voters.name == PARTISAN or other.voters.vote not in ("", own.voters.vote):
                continue
            apart = own.mean - other.mean
            limits = percentiles(apart[1:].T, params.confidence)
            se = np.nanstd(apart[1:], axis=0, ddof=1)
            for m, metric in enumerate(METRICS):
                p = None
                if metric in TESTED and np.isfinite(apart[0, m]):
                    same = abs(apart[0, m]) < 1e-12
                    p = 1.0 if same else 2 * float(ndtr(-abs(apart[0, m]) / max(se[m], 1e-12)))
                result.append(
                    {
                        "against": other.voters.name,
                        "vote": own.voters.vote,
                        "metric": metric,
                        "value": finite(apart[0, m]),
                        "low": finite(limits.low[m]),
                        "high": finite(limits.high[m]),
                        "n": case.size(every),
                        "cluster": case.cluster,
                        "method": OVER_TEXTS,
                        "null": UNTESTED if p is None else NORMAL,
                        "p": None if p is None else significant(p),
                        "p_bh": None,
                        "size": own.voters.size,
                        "size_against": other.voters.size,
                    }
                    | _over_seeds(own, other, m, float(se[m]), without, case.size(every), params)
                )
    return result


def _over_seeds(
    own: Scored,
    other: Scored,
    m: int,
    se: float,
    without: list[list[Gains]],
    texts: int,
    params: Params,
) -> dict[str, Any]:
    """Return a difference over texts and trainings; nothing where too few are left of these."""
    names = ("trainings_low", "trainings_high", "p_trainings", "p_trainings_bh")
    result: dict[str, Any] = dict.fromkeys(names)
    key = (other.voters.name, own.voters.vote)
    parts = [(se**2, max(1, texts - 1))]
    for each in without:
        sizes = {found[key][1] for found in each if key in found}
        if not each or sizes != {other.voters.size} or not all(key in found for found in each):
            return result
        parts.append(left_out(np.array([found[key][0][m] for found in each])))
    if len(parts) < 3:
        return result
    found = combined(float(own.mean[0, m] - other.mean[0, m]), parts, params.confidence)
    tested = METRICS[m] in TESTED and np.isfinite(found.p)
    limits = {"trainings_low": finite(found.low), "trainings_high": finite(found.high)}
    return result | limits | {"p_trainings": significant(found.p) if tested else None}


def _adjusted(
    rows: list[dict[str, Any]], name: str = "p", into: str = "p_bh"
) -> list[dict[str, Any]]:
    """Adjust over all tests of a reading; of one task of one model there are no others here."""
    for reading in (FAITHFUL, CORRECTED):
        own = [row for row in rows if row["reading"] == reading]
        tested = [row for row in own if row[name] is not None]
        if name == "p":
            for row in own:
                row["family"] = len(tested)
        values = np.array([row[name] for row in tested], dtype=np.float64)
        for row, value in zip(tested, benjamini_hochberg(values), strict=True):
            row[into] = significant(value)
    return rows
