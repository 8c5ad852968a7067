"""Checks of ``stereotypes`` that look across columns and rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
from pydantic import Field

from plumbline.builders.core import parquet
from plumbline.builders.datasets.stereotypes.clean import FLAGS
from plumbline.validation.suite import Params as Base
from plumbline.validation.suite import Table, holds

if TYPE_CHECKING:
    from pathlib import Path


class Params(Base):
    """Floors, and how much of it may be no stereotype in one adjective."""

    engine_min: dict[str, int] = Field(description="fewest rows of a wave, for each engine")
    flagged_max_share: float = Field(
        ge=0, le=1, description="largest share of a config's rows that have a flag"
    )


def tables(params: Params, folder: Path) -> list[Table]:
    """Return the frames: queries fit groups and templates, engines fit ranks, few are flagged."""
    found, rows = [], []
    for config in parquet.configs(folder):
        frame = pl.read_parquet(folder / f"{config}.parquet")
        wave = pl.col("source_row") == 0
        known = pl.col("ranks").list.len() == pl.col("engines").list.len()
        query = pl.col("query")
        head, tail = (
            pl.col("template").str.split_exact("{group}", 1).struct.field(f"field_{i}")
            for i in (0, 1)
        )
        fits = query.str.starts_with(head) & query.str.ends_with(tail)
        checked = frame.select(
            "group",
            "query",
            "attribute",
            "source_row",
            ((query == query.str.to_lowercase()) & _tidy(query)).alias("query_is_normal"),
            (fits & (pl.col("template").str.count_matches(r"\{group\}") == 1)).alias(
                "query_fits_template"
            ),
            (_tidy(pl.col("attribute")) & pl.col("attribute").str.contains(r"[\p{L}\p{N}]")).alias(
                "attribute_is_a_text"
            ),
            (pl.col("engines").list.len() > 0).alias("has_an_engine"),
            (known | (~wave & (pl.col("ranks").list.len() == 0))).alias("a_rank_for_each_engine"),
            (~(pl.col("single_word") & pl.col("attribute").str.contains(" "))).alias(
                "single_word_has_no_space"
            ),
            (pl.col("flags").list.set_difference(list(FLAGS)).list.len() == 0).alias("known_flags"),
            (pl.col("flags").list.len() == 0).alias("clean"),
        )
        names = [c for c in checked.columns if c not in ("clean", *frame.columns)]
        checks = [holds(c) for c in names] + [holds("clean", 1 - params.flagged_max_share)]
        key = ["group", "query", "attribute", "source_row"]
        found.append(Table(f"suggestions-{config}", checked, key, checks))
        counts = frame.filter(wave).select(pl.col("engines").explode()).to_series().value_counts()
        by_engine = dict(counts.iter_rows())
        if frame.select(wave.any()).item():
            for engine in sorted({*by_engine, *params.engine_min}):
                number, floor = by_engine.get(engine, 0), params.engine_min.get(engine, 1)
                rows.append((config, engine, number, floor, number >= floor))
    columns = ["config", "engine", "rows", "floor", "over_floor"]
    frame = pl.DataFrame(rows, schema=columns, orient="row")
    return [*found, Table("engines", frame, columns[:4], [holds("over_floor")])]


def _tidy(column: pl.Expr) -> pl.Expr:
    return column == column.str.replace_all(r"\s+", " ").str.strip_chars()
