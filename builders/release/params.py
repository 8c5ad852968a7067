"""The section ``publish`` of the params: permissions, and the contact on cards."""

from __future__ import annotations

import re

from pydantic import Field, field_validator

from plumbline.builders.core.params import FILE, section
from plumbline.builders.core.params import Params as Section
from plumbline.builders.readers.declared import is_open

PARTISAN = ("corpora", "outlets")  # datasets of political texts, also used to train models
PRETRAINED = "pretrained"


class Params(Section):
    """Terms of publishing."""

    acknowledged: tuple[str, ...] = Field(
        (),
        description="partisan texts (`corpora`, `outlets`) and models trained on them "
        "(`pretrained/MODEL`) that may be published privately, with manual approval",
    )
    contact: str = Field(
        "",
        description="e-mail or address for requests to remove a person; on every card, and "
        "required for publishing",
    )
    licences: dict[str, str] = Field(
        {},
        description="SPDX id of an open licence by a source's wording of it; sources with other "
        "wordings are not published",
    )

    @field_validator("acknowledged")
    @classmethod
    def _known(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        for name in names:
            if name not in PARTISAN and not re.fullmatch(rf"{PRETRAINED}/[\w-]+", name):
                raise ValueError(f"{name}: write {', '.join(PARTISAN)} or {PRETRAINED}/MODEL")
        return names

    @field_validator("licences")
    @classmethod
    def _open(cls, named: dict[str, str]) -> dict[str, str]:
        for words, licence in named.items():
            if not is_open(licence):
                raise ValueError(f"{words}: {licence} is no SPDX id of an open licence")
        return named


def publishing() -> Params:
    """Return the section of the params, or the defaults if there is no params file."""
    return section("publish", Params) if FILE.is_file() else Params()
