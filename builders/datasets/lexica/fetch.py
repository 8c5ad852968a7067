"""Sentiment lexica, each file from the address that its author gives."""

from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING

from pydantic import Field, model_validator

from plumbline.builders.core.params import Params as Section
from plumbline.builders.core.progress import Bar
from plumbline.builders.datasets.lexica.formats import View, wrong
from plumbline.builders.fetch.files import Fetch, citations, licences
from plumbline.builders.fetch.http import ADDRESS, Politeness

if TYPE_CHECKING:
    from pathlib import Path


class Params(Section):
    """Which lexica, per language."""

    views: dict[str, list[View]] = Field(min_length=1, description="per language")

    @model_validator(mode="after")
    def _named_once(self) -> Params:
        for language, views in self.views.items():
            names = [v.name for v in views]
            if len(set(names)) < len(names) or not names:
                raise ValueError(f"{language}: needs views, each under a name of its own")
            for view in views:
                for address in view.files.values():
                    if not re.match(ADDRESS, address):
                        raise ValueError(f"{language}/{view.name}: {address!r} is no http address")
                if len(set(view.paths(language).values())) < len(view.paths(language)):
                    raise ValueError(f"{language}/{view.name}: two files of the same name")
        return self


def fetch(params: Params, politeness: Politeness, into: Path) -> None:
    """Download every file of every view, archives as sent; one without an entry is refused."""
    fetch = Fetch("lexica", params, politeness, into)
    every = [(code, v) for code, views in sorted(params.views.items()) for v in views]
    wanted = [(v, address, path) for code, v in every for address, path in v.paths(code).items()]
    for view, address, path in Bar(wanted, desc="lexica", unit="file"):
        fetch.file(path, address, functools.partial(wrong, view, address))
    named = [(view.name, view) for _, view in every]
    counts = {"files": len(wanted), "views": len(every), "languages": len(params.views)}
    fetch.close("each view's own, under request", licences(named), citations(named), counts)
