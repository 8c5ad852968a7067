"""Checks of ``survey`` that look across columns and rows."""

from __future__ import annotations

import polars as pl
from pydantic import Field

from plumbline.builders.datasets.survey.responses import GENDERS, HIGHEST, LOWEST
from plumbline.validation import suite

ANSWERED = 0.5  # smallest share of the items that a respondent answers
STRAIGHT = {"answers_differ": 0.9}  # of respondents, the others may give one answer to everything


class Params(suite.Params):
    """Floors, and how much of a respondent's answers may be lacking."""

    gender_min: dict[str, int] = Field(description="fewest respondents of a gender in a config")


@suite.each_config("sizes", "config what number needed fine", 4)
def tables(params: Params, config: str, frame: pl.DataFrame) -> suite.Found:
    """Hold that respondents are of one kind and answer, and items use the whole scale."""
    answer, name = pl.col("answer"), pl.col("respondent")
    people = frame.group_by("respondent").agg(
        one_gender=pl.col("gender").n_unique() == 1,
        one_status=pl.col("infected").n_unique() == 1,
        answers_differ=answer.n_unique() > 1,
        answered=pl.len() >= ANSWERED * frame["item"].n_unique(),
        named_as_what_it_is=(name.str.starts_with("simulated") == pl.col("simulated")).all(),
    )
    items = frame.group_by("item").agg(answers_differ=answer.min() < answer.max())
    terms = len(frame.select("scale", "simulated", "source", "licence").unique())
    span, whole = frame.select(answer.max() - answer.min()).item(), HIGHEST - LOWEST
    by_gender = (
        (gender, frame.filter(pl.col("gender") == GENDERS.index(gender))["respondent"], floor)
        for gender, floor in params.gender_min.items()
    )
    found = [
        suite.checked(f"respondents-{config}", people.sort("respondent"), shares=STRAIGHT),
        suite.checked(f"items-{config}", items.sort("item")),
    ]
    return found, [
        (config, "terms", terms, 1, terms == 1),
        (config, "span of answers", span, whole, span == whole),
        *suite.floors(
            config, ((gender, own.n_unique(), floor) for gender, own, floor in by_gender)
        ),
    ]
