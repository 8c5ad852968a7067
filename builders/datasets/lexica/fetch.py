"""Sentiment lexica, whose files come from their authors' addresses or from the checkout."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from pydantic import Field, model_validator

from plumbline.builders.core.errors import Bar
from plumbline.builders.core.params import Params as Section
from plumbline.builders.datasets.lexica.formats import View, read
from plumbline.builders.datasets.lexica.published import FILE, PUBLISHED, Published
from plumbline.builders.fetch.files import Fetch, citations, declared_once, licences
from plumbline.builders.fetch.http import Politeness
from plumbline.builders.readers.declared import Terms


class Params(Section):
    """Lexica, by language."""

    views: dict[str, list[View]] = Field(min_length=1, description="per language")
    published: Published | None = Field(
        None, description="combined English lexicon as published by its authors, used unchanged"
    )

    @model_validator(mode="after")
    def _apart(self) -> Params:
        declared_once(self.views, lambda view: view.files.values(), ".")
        for language, views in self.views.items():
            for view in views:
                if len(set(view.paths(language).values())) < len(view.paths(language)):
                    raise ValueError(f"{language}/{view.name}: two files have the same name")
        return self


def fetch(params: Params, politeness: Politeness, into: Path) -> None:
    """Download or copy every file of every view unchanged; refuse files without entries."""
    fetch = Fetch("lexica", params, politeness, into)
    listed = [(code, v) for code, views in sorted(params.views.items()) for v in views]
    files = [(v, address, path) for code, v in listed for address, path in v.paths(code).items()]
    for view, address, path in Bar(files, desc="lexica", unit="file"):
        fetch.read({path: address}, partial(read, view, address))
    named: list[tuple[str, Terms]] = [(view.name, view) for _, view in listed]
    if params.published:
        fetch.read({FILE: params.published.lexicon}, params.published.read)
        named.append((PUBLISHED, params.published))
    counts = {"files": len(files), "views": len(listed), "languages": len(params.views)}
    fetch.close("each view's own, under request", licences(named), citations(named), counts)
