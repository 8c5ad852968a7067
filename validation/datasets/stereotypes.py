"""Checks of ``stereotypes`` that look across columns and rows."""

from __future__ import annotations

import polars as pl
from pydantic import Field

from plumbline.builders.datasets.stereotypes.clean import FLAGS
from plumbline.validation import suite


class Params(suite.Params):
    """Floors, and how much of it may be no stereotype in one adjective."""

    engine_min: dict[str, int] = Field(description="fewest rows of a wave, for each engine")
    flagged_max_share: float = Field(
        ge=0, le=1, description="largest share of a config's rows that have a flag"
    )


@suite.each_config("engines", "config engine rows floor over_floor", 4)
def tables(params: Params, config: str, frame: pl.DataFrame) -> suite.Found:
    """Hold that queries fit groups and templates, engines fit ranks, and few are flagged."""
    wave, query, attribute, template = (
        pl.col(name) for name in ("source_row", "query", "attribute", "template")
    )
    wave = wave == 0
    ranks, engines = (pl.col(name).list.len() for name in ("ranks", "engines"))
    head, tail = (template.str.split_exact("{group}", 1).struct.field(f"field_{i}") for i in (0, 1))
    fits = query.str.starts_with(head) & query.str.ends_with(tail)
    rows_of = frame.select(
        "group",
        "query",
        "attribute",
        "source_row",
        query_is_normal=(query == query.str.to_lowercase()) & suite.spaced("query"),
        query_fits_template=fits & (template.str.count_matches(r"\{group\}") == 1),
        attribute_is_a_text=suite.spaced("attribute") & attribute.str.contains(r"[\p{L}\p{N}]"),
        has_an_engine=engines > 0,
        a_rank_for_each_engine=(ranks == engines) | (~wave & (ranks == 0)),
        single_word_has_no_space=~(pl.col("single_word") & attribute.str.contains(" ")),
        known_flags=suite.known("flags", FLAGS),
        clean=pl.col("flags").list.len() == 0,
    )
    clean = {"clean": 1 - params.flagged_max_share}
    waves, least = frame.filter(wave), params.engine_min
    counts = dict(waves["engines"].explode().value_counts().iter_rows())
    numbers = {engine: counts.get(engine, 0) for engine in sorted({*counts, *least})}
    rows = suite.floors(config, ((e, n, least.get(e, 1)) for e, n in numbers.items()))
    return [suite.checked(f"suggestions-{config}", rows_of, 4, clean)], rows if len(waves) else []
