"""Checks on the dataset ``corpora`` across columns, rows and corpora."""

from __future__ import annotations

from pathlib import Path

import polars as pl
from pydantic import Field

from plumbline.builders.datasets.corpora.build import PERIODS, SCHEMA, TURN
from plumbline.builders.datasets.corpora.sample import CONFIGS
from plumbline.validation import suite

_FOLDED = pl.col("text").str.to_lowercase().str.replace_all(r"[^\p{L}\p{N}]+", "").hash()
# These differ from the masking patterns; otherwise, names that those miss would pass here too.
_USER = r"(?i)(?:^|[^a-z0-9_])u(?:ser)?\s?(?:\\?/|%2f)(?:\\?[a-z0-9_-]){3}"
_ADDRESS = r"(?i)[^\s@]@\w[\w-]*\.[a-z]{2}|(?:^|\s)@[a-z_]\w|\+\d[\d ()-]{8}"


class Params(suite.Params):
    """Minimum numbers of rows, and the maximum ratio of corpus sizes."""

    dated_min_share: float = Field(ge=0, le=1, description="minimum share of texts with a date")
    words_max_ratio: float = Field(
        ge=1, description="maximum ratio of the numbers of words in the largest and smallest corpus"
    )


def tables(params: Params, config: str, frame: pl.DataFrame) -> list[suite.Table]:
    """Check that the columns of each row agree with each other and with its config."""
    kind = config.partition("-")[0]
    labels = (
        pl.col(name).replace_strict(dict(enumerate(SCHEMA[name].labels)), default="")
        for name in ("kind", "leaning")
    )
    text, when = pl.col("text"), pl.col("date").str.to_date("%Y-%m-%d", strict=False)
    unknown, undated = PERIODS.index("unknown"), when.is_null()
    texts = frame.select(
        "id",
        as_many_words=text.str.count_matches(r"\S+") == pl.col("words"),
        in_its_period=(when >= TURN).cast(pl.Int64).fill_null(unknown) == pl.col("period"),
        date_or_empty=(pl.col("date") == "") == undated,
        flagged_if_undated=pl.col("flags").list.contains("date") == undated,
        of_its_config=pl.format("{}-{}", *labels) == config,
        named_as_its_kind=pl.col("outlet").str.starts_with("r/") == pl.lit(kind == "social"),
        no_names_of_users=~text.str.contains(f"{_USER}|{_ADDRESS}" if kind == "social" else _USER),
        dated=~undated,
    )
    return [suite.checked(f"texts-{config}", texts, shares={"dated": params.dated_min_share})]


def across(params: Params, folder: Path) -> list[suite.Table]:
    """Check that texts are unique across corpora, no corpus is missing, and sizes are similar."""
    texts = pl.concat(
        frame.select("id", "outlet", "words", config=pl.lit(config), folded=_FOLDED)
        for config, frame in suite.frames(folder)
    )
    once = texts.select(
        "config",
        "id",
        id_once=pl.col("id").is_unique(),
        text_once=pl.col("folded").is_unique(),
        outlet_in_one_corpus=suite.same("config", "outlet"),
    )
    sizes = dict(texts.group_by("config").agg(pl.col("words").sum()).iter_rows())
    most = params.words_max_ratio * min(sizes.values())
    rows = [(c, sizes.get(c, 0), sizes.get(c, 0) <= most, c in sizes) for c in CONFIGS]
    return [
        suite.checked("once", once, 2),
        suite.listed("sizes", "config words comparable there", rows, 2),
    ]
