"""Checks on the dataset ``names`` across columns and rows."""

from __future__ import annotations

from pathlib import Path

import polars as pl
from pydantic import Field

from plumbline.builders.datasets.names.build import FLAGS
from plumbline.builders.readers.name_lists import KINDS
from plumbline.validation import suite

ALIKE = 0.9  # minimum Jaccard index at which two countries' names count as copies


class Params(suite.Params):
    """Minimum numbers of rows, and the maximum share of unusable names."""

    flagged_max_share: float = Field(
        ge=0, le=1, description="maximum share of a config's names that have a flag"
    )


def tables(params: Params, config: str, frame: pl.DataFrame) -> list[suite.Table]:
    """Check that names are clean, ranks have no gaps, and few names are unusable."""
    rank, kind, clean = pl.col("rank"), pl.col("kind"), pl.col("flags").list.len() == 0
    names = frame.select(
        "kind",
        "name",
        ranks_without_gap=rank.rank("ordinal").over("kind") == rank,
        has_a_source=pl.col("sources").list.len() > 0,
        known_flags=pl.col("flags").list.set_difference(list(FLAGS)).list.len() == 0,
        lists_once=suite.once("sources"),
        bearer_of_last_names_only=(pl.col("bearer") == 0) | (kind == KINDS.index("last")),
        begins_with_a_capital=~pl.col("name").str.contains(r"^\p{Ll}"),
        clean=clean,
    )
    shares = {"clean": 1 - params.flagged_max_share, "begins_with_a_capital": 0.95}
    return [suite.checked(f"names-{config}", names, 2, shares)]


def across(_: Params, folder: Path) -> list[suite.Table]:
    """Check that countries have different names, and that names have the same kind everywhere."""
    frame = pl.concat(f.with_columns(country=pl.lit(c)) for c, f in suite.frames(folder))
    last, rows = pl.col("kind") == KINDS.index("last"), []
    groups = frame.group_by("country", last).agg("name").sort("country", "kind")
    sets = {(country, part): set(names) for country, part, names in groups.iter_rows()}
    for (country, part), names in sets.items():
        others = [listed for (c, p), listed in sets.items() if c != country and p == part]
        swapped = [listed for (c, p), listed in sets.items() if c != country and p != part]
        nearest = max((len(names & o) / len(names | o) for o in others), default=0.0)
        own, other = (sum(len(names & o) for o in countries) for countries in (others, swapped))
        fine = other <= max(own, len(names) // 2)
        row = (country, "last" if part else "first", round(nearest, 4), own, other)
        rows.append((*row, nearest < ALIKE, fine))
    columns = "country names nearest here_elsewhere other_kind_elsewhere its_own of_its_kind"
    return [suite.listed("others", columns, rows, 5)]
