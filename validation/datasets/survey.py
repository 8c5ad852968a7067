"""Checks of ``survey`` that look across columns and rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
from pydantic import Field

from plumbline.builders.core.describe import frames
from plumbline.builders.datasets.survey.responses import GENDERS, HIGHEST, LOWEST
from plumbline.validation import suite

if TYPE_CHECKING:
    from pathlib import Path


class Params(suite.Params):
    """Floors, and how much of a respondent's answers may be lacking."""

    gender_min: dict[str, int] = Field(description="fewest respondents of a gender in a config")
    answered_min_share: float = Field(
        0.5, ge=0, le=1, description="smallest share of the items that a respondent answers"
    )


def tables(params: Params, folder: Path) -> list[suite.Table]:
    """Return the frames: respondents are of one kind and answer, items use the whole scale."""
    found, rows = [], []
    for config, frame in frames(folder):
        items = frame["item"].n_unique()
        named = pl.col("respondent").str.starts_with("simulated") == pl.col("simulated")
        people = frame.group_by("respondent").agg(
            (pl.col("gender").n_unique() == 1).alias("one_gender"),
            (pl.col("infected").n_unique() == 1).alias("one_status"),
            (pl.len() >= params.answered_min_share * items).alias("answered"),
            named.all().alias("named_as_what_it_is"),
        )
        answer = pl.col("answer")
        used = frame.group_by("item").agg((answer.min() < answer.max()).alias("answers_differ"))
        found += [
            suite.checked(f"respondents-{config}", people.sort("respondent")),
            suite.checked(f"items-{config}", used.sort("item")),
        ]
        terms = len(frame.select("scale", "simulated", "source", "licence").unique())
        span = frame.select(answer.max() - answer.min()).item()
        rows.append((config, "terms", terms, 1, terms == 1))
        rows.append((config, "span of answers", span, HIGHEST - LOWEST, span == HIGHEST - LOWEST))
        for gender, floor in params.gender_min.items():
            own = frame.filter(pl.col("gender") == GENDERS.index(gender))["respondent"].n_unique()
            rows.append((config, gender, own, floor, own >= floor))
    return [*found, suite.listed("sizes", "config what number needed fine", rows, 4)]
