"""Checks of ``social_groups`` that look across columns and rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
from pydantic import Field

from plumbline.builders.core import parquet
from plumbline.builders.datasets.social_groups.read import KINDS
from plumbline.validation.suite import Params as Base
from plumbline.validation.suite import Table, holds

if TYPE_CHECKING:
    from pathlib import Path


class Params(Base):
    """Floors, and the fewest groups of a category."""

    category_min: int = Field(ge=0, description="fewest groups in a category of a config")
    respelled_max_share: float = Field(
        0.05, ge=0, le=1, description="largest share of groups whose two spellings differ"
    )


def tables(params: Params, folder: Path) -> list[Table]:
    """Return the frames: spellings are tidy, few differ, categories are of one kind and large."""
    found, rows = [], []
    for config in parquet.configs(folder):
        frame = pl.read_parquet(folder / f"{config}.parquet")
        tidy = [
            (pl.col(c) == pl.col(c).str.replace_all(r"\s+", " ").str.strip_chars())
            for c in ("category", "group", "name")
        ]
        names = frame.select(
            "category",
            "group",
            pl.all_horizontal(tidy).alias("single_spaces"),
            pl.col("group").str.contains(r"\p{L}").alias("has_a_letter"),
            (pl.col("group") == pl.col("name")).alias("one_spelling"),
            (pl.col("kind").n_unique().over("category") == 1).alias("one_kind_a_category"),
        )
        checks = [holds(c) for c in ("single_spaces", "has_a_letter", "one_kind_a_category")]
        checks.append(holds("one_spelling", 1 - params.respelled_max_share))
        found.append(Table(f"names-{config}", names, ["category", "group"], checks))
        sizes = frame.group_by("category", "kind").len().sort("category")
        rows += [
            (config, category, KINDS[kind], number, number >= params.category_min)
            for category, kind, number in sizes.iter_rows()
        ]
    columns = ["config", "category", "kind", "groups", "over_floor"]
    frame = pl.DataFrame(rows, schema=columns, orient="row")
    return [*found, Table("categories", frame, columns[:4], [holds("over_floor")])]
