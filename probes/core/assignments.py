"""Which models each probe is put to: the user's (`assignments`) and the controls (`controls`).

The lists stand apart from the params of the probes: a model that is added must not make the
outputs of the others out of date.
"""

from __future__ import annotations

from pydantic import Field

from plumbline.builders.core.params import Params as Section
from plumbline.builders.core.params import check

LISTS = {  # list that an analysis of single models follows, where it has none of its own name
    "pmi": "words",
    "latent": "words",
    "supersenses": "words",
    "clusters": "representations",
}


class Params(Section):
    """Names of models, for each probe and for the analyses that take long."""

    associations: list[str] = Field(
        default=[],
        description="asked for words; the tables over all models follow: pooled, sentiment, anova"
    )
    words: list[str] = Field(
        default=[],
        description="of associations: those with tables of single words: pmi, latent, supersenses"
    )
    representations: list[str] = Field(
        default=[],
        description="of words: asked for states of words; clusters follow"
    )
    stereotypes: list[str] = Field(default=[], description="asked about social groups; recall follows")
    finetuned: list[str] = Field(default=[], description="of those: trained on news and asked again")
    classification: list[str] = Field(
        default=[],
        description="classifiers that are asked about texts with other names; nationality follows"
    )
    perplexity: list[str] = Field(default=[], description="masked models that are asked about these texts")
    agreement: list[str] = Field(
        default=[],
        description="asked whether they agree; the tables of values follow"
    )
    subgroups: list[str] = Field(default=[], description="of associations: those whose subgroups are compared")
    robustness: list[str] = Field(default=[], description="of words: those that are tried otherwise")
    leaning: list[str] = Field(
        default=[],
        description="asked where they stand on political statements, before and after training; "
        "the tables of leaning follow"
    )
    finetune: list[str] = Field(
        default=[],
        description="masked models of leaning of which classifiers are made; fairness and ensemble "
        "follow"
    )


class Controls(Params):
    """The worlds of each probe, which are its positive and negative controls."""

    sets: list[str] = Field(
        default=[], description="sample: run the controls; an empty list leaves them out"
    )


def asked(name: str) -> tuple[str, ...]:
    """Return the models of a probe, or of an analysis of single models, sorted."""
    found = check({"assignments": Params, "controls": Controls})
    key = LISTS.get(name, name)
    return tuple(sorted({model for lists in found.values() for model in getattr(lists, key)}))
