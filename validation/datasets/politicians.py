"""Checks of ``politicians`` that look across rows and languages."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import polars as pl
from pydantic import Field

from plumbline.builders.core import parquet
from plumbline.builders.datasets.politicians.build import GENDERS
from plumbline.builders.datasets.politicians.script import script_of
from plumbline.validation import suite


class Params(suite.Params):
    """Floors and ceilings, and the fewest people of each gender."""

    gender_min: dict[Literal["male", "female", "non-binary"], int] = Field(
        description="fewest people in a config, for each gender"
    )
    script_min_share: float = Field(
        0.9, ge=0, le=1, description="share of names in the language's script; below: a warning"
    )


def _people(folder: Path) -> list[suite.Table]:
    """Hold that one person has one gender and birth date, whatever the language."""
    each = (
        pl.scan_parquet(folder / f"{config}.parquet").select("qid", "gender", "birth_date")
        for config in parquet.configs(folder)
    )
    frame = (
        pl.concat(each)
        .group_by("qid")
        .agg(
            one_gender_in_all_languages=pl.col("gender").n_unique() == 1,
            one_birth_date_in_all_languages=pl.col("birth_date").n_unique() == 1,
        )
    )
    return [suite.checked("people", frame.sort("qid").collect())]


@suite.each_config("genders", "config gender people floor over_floor", 4, across=_people)
def tables(params: Params, config: str, frame: pl.DataFrame) -> suite.Found:
    """Hold that there are enough people of each gender, and names are of the language's script."""
    names = frame.select("qid", "name", name_has_a_letter=suite.lettered("name"))
    if script := script_of(config):
        plausible = pl.col("name").str.contains(rf"[\p{{{script}}}]")
        names = names.with_columns(name_in_script=plausible)
    shares = {"name_in_script": params.script_min_share}
    numbers = (
        (label, int((frame["gender"] == GENDERS.index(label)).sum()), floor)
        for label, floor in sorted(params.gender_min.items())
    )
    found = suite.checked(f"names-{config}", names, 2, shares, warn=shares)
    return [found], suite.floors(config, numbers)
