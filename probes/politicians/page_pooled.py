"""Words and genders over several models: the analysis ``pooled``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from plumbline.probes.politicians.page_words import CAPTIONS, highest
from plumbline.probes.politicians.pooled_pmi import POOLED
from plumbline.probes.report.view import Block, Group, Part, Section, labelled, parts, ranking

if TYPE_CHECKING:
    from pathlib import Path

NOTE = (
    "PMI (nats) from the lists of several models added up, as the paper pools them. What several "
    "models answer to one name is no independent evidence: intervals and tests are over names. p "
    "is adjusted over all words, genders, parts of speech and languages of the group."
)


def section(data: Path) -> Section:
    """Return the highest words of each group of models, language, part of speech and gender."""
    path = data / "tables/pooled/pooled.parquet"
    groups = []
    if path.is_file():
        table = labelled(pl.read_parquet(path), POOLED).drop_nulls("value")
        for (name,), own in parts(table, "group"):
            blocks = [
                Block(f"{name}, {language}, {pos}: {part['models'][0]} model(s)", _parts(part))
                for (language, pos), part in parts(own, "language", "pos")
            ]
            groups.append(Group(name, blocks))
    return Section("pooled", "Words and genders, models pooled", NOTE, groups, "pooled")


def _parts(table: pl.DataFrame) -> list[Part]:
    found = []
    for (gender,), own in parts(table, "gender"):
        shown = (
            ranking(highest(rows).to_dicts(), CAPTIONS[reading], "PMI")
            for (reading,), rows in parts(own, "reading")
        )
        people = f"{gender} ({own['people'][0]:,} people, a list of each model)"
        found.append(Part(people, tables=tuple(shown)))
    return found
