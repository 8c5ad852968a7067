"""Checks of ``stereotypes`` that look across columns and rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
from pydantic import Field

from plumbline.builders.core.describe import frames
from plumbline.builders.datasets.stereotypes.clean import FLAGS
from plumbline.validation import suite

if TYPE_CHECKING:
    from pathlib import Path


class Params(suite.Params):
    """Floors, and how much of it may be no stereotype in one adjective."""

    engine_min: dict[str, int] = Field(description="fewest rows of a wave, for each engine")
    flagged_max_share: float = Field(
        ge=0, le=1, description="largest share of a config's rows that have a flag"
    )


def tables(params: Params, folder: Path) -> list[suite.Table]:
    """Return the frames: queries fit groups and templates, engines fit ranks, few are flagged."""
    found, rows = [], []
    for config, frame in frames(folder):
        wave = pl.col("source_row") == 0
        ranks, query, attribute = (pl.col(c) for c in ("ranks", "query", "attribute"))
        known = ranks.list.len() == pl.col("engines").list.len()
        head, tail = (
            pl.col("template").str.split_exact("{group}", 1).struct.field(f"field_{i}")
            for i in (0, 1)
        )
        fits = query.str.starts_with(head) & query.str.ends_with(tail)
        once = pl.col("template").str.count_matches(r"\{group\}") == 1
        normal = (query == query.str.to_lowercase()) & suite.spaced("query")
        text = suite.spaced("attribute") & attribute.str.contains(r"[\p{L}\p{N}]")
        several = pl.col("single_word") & attribute.str.contains(" ")
        rows_of = frame.select(
            "group",
            "query",
            "attribute",
            "source_row",
            normal.alias("query_is_normal"),
            (fits & once).alias("query_fits_template"),
            text.alias("attribute_is_a_text"),
            (pl.col("engines").list.len() > 0).alias("has_an_engine"),
            (known | (~wave & (ranks.list.len() == 0))).alias("a_rank_for_each_engine"),
            (~several).alias("single_word_has_no_space"),
            (pl.col("flags").list.set_difference(list(FLAGS)).list.len() == 0).alias("known_flags"),
            (pl.col("flags").list.len() == 0).alias("clean"),
        )
        clean = {"clean": 1 - params.flagged_max_share}
        found.append(suite.checked(f"suggestions-{config}", rows_of, 4, clean))
        counts = frame.filter(wave).select(pl.col("engines").explode()).to_series().value_counts()
        by_engine = dict(counts.iter_rows())
        if frame.select(wave.any()).item():
            for engine in sorted({*by_engine, *params.engine_min}):
                number, floor = by_engine.get(engine, 0), params.engine_min.get(engine, 1)
                rows.append((config, engine, number, floor, number >= floor))
    return [*found, suite.listed("engines", "config engine rows floor over_floor", rows, 4)]
