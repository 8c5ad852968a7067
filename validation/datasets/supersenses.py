"""Checks of ``supersenses`` that look across columns and rows."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import polars as pl
from pydantic import Field

from plumbline.builders.datasets.supersenses.build import ADJECTIVES, CLASSES, POS
from plumbline.validation import suite

ROUNDING = 1e-5  # weights are rounded to six decimals, and a lemma has at most fifteen


class Params(suite.Params):
    """Floors, and the fewest lemmas of each part of speech and of each class."""

    lemmas_min: dict[Literal["ADJ", "VERB"], int] = Field(
        description="fewest lemmas, for each of ADJ, VERB"
    )
    class_min: int = Field(1, ge=0, description="fewest lemmas with some weight in every class")


def tables(params: Params, folder: Path) -> list[suite.Table]:
    """Return the frames: weights are shares, every lemma has a best class, all classes occur."""
    verb, weight, best = pl.col("pos") == POS.index("VERB"), pl.col("weight"), pl.col("best")
    of_verbs = pl.col("supersense") >= len(ADJECTIVES)
    one_choice = (pl.len() == len(ADJECTIVES)) & (best.sum() == 1)
    found = []
    for config, frame in suite.frames(folder):
        lemmas = frame.group_by("lemma", "pos").agg(
            weights_sum_to_one=(weight.sum() - 1).abs() < ROUNDING,
            best_has_the_greatest_weight=best.any() & (weight == weight.max()).filter("best").all(),
            classes_of_its_part_of_speech=(of_verbs == verb).all(),
            only_verbs_have_senses=(pl.col("senses").is_not_null() == verb).all(),
            adjective_has_all_classes_and_one_choice=verb.all() | one_choice,
        )
        numbers: list[tuple[str, int, int]] = [
            (label, frame.filter(pl.col("pos") == POS.index(label))["lemma"].n_unique(), floor)
            for label, floor in sorted(params.lemmas_min.items())
        ]
        some = frame.filter(weight > 0)["supersense"]
        numbers += [(c, int((some == i).sum()), params.class_min) for i, c in enumerate(CLASSES)]
        sizes = [row[1:] for row in suite.floors(config, numbers)]
        found += [
            suite.checked(f"lemmas-{config}", lemmas.sort("lemma", "pos"), 2),
            suite.listed(f"sizes-{config}", "group lemmas floor over_floor", sizes, 3),
        ]
    return found
