"""Which models are asked what.

The lists stand apart from the params of the probes: a model that is added must not make the
answers of the others out of date.
"""

from __future__ import annotations

from pydantic import Field

from builders.lib.params import Params as Section
from builders.lib.params import section


class Params(Section):
    """Names under `models`, for each probe and for the analyses that take long."""

    associations: list[str] = Field(description="asked for words; pmi, latent and others follow")
    representations: list[str] = Field(description="asked for states of words; clusters follow")
    stereotypes: list[str] = Field(description="asked about social groups; recall follows")
    finetuned: list[str] = Field(description="of those: trained on news and asked again")
    subgroups: list[str] = Field(description="of associations: those whose subgroups are compared")
    robustness: list[str] = Field(description="of associations: those that are tried otherwise")


def asked(name: str) -> tuple[str, ...]:
    """Return the models of a probe or analysis, sorted."""
    return tuple(sorted(getattr(section("asked", Params), name)))
