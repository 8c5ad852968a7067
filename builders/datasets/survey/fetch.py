"""Survey answers, one file per survey: simulated answers, or those that a user provides.

Ids of real respondents and the order of lines are not stored, since both may identify people.
"""

from __future__ import annotations

from pathlib import Path

from pydantic import Field

from plumbline.builders.core.params import Name
from plumbline.builders.core.params import Params as Section
from plumbline.builders.datasets.survey.build import PAGE, Survey
from plumbline.builders.datasets.survey.responses import unnamed
from plumbline.builders.fetch.files import Fetch, joined
from plumbline.builders.fetch.http import Politeness


class Params(Section):
    """Surveys to fetch, by name."""

    surveys: dict[Name, Survey] = Field(
        min_length=1, description="surveys by name; the name is also the config in `survey`"
    )


def fetch(params: Params, politeness: Politeness, into: Path) -> None:
    """Copy or download every file; refuse files without answers."""
    fetch = Fetch("survey", params, politeness, into, PAGE)
    number = sum(
        fetch.read(
            {f"{name}.csv": survey.file},
            survey.read,
            "no such file of answers",
            bytes if survey.simulated else unnamed,
        )
        for name, survey in sorted(params.surveys.items())
    )
    surveys = params.surveys.values()
    fetch.close(
        joined(entry.file for entry in surveys),
        joined(entry.stated for entry in surveys),
        joined(entry.source for entry in surveys),
        {"surveys": len(params.surveys), "respondents": number},
    )
