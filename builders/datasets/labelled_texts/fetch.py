"""Texts with labels of sentiment, each file from the address that the params give."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pydantic import Field, model_validator

from plumbline.builders.core.errors import Problem
from plumbline.builders.core.params import Params as Section
from plumbline.builders.core.progress import Bar
from plumbline.builders.datasets.labelled_texts.build import MAPPING, SPLITS, Corpus, labelled
from plumbline.builders.fetch.files import Fetch, citations, licences, web_page
from plumbline.builders.fetch.http import ADDRESS, Politeness

if TYPE_CHECKING:
    from pathlib import Path


class Params(Section):
    """Which corpora, per language."""

    corpora: dict[str, list[Corpus]] = Field(min_length=1, description="per language")

    @model_validator(mode="after")
    def _named_once(self) -> Params:
        for language, corpora in self.corpora.items():
            names = [corpus.name for corpus in corpora]
            if len(set(names)) < len(names) or not names:
                raise ValueError(f"{language}: needs corpora, each under a name of its own")
            for corpus in corpora:
                for address in _addresses(corpus):
                    if not re.match(ADDRESS, address):
                        raise ValueError(
                            f"{language}/{corpus.name}: {address!r} is no http address"
                        )
        return self


def fetch(params: Params, politeness: Politeness, into: Path) -> None:
    """Download every file of every corpus; texts and labels that do not fit are refused."""
    fetch = Fetch("labelled_texts", params, politeness, into)
    every = [(code, c) for code, corpora in sorted(params.corpora.items()) for c in corpora]
    for language, corpus in Bar(every, desc="labelled texts", unit="corpus"):
        mapping = fetch.file(f"{language}/{corpus.name}/{MAPPING}", corpus.mapping, web_page)
        for split in SPLITS:
            paths, part = corpus.paths(language, split), corpus.part(split)
            kept = list(zip(paths, (part.texts, part.labels), strict=True))
            texts, labels = (fetch.body(path, place, web_page) for path, place in kept)
            try:
                for _ in labelled(texts, labels, mapping):
                    pass
            except ValueError as error:
                raise Problem(
                    f"{part.texts}, {part.labels}: {error}; check the addresses in params.yaml "
                    "under sources.labelled_texts"
                ) from error
            for (path, _), body in zip(kept, (texts, labels), strict=True):
                fetch.keep(path, body)
    named = [(corpus.name, corpus) for _, corpus in every]
    counts = {"corpora": len(every), "languages": len(params.corpora)}
    fetch.close("each corpus's own, under request", licences(named), citations(named), counts)


def _addresses(corpus: Corpus) -> list[str]:
    parts = [corpus.part(split) for split in SPLITS]
    return [corpus.mapping, *(a for part in parts for a in (part.texts, part.labels))]
