"""Questionnaires, a file for each: the project's own, or those that a user has the right to use.

The items of a published scale may not be ours to pass on: such a file is the user's, in the layout
of docs/datasets/statements.md, and lies beside the params or at an address.
"""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING

from pydantic import Field, field_validator

from plumbline.builders.core.params import Params as Section
from plumbline.builders.datasets.statements.build import PAGE, Questionnaire
from plumbline.builders.datasets.statements.formats import scale
from plumbline.builders.fetch.files import Fetch, joined, licences, unreadable

if TYPE_CHECKING:
    from pathlib import Path

    from plumbline.builders.fetch.http import Politeness

NAME = re.compile(r"[a-z0-9][a-z0-9-]*")


class Params(Section):
    """Which questionnaires."""

    questionnaires: dict[str, Questionnaire] = Field(
        min_length=1, description="by name: the config of `statements` that each becomes"
    )

    @field_validator("questionnaires")
    @classmethod
    def _names(cls, value: dict[str, Questionnaire]) -> dict[str, Questionnaire]:
        wrong = [name for name in value if not NAME.fullmatch(name)]
        if wrong:
            raise ValueError(f"a name has small letters, digits and - only: {wrong}")
        return value


def fetch(params: Params, politeness: Politeness, into: Path) -> None:
    """Copy or download every file, byte for byte; what is no list of statements is refused."""
    fetch = Fetch("statements", params, politeness, into)
    number = 0
    for name, declared in sorted(params.questionnaires.items()):
        reader = partial(scale, layout=declared.layout, name=declared.scale)
        missing = (
            f"no such file of statements for the scale {declared.scale}; the project ships its own "
            f"questionnaires alone, {PAGE} has the layout of a file of yours"
        )
        body = fetch.file(declared.path(name), declared.file, unreadable(reader), missing)
        number += len({statement.id for statement in reader(body)})
    every = params.questionnaires.values()
    fetch.close(
        joined(each.file for each in every),
        licences((each.scale, each) for each in every),
        joined(f"{each.scale}: {each.source}" for each in every),
        {"questionnaires": len(params.questionnaires), "statements": number},
    )
