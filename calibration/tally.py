"""What the tests of one simulated table said, counted."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import polars as pl

LEVELS = {"05": 0.05, "01": 0.01}
LIMITS = (0.5, 0.7, 0.9, 1.1, 1.4, 2.0)  # of bins of planted effects over detectable ones
BINS = len(LIMITS) - 1
NEAR = 1e-3  # adjusted p are rounded, and so are p that they are of


def tally(outcomes: pl.DataFrame) -> pl.DataFrame:
    """Count what the rows of tests in one replicate say, a row for each size of planted effects.

    Effects of either sign are counted together. Rows without p are of no test. Families are
    counted at effect 0, those that have a row there; ``false_share`` is the mean over families of
    the share of false ones among the findings, 0 of none. Adjusting bounds that of whole families
    alone: it is nan where rows are a part of what was adjusted together. Of planted effects without
    a target ``NAME_open`` is a list of the place of the row among those of its test, its value (of
    the effect's sign), what is told as detectable, or null, and whether it is found.

    ``outcomes``: as :func:`calibration.truth.outcome` returns them; with a column
    ``test`` where they are of several.
    """
    own = [name for name in ("test",) if name in outcomes.columns]
    low, high = pl.col("low").fill_null(-np.inf), pl.col("high").fill_null(np.inf)
    target, effect = pl.col("target"), pl.col("effect")
    interval = (
        target.is_not_null()
        & pl.col("value").is_not_null()
        & (pl.col("low").is_not_null() | pl.col("high").is_not_null())
    )
    adjusted = (pl.col("p_adjusted") <= LEVELS["05"]).fill_null(value=False)
    tests = pl.col("p").is_not_null()
    small = (pl.col("p") <= LEVELS["05"]).fill_null(value=False)
    width = (high - low).filter(interval & (low > -np.inf) & (high < np.inf))
    unknown = pl.col("by_mean") & target.is_null() & (effect != 0) & tests
    unknown = (unknown & pl.col("value").is_finite()).fill_null(value=False)
    beside: dict[str, pl.Expr] = {}
    lists: dict[str, pl.Expr] = {}
    for name, found in (("detectable", small), ("detectable_bh", adjusted)):
        ratio = target.abs() / pl.col(name)
        for n, (least, most) in enumerate(pairwise(LIMITS)):
            inside = (effect != 0) & tests & (ratio > least) & (ratio <= most)
            inside = inside.fill_null(value=False)
            beside[f"{name}_{n}"] = inside.sum()
            beside[f"{name}_{n}_found"] = (inside & found).sum()
            beside[f"{name}_{n}_ratio"] = ratio.filter(inside).sum()
        row = pl.struct(
            "row",
            value=(pl.col("value") * effect.sign()).cast(pl.Float32),
            told=pl.col(name).cast(pl.Float32),
            found=found,
        )
        lists[f"{name}_open"] = row.filter(unknown)
    place = pl.int_range(pl.len(), dtype=pl.Int32)
    place = place.over(own) if own else place
    every = outcomes.with_columns(row=place).filter(effect.is_not_null())
    size = (effect.abs() + 0.0).alias("effect")
    counts = every.group_by(*own, size).agg(
        tests=tests.sum(),
        p05=small.sum(),
        p01=(pl.col("p") <= LEVELS["01"]).sum(),
        adjusted=pl.col("p_adjusted").is_not_null().sum(),
        adjusted05=adjusted.sum(),
        wrong_sign=(small & (pl.col("value") * effect < 0)).sum(),
        intervals=interval.sum(),
        covered=(interval & (low <= target) & (target <= high)).sum(),
        widths=width.len(),
        width=width.sum(),
        **beside,
        **lists,
    )
    true = (effect == 0).fill_null(value=False)
    families = outcomes.drop_nulls("p_adjusted").group_by(*own, "family")
    shares = (
        families.agg(
            some=effect.is_not_null().any(),
            null=true.any(),
            false=(adjusted & true).sum(),
            found=adjusted.sum().clip(lower_bound=1),
            whole=_whole(),
        )
        .filter("some")
        .select(
            *own,
            families="null",
            false_families=pl.col("false") > 0,
            false_share=pl.when("whole").then(pl.col("false") / pl.col("found")),
        )
    )
    sums = ("families", "false_families")
    number = (pl.col(*sums).sum(), pl.col("false_share").mean().fill_null(np.nan))
    if own:
        joined = counts.join(shares.group_by(own).agg(*number), on=own, how="left")
    else:
        joined = counts.join(shares.select(*number), how="cross")
    here = pl.when(pl.col("effect") == 0)
    named = (*sums, "false_share")
    return joined.with_columns(
        pl.exclude(*own, "effect", *named, *lists).cast(pl.Float64),
        *(here.then(pl.col(name).cast(pl.Float64)).otherwise(0.0).fill_null(0.0) for name in named),
    )


def _whole() -> pl.Expr:
    """Tell whether the tests of a group, adjusted together, are adjusted as they were."""
    p = pl.col("p").sort(descending=True)
    again = (p * pl.len() / (pl.len() - pl.int_range(pl.len()))).cum_min()
    told = pl.col("p_adjusted").sort(descending=True)
    return ((again - told).abs() <= NEAR * told).all()
