"""Supersenses of English adjectives (Tsvetkov et al.) and verbs (Open English WordNet)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field, field_validator

from plumbline.builders.core.params import Params as Section
from plumbline.builders.core.progress import Bar
from plumbline.builders.core.snapshot import resume, same_request, write_bytes, write_manifest
from plumbline.builders.datasets.supersenses.build import VERBS, adjectives, synsets
from plumbline.builders.fetch.http import ADDRESS, Politeness, get

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

CITATION = (
    "Tsvetkov, Schneider, Hovy, Bhatia, Faruqui and Dyer (2014), Augmenting English adjective "
    "senses with supersenses, LREC; McCrae, Rademaker, Bond, Rudnicka and Fellbaum (2019), English "
    "WordNet 2019, Global WordNet Conference; Fellbaum (1998), WordNet: an electronic lexical "
    "database, MIT Press"
)


class Adjectives(Section):
    """The file of the adjectives."""

    address: str = Field(pattern=ADDRESS, description="of the classifier's answers for lemmas")
    licence: str = Field(description="as the authors state it")


class Verbs(Section):
    """The lexicographer files of the verbs."""

    address: str = Field(pattern=ADDRESS, description="of one file, with {tag} and {file}")
    tag: str = Field(description="edition, a tag of the repository")
    licence: str = Field(description="as the authors state it")

    @field_validator("address")
    @classmethod
    def _places(cls, value: str) -> str:
        try:
            value.format(tag="", file="")
        except (KeyError, IndexError, ValueError, AttributeError) as error:
            raise ValueError("only {tag} and {file} may stand in braces") from error
        return value


class Params(Section):
    """Where both are."""

    adjectives: Adjectives = Field(description="13 classes")
    verbs: Verbs = Field(description="15 classes")


def fetch(params: Params, politeness: Politeness, into: Path) -> None:
    """Fetch the adjectives and all 15 files of verbs into a folder whose name is its date.

    Resumable: a file that is there is not asked for again; the manifest comes last.

    Raises
    ------
    Problem
        If an address is wrong or out of reach, a body is not in its format, or the folder holds a
        fetch that was begun with other parameters.
    """
    resume(into)
    request = params.model_dump(mode="json")
    begun = into / ".request.json"  # until the manifest, which holds it too, is written
    same_request(begun, request)
    wanted = [("adjectives/adjective_words.predicted", params.adjectives.address, _by(adjectives))]
    for name in VERBS:
        file = f"verb.{name}.yaml"
        url = params.verbs.address.format(tag=params.verbs.tag, file=file)
        wanted.append((f"verbs/{file}", url, _by(synsets)))
    for name, url, wrong in Bar(wanted, desc="supersenses", unit="file"):
        if not (into / name).exists():
            write_bytes(into / name, get(url, politeness, wrong))
    licences = sorted({params.adjectives.licence, params.verbs.licence})
    write_manifest(
        into,
        {
            "source": "supersenses",
            "address": f"{params.adjectives.address} and {params.verbs.address}",
            "retrieved": into.name,
            "licence": " AND ".join(licences),
            "citation": CITATION,
            "request": request,
            "counts": {"files": len(wanted)},
        },
    )
    begun.unlink()


def _by(reader: Callable[[bytes], Iterable[object]]) -> Callable[[bytes], str | None]:
    """Return a check of a body by the reader that the dataset is built with."""

    def wrong(body: bytes) -> str | None:
        try:
            for _ in reader(body):
                pass
        except UnicodeDecodeError:
            return "not UTF-8"
        except ValueError as error:
            return str(error)
        return None

    return wrong
