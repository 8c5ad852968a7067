"""Checks on the dataset ``outlets`` across columns and rows."""

from __future__ import annotations

import polars as pl
from pydantic import Field

from plumbline.builders.datasets.outlets.build import CONTROL
from plumbline.validation import suite


class Params(suite.Params):
    """Minimum numbers of rows, and the minimum share of dated articles."""

    dated_min_share: float = Field(ge=0, le=1, description="minimum share of articles with a date")


def tables(params: Params, config: str, frame: pl.DataFrame) -> list[suite.Table]:
    """Check that texts are unique, each outlet has one leaning, and most texts are dated."""
    texts = frame.select(
        "article",
        once=pl.col("text").str.to_lowercase().hash().is_unique(),
        leaning_of_its_outlet=(pl.col("outlet") == CONTROL) | suite.same("leaning", "outlet"),
        names_its_corpus=pl.col("article").str.contains(r"^[^/]+/."),
        dated=pl.col("date").is_not_null(),
    )
    shares = dict.fromkeys(texts.columns[1:], 1 - params.odd_max_share)
    shares["dated"] = params.dated_min_share
    return [suite.checked(f"texts-{config}", texts, shares=shares)]
