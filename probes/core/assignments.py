"""Which models each probe is put to: the user's (`assignments`) and the controls (`controls`).

The lists stand apart from the params of the probes: a model that is added must not make the
outputs of the others out of date.
"""

from __future__ import annotations

from pydantic import Field

from plumbline.builders.core.params import Params as Section
from plumbline.builders.core.params import check, read

LISTS = {  # list that an analysis of single models follows, where it has none of its own name
    "pmi": "words",
    "latent": "words",
    "supersenses": "words",
    "clusters": "representations",
}


class Params(Section):
    """Names of models, for each probe and for the analyses that take long."""

    associations: list[str] = Field([], description="pooled_pmi, sentiment and anova follow")
    words: list[str] = Field([], description="of associations: pmi, latent and supersenses")
    representations: list[str] = Field([], description="of words; clusters follow")
    stereotypes: list[str] = Field([], description="recall, emotions and rsa follow")
    finetuned: list[str] = Field([], description="of stereotypes; shift follows")
    classification: list[str] = Field([], description="classifiers; nationality follows")
    perplexity: list[str] = Field([], description="masked models; nationality follows")
    agreement: list[str] = Field([], description="values follow")
    subgroups: list[str] = Field([], description="of associations: subgroups are compared")
    robustness: list[str] = Field([], description="of words: tried with other settings")
    leaning: list[str] = Field([], description="before and after training; compass follows")
    finetune: list[str] = Field(
        [], description="masked models of leaning, made into classifiers; fairness, ensemble follow"
    )


class Controls(Params):
    """The worlds of each probe, which are its positive and negative controls."""

    sets: list[str] = Field(
        default=[], description="sample: run the controls; an empty list leaves them out"
    )


def asked(name: str) -> tuple[str, ...]:
    """Return the models of a probe, or of an analysis of single models, sorted."""
    keys: dict[str, type[Section]] = {"assignments": Params, "controls": Controls}
    tree = read()
    if not (tree.get("controls") or {}).get("sets"):  # they are not run
        keys.pop("controls")
    found = check({key: model for key, model in keys.items() if key in tree})
    key = LISTS.get(name, name)
    return tuple(sorted({model for lists in found.values() for model in getattr(lists, key)}))
