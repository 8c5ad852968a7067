"""Checks of ``words`` that look across columns and rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import polars as pl
from pydantic import Field

from plumbline.builders.core.describe import frames
from plumbline.builders.datasets.words.build import POS, SCHEMA
from plumbline.validation import suite

if TYPE_CHECKING:
    from pathlib import Path


class Params(suite.Params):
    """Floors and ceilings, and the fewest words of each part of speech."""

    pos_min: dict[Literal["ADJ", "VERB"], int] = Field(
        description="fewest words in a config, for each of ADJ, VERB"
    )


def tables(params: Params, folder: Path) -> list[suite.Table]:
    """Return the frames: counts add up, forms are words, one place for each part of speech."""
    found, rows = [], []
    for config, words in frames(folder):
        adds_up = pl.col("treebank_counts").list.sum() == pl.col("count")
        aligned = pl.col("treebank_counts").list.len() == pl.col("treebanks").list.len()
        frame = words.select(
            "form",
            "lemma",
            "pos",
            (adds_up & aligned).alias("counts_add_up"),
            pl.col("form").str.contains(r"^[\p{L}\p{M}\x{200c}\x{200d}]+$").alias("form_is_a_word"),
            (pl.col("place").n_unique().over("pos") == 1).alias("one_place"),
        )
        found.append(suite.checked(f"forms-{config}", frame, 3))
        for label, floor in sorted(params.pos_min.items()):
            code = SCHEMA["pos"].code(label) if label in POS else -1
            count = int((words["pos"] == code).sum())
            rows.append((config, label, count, floor, count >= floor))
    return [*found, suite.listed("parts-of-speech", "config pos words floor over_floor", rows, 4)]
