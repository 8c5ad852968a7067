"""Checks of ``social_groups`` that look across columns and rows."""

from __future__ import annotations

import polars as pl
from pydantic import Field

from plumbline.builders.datasets.social_groups.read import KINDS
from plumbline.validation import suite

RESPELLED = 0.05  # largest share of groups whose two spellings differ


class Params(suite.Params):
    """Floors, and the fewest groups of a category."""

    category_min: int = Field(ge=0, description="fewest groups in a category of a config")


@suite.each_config("categories", "config category kind groups over_floor", 4)
def tables(params: Params, config: str, frame: pl.DataFrame) -> suite.Found:
    """Hold that spellings are tidy, few differ, and categories are of one kind and large."""
    names = frame.select(
        "category",
        "group",
        one_kind_a_category=suite.same("kind", "category"),
        kind_as_named=(pl.col("category") == "country")
        == (pl.col("kind") == KINDS.index("country")),
        one_case=~pl.struct("category", pl.col("group").str.to_lowercase()).is_duplicated(),
        one_spelling=pl.col("group") == pl.col("name"),
    )
    shares = {"one_spelling": 1 - RESPELLED}
    sizes = frame.group_by("category", "kind").len().sort("category").iter_rows()
    least = params.category_min
    rows = [(config, category, KINDS[kind], n, n >= least) for category, kind, n in sizes]
    return [suite.checked(f"names-{config}", names, 2, shares)], rows
