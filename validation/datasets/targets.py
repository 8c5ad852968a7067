"""Checks of ``targets`` that look across columns and rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
from pydantic import Field

from plumbline.builders.core import parquet
from plumbline.validation.suite import Params as Base
from plumbline.validation.suite import Table, holds

if TYPE_CHECKING:
    from pathlib import Path


class Params(Base):
    """Floors, and the classes that there are."""

    labels: dict[str, list[str]] = Field(
        default_factory=dict, description="classes of each config; any where none are told"
    )
    label_min: int = Field(0, ge=0, description="fewest texts of each class of a config")


def tables(params: Params, folder: Path) -> list[Table]:
    """Return the frames: texts are normal and there once, of one task, classes known and filled."""
    found, rows = [], []
    for config in parquet.configs(folder):
        frame = pl.read_parquet(folder / f"{config}.parquet")
        text, wanted = pl.col("text"), params.labels.get(config)
        texts = frame.select(
            "id",
            (text == text.str.replace_all(r"\s+", " ").str.strip_chars()).alias("single_spaces"),
            (text == text.str.normalize("NFC")).alias("composed"),
            (text.str.len_chars() > 0).alias("has_a_character"),
            text.is_unique().alias("once"),
            (pl.col("task") + "-" + pl.col("language") == config).alias("of_its_config"),
            (pl.col("label").is_in(wanted) if wanted else pl.lit(value=True)).alias("known_class"),
        )
        found.append(Table(f"texts-{config}", texts, ["id"], [holds(c) for c in texts.columns[1:]]))
        counts = dict(frame["label"].value_counts().iter_rows())
        for label in sorted({*counts, *(wanted or ())}):
            number = counts.get(label, 0)
            rows.append((config, label, number, number >= params.label_min))
    columns = ["config", "class", "texts", "over_floor"]
    classes = pl.DataFrame(rows, schema=columns, orient="row")
    return [*found, Table("classes", classes, columns[:3], [holds("over_floor")])]
