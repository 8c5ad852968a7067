"""Texts with sentiment labels, from the addresses in the params."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from pydantic import Field, model_validator

from plumbline.builders.core.errors import Bar
from plumbline.builders.core.params import Params as Section
from plumbline.builders.datasets.labelled_texts.build import Corpus
from plumbline.builders.fetch.files import Fetch, citations, declared_once, licences
from plumbline.builders.fetch.http import Politeness


class Params(Section):
    """Corpora, by language."""

    corpora: dict[str, list[Corpus]] = Field(min_length=1, description="per language")

    @model_validator(mode="after")
    def _apart(self) -> Params:
        declared_once(
            self.corpora, lambda c: [a for s in c.splits() for a in c.files("", s).values()]
        )
        return self


def fetch(params: Params, politeness: Politeness, into: Path) -> None:
    """Download every file of every corpus; refuse texts and labels that do not match."""
    fetch = Fetch("labelled_texts", params, politeness, into)
    declared = [(code, c) for code, corpora in sorted(params.corpora.items()) for c in corpora]
    for language, corpus in Bar(declared, desc="labelled texts", unit="corpus"):
        for split in corpus.splits():
            fetch.read(corpus.files(language, split), partial(corpus.read, split))
    named = [(corpus.name, corpus) for _, corpus in declared]
    counts = {"corpora": len(declared), "languages": len(params.corpora)}
    fetch.close("each corpus's own, under request", licences(named), citations(named), counts)
