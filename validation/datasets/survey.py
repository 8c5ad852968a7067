"""Checks on the dataset ``survey`` across columns and rows."""

from __future__ import annotations

import polars as pl

from plumbline.builders.datasets.survey.responses import HIGHEST, LOWEST
from plumbline.validation.suite import Params, Table, checked

ANSWERED = 0.5  # minimum share of items that a respondent answers
STRAIGHT = {"answers_differ": 0.9}  # minimum share of respondents whose answers vary


def tables(_: Params, config: str, frame: pl.DataFrame) -> list[Table]:
    """Check that respondents are consistent and complete, and that answers span the scale."""
    answer, name = pl.col("answer"), pl.col("respondent")
    people = frame.group_by("respondent").agg(
        one_gender=pl.col("gender").n_unique() == 1,
        one_status=pl.col("infected").n_unique() == 1,
        answers_differ=answer.n_unique() > 1,
        answered=pl.len() >= ANSWERED * frame["item"].n_unique(),
        named_as_what_it_is=(name.str.starts_with("simulated") == pl.col("simulated")).all(),
    )
    items = frame.group_by("item").agg(answers_differ=answer.min() < answer.max())
    terms = pl.struct("scale", "simulated", "source", "licence")
    of_all = frame.select(
        config=pl.lit(config),
        one_scale_and_terms=terms.n_unique() == 1,
        answers_span_the_scale=answer.max() - answer.min() == HIGHEST - LOWEST,
    )
    return [
        checked(f"respondents-{config}", people.sort("respondent"), shares=STRAIGHT),
        checked(f"items-{config}", items.sort("item")),
        checked(f"survey-{config}", of_all),
    ]
