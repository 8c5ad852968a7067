"""Articles of news outlets, each file from the address or place that the params give."""

from __future__ import annotations

import re
import shutil
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import Field, model_validator

from plumbline.builders.core.errors import Problem
from plumbline.builders.core.params import Params as Section
from plumbline.builders.core.progress import Bar
from plumbline.builders.core.snapshot import resume, same_request, write_manifest
from plumbline.builders.fetch.download import download
from plumbline.builders.fetch.http import ADDRESS
from plumbline.builders.readers.articles import Corpus

if TYPE_CHECKING:
    from plumbline.builders.fetch.http import Politeness

OWN = r"\.{0,2}/"  # how a path of the user's begins


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
                if not re.match(f"{ADDRESS}|{OWN}", corpus.address):
                    raise ValueError(
                        f"{language}/{corpus.name}: {corpus.address!r} is no http address; a file "
                        "of your own begins with / or ./"
                    )
        return self


def fetch(params: Params, politeness: Politeness, into: Path) -> None:
    """Fetch the file of every corpus into a folder whose name is its date, as sent.

    Resumable: a file that is there is not asked for again, one that was begun is continued; the
    manifest comes last. It holds the corpora as declared, so that a snapshot says by itself how it
    is read. Every record of a file is read once before the file counts as whole.

    Raises
    ------
    Problem
        If an address is wrong or out of reach, a file is not of its format or lacks a column, or
        the folder holds a fetch that was begun with other parameters.
    """
    resume(into)
    request = params.model_dump(mode="json")
    begun = into / ".request.json"  # until the manifest, which holds it too, is written
    same_request(begun, request)
    every = [(code, c) for code, corpora in sorted(params.corpora.items()) for c in corpora]
    counts = {}
    for language, corpus in Bar(every, desc="news", unit="corpus"):
        path = into / corpus.path(language)
        if path.exists():
            pass
        elif re.match(OWN, corpus.address):
            _copy(corpus, path)
        else:
            download(corpus.address, politeness, path, partial(_wrong, corpus))
        counts[f"{language}/{corpus.name}"] = sum(1 for _ in corpus.articles(path))
    terms = {
        f"{c.name}: {c.licence}{'' if c.redistribute else ' (rows not to be published)'}"
        for _, c in every
    }
    write_manifest(
        into,
        {
            "source": "news",
            "address": "each corpus's own, under request",
            "retrieved": into.name,
            "licence": "; ".join(sorted(terms)),
            "citation": "; ".join(sorted({f"{c.name}: {c.citation}" for _, c in every})),
            "request": request,
            "counts": counts,
        },
    )
    begun.unlink()


def _copy(corpus: Corpus, path: Path) -> None:
    """Copy the user's own file, if it is one of articles."""
    own = Path(corpus.address)
    if not own.is_file():
        raise Problem(f"{own}: no such file; name your copy under sources.news in params.yaml")
    if wrong := _wrong(corpus, own):
        raise Problem(f"{own}: {wrong}; mend it, or how it is declared under sources.news")
    writing = path.with_name(f".writing-{path.name}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(own, writing)
        writing.chmod(0o644)
        writing.replace(path)
    except OSError as error:
        raise Problem(
            f"{path}: could not be written ({error.strerror}); free some space and run the same "
            "command again, it continues where it stopped"
        ) from error


def _wrong(corpus: Corpus, file: Path) -> str | None:
    try:
        number = sum(1 for _ in corpus.articles(file))
    except ValueError as error:
        return str(error)
    return None if number else "no article in it"
