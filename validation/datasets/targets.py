"""Checks of ``targets`` that look across columns and rows."""

from __future__ import annotations

import polars as pl
from pydantic import Field

from plumbline.validation import suite


class Params(suite.Params):
    """Floors, and the classes that there are."""

    labels: dict[str, list[str]] = Field(
        default_factory=dict, description="classes of each config; any where none are given"
    )
    label_min: int = Field(0, ge=0, description="fewest texts of each class of a config")


@suite.each_config("classes", "config class texts over_floor", 3)
def tables(params: Params, config: str, frame: pl.DataFrame) -> suite.Found:
    """Hold that texts are normal and there once, of one task, and classes known and filled."""
    wanted = params.labels.get(config, [])
    texts = frame.select(
        "id",
        once=pl.col("text").str.to_lowercase().is_unique(),
        split_of_its_id=(pl.col("split") == "")
        | pl.col("id").str.split("/").list.contains(pl.col("split")),
        of_its_config=pl.col("task") + "-" + pl.col("language") == config,
        known_class=pl.col("label").is_in(wanted) | pl.lit(not wanted),
    )
    counts = dict.fromkeys(wanted, 0) | dict(frame["label"].value_counts().iter_rows())
    rows = [(config, label, n, n >= params.label_min) for label, n in sorted(counts.items())]
    return [suite.checked(f"texts-{config}", texts)], rows
