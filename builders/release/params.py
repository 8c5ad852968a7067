"""The section ``publish`` of the params: what may be published, and the contact on cards."""

from __future__ import annotations

import re

from pydantic import Field, field_validator

from plumbline.builders.core.params import FILE, section
from plumbline.builders.core.params import Params as Section
from plumbline.builders.readers.declared import is_open

PARTISAN = ("corpora", "outlets")  # texts of political sides, and what models are trained on
PRETRAINED = "pretrained"


class Params(Section):
    """Terms of publishing."""

    acknowledged: tuple[str, ...] = Field(
        (),
        description="partisan texts (`corpora`, `outlets`) and models trained on them "
        "(`pretrained/MODEL`) that may be published: privately, each reader let in by hand",
    )
    contact: str = Field(
        "",
        description="e-mail or address of whoever takes people out who ask for it; on every card, "
        "and nothing is published without it",
    )
    licences: dict[str, str] = Field(
        {},
        description="SPDX id of an open licence that you know a source's words to stand for, by "
        "these words: a licence in words is not published otherwise",
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
    """Return the section as the params have it; all defaults where there are no params."""
    return section("publish", Params) if FILE.is_file() else Params()
