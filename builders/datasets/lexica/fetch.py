"""Sentiment lexica, each file from the address that its author gives."""

from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING

from pydantic import Field, model_validator

from plumbline.builders.core.params import Params as Section
from plumbline.builders.core.progress import Bar
from plumbline.builders.core.snapshot import resume, same_request, write_bytes, write_manifest
from plumbline.builders.datasets.lexica.formats import View, wrong
from plumbline.builders.fetch.http import ADDRESS, Politeness, get

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
    """Fetch every file of every view into a folder whose name is its date, archives as sent.

    Resumable: a file that is there is not asked for again; the manifest comes last. It holds the
    views as declared, so that a snapshot says by itself how it is read.

    Raises
    ------
    Problem
        If an address is wrong or out of reach, no entry can be read in a body, or the folder
        holds a fetch that was begun with other parameters.
    """
    resume(into)
    request = params.model_dump(mode="json")
    begun = into / ".request.json"  # until the manifest, which holds it too, is written
    same_request(begun, request)
    wanted = [
        (view, address, path)
        for language, views in sorted(params.views.items())
        for view in views
        for address, path in view.paths(language).items()
    ]
    for view, address, path in Bar(wanted, desc="lexica", unit="file"):
        if not (into / path).exists():
            body = get(address, politeness, functools.partial(wrong, view, address))
            write_bytes(into / path, body)
    every = [(code, v) for code, views in sorted(params.views.items()) for v in views]
    terms = {
        f"{v.name}: {v.licence}{'' if v.redistribute else ' (rows not to be published)'}"
        for _, v in every
    }
    write_manifest(
        into,
        {
            "source": "lexica",
            "address": "each view's own, under request",
            "retrieved": into.name,
            "licence": "; ".join(sorted(terms)),
            "citation": "; ".join(sorted({f"{v.name}: {v.citation}" for _, v in every})),
            "request": request,
            "counts": {"files": len(wanted), "views": len(every), "languages": len(params.views)},
        },
    )
    begun.unlink()
