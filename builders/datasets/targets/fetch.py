"""Texts of the target domain, from the checkout or an address in the params."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from pydantic import Field, model_validator

from plumbline.builders.core.errors import Bar
from plumbline.builders.core.params import Params as Section
from plumbline.builders.datasets.targets.build import Corpus, texts
from plumbline.builders.fetch.files import Fetch, citations, licences
from plumbline.builders.fetch.http import Politeness


class Params(Section):
    """Corpora to fetch."""

    corpora: list[Corpus] = Field(min_length=1, description="corpora for each task and language")

    @model_validator(mode="after")
    def _named_once(self) -> Params:
        names = [(corpus.config, corpus.name) for corpus in self.corpora]
        if len(set(names)) < len(names):
            raise ValueError("every corpus of a task and language needs a unique name")
        return self


def fetch(params: Params, politeness: Politeness, into: Path) -> None:
    """Copy or download every file of every corpus; refuse files in other formats."""
    fetch = Fetch("targets", params, politeness, into)
    counts = {
        f"{corpus.config}/{corpus.name}/{part}": fetch.read(
            corpus.files(part), partial(texts, corpus, part), "no such file of texts"
        )
        for corpus in Bar(params.corpora, desc="targets", unit="corpus")
        for part in sorted(corpus.parts)
    }
    corpora = [(corpus.name, corpus) for corpus in params.corpora]
    places = dict.fromkeys(address for _, corpus in corpora for address in corpus.parts.values())
    fetch.close("; ".join(places), licences(corpora), citations(corpora), counts)
