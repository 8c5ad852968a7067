"""Checks of ``outlets`` that look across columns and rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
from pydantic import Field

from plumbline.builders.core import parquet
from plumbline.builders.datasets.outlets.build import CONTROL
from plumbline.validation import suite

if TYPE_CHECKING:
    from pathlib import Path


class Params(suite.Params):
    """Floors, and the fewest articles of an outlet."""

    articles_min: int = Field(ge=1, description="fewest articles of each outlet and the control")
    dated_min_share: float = Field(ge=0, le=1, description="smallest share of articles with a date")


def tables(params: Params, folder: Path) -> list[suite.Table]:
    """Return the frames: texts are clean and of one outlet, outlets equally large; a control."""
    found, rows = [], []
    for config in parquet.configs(folder):
        frame = pl.scan_parquet(folder / f"{config}.parquet")
        text = pl.col("text")
        texts = frame.select(
            "article",
            (text.str.strip_chars() == text).alias("trimmed"),
            suite.spaced("text", line=True),
            suite.composed("text"),
            suite.lettered("text"),
            text.hash().is_unique().alias("once"),
            pl.col("date").is_not_null().alias("dated"),
        ).collect()
        found.append(
            suite.checked(f"texts-{config}", texts, shares={"dated": params.dated_min_share})
        )
        counts = dict(frame.group_by("outlet").len().sort("outlet").collect().iter_rows())
        counts.setdefault(CONTROL, 0)
        most = max(counts.values())
        rows += [(config, o, n, n >= params.articles_min, n == most) for o, n in counts.items()]
    columns = "config outlet articles over_floor as_many_as_others"
    return [*found, suite.listed("outlets", columns, rows, 3, warn=("as_many_as_others",))]
