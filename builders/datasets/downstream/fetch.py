"""Texts for classifiers of hate speech and misinformation: from the checkout or an address."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from plumbline.builders.core.errors import Problem
from plumbline.builders.core.params import Params as Section
from plumbline.builders.core.progress import Bar
from plumbline.builders.datasets.downstream.build import CONFIG, NOT_SHIPPED, PAGE
from plumbline.builders.datasets.downstream.read import Corpus, read
from plumbline.builders.fetch.files import Fetch, citations, licences, web_page

if TYPE_CHECKING:
    from pathlib import Path

    from plumbline.builders.fetch.http import Politeness


class Params(Section):
    """Which corpora."""

    corpora: dict[Annotated[str, Field(pattern=CONFIG)], Corpus] = Field(
        min_length=1, description="by name: the config of `downstream` that each becomes"
    )


def fetch(params: Params, politeness: Politeness, into: Path) -> None:
    """Copy or download every file, archives as they are; what is not of its layout is refused."""
    fetch = Fetch("downstream", params, politeness, into)
    counts: dict[str, int] = {}
    every = sorted(params.corpora.items())
    for config, corpus in Bar(every, desc="downstream", unit="corpus"):
        for part, place in sorted(corpus.parts.items()):
            path = corpus.path(config, part)
            kept = fetch.body(path, place.partition("#")[0], web_page, _missing(config))
            try:
                counts[f"{config}/{part}"] = len(read(corpus, part, corpus.body(part, kept)))
            except ValueError as error:
                raise Problem(
                    f"{place}: {error}; mend it, or how {config} is declared under "
                    f"sources.downstream.corpora in params.yaml ({PAGE} has the layouts)"
                ) from error
            fetch.keep(path, kept)
    places = dict.fromkeys(place for _, c in every for _, place in sorted(c.parts.items()))
    fetch.close("; ".join(places), licences(every), citations(every), counts)


def _missing(config: str) -> str:
    why = "; its authors give it out, at https://osf.io/53tfs" if config in NOT_SHIPPED else ""
    return (
        f"no such file for {config}{why}; name yours under sources.downstream.corpora in "
        f"params.yaml ({PAGE} has the layouts)"
    )
