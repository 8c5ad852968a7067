"""Checks of ``lexica`` that look across columns and rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
from pydantic import Field

from plumbline.builders.core.describe import frames
from plumbline.builders.datasets.lexica.build import AXES
from plumbline.validation import suite

if TYPE_CHECKING:
    from pathlib import Path


class Params(suite.Params):
    """Floors and ceilings."""

    axis_min_share: float = Field(
        0.05,
        ge=0,
        le=1,
        description="smallest share of words that lean to positive, and to negative, in a config",
    )
    seed_sd_max: float = Field(
        0.1, ge=0, description="seed_sd that 99 of 100 words stay under; above: a warning"
    )


def tables(params: Params, folder: Path) -> list[suite.Table]:
    """Return the frames: mass and views agree, shares sum to 1, sides agree, none is empty."""
    found, rows = [], []
    mass = pl.sum_horizontal(f"beta_{axis}" for axis in AXES)
    share = pl.sum_horizontal(f"q_{axis}" for axis in AXES)
    scores = pl.col("view_scores").list
    side = pl.col("q_positive") - pl.col("q_negative")
    lengths = [pl.col(c).list.len() == pl.col("views") for c in ("view_names", "view_values")]
    for config, words in frames(folder):
        frame = words.select(
            "word",
            (mass - 3 == pl.col("views")).alias("mass_is_three_and_views"),
            (pl.min_horizontal(f"beta_{a}" for a in AXES) >= 1 - 1e-9).alias("beta_is_over_prior"),
            ((share - 1).abs() < 1e-9).alias("shares_sum_to_one"),
            (pl.all_horizontal(lengths) & (scores.len() == pl.col("views"))).alias("views_counted"),
            ((scores.mean() - pl.col("score")).abs() < 1e-5).alias("score_is_the_mean"),
            # views that are all of one mind and clear leave no doubt about the side
            ((scores.min() < 0.5) | (side > 0)).alias("praise_is_positive"),
            ((scores.max() > -0.5) | (side < 0)).alias("blame_is_negative"),
            (pl.col("seed_sd").fill_null(0) <= params.seed_sd_max).alias("seeds_agree"),
        )
        shares = {"seeds_agree": 0.99}
        found.append(suite.checked(f"mass-{config}", frame, shares=shares, warn=shares))
        for sign, axis in ((1, "positive"), (-1, "negative")):
            lean = float((words.select(side).to_series() * sign > 0).mean() or 0)  # type: ignore[arg-type]
            rows.append((config, axis, round(lean, 4), lean >= params.axis_min_share))
    return [*found, suite.listed("axes", "config axis share over_floor", rows, 3)]
