"""Texts for classifiers of hate speech and misinformation: from the checkout or an address."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from plumbline.builders.core.errors import Problem
from plumbline.builders.core.params import Params as Section
from plumbline.builders.core.progress import Bar
from plumbline.builders.core.snapshot import resume, same_request, write_bytes, write_manifest
from plumbline.builders.datasets.downstream.build import CONFIG, NOT_SHIPPED, PAGE
from plumbline.builders.fetch.local_files import bring, web_page
from plumbline.builders.readers.labelled_texts import Corpus, read

if TYPE_CHECKING:
    from pathlib import Path

    from plumbline.builders.fetch.http import Politeness


class Params(Section):
    """Which corpora."""

    corpora: dict[Annotated[str, Field(pattern=CONFIG)], Corpus] = Field(
        min_length=1, description="by name: the config of `downstream` that each becomes"
    )


def fetch(params: Params, politeness: Politeness, into: Path) -> None:
    """Copy or fetch every file into a folder whose name is its date, archives as they are.

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
    every = sorted(params.corpora.items())
    for config, corpus in Bar(every, desc="downstream", unit="corpus"):
        for part, place in sorted(corpus.parts.items()):
            path = into / corpus.path(config, part)
            if path.exists():
                kept = path.read_bytes()
            else:
                file = place.partition("#")[0]
                kept = bring(file, web_page, politeness, _missing(config))
            try:
                counts[f"{config}/{part}"] = len(read(corpus, part, corpus.body(part, kept)))
            except ValueError as error:
                raise Problem(
                    f"{place}: {error}; mend it, or how {config} is declared under "
                    f"sources.downstream.corpora in params.yaml ({PAGE} has the layouts)"
                ) from error
            if not path.exists():
                write_bytes(path, kept)
    terms = [
        f"{config}: {c.licence}{'' if c.redistribute else ' (rows not to be published)'}"
        for config, c in every
    ]
    places = dict.fromkeys(place for _, c in every for _, place in sorted(c.parts.items()))
    write_manifest(
        into,
        {
            "source": "downstream",
            "address": "; ".join(places),
            "retrieved": into.name,
            "licence": "; ".join(terms),
            "citation": "; ".join(f"{config}: {c.citation}" for config, c in every),
            "request": request,
            "counts": counts,
        },
    )
    begun.unlink()


def _missing(config: str) -> str:
    why = "; its authors give it out, at https://osf.io/53tfs" if config in NOT_SHIPPED else ""
    return (
        f"no such file for {config}{why}; name yours under sources.downstream.corpora in "
        f"params.yaml ({PAGE} has the layouts)"
    )
