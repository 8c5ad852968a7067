"""Dataset ``statements``: sentences that one may agree with, of every questionnaire in one schema.

Scales that measure values, and statements about nothing political by which a model's habit of
agreeing is calibrated (Al Ali and Libovický 2024).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field, ValidationError

from builders.lib.params import Params as Section
from builders.lib.problem import Problem
from builders.lib.questionnaire import POLARITIES, statements
from builders.lib.schema import Column, Schema
from builders.lib.store import REJECTS, Row

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from builders.lib.snapshot import Snapshot

PAGE = "docs/datasets/statements.md"
PI34 = "https://doi.org/10.1177/14747049221112657"

SCHEMA = Schema(
    columns=(
        Column("id", "string", "name of the statement, the same in all languages of a scale"),
        Column("language", "string", "language of the text"),
        Column(
            "text",
            "string",
            "the statement without a frame around it: begins in lower case, has no final stop, and "
            "does not tell the gender of whoever says it",
        ),
        Column("scale", "string", "questionnaire that it is of"),
        Column("axis", "string", "value that it bears on; empty for calibration"),
        Column("weight", "float64", "how much, in the scale's own units"),
        Column("reversed", "bool", "whether agreeing speaks against the value"),
        Column(
            "polarity",
            "label",
            "for calibration: whether people are likely to agree; null elsewhere",
            nullable=True,
            labels=POLARITIES,
        ),
        Column(
            "opposite",
            "string",
            "id of the statement of the scale that says the opposite; empty where none does",
        ),
        Column("source", "string", "who wrote it"),
        Column("licence", "string", "on what terms it may be used"),
    ),
    key=("id", "axis"),
)


class Questionnaire(Section):
    """One file of statements, and what is known of all of them."""

    file: str = Field(min_length=1, description="a file in the checkout, or an http address")
    language: str = Field(pattern=r"^[a-z]{2,3}$", description="language of the texts")
    scale: str = Field(min_length=1, description="name of the questionnaire, PI34 for instance")
    licence: str = Field(min_length=1, description="on what terms the texts may be used")
    source: str = Field(min_length=1, description="who wrote them; what to cite")


class Params(Section):
    """The snapshot to build from, and which of its questionnaires."""

    version: str = Field(pattern=r"^\d+\.\d+\.\d+$", description="version of the dataset")
    source: str = Field("statements", pattern="^statements$", description="its client")
    snapshot: str = Field(description="folder of the snapshot")
    configs: list[str] = Field(min_length=1, description="questionnaires, one config for each")

    @property
    def languages(self) -> list[str]:
        """Return the configs, none of which may end up empty."""
        return self.configs


def build(snapshot: Snapshot, params: Params) -> Iterator[Row]:
    """Yield one row per statement and axis, sorted; nothing is rejected.

    Raises
    ------
    Problem
        If a questionnaire is not in the snapshot, or its file is not a list of statements.
    """
    for config in params.configs:
        declared = _declared(snapshot, config)
        name = f"{config}.csv"
        try:
            found = statements(snapshot.read(name), declared.scale)
        except ValueError as error:
            raise Problem(f"{snapshot.folder / name}: {error}; mend it and fetch again") from error
        facts = {
            "language": declared.language,
            "scale": declared.scale,
            "source": declared.source,
            "licence": declared.licence,
        }
        for entry in sorted(found):
            polarity = POLARITIES.index(entry.polarity) if entry.polarity else None
            yield Row(config, entry._asdict() | {"polarity": polarity} | facts)


def _declared(snapshot: Snapshot, config: str) -> Questionnaire:
    """Return a questionnaire as the snapshot's manifest declares it."""
    try:
        return Questionnaire.model_validate(snapshot.manifest["request"]["questionnaires"][config])
    except (KeyError, TypeError, ValidationError) as error:
        why = (
            f" The items of PI34 ({PI34}) are not shipped: bring a file of yours."
            if config.startswith("pi34")
            else ""
        )
        raise Problem(
            f"{snapshot.folder}: has no questionnaire {config!r}.{why} Name its file under "
            f"sources.statements.questionnaires ({PAGE} has the layout) and fetch, or take it out "
            "of datasets.statements.configs"
        ) from error


def describe(folder: Path) -> str:
    """Return the statements of each questionnaire and axis, as Markdown."""
    import polars as pl

    lines = ["### Statements by axis", "", "| config | axis | statements | reversed | likely |"]
    lines.append("|---|---|---:|---:|---:|")
    for path in sorted(folder.glob("*.parquet")):
        if path.name == REJECTS:
            continue
        counts = (
            pl.read_parquet(path)
            .group_by("axis")
            .agg(
                pl.len(),
                pl.col("reversed").sum().alias("reversed"),
                (pl.col("polarity") == POLARITIES.index("likely")).sum().alias("likely"),
            )
            .sort("axis")
        )
        lines += [
            f"| {path.stem} | {axis or 'none'} | {n:,} | {turned:,} | {likely:,} |"
            for axis, n, turned, likely in counts.iter_rows()
        ]
    return "\n".join(lines) + "\n"
