"""What params.yaml says of a model: where it comes from and how it is run."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, model_validator

from builders.lib.params import Params
from builders.lib.problem import Problem
from probes.world.language import World


class Model(Params):
    """One model: either a Hub ``id`` with a pinned ``revision``, or a ``world`` to be trained."""

    id: str | None = Field(None, description="id on the Hugging Face Hub, or a local folder")
    revision: str | None = Field(
        None, pattern=r"^[0-9a-f]{40}$", description="commit on the Hub, all 40 digits"
    )
    world: World | None = Field(None, description="a planted world, trained by the pipeline")
    kind: Literal["masked"] = Field("masked", description="kind of language model")
    dtype: Literal["float32", "float64", "bfloat16"] = Field(
        "float32", description="arithmetic of the model"
    )
    languages: list[str] | None = Field(
        None, description="languages it is asked in; default: all of the probe's"
    )

    @model_validator(mode="before")
    @classmethod
    def _one_origin(cls, given: Any) -> Any:
        if isinstance(given, dict):
            if bool(given.get("id")) == bool(given.get("world")):
                raise ValueError("give either id and revision, or world")
            if given.get("id") and not given.get("revision") and not _local(given["id"]):
                raise ValueError(
                    f"{given['id']} needs a pinned revision; paste the 40 digits of the commit "
                    "from its page on the Hub as `revision:`"
                )
        return given


def _local(name: str) -> bool:
    return name.startswith((".", "/", "data/"))


class Models(Params):
    """All models, by name."""

    models: dict[str, Model]


def model(name: str) -> Model:
    """Return one model's params.

    Raises
    ------
    Problem
        If params.yaml has no such model, or its entry is wrong.
    """
    from builders.lib.params import read, section

    known = read().get("models") or {}
    if name not in known:
        names = ", ".join(known) or "none"
        raise Problem(f"params.yaml: no model {name!r} under models; there are: {names}")
    return section(f"models.{name}", Model)
