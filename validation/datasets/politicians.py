"""Checks of ``politicians`` that look across rows and languages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import polars as pl
from pydantic import Field

from plumbline.builders.core import parquet
from plumbline.builders.core.describe import frames
from plumbline.builders.datasets.politicians.build import GENDERS, SCHEMA
from plumbline.builders.datasets.politicians.script import script_of
from plumbline.validation import suite

if TYPE_CHECKING:
    from pathlib import Path


class Params(suite.Params):
    """Floors and ceilings, and the fewest people of each gender."""

    gender_min: dict[Literal["male", "female", "non-binary"], int] = Field(
        description="fewest people in a config, for each gender"
    )
    script_min_share: float = Field(
        0.9, ge=0, le=1, description="share of names in the language's script; below: a warning"
    )


def tables(params: Params, folder: Path) -> list[suite.Table]:
    """Return the frames across languages: one person one gender and birth date, names, scripts."""
    return [_people(folder), _genders(params, folder), *_names(params, folder)]


def _people(folder: Path) -> suite.Table:
    frame = (
        pl.concat(
            pl.scan_parquet(folder / f"{config}.parquet").select("qid", "gender", "birth_date")
            for config in parquet.configs(folder)
        )
        .group_by("qid")
        .agg(
            (pl.col("gender").n_unique() == 1).alias("one_gender_in_all_languages"),
            (pl.col("birth_date").n_unique() == 1).alias("one_birth_date_in_all_languages"),
        )
        .sort("qid")
        .collect()
    )
    return suite.checked("people", frame)


def _genders(params: Params, folder: Path) -> suite.Table:
    rows = []
    for config, frame in frames(folder):
        for label, floor in sorted(params.gender_min.items()):
            code = SCHEMA["gender"].code(label) if label in GENDERS else -1
            count = int((frame["gender"] == code).sum())
            rows.append((config, label, count, floor, count >= floor))
    return suite.listed("genders", "config gender people floor over_floor", rows, 4)


def _names(params: Params, folder: Path) -> list[suite.Table]:
    found = []
    for config, people in frames(folder):
        frame = people.select("qid", "name", suite.lettered("name").alias("name_has_a_letter"))
        if script := script_of(config):
            plausible = pl.col("name").str.contains(rf"[\p{{{script}}}]")
            frame = frame.with_columns(plausible.alias("name_in_script"))
        shares = {"name_in_script": params.script_min_share}
        found.append(suite.checked(f"names-{config}", frame, 2, shares, warn=shares))
    return found
