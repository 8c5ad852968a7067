"""Checks on the dataset ``social_groups`` across columns and rows."""

from __future__ import annotations

import polars as pl

from plumbline.builders.datasets.social_groups.read import KINDS
from plumbline.validation.suite import Params, Table, checked, same

RESPELLED = 0.05  # maximum share of groups whose two spellings differ


def tables(_: Params, config: str, frame: pl.DataFrame) -> list[Table]:
    """Check that spellings are clean, that few differ, and that each category has one kind."""
    category, country = pl.col("category"), pl.col("kind") == KINDS.index("country")
    names = frame.select(
        "category",
        "group",
        one_kind_a_category=same("kind", "category"),
        kind_as_named=(category == "country") == country,
        one_case=~pl.struct("category", pl.col("group").str.to_lowercase()).is_duplicated(),
        one_spelling=pl.col("group") == pl.col("name"),
    )
    return [checked(f"names-{config}", names, 2, {"one_spelling": 1 - RESPELLED})]
