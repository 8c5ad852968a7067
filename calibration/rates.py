"""Size, familywise error rate and coverage over replicates, with intervals.

Tests within a replicate are dependent, so replicates are the clusters. Intervals are Wilson's;
their effective number of tests is computed from the variance of the rate over replicates.
"""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy.special import ndtr, stdtrit

from plumbline.builders.core.schema import Column, Schema
from plumbline.probes.report.error_rates import (
    COVERAGE,
    FAMILIES,
    SIZE,
    SIZE_01,
    WRONG,
    WRONG_FAMILIES,
)
from plumbline.probes.stats.intervals import wilson

Array = NDArray[np.float64]

DECIMALS = 6
KEY = ("test", "shape", "truth", "kind", "effect")
MEASURES = {  # measure: kind of truth ("" for any), column of hits, column of trials
    SIZE: ("null", "p05", "tests"),
    SIZE_01: ("null", "p01", "tests"),
    FAMILIES: ("null", "false_families", "families"),
    WRONG: ("decoy", "p05", "tests"),
    WRONG_FAMILIES: ("decoy", "false_families", "families"),
    COVERAGE: ("", "covered", "intervals"),
}
CALIBRATION = Schema(
    (
        Column("analysis", "string", "analysis whose tables are tested"),
        Column("test", "string", "table and column of p, and which of its rows"),
        Column("shape", "string", "shape of the simulated run"),
        Column("truth", "string", "what responses were drawn from"),
        Column("kind", "string", "null: nothing differs; planted; decoy: not what is tested"),
        Column("effect", "float64", "size of the planted effect; 0: none", nullable=True),
        Column("measure", "string", "rate"),
        Column("replicates", "int64", "simulated tables", minimum=1),
        Column("tests", "int64", "tests, families or intervals counted in all of them", minimum=0),
        Column("value", "float64", "the rate", minimum=0, maximum=1),
        Column("low", "float64", "lower end of its 95% interval", minimum=0, maximum=1),
        Column("high", "float64", "upper end of its 95% interval", minimum=0, maximum=1),
        Column("n", "int64", "replicates that have such tests: the clusters", minimum=0),
    ),
    ("analysis", "test", "shape", "truth", "effect", "measure"),
)


def tally(outcomes: pl.DataFrame) -> pl.DataFrame:
    """Count tests, findings and intervals in one replicate, with a row per test and effect size.

    Effects of either sign are counted together. Rows without p are not tests. A family is counted
    at effect 0 if any of its rows has this effect.

    ``outcomes``: rows of :func:`calibration.truth.outcomes_by`, with a column ``test``.
    """
    low, high = pl.col("low").fill_null(-np.inf), pl.col("high").fill_null(np.inf)
    target, p = pl.col("target"), pl.col("p")
    interval = (
        target.is_not_null()
        & pl.col("value").is_not_null()
        & (pl.col("low").is_not_null() | pl.col("high").is_not_null())
    )
    counts = (
        outcomes.drop_nulls("effect")
        .group_by("test", pl.col("effect").abs() + 0.0)
        .agg(
            tests=p.count(),
            p05=(p <= 0.05).sum(),
            p01=(p <= 0.01).sum(),
            intervals=interval.sum(),
            covered=(interval & (low <= target) & (target <= high)).sum(),
        )
    )
    null = (pl.col("effect") == 0).fill_null(value=False)
    families = (
        outcomes.drop_nulls("p_adjusted")
        .group_by("test", "family")
        .agg(families=null.any(), false_families=(null & (pl.col("p_adjusted") <= 0.05)).any())
        .group_by("test")
        .agg(pl.col("families", "false_families").sum())
        .with_columns(effect=0.0)
    )
    joined = counts.join(families, on=["test", "effect"], how="left")
    return joined.with_columns(pl.exclude("test").cast(pl.Float64).fill_null(0.0))


def rows(analysis: str, tallies: pl.DataFrame) -> pl.DataFrame:
    """Return the table of rates.

    ``tallies``: rows of :func:`tally`, with the columns ``shape``, ``truth``, ``kind`` and
    ``replicate``.
    """
    result = []
    parts = tallies.sort(*KEY, "replicate").partition_by(KEY, as_dict=True, maintain_order=True)
    for values, part in parts.items():
        key = {"analysis": analysis} | dict(zip(KEY, values, strict=True))
        for measure, (kind, hits, trials) in MEASURES.items():
            number = int(part[trials].sum())
            if number and (not kind or (kind == key["kind"] and key["effect"] == 0)):
                ends = rate(part[hits].to_numpy(), part[trials].to_numpy())
                value, low, high = (round(end, DECIMALS) for end in ends)
                row = {"measure": measure, "replicates": part["replicate"].n_unique()}
                row |= {"tests": number, "value": value, "low": low, "high": high}
                result.append(key | row | {"n": int((part[trials] > 0).sum())})
    empty = pl.DataFrame(pl.from_arrow(CALIBRATION.arrow().empty_table()))
    return pl.DataFrame(result, schema=empty.schema).sort(CALIBRATION.key)


def rate(hits: Array, trials: Array, confidence: float = 0.95) -> tuple[float, float, float]:
    """Return a share of tests and its interval, with replicates as clusters.

    ``hits``, ``trials``: significant tests and all tests in each replicate, (replicates,) each.

    Examples
    --------
    Replicates with one test each are independent trials: Newcombe's (1998) example, 81 of 263.

    >>> hits = np.arange(263) < 81
    >>> tuple(round(x, 3) for x in rate(hits.astype(float), np.ones(263)))
    (0.308, 0.255, 0.366)

    A hundred identical tests in each replicate count as one, with t instead of z.

    >>> tuple(round(x, 3) for x in rate(hits * 100.0, np.full(263, 100.0)))
    (0.308, 0.255, 0.367)
    """
    hits, trials = hits[trials > 0], trials[trials > 0]
    total, clusters = trials.sum(), len(trials)
    share = float(hits.sum() / total)
    # Kish (1965), Survey Sampling, section 6.5: linearised ratio of totals
    residual = ((hits - share * trials) ** 2).sum() / total**2
    variance = residual * clusters / (clusters - 1) if clusters > 1 else 0.0
    several = bool((trials > 1).any())
    number = clusters if variance == 0 else min(total, share * (1 - share) / variance)
    # with one trial per cluster, n is their number: s^2 divides by n - 1, Wilson's interval by n
    number = max(1, round(number if several else clusters))
    if variance > 0 and several:  # the variance is estimated from few replicates, so t replaces z
        confidence = float(2 * ndtr(stdtrit(clusters - 1, (1 + confidence) / 2)) - 1)
    with np.errstate(invalid="ignore"):  # two replicates may give a confidence that rounds to 1
        interval = wilson(share * number, number, confidence)
    return share, interval.low, interval.high
