"""Checks of ``emotions`` that look across columns and rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
from pydantic import Field

from plumbline.builders.core import parquet
from plumbline.builders.datasets.emotions.build import AFFECTS
from plumbline.validation.suite import Params as Base
from plumbline.validation.suite import Table, holds

if TYPE_CHECKING:
    from pathlib import Path


class Params(Base):
    """Floors, and the fewest words of each affect."""

    affect_min: int = Field(ge=0, description="fewest words in a config, for each of ten affects")
    both_max_share: float = Field(
        0.05, ge=0, le=1, description="largest share of words positive and negative at once"
    )


def tables(params: Params, folder: Path) -> list[Table]:
    """Return the frames: words are words, each affect has some, few words are of both signs."""
    found, rows, judged = [], [], []
    for config in parquet.configs(folder):
        frame = pl.read_parquet(folder / f"{config}.parquet")
        for name in AFFECTS:
            number = int(frame[name].sum())
            rows.append((config, name, number, params.affect_min, number >= params.affect_min))
        words = frame.select(
            "word",
            "english",
            pl.col("word").str.contains(r"\p{L}").alias("word_has_a_letter"),
            ((pl.col("word") == pl.col("english")) | pl.lit(config != "en")).alias(
                "english_word_is_its_own"
            ),
            (~(pl.col("positive") & pl.col("negative"))).alias("of_one_sign"),
        )
        one_sign = holds("of_one_sign", 1 - params.both_max_share)
        checks = [holds("word_has_a_letter"), holds("english_word_is_its_own"), one_sign]
        found.append(Table(f"words-{config}", words, ["word", "english"], checks))
        judged.append(
            frame.select("english", pl.concat_str(pl.col(a).cast(pl.Int8) for a in AFFECTS))
        )
    columns = ["config", "affect", "words", "floor", "over_floor"]
    sizes = pl.DataFrame(rows, schema=columns, orient="row")
    found.append(Table("affects", sizes, columns[:4], [holds("over_floor")]))
    same = (
        pl.concat(judged)
        .rename({AFFECTS[0]: "affects"})
        .group_by("english")
        .agg((pl.col("affects").n_unique() == 1).alias("same_judgement_in_all_languages"))
        .sort("english")
    )
    found.append(Table("english", same, ["english"], [holds("same_judgement_in_all_languages")]))
    return found
