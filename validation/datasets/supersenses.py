"""Checks on the dataset ``supersenses`` across columns and rows."""

from __future__ import annotations

import polars as pl

from plumbline.builders.datasets.supersenses.build import ADJECTIVES, POS
from plumbline.validation.suite import Params, Table, checked

ROUNDING = 1e-5  # at most 15 weights per lemma, each rounded to six decimals


def tables(_: Params, config: str, frame: pl.DataFrame) -> list[Table]:
    """Check that weights are shares, and that every lemma has a best class."""
    verb, weight, best = pl.col("pos") == POS.index("VERB"), pl.col("weight"), pl.col("best")
    of_verbs = pl.col("supersense") >= len(ADJECTIVES)
    one_choice = (pl.len() == len(ADJECTIVES)) & (best.sum() == 1)
    lemmas = frame.group_by("lemma", "pos").agg(
        weights_sum_to_one=(weight.sum() - 1).abs() < ROUNDING,
        best_has_the_greatest_weight=best.any() & (weight == weight.max()).filter("best").all(),
        classes_of_its_part_of_speech=(of_verbs == verb).all(),
        only_verbs_have_senses=(pl.col("senses").is_not_null() == verb).all(),
        adjective_has_all_classes_and_one_choice=verb.all() | one_choice,
    )
    return [checked(f"lemmas-{config}", lemmas.sort("lemma", "pos"), 2)]
