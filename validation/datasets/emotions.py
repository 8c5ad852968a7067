"""Checks of ``emotions`` that look across columns and rows."""

from __future__ import annotations

from pathlib import Path

import polars as pl
from pydantic import Field

from plumbline.builders.datasets.emotions.build import AFFECTS
from plumbline.validation import suite

BOTH = 0.05  # largest share of words positive and negative at once
UP, DOWN = ("positive", "negative"), ("negative", "positive")  # more words of the first
SIGNS = dict.fromkeys(("joy", "trust"), UP)
SIGNS |= dict.fromkeys(("anger", "disgust", "fear", "sadness"), DOWN)


class Params(suite.Params):
    """Floors, and the fewest words of each affect."""

    affect_min: int = Field(ge=0, description="fewest words in a config, for each of ten affects")


def _english(_: Params, folder: Path) -> list[suite.Table]:
    affects = pl.concat_str(pl.col(affect).cast(pl.Int8) for affect in AFFECTS)
    judged = pl.concat(
        frame.select("english", affects=affects) for _, frame in suite.frames(folder)
    )
    same = pl.col("affects").n_unique() == 1
    found = judged.group_by("english").agg(same_judgement_in_all_languages=same)
    return [suite.checked("english", found.sort("english"))]


@suite.each_config("affects", "config affect words floor over_floor", 4, across=_english)
def tables(params: Params, config: str, frame: pl.DataFrame) -> suite.Found:
    """Hold that words are words, each affect has some, and few words are of both signs."""
    words = frame.select(
        "word",
        "english",
        english_word_is_its_own=(pl.col("word") == pl.col("english")) | pl.lit(config != "en"),
        of_one_sign=~(pl.col("positive") & pl.col("negative")),
    )
    shares = {"of_one_sign": 1 - BOTH}
    numbers = ((name, int(frame[name].sum()), params.affect_min) for name in AFFECTS)
    signs = []
    for affect, (sign, other) in SIGNS.items():
        of, against = (int((frame[affect] & frame[s]).sum()) for s in (sign, other))
        signs.append((config, affect, sign, of, against, of >= against))
    return [
        suite.checked(f"words-{config}", words, 2, shares),
        suite.listed(f"signs-{config}", "config affect sign words others fits", signs, 5),
    ], suite.floors(config, numbers)
