"""Checks of ``social_groups`` that look across columns and rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
from pydantic import Field

from plumbline.builders.core.describe import frames
from plumbline.builders.datasets.social_groups.read import KINDS
from plumbline.validation import suite

if TYPE_CHECKING:
    from pathlib import Path


class Params(suite.Params):
    """Floors, and the fewest groups of a category."""

    category_min: int = Field(ge=0, description="fewest groups in a category of a config")
    respelled_max_share: float = Field(
        0.05, ge=0, le=1, description="largest share of groups whose two spellings differ"
    )


def tables(params: Params, folder: Path) -> list[suite.Table]:
    """Return the frames: spellings are tidy, few differ, categories are of one kind and large."""
    found, rows = [], []
    for config, frame in frames(folder):
        names = frame.select(
            "category",
            "group",
            pl.all_horizontal(suite.spaced(c) for c in ("category", "group", "name")).alias(
                "single_spaces"
            ),
            suite.lettered("group"),
            (pl.col("kind").n_unique().over("category") == 1).alias("one_kind_a_category"),
            (pl.col("group") == pl.col("name")).alias("one_spelling"),
        )
        shares = {"one_spelling": 1 - params.respelled_max_share}
        found.append(suite.checked(f"names-{config}", names, 2, shares))
        sizes = frame.group_by("category", "kind").len().sort("category")
        rows += [
            (config, category, KINDS[kind], number, number >= params.category_min)
            for category, kind, number in sizes.iter_rows()
        ]
    return [*found, suite.listed("categories", "config category kind groups over_floor", rows, 4)]
