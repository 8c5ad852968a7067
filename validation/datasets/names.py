"""Checks of ``names`` that look across columns and rows."""

from __future__ import annotations

import polars as pl
from pydantic import Field

from plumbline.builders.datasets.names.build import FLAGS
from plumbline.builders.readers.name_lists import KINDS, NOWHERE, codes
from plumbline.validation import suite


class Params(suite.Params):
    """Floors, and how many names may be of no use."""

    usable_min: int = Field(ge=1, description="fewest usable names of each kind and country")
    flagged_max_share: float = Field(
        ge=0, le=1, description="largest share of a config's names that have a flag"
    )


@suite.each_config("countries", "country kind usable country_exists over_floor", 3)
def tables(params: Params, config: str, frame: pl.DataFrame) -> suite.Found:
    """Hold that names are tidy, ranks are gapless, and countries exist and have enough."""
    rank, kind, clean = pl.col("rank"), pl.col("kind"), pl.col("flags").list.len() == 0
    names = frame.select(
        "kind",
        "name",
        *suite.tidy("name"),
        ranks_without_gap=rank.rank("ordinal").over("kind") == rank,
        has_a_source=pl.col("sources").list.len() > 0,
        known_flags=suite.known("flags", FLAGS),
        bearer_of_last_names_only=(pl.col("bearer") == 0) | (kind == KINDS.index("last")),
        clean=clean,
    )
    found = suite.checked(f"names-{config}", names, 2, {"clean": 1 - params.flagged_max_share})
    there = config in {*codes().values(), NOWHERE}
    rows = []
    for code, name in enumerate(KINDS):
        usable = frame.filter(clean, kind == code).height
        rows.append((config, name, usable, there, usable >= params.usable_min or config == NOWHERE))
    return [found], rows
