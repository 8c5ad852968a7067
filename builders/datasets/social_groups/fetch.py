"""Lists of social groups, one file per language: the project's own lists, or yours.

The list of Choenni et al. (2021) consists of a few hundred names. They are facts, which this
project stores in git in its own spelling. Each file is in the checkout or at an address.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import Field

from plumbline.builders.core.params import Params as Section
from plumbline.builders.datasets.social_groups.read import groups
from plumbline.builders.fetch.files import Fetch, joined
from plumbline.builders.fetch.http import Politeness

CITATION = (
    "Choenni, Shutova and van Rooij (2021), Stepmothers are mean and academics are pretentious: "
    "What do pretrained language models learn about you?, EMNLP, "
    "https://doi.org/10.18653/v1/2021.emnlp-main.111 (categories and English groups); the project "
    "(usual spellings)"
)
MISSING = "no such file of groups"


class Params(Section):
    """Files of the lists."""

    files: dict[Annotated[str, Field(pattern="^[A-Za-z0-9-]+$")], str] = Field(
        min_length=1, description="for each language, a path in the checkout or an http address"
    )
    licence: str = Field(description="licence of the files")
    citation: str = Field(CITATION, description="reference to cite for the files")


def fetch(params: Params, politeness: Politeness, into: Path) -> None:
    """Copy or download every file, byte for byte; refuse files without a list of groups."""
    fetch = Fetch("social_groups", params, politeness, into)
    numbers = [
        fetch.read({f"{language}.csv": address}, groups, MISSING)
        for language, address in sorted(params.files.items())
    ]
    counts = {"languages": len(numbers), "groups": sum(numbers)}
    fetch.close(joined(params.files.values()), params.licence, params.citation, counts)
