"""Dataset ``statements``: sentences to agree or disagree with, from all questionnaires.

Scales that measure values, or leanings on two or four axes, and non-political statements to
calibrate a model's acquiescence (Al Ali and Libovický 2024).
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
NOT_SHIPPED = {  # by how a config's name begins
    "pi34": "The items of PI34 (https://doi.org/10.1177/14747049221112657) are not shipped",
    "political-compass": "The propositions (https://www.politicalcompass.org) are not shipped",
    "8values": "The questions (https://8values.github.io) are not shipped",
}

COLUMNS = (
    Column("id", "string", "name of the statement, the same in all languages of a scale"),
    Column("language", "string", "language of the text"),
    Column(
        "text",
        "string",
        "the statement without a frame around it: begins in lower case, has no final stop, and "
        "does not tell the gender of whoever says it",
        prose="text",
    ),
    Column("scale", "string", "questionnaire of the statement"),
    Column(
        "axis",
        "string",
        "value that it bears on; empty for calibration, and for an item that bears on none",
        empty=True,
    ),
    Column(
        "weight",
        "float64",
        "how much, in the scale's own units: agreeing strongly adds this to the axis, or takes "
        "it away where `reversed`; 0 for an item that bears on none. Of a scale with `points`, "
        "half the distance of its outer answers",
    ),
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
        empty=True,
    ),
    Column("source", "string", "who wrote it"),
    Column("licence", "string", "on what terms it may be used"),
    Column(
        "sentence",
        "string",
        "the statement as a sentence by itself: letter for letter as its source words it; of a "
        "file with frames in mind, `text` with a capital and a stop",
        prose="text",
    ),
    Column(
        "points",
        "floats",
        "what the answers strongly disagree, disagree, agree, strongly agree add to the axis, "
        "in this order, in the scale's own units; empty where the scale is linear",
    ),
    Column("redistributable", "bool", "no terms of its source forbid to publish the row"),
)
SCHEMA = Schema(COLUMNS, key=("id", "axis"))
COUNTS = ("axis reversed polarity",)  # tables of the card


class Questionnaire(Shared):
    """One file of statements, and their common facts."""

    file: str = Field(min_length=1, description="a file in the checkout, or an http address")
    language: str = Field(pattern=r"^[a-z]{2,3}$", description="language of the texts")
    scale: str = Field(min_length=1, description="name of the questionnaire, PI34 for instance")
    format: Format = Field(
        "csv",
        validation_alias=FORMAT,
        description="csv: that of the page; else the published file that it names, as it is",
    )
    source: str = Field(min_length=1, description="who wrote them; what to cite")

    def path(self, config: str) -> str:
        """Return the questionnaire's file in the snapshot."""
        return f"{config}.{FILES[self.format]}"


class Params(SnapshotParams):
    """The snapshot, and the selected questionnaires."""

    configs: list[str] = Field(min_length=1, description="questionnaires, one config for each")


def build(snapshot: Snapshot, params: Params) -> Iterator[Row]:
    """Yield one row per statement and axis, sorted, without rejects."""
    for config in params.configs:
        reasons = (f"; {why}" for name, why in NOT_SHIPPED.items() if config.startswith(name))
        hint = f"{''.join(reasons)} ({PAGE} has the format)"
        (entry,) = declared(snapshot, Questionnaire, "questionnaires", config, hint=hint)
        reader = partial(scale, form=entry.format, name=entry.scale)
        entries = read(snapshot, entry.path(config), reader, "fix it and fetch again")
        facts = entry.model_dump(include={"language", "scale", "source", "licence"})
        facts["redistributable"] = entry.redistribute
        for statement in sorted(entries):
            polarity = POLARITIES.index(statement.polarity) if statement.polarity else None
            row = statement._asdict() | {"polarity": polarity, "points": list(statement.points)}
            yield Row(config, row | facts)
