"""Dataset ``statements``: sentences to agree or disagree with, from several questionnaires.

The questionnaires measure values, or leanings on two or four axes; non-political statements are
for calibrating a model's acquiescence (Al Ali and Libovický 2024).
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from pydantic import Field

from plumbline.builders.core.params import SnapshotParams
from plumbline.builders.core.parquet import Row
from plumbline.builders.core.schema import Column, Schema
from plumbline.builders.core.snapshot import Snapshot
from plumbline.builders.datasets.statements.formats import FILES, Format, scale
from plumbline.builders.datasets.statements.read import POLARITIES
from plumbline.builders.readers.declared import FORMAT, Shared, declared, read

PAGE = "docs/datasets/statements.md"
NOT_SHIPPED = {  # keyed by the prefix of a config's name
    "pi34": "The items of PI34 (https://doi.org/10.1177/14747049221112657) are not shipped",
    "political-compass": "The propositions (https://www.politicalcompass.org) are not shipped",
    "8values": "The questions (https://8values.github.io) are not shipped",
}

COLUMNS = (
    Column("id", "string", "id of the statement, the same in all languages of a scale"),
    Column("language", "string", "language of the text"),
    Column(
        "text",
        "string",
        "the statement without a template; it begins in lower case, has no final stop and does not "
        "reveal the speaker's gender",
        prose="text",
    ),
    Column("scale", "string", "name of the questionnaire"),
    Column(
        "axis",
        "string",
        "value that the statement concerns; empty for calibration and if it concerns none",
        empty=True,
    ),
    Column(
        "weight",
        "float64",
        "points, in the scale's units, that strong agreement adds to the axis, or subtracts if "
        "`reversed`; 0 for statements about no value. For a scale with `points`, half the "
        "difference between the points of its extreme answers",
    ),
    Column("reversed", "bool", "whether agreement opposes the value"),
    Column(
        "polarity",
        "label",
        "for calibration: whether people are likely to agree; null for other statements",
        nullable=True,
        labels=POLARITIES,
    ),
    Column(
        "opposite",
        "string",
        "id of the opposite statement in the scale; empty if it has none",
        empty=True,
    ),
    Column("source", "string", "authors of the statement"),
    Column("licence", "string", "licence or terms of use"),
    Column(
        "sentence",
        "string",
        "the statement as a separate sentence, verbatim from its source; in a file of statements "
        "for templates, `text` with an initial capital and a final stop",
        prose="text",
    ),
    Column(
        "points",
        "floats",
        "points on the axis for strongly disagree, disagree, agree and strongly agree, in this "
        "order, in the scale's units; empty for linear scales",
    ),
    Column("redistributable", "bool", "whether the terms of its source permit publishing the row"),
)
SCHEMA = Schema(COLUMNS, key=("id", "axis"))
COUNTS = ("axis reversed polarity",)  # columns tabulated in the card


class Questionnaire(Shared):
    """One file of statements, and the facts that they share."""

    file: str = Field(min_length=1, description="path in the checkout, or http address")
    language: str = Field(pattern=r"^[a-z]{2,3}$", description="language of the texts")
    scale: str = Field(min_length=1, description="name of the questionnaire, PI34 for instance")
    format: Format = Field(
        "csv",
        validation_alias=FORMAT,
        description="csv: the format described on the page; else the published file, unchanged",
    )
    source: str = Field(min_length=1, description="authors to cite for the statements")

    def path(self, config: str) -> str:
        """Return the path of the questionnaire's file in the snapshot."""
        return f"{config}.{FILES[self.format]}"


class Params(SnapshotParams):
    """The snapshot, and the selected questionnaires."""

    configs: list[str] = Field(min_length=1, description="questionnaires, one config for each")


def build(snapshot: Snapshot, params: Params) -> Iterator[Row]:
    """Yield one row per statement and axis, sorted; there are no rejects."""
    for config in params.configs:
        reasons = (f"; {why}" for name, why in NOT_SHIPPED.items() if config.startswith(name))
        hint = f"{''.join(reasons)} ({PAGE} has the format)"
        (entry,) = declared(snapshot, Questionnaire, "questionnaires", config, hint=hint)
        reader = partial(scale, form=entry.format, name=entry.scale, language=entry.language)
        entries = read(snapshot, entry.path(config), reader, "fix it and fetch again")
        facts = entry.model_dump(include={"language", "scale", "source", "licence"})
        facts["redistributable"] = entry.redistribute
        for statement in sorted(entries):
            polarity = POLARITIES.index(statement.polarity) if statement.polarity else None
            row = statement._asdict() | {"polarity": polarity, "points": list(statement.points)}
            yield Row(config, row | facts)
