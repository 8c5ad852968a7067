"""Checks of ``emotions`` that look across columns and rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
from pydantic import Field

from plumbline.builders.core.describe import frames
from plumbline.builders.datasets.emotions.build import AFFECTS
from plumbline.validation import suite

if TYPE_CHECKING:
    from pathlib import Path


class Params(suite.Params):
    """Floors, and the fewest words of each affect."""

    affect_min: int = Field(ge=0, description="fewest words in a config, for each of ten affects")
    both_max_share: float = Field(
        0.05, ge=0, le=1, description="largest share of words positive and negative at once"
    )


def tables(params: Params, folder: Path) -> list[suite.Table]:
    """Return the frames: words are words, each affect has some, few words are of both signs."""
    found, rows, judged = [], [], []
    for config, frame in frames(folder):
        for name in AFFECTS:
            number = int(frame[name].sum())
            rows.append((config, name, number, params.affect_min, number >= params.affect_min))
        own = (pl.col("word") == pl.col("english")) | pl.lit(config != "en")
        words = frame.select(
            "word",
            "english",
            suite.lettered("word").alias("word_has_a_letter"),
            own.alias("english_word_is_its_own"),
            (~(pl.col("positive") & pl.col("negative"))).alias("of_one_sign"),
        )
        shares = {"of_one_sign": 1 - params.both_max_share}
        found.append(suite.checked(f"words-{config}", words, 2, shares))
        judged.append(
            frame.select("english", pl.concat_str(pl.col(a).cast(pl.Int8) for a in AFFECTS))
        )
    found.append(suite.listed("affects", "config affect words floor over_floor", rows, 4))
    same = (
        pl.concat(judged)
        .rename({AFFECTS[0]: "affects"})
        .group_by("english")
        .agg((pl.col("affects").n_unique() == 1).alias("same_judgement_in_all_languages"))
        .sort("english")
    )
    return [*found, suite.checked("english", same)]
