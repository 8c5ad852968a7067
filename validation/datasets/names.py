"""Checks of ``names`` that look across columns and rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
from pydantic import Field

from plumbline.builders.core import parquet
from plumbline.builders.datasets.names.build import FLAGS
from plumbline.builders.readers.name_lists import KINDS, NOWHERE, codes
from plumbline.validation.suite import Params as Base
from plumbline.validation.suite import Table, holds

if TYPE_CHECKING:
    from pathlib import Path


class Params(Base):
    """Floors, and how many names may be of no use."""

    usable_min: int = Field(ge=1, description="fewest usable names of each kind and country")
    flagged_max_share: float = Field(
        ge=0, le=1, description="largest share of a config's names that have a flag"
    )


def tables(params: Params, folder: Path) -> list[Table]:
    """Return the frames: names are tidy, ranks are gapless, countries exist and have enough."""
    found, rows = [], []
    known = {*codes().values(), NOWHERE}
    for config in parquet.configs(folder):
        frame = pl.read_parquet(folder / f"{config}.parquet")
        name, rank = pl.col("name"), pl.col("rank")
        checked = frame.select(
            "kind",
            "name",
            (name == name.str.replace_all(r"\s+", " ").str.strip_chars()).alias("single_spaces"),
            (name == name.str.normalize("NFC")).alias("composed"),
            (name.str.len_chars() > 0).alias("has_a_character"),
            (rank.rank("ordinal").over("kind") == rank).alias("ranks_without_gap"),
            (pl.col("sources").list.len() > 0).alias("has_a_source"),
            (pl.col("flags").list.set_difference(list(FLAGS)).list.len() == 0).alias("known_flags"),
            ((pl.col("bearer") == 0) | (pl.col("kind") == KINDS.index("last"))).alias(
                "bearer_of_last_names_only"
            ),
            (pl.col("flags").list.len() == 0).alias("clean"),
        )
        checks = [holds(c) for c in checked.columns[2:-1]]
        checks.append(holds("clean", 1 - params.flagged_max_share))
        found.append(Table(f"names-{config}", checked, ["kind", "name"], checks))
        for code, kind in enumerate(KINDS):
            usable = frame.filter((pl.col("kind") == code) & (pl.col("flags").list.len() == 0))
            enough = len(usable) >= params.usable_min or config == NOWHERE
            rows.append((config, kind, len(usable), config in known, enough))
    columns = ["country", "kind", "usable", "country_exists", "over_floor"]
    sizes = pl.DataFrame(rows, schema=columns, orient="row")
    checks = [holds("country_exists"), holds("over_floor")]
    return [*found, Table("countries", sizes, columns[:3], checks)]
