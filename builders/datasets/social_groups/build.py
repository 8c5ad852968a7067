"""Dataset ``social_groups``: groups of people and countries that models are asked about.

The categories and English groups are those of Choenni, Shutova and van Rooij (2021), as their
released code lists them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field

from plumbline.builders.core.describe import frames, page, table
from plumbline.builders.core.errors import Problem
from plumbline.builders.core.params import Params as Section
from plumbline.builders.core.parquet import Row
from plumbline.builders.core.schema import Column, Schema
from plumbline.builders.datasets.social_groups.read import KINDS, groups
from plumbline.builders.readers.declared import read

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from plumbline.builders.core.snapshot import Snapshot

SCHEMA = Schema(
    columns=(
        Column("category", "string", "kind of group: age, country, gender and so on"),
        Column("group", "string", "the group, spelled as the paper does: so it stands in prompts"),
        Column("name", "string", "the group in usual spelling; mostly the same", role="tracked"),
        Column(
            "kind",
            "label",
            "whether templates for people or those for countries are used",
            labels=KINDS,
            role="tracked",
        ),
    ),
    key=("category", "group"),
    unit=("group", "groups"),
)


class Params(Section):
    """The snapshot to build from, and its languages."""

    version: str = Field(pattern=r"^\d+\.\d+\.\d+$", description="version of the dataset")
    source: str = Field("social_groups", pattern="^social_groups$", description="its client")
    snapshot: str = Field(description="folder of the snapshot")
    languages: list[str] = Field(min_length=1, description="one config for each")


def build(snapshot: Snapshot, params: Params) -> Iterator[Row]:
    """Yield one row per category and group, sorted; nothing is rejected."""
    there = set(snapshot.names(""))
    for language in params.languages:
        name = f"{language}.csv"
        if name not in there:
            raise Problem(
                f"{snapshot.folder}: no groups for {language!r}; add a file under "
                "sources.social_groups.files and fetch, or take it out of "
                "datasets.social_groups.languages"
            )
        found = read(snapshot, name, groups, "mend it and fetch again")
        for entry in sorted(found, key=lambda g: (g.category, g.group)):
            yield Row(language, entry._asdict() | {"kind": KINDS.index(entry.kind)})


def describe(folder: Path) -> str:
    """Return the groups of each category, as Markdown."""
    import polars as pl

    rows = [
        (config, *row)
        for config, frame in frames(folder)
        for row in frame.group_by("category")
        .agg(pl.len(), (pl.col("group") != pl.col("name")).sum().alias("respelled"))
        .sort("category")
        .iter_rows()
    ]
    return page(table("language | category | :groups | :respelled", rows, "Groups by category"))
