"""Checks on the dataset ``emotions`` across columns and rows."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from plumbline.builders.datasets.emotions.build import AFFECTS
from plumbline.validation.suite import Params, Table, checked, frames, listed

BOTH = 0.05  # maximum share of words that are both positive and negative
UP, DOWN = ("positive", "negative"), ("negative", "positive")  # (usual sign, other sign)
SIGNS = dict.fromkeys(("joy", "trust"), UP)
SIGNS |= dict.fromkeys(("anger", "disgust", "fear", "sadness"), DOWN)


def tables(_: Params, config: str, frame: pl.DataFrame) -> list[Table]:
    """Check that English words equal their source, and that few words have both signs."""
    words = frame.select(
        "word",
        "english",
        english_word_is_its_own=(pl.col("word") == pl.col("english")) | pl.lit(config != "en"),
        of_one_sign=~(pl.col("positive") & pl.col("negative")),
    )
    signs = []
    for affect, (sign, opposite) in SIGNS.items():
        more, fewer = (int((frame[affect] & frame[s]).sum()) for s in (sign, opposite))
        signs.append((config, affect, sign, more, fewer, more >= fewer))
    return [
        checked(f"words-{config}", words, 2, {"of_one_sign": 1 - BOTH}),
        listed(f"signs-{config}", "config affect sign words others fits", signs, 5),
    ]


def across(_: Params, folder: Path) -> list[Table]:
    """Check that an English word has the same ratings in all languages."""
    affects = pl.concat_str(pl.col(affect).cast(pl.Int8) for affect in AFFECTS)
    judged = pl.concat(frame.select("english", affects=affects) for _, frame in frames(folder))
    one_judgement = pl.col("affects").n_unique() == 1
    words = judged.group_by("english").agg(same_judgement_in_all_languages=one_judgement)
    return [checked("english", words.sort("english"))]
