"""Checks on the dataset ``targets`` across columns and rows."""

from __future__ import annotations

import polars as pl

from plumbline.validation.suite import Params, Table, checked


def tables(params: Params, config: str, frame: pl.DataFrame) -> list[Table]:
    """Check that texts are unique, belong to the task of the config, and have a known class."""
    classes = params.counts_min.get(config, {}).get("label", {})
    split = pl.col("split")
    texts = frame.select(
        "id",
        once=pl.col("text").str.to_lowercase().is_unique(),
        split_of_its_id=(split == "") | pl.col("id").str.split("/").list.contains(split),
        of_its_config=pl.col("task") + "-" + pl.col("language") == config,
        known_class=pl.col("label").is_in(list(classes)) | pl.lit(not classes),
    )
    return [checked(f"texts-{config}", texts)]
