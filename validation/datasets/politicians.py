"""Checks of ``politicians`` that look across rows and languages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import polars as pl
from pydantic import Field

from plumbline.builders.core import parquet
from plumbline.builders.datasets.politicians.build import GENDERS, SCHEMA
from plumbline.builders.datasets.politicians.script import script_of
from plumbline.validation.suite import Check, Table, holds
from plumbline.validation.suite import Params as Base

if TYPE_CHECKING:
    from pathlib import Path


class Params(Base):
    """Floors and ceilings, and the fewest people of each gender."""

    gender_min: dict[Literal["male", "female", "non-binary"], int] = Field(
        description="fewest people in a config, for each gender"
    )
    script_min_share: float = Field(
        0.9, ge=0, le=1, description="share of names in the language's script; below: a warning"
    )


def tables(params: Params, folder: Path) -> list[Table]:
    """Return the frames across languages: one person one gender and birth date, names, scripts."""
    return [_people(folder), _genders(params, folder), *_names(params, folder)]


def _people(folder: Path) -> Table:
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
    checks = [holds("one_gender_in_all_languages"), holds("one_birth_date_in_all_languages")]
    return Table("people", frame, ["qid"], checks)


def _genders(params: Params, folder: Path) -> Table:
    rows = []
    for config in parquet.configs(folder):
        column = pl.read_parquet(folder / f"{config}.parquet", columns=["gender"])["gender"]
        for label, floor in sorted(params.gender_min.items()):
            count = int((column == SCHEMA["gender"].code(label)).sum()) if label in GENDERS else 0
            rows.append((config, label, count, floor, count >= floor))
    columns = ["config", "gender", "people", "floor", "over_floor"]
    frame = pl.DataFrame(rows, schema=columns, orient="row")
    return Table("genders", frame, columns[:4], [holds("over_floor")])


def _names(params: Params, folder: Path) -> list[Table]:
    found = []
    for config in parquet.configs(folder):
        names = pl.scan_parquet(folder / f"{config}.parquet").select("qid", "name")
        script = script_of(config)
        columns = [pl.col("name").str.contains(r"\p{L}").alias("name_has_a_letter")]
        checks: list[Check] = [holds("name_has_a_letter")]
        if script:
            plausible = pl.col("name").str.contains(rf"[\p{{{script}}}]")
            columns.append(plausible.alias("name_in_script"))
            checks.append(holds("name_in_script", params.script_min_share, warning=True))
        frame = names.with_columns(columns).collect()
        found.append(Table(f"names-{config}", frame, ["qid", "name"], checks))
    return found
