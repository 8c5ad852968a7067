"""Settings common to all worlds: model size and training."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from plumbline.builders.core.params import Params

Hidden = Annotated[int, Field(ge=8, description="width of the model")]
Steps = Annotated[int, Field(ge=1, description="training steps")]
Batch = Annotated[int, Field(ge=2, description="prompts or texts in a step")]
Rate = Annotated[float, Field(gt=0, description="highest learning rate of Adam")]


class Tiny(Params):
    """A tiny model."""

    seed: int = Field(1, description="of the language and the training")
    architecture: Literal["bert", "albert"] = Field("bert", description="kind of a masked model")
    layers: int = Field(1, ge=1, description="layers of the model")
    hidden: Hidden = 64
    steps: Steps = 300
    learning_rate: Rate = 0.003
