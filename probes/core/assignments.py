"""The models of each probe: the user's (`assignments`) and the controls (`controls`).

The lists are separate from the params of the probes, so that adding a model does not make the
outputs of other models out of date.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from plumbline.builders.core.params import Params as Section
from plumbline.builders.core.params import check, read
from plumbline.probes import EACH, POOLED

LISTS = {  # list of models used by an analysis of single models without a list of its own
    "pmi": "words",
    "latent": "words",
    "supersenses": "words",
    "clusters": "representations",
}


class Params(Section):
    """Names of models, for each probe and for long-running analyses."""

    associations: list[str] = Field([], description="pmi over groups, sentiment and anova follow")
    words: list[str] = Field([], description="of associations: pmi, latent and supersenses")
    representations: list[str] = Field([], description="of words; clusters follow")
    completions: list[str] = Field([], description="recall, emotions and rsa follow")
    after_training: list[str] = Field([], description="of completions; shift follows")
    classification: list[str] = Field([], description="classifiers; nationality follows")
    perplexity: list[str] = Field([], description="masked models; nationality follows")
    agreement: list[str] = Field([], description="values follow")
    subgroups: list[str] = Field([], description="of associations: subgroups are compared")
    robustness: list[str] = Field([], description="of words: tried with other settings")
    stances: list[str] = Field([], description="before and after training; compass follows")
    finetuned_classifiers: list[str] = Field(
        [], description="masked models of stances, made into classifiers; fairness, ensemble follow"
    )


class Controls(Params):
    """The worlds of each probe: its positive and negative controls."""

    sets: list[Literal["sample"]] = Field(
        default=[],
        max_length=1,
        description="sample: run the controls; an empty list leaves them out",
    )


def assigned_models(name: str) -> tuple[str, ...]:
    """Return the models of a probe, or of an analysis of single models, sorted."""
    key = LISTS.get(name, name)
    return tuple(sorted({model for lists in _lists().values() for model in getattr(lists, key)}))


def stage_of(name: str, model: str = "") -> str:
    """Return the stage of dvc.yaml that makes the outputs or tables of a model, or of all models.

    All planted worlds share one stage, and all groups of models another.
    """
    controls = _lists().get("controls")
    if controls and model in getattr(controls, LISTS.get(name, name), ()):
        return f"{name}-controls@{read()['controls']['sets'][0]}"
    if model:
        return f"{name}@{model}"
    return f"{name}-{POOLED}" if name in EACH else name


def _lists() -> dict[str, Section]:
    """Return the lists of models: the user's, and those of the controls if they are run."""
    keys: dict[str, type[Section]] = {"assignments": Params}
    tree = read()
    if (tree.get("controls") or {}).get("sets"):
        keys["controls"] = Controls
    return dict(check({key: model for key, model in keys.items() if key in tree}))
