"""Checks on the dataset ``lexica`` across columns and rows."""

from __future__ import annotations

import polars as pl

from plumbline.builders.datasets.lexica.formats import AXES
from plumbline.builders.datasets.lexica.published import PUBLISHED
from plumbline.validation.suite import Params, Table, checked, once

SEED_SD = 0.1  # maximum SD over seeds for 99% of the words; otherwise, validation warns
SIGNS = {"positive": 1, "negative": -1}  # sign of a view's score, by its label


def tables(_: Params, config: str, frame: pl.DataFrame) -> list[Table]:
    """Check that mass, views and shares are consistent, and that signs agree."""
    mass = pl.sum_horizontal(f"beta_{axis}" for axis in AXES)
    least = pl.min_horizontal(f"beta_{axis}" for axis in AXES)
    views, scores = pl.col("views"), pl.col("view_scores").list
    side = pl.col("q_positive") - pl.col("q_negative")
    views_of_words = frame.select("view_values", "view_scores").iter_rows()
    signs = [
        all(SIGNS.get(value, 0) * score >= 0 for value, score in zip(*row, strict=False))
        for row in views_of_words
    ]
    lists = pl.col("view_names", "view_values", "view_scores").list.len()
    words = frame.select(
        "word",
        mass_is_three_and_views=mass - 3 == views,
        beta_is_over_prior=least >= 1 - 1e-9,
        shares_of_mass=pl.all_horizontal(
            (pl.col(f"q_{a}") - pl.col(f"beta_{a}") / mass).abs() < 1e-9 for a in AXES
        ),
        views_once=once("view_names"),
        sign_of_its_view=pl.Series(signs, dtype=pl.Boolean),
        views_counted=pl.all_horizontal(lists == (0 if config == PUBLISHED else views)),
        score_is_the_mean=(scores.mean().fill_null(side) - pl.col("score")).abs() < 1e-5,
        # if all views clearly have one sign, `side` must have the same sign
        praise_is_positive=(scores.min().fill_null(0) < 0.5) | (side > 0),
        blame_is_negative=(scores.max().fill_null(0) > -0.5) | (side < 0),
        seeds_agree=pl.col("seed_sd").fill_null(0) <= SEED_SD,
    )
    shares = {"seeds_agree": 0.99}
    return [checked(f"mass-{config}", words, shares=shares, warn=shares)]
