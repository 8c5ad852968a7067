"""Dataset ``survey``: people's answers to statements of a scale, and their gender and infection.

Al Ali and Libovický (2024) compare models with the respondents of Kopecky et al. (2022), whose
answers are read from a file that the user provides. The project provides only simulated answers.
"""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import Field

from plumbline.builders.core.params import SnapshotParams
from plumbline.builders.core.parquet import Reject, Row
from plumbline.builders.core.schema import Column, Schema
from plumbline.builders.core.snapshot import Snapshot
from plumbline.builders.datasets.survey import responses
from plumbline.builders.readers.declared import Shared, declared, read

PAGE = "docs/datasets/survey.md"
NOTE = "; drawn at random where `simulated` is true"

COLUMNS = (
    Column("respondent", "string", f"pseudonym of a respondent{NOTE}"),
    Column("gender", "label", f"gender as stated{NOTE}", labels=responses.GENDERS),
    Column("infected", "label", f"infection status, see the page{NOTE}", labels=responses.INFECTED),
    Column("scale", "string", f"scale in `statements` that was answered{NOTE}"),
    Column("item", "string", f"id of a statement of that scale{NOTE}"),
    Column(
        "answer",
        "int32",
        f"answer from 1 (disagrees entirely) to 5 (agrees entirely), not reversed{NOTE}",
        minimum=responses.LOWEST,
        maximum=responses.HIGHEST,
    ),
    Column(
        "weight",
        "float64",
        f"weight of the respondent in means over respondents; 1 if the survey has no weights{NOTE}",
        minimum=0,
    ),
    Column("simulated", "bool", "whether the row was drawn at random, without a respondent"),
    Column("source", "string", f"collectors of the answers{NOTE}"),
    Column("licence", "string", f"licence or terms of use{NOTE}"),
)
SCHEMA = Schema(COLUMNS, key=("respondent", "item"))
COUNTS = ("simulated gender infected",)  # columns tabulated in the card


class Survey(Shared):
    """One file of answers, and facts about it."""

    file: str = Field(min_length=1, description="path in the checkout, or http address")
    scale: str = Field(min_length=1, description="scale in `statements` that was answered")
    redistribute: bool = Field(
        False,
        exclude_if=lambda said: not said,
        description="whether the answers may be published; true requires the SPDX id of an open "
        "licence. Simulated answers may always be published",
    )
    simulated: bool = Field(description="whether the answers were drawn at random")
    items: list[str] = Field(
        default_factory=list,
        exclude_if=lambda named: not named,
        description="columns that are items, by name or pattern (`i*`); every other column must be "
        "the weight. By default all columns of a simulated survey, and none of others",
    )
    weight: str = Field(
        "", exclude_if=lambda name: not name, description="column of the respondents' weights"
    )
    source: str = Field(min_length=1, description="authors to cite for the answers")

    def read(self, body: bytes) -> list[responses.Respondent]:
        """Return the respondents in the survey's file."""
        return responses.respondents(body, self.items, self.weight, simulated=self.simulated)

    @property
    def stated(self) -> str:
        """The licence, and whether the answers must not be published."""
        return self.licence if self.simulated else super().stated


class Params(SnapshotParams):
    """The snapshot, and the selected surveys."""

    configs: list[str] = Field(min_length=1, description="surveys, one config for each")


def build(snapshot: Snapshot, params: Params) -> Iterator[Row | Reject]:
    """Yield one row per respondent and item, sorted; items without an answer are rejected."""
    for config in params.configs:
        hint = f"; only a simulated one is shipped ({PAGE} has the format)"
        (entry,) = declared(snapshot, Survey, "surveys", config, hint=hint)
        facts = entry.model_dump(include={"scale", "simulated", "source", "licence"})
        people = read(snapshot, f"{config}.csv", entry.read, "fix it and fetch again")
        for person in sorted(people, key=lambda r: r.name):
            values: dict[str, object] = {"respondent": person.name}
            values["gender"] = responses.GENDERS.index(person.gender)
            values["infected"] = responses.INFECTED.index(person.infected)
            values["weight"] = person.weight
            for item, answer in sorted(person.answers.items()):
                if answer is None:
                    yield Reject(config, f"{person.name}/{item}", "no answer")
                else:
                    yield Row(config, values | facts | {"item": item, "answer": answer})
