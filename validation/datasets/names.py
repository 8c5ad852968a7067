"""Checks of ``names`` that look across columns and rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
from pydantic import Field

from plumbline.builders.core.describe import frames
from plumbline.builders.datasets.names.build import FLAGS
from plumbline.builders.readers.name_lists import KINDS, NOWHERE, codes
from plumbline.validation import suite

if TYPE_CHECKING:
    from pathlib import Path


class Params(suite.Params):
    """Floors, and how many names may be of no use."""

    usable_min: int = Field(ge=1, description="fewest usable names of each kind and country")
    flagged_max_share: float = Field(
        ge=0, le=1, description="largest share of a config's names that have a flag"
    )


def tables(params: Params, folder: Path) -> list[suite.Table]:
    """Return the frames: names are tidy, ranks are gapless, countries exist and have enough."""
    found, rows = [], []
    known = {*codes().values(), NOWHERE}
    for config, frame in frames(folder):
        rank, flags, last = pl.col("rank"), pl.col("flags").list, KINDS.index("last")
        names = frame.select(
            "kind",
            "name",
            suite.spaced("name"),
            suite.composed("name"),
            suite.filled("name"),
            (rank.rank("ordinal").over("kind") == rank).alias("ranks_without_gap"),
            (pl.col("sources").list.len() > 0).alias("has_a_source"),
            (flags.set_difference(list(FLAGS)).list.len() == 0).alias("known_flags"),
            ((pl.col("bearer") == 0) | (pl.col("kind") == last)).alias("bearer_of_last_names_only"),
            (flags.len() == 0).alias("clean"),
        )
        shares = {"clean": 1 - params.flagged_max_share}
        found.append(suite.checked(f"names-{config}", names, 2, shares))
        for code, kind in enumerate(KINDS):
            usable = len(frame.filter((pl.col("kind") == code) & (flags.len() == 0)))
            enough = usable >= params.usable_min or config == NOWHERE
            rows.append((config, kind, usable, config in known, enough))
    columns = "country kind usable country_exists over_floor"
    return [*found, suite.listed("countries", columns, rows, 3)]
