"""Answers of a survey, a file for each: the simulated one, or those that a user was given."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pydantic import Field, field_validator

from plumbline.builders.core.params import Params as Section
from plumbline.builders.datasets.statements.fetch import NAME
from plumbline.builders.datasets.survey.build import PAGE, Survey
from plumbline.builders.datasets.survey.responses import respondents
from plumbline.builders.fetch.files import Fetch, joined, unreadable

if TYPE_CHECKING:
    from pathlib import Path

    from plumbline.builders.fetch.http import Politeness


class Params(Section):
    """Which surveys."""

    surveys: dict[str, Survey] = Field(
        min_length=1, description="by name: the config of `survey` that each becomes"
    )

    @field_validator("surveys")
    @classmethod
    def _names(cls, value: dict[str, Survey]) -> dict[str, Survey]:
        wrong = [name for name in value if not re.fullmatch(NAME, name)]
        if wrong:
            raise ValueError(f"a name has small letters, digits and - only: {wrong}")
        return value


def fetch(params: Params, politeness: Politeness, into: Path) -> None:
    """Copy or download every file, byte for byte; what is not one of answers is refused."""
    fetch = Fetch("survey", params, politeness, into)
    number = 0
    for name, declared in sorted(params.surveys.items()):
        missing = f"no such file of answers; {PAGE} has the layout of a file of yours"
        body = fetch.file(f"{name}.csv", declared.file, unreadable(respondents), missing)
        number += len(respondents(body))
    every = params.surveys.values()
    fetch.close(
        joined(each.file for each in every),
        joined(each.licence for each in every),
        joined(each.source for each in every),
        {"surveys": len(params.surveys), "respondents": number},
    )
