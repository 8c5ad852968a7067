"""The section ``publish`` of the params: what may be published, and the contact on cards."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field

from plumbline.builders.core.params import FILE, section
from plumbline.builders.core.params import Params as Section
from plumbline.builders.readers.declared import is_open

PARTISAN = ("corpora", "outlets")  # datasets of political texts, also used to train models
PRETRAINED = "pretrained"


def _open(licence: str) -> str:
    if not is_open(licence):
        raise ValueError(f"{licence} is no SPDX id of an open licence")
    return licence


class Params(Section):
    """Conditions for publishing."""

    acknowledged: tuple[
        Annotated[str, Field(pattern=rf"^({'|'.join(PARTISAN)}|{PRETRAINED}/[\w-]+)$")], ...
    ] = Field(
        (),
        description="partisan texts (`corpora`, `outlets`) and models trained on them "
        "(`pretrained/MODEL`) that may be published privately, with manual approval of readers",
    )
    contact: str = Field(
        "",
        description="e-mail address or web page for requests to remove a person; shown on "
        "every card, and required for publishing",
    )
    licences: dict[str, Annotated[str, AfterValidator(_open)]] = Field(
        {},
        description="SPDX id of an open licence, by the words with which a source states it; "
        "sources that state a licence in other words are not published",
    )


def publishing() -> Params:
    """Return the section of the params, or the defaults if there is no params file."""
    return section("publish", Params) if FILE.is_file() else Params()
