"""Dataset ``social_groups``: groups of people and countries for prompts.

The categories and English groups are those of Choenni, Shutova and van Rooij (2021), as their
released code lists them.
"""

from __future__ import annotations

from collections.abc import Iterator

from plumbline.builders.core.params import LanguageParams as Params
from plumbline.builders.core.parquet import Row
from plumbline.builders.core.schema import Column, Schema
from plumbline.builders.core.snapshot import Snapshot
from plumbline.builders.datasets.social_groups.read import KINDS, groups
from plumbline.builders.readers.declared import read

COLUMNS = (
    Column("category", "string", "kind of group: age, country, gender and so on"),
    Column("group", "string", "the group, as spelled in the paper and in prompts", prose="name"),
    Column(
        "name", "string", "the group in its usual spelling; usually as in `group`", prose="name"
    ),
    Column("kind", "label", "kind of templates for the group: people or country", labels=KINDS),
)
SCHEMA = Schema(COLUMNS, key=("category", "group"))
COUNTS = ("category kind",)  # columns tabulated in the card


def build(snapshot: Snapshot, params: Params) -> Iterator[Row]:
    """Yield one row per category and group, sorted; there are no rejects."""
    advice = "fix it, or add it under sources.social_groups.files, and fetch again"
    for language in params.languages:
        entries = read(snapshot, f"{language}.csv", groups, advice)
        for entry in sorted(entries, key=lambda g: (g.category, g.group)):
            yield Row(language, entry._asdict() | {"kind": KINDS.index(entry.kind)})
