"""Checks of ``targets`` that look across columns and rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
from pydantic import Field

from plumbline.builders.core.describe import frames
from plumbline.validation import suite

if TYPE_CHECKING:
    from pathlib import Path


class Params(suite.Params):
    """Floors, and the classes that there are."""

    labels: dict[str, list[str]] = Field(
        default_factory=dict, description="classes of each config; any where none are given"
    )
    label_min: int = Field(0, ge=0, description="fewest texts of each class of a config")


def tables(params: Params, folder: Path) -> list[suite.Table]:
    """Return the frames: texts are normal and there once, of one task, classes known and filled."""
    found, rows = [], []
    for config, frame in frames(folder):
        wanted = params.labels.get(config)
        texts = frame.select(
            "id",
            suite.spaced("text"),
            suite.composed("text"),
            suite.filled("text"),
            pl.col("text").is_unique().alias("once"),
            (pl.col("task") + "-" + pl.col("language") == config).alias("of_its_config"),
            (pl.col("label").is_in(wanted) if wanted else pl.lit(value=True)).alias("known_class"),
        )
        found.append(suite.checked(f"texts-{config}", texts))
        counts = dict(frame["label"].value_counts().iter_rows())
        for label in sorted({*counts, *(wanted or ())}):
            number = counts.get(label, 0)
            rows.append((config, label, number, number >= params.label_min))
    return [*found, suite.listed("classes", "config class texts over_floor", rows, 3)]
