"""Checks of ``outlets`` that look across columns and rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
from pydantic import Field

from plumbline.builders.core import parquet
from plumbline.builders.datasets.outlets.build import CONTROL
from plumbline.validation.suite import Check, Table, holds
from plumbline.validation.suite import Params as Base

if TYPE_CHECKING:
    from pathlib import Path


class Params(Base):
    """Floors, and the fewest articles of an outlet."""

    articles_min: int = Field(ge=1, description="fewest articles of each outlet and the control")
    dated_min_share: float = Field(ge=0, le=1, description="smallest share of articles with a date")


def tables(params: Params, folder: Path) -> list[Table]:
    """Return the frames: texts are clean and of one outlet, outlets equally large; a control."""
    found = []
    rows = []
    for config in parquet.configs(folder):
        frame = pl.scan_parquet(folder / f"{config}.parquet")
        text = pl.col("text")
        clean = text.str.replace_all(r"[^\S\n]+", " ").str.replace_all(r" ?\n[ \n]*", "\n")
        texts = frame.select(
            "article",
            (text.str.strip_chars() == text).alias("trimmed"),
            (clean == text).alias("single_spaces"),
            (text == text.str.normalize("NFC")).alias("composed"),
            text.str.contains(r"\p{L}").alias("has_a_letter"),
            text.hash().is_unique().alias("once"),
            pl.col("date").is_not_null().alias("dated"),
        ).collect()
        checks = [holds(c) for c in texts.columns[1:-1]]
        checks.append(holds("dated", params.dated_min_share))
        found.append(Table(f"texts-{config}", texts, ["article"], checks))
        counts = dict(frame.group_by("outlet").len().sort("outlet").collect().iter_rows())
        counts.setdefault(CONTROL, 0)
        most = max(counts.values())
        rows += [(config, o, n, n >= params.articles_min, n == most) for o, n in counts.items()]
    columns = ["config", "outlet", "articles", "over_floor", "as_many_as_others"]
    sizes = pl.DataFrame(rows, schema=columns, orient="row")
    equal: list[Check] = [holds("over_floor"), holds("as_many_as_others", warning=True)]
    return [*found, Table("outlets", sizes, columns[:3], equal)]
