"""Which models are asked what.

The lists stand apart from the params of the probes: a model that is added must not make the
answers of the others out of date.
"""

from __future__ import annotations

from pydantic import Field

from plumbline.builders.core.params import Params as Section
from plumbline.builders.core.params import section

LISTS = {  # list that an analysis of single models follows, where it has none of its own name
    "pmi": "words",
    "latent": "words",
    "supersenses": "words",
    "clusters": "representations",
}


class Params(Section):
    """Names under `models`, for each probe and for the analyses that take long."""

    associations: list[str] = Field(
        description="asked for words; the tables over all models follow: pooled, sentiment, anova"
    )
    words: list[str] = Field(
        description="of associations: those with tables of single words: pmi, latent, supersenses"
    )
    representations: list[str] = Field(
        description="of words: asked for states of words; clusters follow"
    )
    stereotypes: list[str] = Field(description="asked about social groups; recall follows")
    finetuned: list[str] = Field(description="of those: trained on news and asked again")
    classification: list[str] = Field(
        description="classifiers that are asked about texts with other names; nationality follows"
    )
    perplexity: list[str] = Field(description="masked models that are asked about these texts")
    agreement: list[str] = Field(
        description="asked whether they agree; the tables of values follow"
    )
    subgroups: list[str] = Field(description="of associations: those whose subgroups are compared")
    robustness: list[str] = Field(description="of words: those that are tried otherwise")
    leaning: list[str] = Field(
        description="asked where they stand on political statements, before and after training; "
        "the tables of leaning follow"
    )
    finetune: list[str] = Field(
        description="masked models of leaning of which classifiers are made; fairness and ensemble "
        "follow"
    )


def asked(name: str) -> tuple[str, ...]:
    """Return the models of a probe, or of an analysis of single models, sorted."""
    return tuple(sorted(getattr(section("asked", Params), LISTS.get(name, name))))
