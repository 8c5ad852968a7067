"""Texts of the target domain, each file from where the params say: the checkout or an address."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field, model_validator

from plumbline.builders.core.errors import Problem
from plumbline.builders.core.params import Params as Section
from plumbline.builders.core.progress import Bar
from plumbline.builders.core.snapshot import resume, same_request, write_bytes, write_manifest
from plumbline.builders.fetch.local_files import bring, web_page
from plumbline.builders.readers.tagged_texts import Corpus, texts

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from plumbline.builders.fetch.http import Politeness

MISSING = "no such file of texts; name another under sources.targets in params.yaml"


class Params(Section):
    """Which corpora."""

    corpora: list[Corpus] = Field(min_length=1, description="one entry for each task and language")

    @model_validator(mode="after")
    def _named_once(self) -> Params:
        names = [(corpus.config, corpus.name) for corpus in self.corpora]
        if len(set(names)) < len(names):
            raise ValueError("every corpus of a task and language needs a name of its own")
        return self


def fetch(params: Params, politeness: Politeness, into: Path) -> None:
    """Copy or fetch every file of every corpus into a folder whose name is its date, as it is.

    Resumable: a file that is there is not asked for again; the manifest comes last. It holds the
    corpora as declared, so that a snapshot says by itself how it is read.

    Raises
    ------
    Problem
        If a file is not there or not of its layout, or the folder holds a fetch that was begun with
        other parameters.
    """
    resume(into)
    request = params.model_dump(mode="json")
    begun = into / ".request.json"  # until the manifest, which holds it too, is written
    same_request(begun, request)
    counts: dict[str, int] = {}
    for corpus in Bar(params.corpora, desc="targets", unit="corpus"):
        for part in sorted(corpus.parts):
            files = [into / path for path in corpus.paths(part)]
            places = corpus.places(part)
            bodies = [
                file.read_bytes() if file.exists() else bring(place, web_page, politeness, MISSING)
                for file, place in zip(files, places, strict=True)
            ]
            try:
                number = sum(1 for _ in texts(corpus, part, bodies))
            except ValueError as error:
                raise Problem(
                    f"{', '.join(places)}: {error}; mend it, or how it is declared under "
                    "sources.targets in params.yaml"
                ) from error
            for file, body in zip(files, bodies, strict=True):
                if not file.exists():
                    write_bytes(file, body)
            counts[f"{corpus.config}/{corpus.name}/{part}"] = number
    terms = {
        f"{c.name}: {c.licence}{'' if c.redistribute else ' (rows not to be published)'}"
        for c in params.corpora
    }
    write_manifest(
        into,
        {
            "source": "targets",
            "address": "; ".join(_once(p for c in params.corpora for p in c.parts.values())),
            "retrieved": into.name,
            "licence": "; ".join(sorted(terms)),
            "citation": "; ".join(sorted({f"{c.name}: {c.citation}" for c in params.corpora})),
            "request": request,
            "counts": counts,
        },
    )
    begun.unlink()


def _once(places: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(places))
