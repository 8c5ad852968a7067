"""Questionnaires, one file each: the project's own, or those that a user is permitted to use.

If the items of a published scale may not be redistributed, the user provides a file in the
format of docs/datasets/statements.md, next to the params or at an address.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

from pydantic import Field

from plumbline.builders.core.params import Name
from plumbline.builders.core.params import Params as Section
from plumbline.builders.datasets.statements.build import PAGE, Questionnaire
from plumbline.builders.datasets.statements.formats import scale
from plumbline.builders.fetch.files import Fetch, joined, licences
from plumbline.builders.fetch.http import Politeness


class Params(Section):
    """Questionnaires, by name."""

    questionnaires: dict[Name, Questionnaire] = Field(
        min_length=1,
        description="questionnaires by name; the name is also the config in `statements`",
    )


def fetch(params: Params, politeness: Politeness, into: Path) -> None:
    """Copy or download every file, byte for byte; refuse files without statements."""
    fetch = Fetch("statements", params, politeness, into, PAGE)
    number = 0
    for name, entry in sorted(params.questionnaires.items()):
        missing = (
            f"no such file of statements for the scale {entry.scale}; the project provides only "
            "its own questionnaires"
        )
        number += fetch.read({entry.path(name): entry.file}, partial(_ids, entry), missing)
    scales = params.questionnaires.values()
    fetch.close(
        joined(entry.file for entry in scales),
        licences((entry.scale, entry) for entry in scales),
        joined(f"{entry.scale}: {entry.source}" for entry in scales),
        {"questionnaires": len(params.questionnaires), "statements": number},
    )


def _ids(declared: Questionnaire, body: bytes) -> set[str]:
    return {statement.id for statement in scale(body, declared.format, declared.scale)}
