"""Checks of ``supersenses`` that look across columns and rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import polars as pl
from pydantic import Field

from plumbline.builders.core.describe import frames
from plumbline.builders.datasets.supersenses.build import ADJECTIVES, CLASSES, POS
from plumbline.validation import suite

if TYPE_CHECKING:
    from pathlib import Path

ROUNDING = 1e-5  # weights are rounded to six decimals, and a lemma has at most fifteen


class Params(suite.Params):
    """Floors, and the fewest lemmas of each part of speech and of each class."""

    lemmas_min: dict[Literal["ADJ", "VERB"], int] = Field(
        description="fewest lemmas, for each of ADJ, VERB"
    )
    class_min: int = Field(1, ge=0, description="fewest lemmas with some weight in every class")


def tables(params: Params, folder: Path) -> list[suite.Table]:
    """Return the frames: weights are shares, every lemma has a best class, all classes occur."""
    found = []
    for config, frame in frames(folder):
        found += [_lemmas(config, frame), _sizes(config, frame, params)]
    return found


def _lemmas(config: str, frame: pl.DataFrame) -> suite.Table:
    verb = pl.col("pos") == POS.index("VERB")
    names = pl.Series(CLASSES).to_frame("name").with_row_index("supersense")
    frame = frame.join(names.cast({"supersense": pl.Int64}), on="supersense", how="left")
    own_class = pl.col("name").str.starts_with("verb.") == verb
    at_most = pl.col("weight").max()
    lemmas = (
        frame.group_by("lemma", "pos")
        .agg(
            ((pl.col("weight").sum() - 1).abs() < ROUNDING).alias("weights_sum_to_one"),
            (pl.col("best").any() & (pl.col("weight") >= at_most).filter("best").all()).alias(
                "best_has_the_greatest_weight"
            ),
            own_class.all().alias("classes_of_its_part_of_speech"),
            (pl.col("senses").is_not_null() == verb).all().alias("only_verbs_have_senses"),
            (verb.all() | ((pl.len() == len(ADJECTIVES)) & (pl.col("best").sum() == 1))).alias(
                "adjective_has_all_classes_and_one_choice"
            ),
        )
        .sort("lemma", "pos")
    )
    return suite.checked(f"lemmas-{config}", lemmas, 2)


def _sizes(config: str, frame: pl.DataFrame, params: Params) -> suite.Table:
    rows: list[tuple[str, int, int, bool]] = []
    for label, floor in sorted(params.lemmas_min.items()):
        number = frame.filter(pl.col("pos") == POS.index(label))["lemma"].n_unique()
        rows.append((label, number, floor, number >= floor))
    for code, name in enumerate(CLASSES):
        number = len(frame.filter((pl.col("supersense") == code) & (pl.col("weight") > 0)))
        rows.append((name, number, params.class_min, number >= params.class_min))
    return suite.listed(f"sizes-{config}", "group lemmas floor over_floor", rows, 3)
