"""Universal Dependencies treebanks, file by file, at a release tag."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, Field

from plumbline.builders.core.errors import Bar
from plumbline.builders.core.params import Params as Section
from plumbline.builders.datasets.words.build import words
from plumbline.builders.fetch.files import Fetch, fillable
from plumbline.builders.fetch.http import ADDRESS, Politeness

CITATION = (
    "de Marneffe, Manning, Nivre and Zeman (2021), Universal Dependencies, Computational "
    "Linguistics 47(2), https://doi.org/10.1162/coli_a_00402"
)


class Treebank(Section):
    """Files of one treebank at one release."""

    name: str = Field(description="repository of the treebank, e.g. UD_English-EWT")
    tag: str = Field(description="release tag, e.g. r2.17")
    files: list[str] = Field(min_length=1, description="files to read, e.g. en_ewt-ud-train.conllu")
    licence: str = Field(description="licence of the treebank, as stated on its page")


class Params(Section):
    """Address and selection of treebanks."""

    address: Annotated[str, AfterValidator(fillable("treebank", "tag", "file"))] = Field(
        pattern=ADDRESS, description="address of one file, with {treebank}, {tag} and {file}"
    )
    treebanks: dict[str, list[Treebank]] = Field(min_length=1, description="per language")


def fetch(params: Params, politeness: Politeness, into: Path) -> None:
    """Download every file named in the params; refuse files that are not complete CoNLL-U."""
    fetch = Fetch("ud", params, politeness, into)
    files = [
        (language, bank, file)
        for language, banks in sorted(params.treebanks.items())
        for bank in banks
        for file in bank.files
    ]
    for language, bank, file in Bar(files, desc="treebanks", unit="file"):
        url = params.address.format(treebank=bank.name, tag=bank.tag, file=file)
        fetch.read({f"{language}/{file}": url}, words)
    licence = " AND ".join(sorted({bank.licence for _, bank, _ in files}))
    counts = {"files": len(files), "languages": len(params.treebanks)}
    fetch.close(params.address, licence, CITATION, counts)
