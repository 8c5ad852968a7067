"""Supersenses of English adjectives (Tsvetkov et al.) and verbs (Open English WordNet)."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, Field

from plumbline.builders.core.errors import Bar
from plumbline.builders.core.params import Params as Section
from plumbline.builders.datasets.supersenses.build import VERBS, adjectives, synsets
from plumbline.builders.fetch.files import Fetch, fillable
from plumbline.builders.fetch.http import ADDRESS, Politeness

CITATION = (
    "Tsvetkov, Schneider, Hovy, Bhatia, Faruqui and Dyer (2014), Augmenting English adjective "
    "senses with supersenses, LREC; McCrae, Rademaker, Bond, Rudnicka and Fellbaum (2019), English "
    "WordNet 2019, Global WordNet Conference; Fellbaum (1998), WordNet: an electronic lexical "
    "database, MIT Press"
)


class Adjectives(Section):
    """The file of adjectives."""

    address: str = Field(
        pattern=ADDRESS, description="address of the classifier's predictions for lemmas"
    )
    licence: str = Field(description="licence as the authors state it")


class Verbs(Section):
    """The lexicographer files of the verbs."""

    address: Annotated[str, AfterValidator(fillable("tag", "file"))] = Field(
        pattern=ADDRESS, description="address of one file, with {tag} and {file}"
    )
    tag: str = Field(description="edition, given by a tag of the repository")
    licence: str = Field(description="licence as the authors state it")


class Params(Section):
    """Sources of adjectives and verbs."""

    adjectives: Adjectives = Field(description="13 classes")
    verbs: Verbs = Field(description="15 classes")


def fetch(params: Params, politeness: Politeness, into: Path) -> None:
    """Download the adjectives and all 15 files of verbs; refuse unreadable files."""
    fetch = Fetch("supersenses", params, politeness, into)
    files = [("adjectives/adjective_words.predicted", params.adjectives.address, adjectives)]
    for name in VERBS:
        file = f"verb.{name}.yaml"
        url = params.verbs.address.format(tag=params.verbs.tag, file=file)
        files.append((f"verbs/{file}", url, synsets))  # type: ignore[arg-type]
    for name, url, reader in Bar(files, desc="supersenses", unit="file"):
        fetch.read({name: url}, reader)
    fetch.close(
        f"{params.adjectives.address} and {params.verbs.address}",
        " AND ".join(sorted({params.adjectives.licence, params.verbs.licence})),
        CITATION,
        {"files": len(files)},
    )
