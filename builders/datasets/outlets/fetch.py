"""Articles of news outlets, from the addresses or paths in the params."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from pydantic import Field, model_validator

from plumbline.builders.core.errors import Bar
from plumbline.builders.core.params import Params as Section
from plumbline.builders.fetch.files import Fetch, citations, declared_once, licences
from plumbline.builders.fetch.http import ADDRESS, Politeness
from plumbline.builders.readers.articles import Corpus

OWN = r"\.{0,2}/"  # prefixes of paths that a user gives


class Params(Section):
    """Corpora, by language."""

    corpora: dict[str, list[Corpus]] = Field(min_length=1, description="per language")

    @model_validator(mode="after")
    def _apart(self) -> Params:
        declared_once(self.corpora, lambda corpus: [corpus.address], f"{ADDRESS}|{OWN}")
        return self


def fetch(params: Params, politeness: Politeness, into: Path) -> None:
    """Download or copy the file of every corpus, and check every record."""
    fetch = Fetch("news", params, politeness, into)
    declared = [(code, c) for code, corpora in sorted(params.corpora.items()) for c in corpora]
    counts = {}
    for language, corpus in Bar(declared, desc="news", unit="corpus"):
        path = fetch.large(corpus.path(language), corpus.address, partial(_wrong, corpus))
        counts[f"{language}/{corpus.name}"] = sum(1 for _ in corpus.articles(path))
    named = [(corpus.name, corpus) for _, corpus in declared]
    fetch.close("each corpus's own, under request", licences(named), citations(named), counts)


def _wrong(corpus: Corpus, file: Path) -> str | None:
    try:
        number = sum(1 for _ in corpus.articles(file))
    except ValueError as error:
        return str(error)
    return None if number else "the file has no articles"
