"""Texts for classifiers of hate speech and misinformation, from the checkout or an address."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

from pydantic import Field

from plumbline.builders.core.errors import Bar
from plumbline.builders.core.params import Params as Section
from plumbline.builders.datasets.downstream.build import CONFIG, NOT_SHIPPED, PAGE
from plumbline.builders.datasets.downstream.read import Corpus, read
from plumbline.builders.fetch.files import Fetch, citations, licences
from plumbline.builders.fetch.http import Politeness


class Params(Section):
    """Corpora to fetch, by name."""

    corpora: dict[Annotated[str, Field(pattern=CONFIG)], Corpus] = Field(
        min_length=1, description="corpora by name; the name is also the config in `downstream`"
    )


def fetch(params: Params, politeness: Politeness, into: Path) -> None:
    """Copy or download every file (archives stay packed); refuse files in other formats."""
    fetch = Fetch("downstream", params, politeness, into, PAGE)
    corpora = sorted(params.corpora.items())
    counts = {}
    for config, corpus in Bar(corpora, desc="downstream", unit="corpus"):
        why = "; its authors provide it: https://osf.io/53tfs" if config in NOT_SHIPPED else ""
        for part, address in sorted(corpus.parts.items()):
            counts[f"{config}/{part}"] = fetch.read(
                {corpus.path(config, part): address.partition("#")[0]},
                partial(read, corpus, part),
                f"no such file for {config}{why}",
            )
    places = dict.fromkeys(address for _, c in corpora for _, address in sorted(c.parts.items()))
    fetch.close("; ".join(places), licences(corpora), citations(corpora), counts)
