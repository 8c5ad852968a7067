"""Checks of ``survey`` that look across columns and rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
from pydantic import Field

from plumbline.builders.core import parquet
from plumbline.builders.datasets.survey.responses import GENDERS, HIGHEST, LOWEST
from plumbline.validation.suite import Params as Base
from plumbline.validation.suite import Table, holds

if TYPE_CHECKING:
    from pathlib import Path


class Params(Base):
    """Floors, and how much of a respondent's answers may be lacking."""

    gender_min: dict[str, int] = Field(description="fewest respondents of a gender in a config")
    answered_min_share: float = Field(
        0.5, ge=0, le=1, description="smallest share of the items that a respondent answers"
    )


def tables(params: Params, folder: Path) -> list[Table]:
    """Return the frames: respondents are of one kind and answer, items use the whole scale."""
    found, rows = [], []
    for config in parquet.configs(folder):
        frame = pl.read_parquet(folder / f"{config}.parquet")
        items = frame["item"].n_unique()
        people = (
            frame.group_by("respondent")
            .agg(
                (pl.col("gender").n_unique() == 1).alias("one_gender"),
                (pl.col("infected").n_unique() == 1).alias("one_status"),
                (pl.len() >= params.answered_min_share * items).alias("answered"),
                (pl.col("respondent").str.starts_with("simulated") == pl.col("simulated"))
                .all()
                .alias("named_as_what_it_is"),
            )
            .sort("respondent")
        )
        checks = [holds(c) for c in people.columns[1:]]
        found.append(Table(f"respondents-{config}", people, ["respondent"], checks))
        used = (
            frame.group_by("item")
            .agg((pl.col("answer").min() < pl.col("answer").max()).alias("answers_differ"))
            .sort("item")
        )
        found.append(Table(f"items-{config}", used, ["item"], [holds("answers_differ")]))
        terms = frame.select("scale", "simulated", "source", "licence").unique()
        rows.append((config, "terms", len(terms), 1, len(terms) == 1))
        used_answers = frame["answer"].to_numpy()
        span = int(used_answers.max()) - int(used_answers.min())
        rows.append((config, "span of answers", span, HIGHEST - LOWEST, span == HIGHEST - LOWEST))
        for gender, floor in params.gender_min.items():
            own = frame.filter(pl.col("gender") == GENDERS.index(gender))["respondent"].n_unique()
            rows.append((config, gender, own, floor, own >= floor))
    columns = ["config", "what", "number", "wanted", "fine"]
    sizes = pl.DataFrame(rows, schema=columns, orient="row")
    return [*found, Table("sizes", sizes, columns[:4], [holds("fine")])]
