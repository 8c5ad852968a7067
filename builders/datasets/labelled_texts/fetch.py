"""Texts with labels of sentiment, each file from the address that the params give."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pydantic import Field, model_validator

from plumbline.builders.core.errors import Problem
from plumbline.builders.core.params import Params as Section
from plumbline.builders.core.progress import Bar
from plumbline.builders.core.snapshot import resume, same_request, write_bytes, write_manifest
from plumbline.builders.datasets.labelled_texts.build import MAPPING, SPLITS, Corpus, labelled
from plumbline.builders.fetch.http import ADDRESS, Politeness, get
from plumbline.builders.fetch.local_files import web_page

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
    """Fetch every file of every corpus into a folder whose name is its date, as sent.

    Resumable: a split whose files are there is not asked for again; the manifest comes last. It
    holds the corpora as declared, so that a snapshot says by itself how it is read.

    Raises
    ------
    Problem
        If an address is wrong or out of reach, texts and labels do not fit each other, or the
        folder holds a fetch that was begun with other parameters.
    """
    resume(into)
    request = params.model_dump(mode="json")
    begun = into / ".request.json"  # until the manifest, which holds it too, is written
    same_request(begun, request)
    every = [(code, c) for code, corpora in sorted(params.corpora.items()) for c in corpora]
    for language, corpus in Bar(every, desc="labelled texts", unit="corpus"):
        mapping = into / language / corpus.name / MAPPING
        if not mapping.exists():
            write_bytes(mapping, get(corpus.mapping, politeness, web_page))
        for split in SPLITS:
            files = [into / path for path in corpus.paths(language, split)]
            if all(file.exists() for file in files):
                continue
            part = corpus.part(split)
            texts = get(part.texts, politeness, web_page)
            labels = get(part.labels, politeness, web_page)
            try:
                for _ in labelled(texts, labels, mapping.read_bytes()):
                    pass
            except ValueError as error:
                raise Problem(
                    f"{part.texts}, {part.labels}: {error}; check the addresses in params.yaml "
                    "under sources.labelled_texts"
                ) from error
            for file, body in zip(files, (texts, labels), strict=True):
                write_bytes(file, body)
    terms = {
        f"{c.name}: {c.licence}{'' if c.redistribute else ' (rows not to be published)'}"
        for _, c in every
    }
    write_manifest(
        into,
        {
            "source": "labelled_texts",
            "address": "each corpus's own, under request",
            "retrieved": into.name,
            "licence": "; ".join(sorted(terms)),
            "citation": "; ".join(sorted({f"{c.name}: {c.citation}" for _, c in every})),
            "request": request,
            "counts": {"corpora": len(every), "languages": len(params.corpora)},
        },
    )
    begun.unlink()


def _addresses(corpus: Corpus) -> list[str]:
    parts = [corpus.part(split) for split in SPLITS]
    return [corpus.mapping, *(a for part in parts for a in (part.texts, part.labels))]
