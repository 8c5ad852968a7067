"""What the params of all trainings share."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from plumbline.builders.core.errors import UserError
from plumbline.builders.core.params import Params

OTHER = "other"
Beta = Annotated[float, Field(ge=0, lt=1)]


class Rates(Params):
    """How fast models are trained."""

    learning_rate: dict[str, Annotated[float, Field(gt=0)]] = Field(
        description=f"highest learning rate, by model or for `{OTHER}`"
    )

    def rate(self, name: str, section: str) -> float:
        """Return the learning rate of a model; none for it is a UserError with the section."""
        found = self.learning_rate.get(name, self.learning_rate.get(OTHER))
        if found is None:
            raise UserError(f"{section}.learning_rate: none for {name}, nor for {OTHER}")
        return found


class Recipe(Rates):
    """How models are trained with any of the optimizers."""

    optimizer: Literal["adamw", "adam", "radam"] = Field(
        "adamw", description="whose weight decay is AdamW's, or part of the gradient"
    )
    precision: Literal["float32", "bfloat16"] = Field(
        "float32",
        description="of products, weights being float32: float32 (TF32 on a GPU that has it), or "
        "bfloat16",
    )
    warmup: float = Field(
        0.06, ge=0, lt=1, description="share of the steps in which the learning rate rises"
    )
    betas: tuple[Beta, Beta] = Field((0.9, 0.98), description="of the optimizer")
    epsilon: float = Field(1e-6, gt=0, description="of the optimizer")
