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

LISTS = {  # model list used by an analysis of single models without a separate list
    "pmi": "words",
    "latent": "words",
    "supersenses": "words",
    "clusters": "representations",
}


class Params(Section):
    """Names of models, for each probe and for long-running analyses."""

    associations: list[str] = Field([], description="used by pmi over groups, sentiment, anova")
    words: list[str] = Field([], description="subset of associations: pmi, latent, supersenses")
    representations: list[str] = Field([], description="subset of words; used by clusters")
    completions: list[str] = Field([], description="used by recall, emotions and rsa")
    after_training: list[str] = Field([], description="subset of completions; used by shift")
    classification: list[str] = Field([], description="classifiers; used by nationality")
    perplexity: list[str] = Field([], description="masked models; used by nationality")
    agreement: list[str] = Field([], description="values follow")
    subgroups: list[str] = Field([], description="subset of associations with compared subgroups")
    stances: list[str] = Field([], description="before and after training; used by compass")
    finetuned_classifiers: list[str] = Field(
        [], description="masked models in stances, made classifiers; used by fairness and ensemble"
    )


class Controls(Params):
    """The control models (worlds) of each probe, positive and negative."""

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
    """Return the stage in dvc.yaml that makes the outputs or tables of one model, or of all.

    All worlds share one stage, and all groups of models another.
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
