"""Checks on the dataset ``stereotypes`` across columns and rows."""

from __future__ import annotations

import polars as pl
from pydantic import Field

from plumbline.builders.datasets.stereotypes.clean import FLAGS, YEAR
from plumbline.validation import suite


class Params(suite.Params):
    """Minimum numbers of rows, and the maximum share of flagged rows."""

    flagged_max_share: float = Field(
        ge=0, le=1, description="maximum share of a config's rows that have a flag"
    )


def tables(params: Params, config: str, frame: pl.DataFrame) -> list[suite.Table]:
    """Check queries against groups and templates, engines against ranks, and the share of flags."""
    row, query, attribute, template, day = (
        pl.col(name) for name in ("source_row", "query", "attribute", "template", "wave")
    )
    wave, flags = row == 0, pl.col("flags").list
    ranks, engines = (pl.col(name).list for name in ("ranks", "engines"))
    head, tail = (template.str.split_exact("{group}", 1).struct.field(f"field_{i}") for i in (0, 1))
    fits = query.str.starts_with(head) & query.str.ends_with(tail)
    inside = query.str.strip_prefix(head).str.strip_suffix(tail)
    places = frame.with_row_index("at").filter(ranks.len() == engines.len())
    places = places.explode("engines", "ranks")
    twice = places.filter(pl.struct("query", "engines", "ranks").is_duplicated())["at"].unique()
    multi_word = flags.contains("multi_word")
    rows = frame.select(
        "group",
        "query",
        "attribute",
        "source_row",
        query_is_normal=query == query.str.to_lowercase(),
        query_fits_template=fits & (template.str.count_matches(r"\{group\}") == 1),
        group_of_its_query=inside == pl.col("group").str.to_lowercase(),
        one_group_a_query=suite.same("group", "query"),
        one_category_a_group=suite.same("category", "group"),
        attribute_is_a_text=attribute.str.contains(r"[\p{L}\p{N}]"),
        has_an_engine=engines.len() > 0,
        engines_in_order=pl.col("engines") == engines.unique().list.sort(),
        a_rank_for_each_engine=(ranks.len() == engines.len()) | (~wave & (ranks.len() == 0)),
        ranks_from_one=ranks.min().fill_null(1) >= 1,
        a_place_once=~pl.int_range(pl.len()).is_in(twice.cast(pl.Int64).implode()),
        one_wave=(day.n_unique() == 1) & (wave.n_unique() == 1),
        wave_is_a_day=~wave | day.str.to_date("%Y-%m-%d", strict=False).is_not_null(),
        wave_is_a_year=wave | day.str.contains(r"^\d{4}$"),
        rows_of_the_file_once=wave | row.is_unique(),
        flagged_if_several_words=multi_word == attribute.str.contains(" "),
        flagged_if_of_a_year=~attribute.str.contains(YEAR.pattern) | flags.contains("trend"),
        single_word_or_flagged=~wave | (pl.col("single_word") != multi_word),
        single_word_has_no_space=~(pl.col("single_word") & attribute.str.contains(" ")),
        known_flags=flags.set_difference(list(FLAGS)).list.len() == 0,
        clean=flags.len() == 0,
    )
    shares = {"clean": 1 - params.flagged_max_share, "group_of_its_query": 0.95}
    return [suite.checked(f"suggestions-{config}", rows, 4, shares)]
