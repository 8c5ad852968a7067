"""Checks of ``corpora`` that look across columns, rows and corpora."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import polars as pl
from pydantic import Field

from plumbline.builders.datasets.corpora.build import PERIODS, SCHEMA, TURN
from plumbline.builders.datasets.corpora.sample import CONFIGS
from plumbline.validation import suite


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
    """Return the frames: texts clean and once, dates in their period, sizes alike."""
    found, own = [], []
    sizes: dict[str, tuple[int, str, bool]] = {}
    for config, frame in suite.frames(folder):
        found.append(_texts(config, frame, params))
        own.append(frame.select(pl.lit(config).alias("config"), "id", "outlet", _folded=_FOLDED))
        numbers = {p: int((frame["period"] == PERIODS.index(p)).sum()) for p in params.period_min}
        enough = all(numbers[p] >= least for p, least in params.period_min.items())
        sizes[config] = int(frame["words"].sum()), str(numbers), enough
    # no id and no text, small and capital letters alike, is there twice
    once = pl.concat(own).select(
        "config",
        "id",
        id_once=pl.col("id").is_unique(),
        text_once=pl.col("_folded").is_unique(),
        outlet_in_one_corpus=suite.same("config", "outlet"),
    )
    most = params.words_max_ratio * min(words for words, *_ in sizes.values())
    rows: list[tuple[object, ...]] = [
        (config, words, periods, words <= most, enough, True)
        for config, (words, periods, enough) in sizes.items()
    ]
    rows += [(config, 0, "", False, False, False) for config in CONFIGS if config not in sizes]
    named = "config words by_period comparable enough_of_each_period there"
    return [
        *found,
        suite.checked("once", once, 2),
        suite.listed("sizes", named, rows, 3),
    ]


_FOLDED = pl.col("text").str.to_lowercase().str.replace_all(r"[^\p{L}\p{N}]+", "").hash()
# Not the patterns that mask them: what those miss would pass here too.
_USER = r"(?i)(?:^|[^a-z0-9_])u(?:ser)?\s?(?:\\?/|%2f)(?:\\?[a-z0-9_-]){3}"
_ADDRESS = r"(?i)[^\s@]@\w[\w-]*\.[a-z]{2}|(?:^|\s)@[a-z_]\w|\+\d[\d ()-]{8}"


def _texts(config: str, frame: pl.DataFrame, params: Params) -> suite.Table:
    """Hold every row to what its own columns say of it, and to its config."""
    kind, _, leaning = config.partition("-")
    text, when = pl.col("text"), pl.col("date").str.to_date("%Y-%m-%d", strict=False)
    unknown, undated = PERIODS.index("unknown"), when.is_null()
    texts = frame.select(
        "id",
        as_many_words=text.str.count_matches(r"\S+") == pl.col("words"),
        in_its_period=(when >= TURN).cast(pl.Int64).fill_null(unknown) == pl.col("period"),
        date_or_empty=(pl.col("date") == "") == undated,
        flagged_if_undated=pl.col("flags").list.contains("date") == undated,
        of_the_kind=_is("kind", kind),
        of_the_leaning=_is("leaning", leaning),
        named_as_its_kind=pl.col("outlet").str.starts_with("r/") == pl.lit(kind == "social"),
        no_names_of_users=~text.str.contains(f"{_USER}|{_ADDRESS}" if kind == "social" else _USER),
        dated=~undated,
    )
    return suite.checked(f"texts-{config}", texts, shares={"dated": params.dated_min_share})


def _is(column: str, label: str) -> pl.Expr:
    labels = SCHEMA[column].labels
    return pl.col(column) == (labels.index(label) if label in labels else -1)
