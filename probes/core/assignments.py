"""The models of each probe: the user's (`assignments`) and the control models (`controls`).

The lists are separate from the params of the probes, so that adding a model does not invalidate the
outputs of other models.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from plumbline.builders.core.params import Params as Section
from plumbline.builders.core.params import check, read
from plumbline.probes import EACH, POOLED

LISTS = {  # for single-model analyses without a list of models, the list used instead
    "pmi": "words",
    "latent": "words",
    "supersenses": "words",
    "clusters": "representations",
}


class Params(Section):
    """Names of models, for each probe and for long-running analyses."""

    associations: list[str] = Field([], description="used by pooled pmi, sentiment and anova")
    words: list[str] = Field([], description="subset of associations; for pmi, latent, supersenses")
    representations: list[str] = Field([], description="subset of words; used by clusters")
    completions: list[str] = Field([], description="used by recall, emotions and rsa")
    after_training: list[str] = Field([], description="subset of completions; used by shift")
    classification: list[str] = Field([], description="classifiers of texts; used by nationality")
    perplexity: list[str] = Field([], description="masked models; used by nationality")
    agreement: list[str] = Field([], description="used by the analysis `values`")
    subgroups: list[str] = Field([], description="subset of associations; for comparing subgroups")
    stances: list[str] = Field([], description="run before and after training; used by compass")
    finetuned_classifiers: list[str] = Field(
        [], description="masked models from stances, fine-tuned for fairness and ensemble"
    )


class Controls(Params):
    """The control models (worlds) of each probe, positive and negative."""

    sets: list[Literal["sample"]] = Field(
        default=[],
        max_length=1,
        description="[sample] runs the control models; an empty list omits them",
    )


def assigned_models(name: str) -> tuple[str, ...]:
    """Return the sorted names of the models of a probe or of a single-model analysis."""
    key = LISTS.get(name, name)
    return tuple(sorted({model for lists in _lists().values() for model in getattr(lists, key)}))


def stage_of(name: str, model: str = "") -> str:
    """Return the stage in dvc.yaml that makes the outputs or tables of one model, or of all models.

    All control models share one stage, and all groups of models share another.
    """
    controls = _lists().get("controls")
    if controls and model in getattr(controls, LISTS.get(name, name), ()):
        return f"{name}-controls@{read()['controls']['sets'][0]}"
    if model:
        return f"{name}@{model}"
    return f"{name}-{POOLED}" if name in EACH else name


def _lists() -> dict[str, Section]:
    """Return the user's lists of models, and those of the control models if they are run."""
    keys: dict[str, type[Section]] = {"assignments": Params}
    tree = read()
    if (tree.get("controls") or {}).get("sets"):
        keys["controls"] = Controls
    return dict(check({key: model for key, model in keys.items() if key in tree}))
