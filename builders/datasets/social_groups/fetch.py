"""Lists of social groups, a file for each language: the project's own, or yours.

The list of Choenni et al. (2021) is a few hundred names, facts that this project keeps in git and
spells out itself. So a file may lie beside the params, or at an address.
"""

from __future__ import annotations

import re
from pathlib import Path

from pydantic import Field, field_validator

from plumbline.builders.core.errors import Problem
from plumbline.builders.core.params import Params as Section
from plumbline.builders.core.snapshot import resume, same_request, write_bytes, write_manifest
from plumbline.builders.datasets.social_groups.read import groups
from plumbline.builders.fetch.http import ADDRESS, Politeness, get

CITATION = (
    "Choenni, Shutova and van Rooij (2021), Stepmothers are mean and academics are pretentious: "
    "What do pretrained language models learn about you?, EMNLP, "
    "https://doi.org/10.18653/v1/2021.emnlp-main.111 (categories and English groups); the project "
    "(usual spellings)"
)


class Params(Section):
    """Where the lists are."""

    files: dict[str, str] = Field(
        min_length=1, description="for each language, a file in the checkout or an http address"
    )
    licence: str = Field(description="licence of the files")
    citation: str = Field(CITATION, description="whom to cite for them")

    @field_validator("files")
    @classmethod
    def _codes(cls, value: dict[str, str]) -> dict[str, str]:
        wrong = [code for code in value if not re.fullmatch(r"[A-Za-z0-9-]+", code)]
        if wrong:
            raise ValueError(f"not language codes: {wrong}")
        return value


def fetch(params: Params, politeness: Politeness, into: Path) -> None:
    """Copy or fetch every file into a folder whose name is its date, byte for byte.

    Resumable: a file that is there is not asked for again; the manifest comes last.

    Raises
    ------
    Problem
        If a file is not there or is not a list of groups, or the folder holds a fetch that was
        begun with other parameters.
    """
    resume(into)
    request = params.model_dump(mode="json")
    begun = into / ".request.json"  # until the manifest, which holds it too, is written
    same_request(begun, request)
    number = 0
    for language, place in sorted(params.files.items()):
        path = into / f"{language}.csv"
        if not path.exists():
            write_bytes(path, read(place, politeness))
        number += len(groups(path.read_bytes()))
    write_manifest(
        into,
        {
            "source": "social_groups",
            "address": "; ".join(sorted(set(params.files.values()))),
            "retrieved": into.name,
            "licence": params.licence,
            "citation": params.citation,
            "request": request,
            "counts": {"languages": len(params.files), "groups": number},
        },
    )
    begun.unlink()


def read(place: str, politeness: Politeness) -> bytes:
    """Return the bytes of a list of groups, from a file or an address.

    Raises
    ------
    Problem
        If it is not there, or not a list of groups.
    """
    if re.match(ADDRESS, place):
        return get(place, politeness, _wrong)
    path = Path(place)
    if not path.is_file():
        raise Problem(f"{place}: no such file of groups; name another under sources in params.yaml")
    body = path.read_bytes()
    if wrong := _wrong(body):
        raise Problem(f"{place}: {wrong}; mend the file")
    return body


def _wrong(body: bytes) -> str | None:
    if body.lstrip()[:1] == b"<":
        return "a web page, not a list of groups"
    try:
        groups(body)
    except ValueError as error:
        return str(error)
    return None
