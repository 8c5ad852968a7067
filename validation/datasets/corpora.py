"""Checks of ``corpora`` that look across columns, rows and corpora."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import polars as pl
import pyarrow.parquet as pq
from pydantic import Field

from plumbline.builders.core import parquet as store
from plumbline.builders.datasets.corpora.build import PERIODS, SCHEMA, TURN
from plumbline.builders.datasets.corpora.reddit_dump import MENTION
from plumbline.builders.datasets.corpora.sample import CONFIGS
from plumbline.validation import suite

if TYPE_CHECKING:
    from pathlib import Path

NAMES = ("author", "user", "writer")  # that no column may have in its name


class Params(suite.Params):
    """Floors, and how unlike the sizes of the corpora may be."""

    dated_min_share: float = Field(ge=0, le=1, description="smallest share of texts with a date")
    words_max_ratio: float = Field(
        ge=1, description="words of the largest corpus to those of the smallest, at the most"
    )
    period_min: dict[Literal["before", "from"], int] = Field(
        description="fewest texts of each corpus in a period"
    )


def tables(params: Params, folder: Path) -> list[suite.Table]:
    """Return the frames: texts clean and once, dates in their period, sizes alike, no authors."""
    found, sizes, columns, own = [], [], [], []
    for config in store.configs(folder):
        frame = pl.scan_parquet(folder / f"{config}.parquet")
        found.append(_texts(config, frame, params))
        own.append(
            frame.select(
                pl.lit(config).alias("config"),
                "id",
                pl.col("text").str.to_lowercase().hash().alias("text"),
            )
        )
        counts = dict(frame.group_by("period").len().collect().iter_rows())
        by_period = {p: counts.get(PERIODS.index(p), 0) for p in params.period_min}
        words = frame.select(pl.col("words").sum()).collect().item()
        enough = all(by_period[p] >= least for p, least in params.period_min.items())
        sizes.append((config, words, str(by_period), enough))
        names = pq.read_schema(folder / f"{config}.parquet").names
        columns += [(config, name, not any(n in name.lower() for n in NAMES)) for name in names]
    no_author = suite.listed("columns", "config column no_author", columns, 2)
    return [*found, _once(own), _sizes(sizes, params), no_author]


def _texts(config: str, frame: pl.LazyFrame, params: Params) -> suite.Table:
    """Hold every row to what its own columns say of it, and to its config."""
    kind, _, leaning = config.partition("-")
    text, when = pl.col("text"), pl.col("date").str.to_date("%Y-%m-%d", strict=False)
    period = (
        pl.when(when.is_null())
        .then(PERIODS.index("unknown"))
        .otherwise((when >= TURN).cast(pl.Int64))
    )
    flagged = pl.col("flags").list.contains("date")
    texts = frame.select(
        "id",
        suite.spaced("text", line=True).alias("clean"),
        suite.composed("text"),
        suite.lettered("text"),
        (text.str.count_matches(r"\S+") == pl.col("words")).alias("as_many_words"),
        (period == pl.col("period")).alias("in_its_period"),
        ((pl.col("date") == "") == when.is_null()).alias("date_or_empty"),
        (flagged == when.is_null()).alias("flagged_if_undated"),
        _is("kind", kind).alias("of_the_kind"),
        _is("leaning", leaning).alias("of_the_leaning"),
        ~text.str.contains(_MENTION).alias("no_names_of_users"),
        when.is_not_null().alias("dated"),
    ).collect()
    return suite.checked(f"texts-{config}", texts, shares={"dated": params.dated_min_share})


# Rust's regular expressions look behind at nothing: the character before is part of the match.
_MENTION = r"(?i)(?:^|[^a-z0-9_])" + MENTION.pattern.rpartition("(?<![a-z0-9_])")[2]


def _is(column: str, label: str) -> pl.Expr:
    labels = SCHEMA[column].labels
    return pl.col(column) == (labels.index(label) if label in labels else -1)


def _once(own: list[pl.LazyFrame]) -> suite.Table:
    """Hold that no id and no text, small and capital letters alike, is there twice."""
    frame = (
        pl.concat(own)
        .select(
            "config",
            "id",
            pl.col("id").is_unique().alias("id_once"),
            pl.col("text").is_unique().alias("text_once"),
        )
        .collect()
    )
    return suite.checked("once", frame, 2)


def _sizes(sizes: list[tuple[str, int, str, bool]], params: Params) -> suite.Table:
    least = min(words for _, words, _, _ in sizes)
    there = {config for config, *_ in sizes}
    rows = [
        (config, words, periods, words <= params.words_max_ratio * least, enough, True)
        for config, words, periods, enough in sizes
    ]
    rows += [(config, 0, "", False, False, False) for config in CONFIGS if config not in there]
    columns = "config words by_period comparable enough_of_each_period there"
    return suite.listed("sizes", columns, rows, 3)
