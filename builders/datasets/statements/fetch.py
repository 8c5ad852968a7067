"""Questionnaires, a file for each: the project's own, or those that a user has the right to use.

The items of a published scale may not be ours to pass on: such a file is the user's, in the layout
of docs/datasets/statements.md, and lies beside the params or at an address.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pydantic import Field, field_validator

from plumbline.builders.core.params import Params as Section
from plumbline.builders.core.snapshot import resume, same_request, write_bytes, write_manifest
from plumbline.builders.datasets.statements.build import PAGE, Questionnaire
from plumbline.builders.datasets.statements.formats import scale
from plumbline.builders.fetch.local_files import bring

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
    """Copy or fetch every file into a folder whose name is its date, byte for byte.

    Resumable: a file that is there is not asked for again; the manifest comes last. It holds the
    questionnaires as declared, so that a snapshot says by itself how it is read.

    Raises
    ------
    Problem
        If a file is not there or is not a list of statements, or the folder holds a fetch that
        was begun with other parameters.
    """
    resume(into)
    request = params.model_dump(mode="json")
    begun = into / ".request.json"  # until the manifest, which holds it too, is written
    same_request(begun, request)
    number = 0
    for name, declared in sorted(params.questionnaires.items()):
        path = into / declared.path(name)
        if not path.exists():
            write_bytes(path, _read(declared, politeness))
        number += len({s.id for s in scale(path.read_bytes(), declared.layout, declared.scale)})
    every = params.questionnaires.values()
    terms = {
        f"{q.scale}: {q.licence}{'' if q.redistribute else ' (rows not to be published)'}"
        for q in every
    }
    write_manifest(
        into,
        {
            "source": "statements",
            "address": "; ".join(sorted({each.file for each in every})),
            "retrieved": into.name,
            "licence": "; ".join(sorted(terms)),
            "citation": "; ".join(sorted({f"{each.scale}: {each.source}" for each in every})),
            "request": request,
            "counts": {"questionnaires": len(params.questionnaires), "statements": number},
        },
    )
    begun.unlink()


def _read(declared: Questionnaire, politeness: Politeness) -> bytes:
    """Return the bytes of a list of statements."""
    return bring(
        declared.file,
        lambda body: _wrong(body, declared),
        politeness,
        f"no such file of statements for the scale {declared.scale}; the project ships its own "
        f"questionnaires alone, {PAGE} has the layout of a file of yours",
    )


def _wrong(body: bytes, declared: Questionnaire) -> str | None:
    if body.lstrip()[:1] == b"<":
        return "a web page, not a list of statements"
    try:
        scale(body, declared.layout, declared.scale)
    except ValueError as error:
        return str(error)
    return None
