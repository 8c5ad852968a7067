"""What params.yaml says of a model: where it comes from and how it is run."""

from __future__ import annotations

import re
from typing import Literal

from pydantic import Field, model_validator

from builders.lib.params import Params
from builders.lib.problem import Problem
from probes.world.language import World

NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")


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

    @model_validator(mode="after")
    def _one_origin(self) -> Model:
        if bool(self.id) == bool(self.world):
            raise ValueError("give either id and revision, or world")
        if self.id and not self.revision and not _local(self.id):
            raise ValueError(
                f"{self.id} needs a pinned revision; paste the 40 digits of the commit from its "
                "page on the Hub as `revision:`"
            )
        if self.id and self.revision and _local(self.id):
            raise ValueError(f"{self.id} is a folder: it has no revision, take that line out")
        return self


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
    if not isinstance(known, dict) or name not in known or not NAME.fullmatch(name):
        names = ", ".join(known) or "none"
        raise Problem(f"params.yaml: no model {name!r} under models; there are: {names}")
    return section(f"models.{name}", Model)
