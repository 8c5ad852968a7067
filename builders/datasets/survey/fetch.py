"""Answers of a survey, a file for each: the simulated one, or those that a user was given."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pydantic import Field, field_validator

from plumbline.builders.core.params import Params as Section
from plumbline.builders.core.snapshot import resume, same_request, write_bytes, write_manifest
from plumbline.builders.datasets.statements.fetch import NAME
from plumbline.builders.datasets.survey.build import PAGE, Survey
from plumbline.builders.datasets.survey.responses import respondents
from plumbline.builders.fetch.local_files import bring

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
    """Copy or fetch every file into a folder whose name is its date, byte for byte.

    Resumable: a file that is there is not asked for again; the manifest comes last and says how
    the files are read.

    Raises
    ------
    Problem
        If a file is not there or is not one of answers, or the folder holds a fetch that was
        begun with other parameters.
    """
    resume(into)
    request = params.model_dump(mode="json")
    begun = into / ".request.json"  # until the manifest, which holds it too, is written
    same_request(begun, request)
    number = 0
    for name, declared in sorted(params.surveys.items()):
        path = into / f"{name}.csv"
        missing = f"no such file of answers; {PAGE} has the layout of a file of yours"
        if not path.exists():
            write_bytes(path, bring(declared.file, _wrong, politeness, missing))
        number += len(respondents(path.read_bytes()))
    every = params.surveys.values()
    write_manifest(
        into,
        {
            "source": "survey",
            "address": "; ".join(sorted({each.file for each in every})),
            "retrieved": into.name,
            "licence": "; ".join(sorted({each.licence for each in every})),
            "citation": "; ".join(sorted({each.source for each in every})),
            "request": request,
            "counts": {"surveys": len(params.surveys), "respondents": number},
        },
    )
    begun.unlink()


def _wrong(body: bytes) -> str | None:
    if body.lstrip()[:1] == b"<":
        return "a web page, not answers"
    try:
        respondents(body)
    except ValueError as error:
        return str(error)
    return None
