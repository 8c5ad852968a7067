"""Checks of ``words`` that look across columns and rows."""

from __future__ import annotations

from typing import Literal

import polars as pl
from pydantic import Field

from plumbline.builders.datasets.words.build import POS
from plumbline.validation import suite


class Params(suite.Params):
    """Floors and ceilings, and the fewest words of each part of speech."""

    pos_min: dict[Literal["ADJ", "VERB"], int] = Field(
        description="fewest words in a config, for each of ADJ, VERB"
    )


@suite.each_config("parts-of-speech", "config pos words floor over_floor", 4)
def tables(params: Params, config: str, frame: pl.DataFrame) -> suite.Found:
    """Hold that counts add up, forms are words, and each part of speech has one place."""
    counts, banks = pl.col("treebank_counts").list, pl.col("treebanks").list
    forms = frame.select(
        "form",
        "lemma",
        "pos",
        counts_add_up=(counts.sum() == pl.col("count")) & (counts.len() == banks.len()),
        form_is_a_word=pl.col("form").str.contains(r"^[\p{L}\p{M}\x{200c}\x{200d}]+$"),
        one_place=pl.col("place").n_unique().over("pos") == 1,
    )
    numbers = (
        (label, int((frame["pos"] == POS.index(label)).sum()), floor)
        for label, floor in sorted(params.pos_min.items())
    )
    return [suite.checked(f"forms-{config}", forms, 3)], suite.floors(config, numbers)
