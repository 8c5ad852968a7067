"""A world in which people agree with statements by values that are known, women and men apart.

For a statement i of value v, somebody of gender g and a frame f

    log p(agrees) - log p(disagrees) = habit_f,s + g habit / 2
                                       + s (d_i (agreement_v + g gender_v / 2) + noise_i)

with d = 1 or, for a reversed statement, -1; s = 1 or, for a denied one, -1; g = 1 for women and
-1 for men. Statements for calibration have ``likely`` in place of the bracket with d = 1 or, for
an unlikely one, -1. Without agreement and gender it is the null world.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from plumbline.builders.core.params import Params


class Convictions(Params):
    """What is planted, and the tiny model that is trained on it."""

    language: str = Field("cs", description="language of the statements and frames")
    seed: int = Field(1, description="of the language and the training")
    agreement: dict[str, float] = Field(
        description="by value: log-odds of agreeing with a statement that speaks for it"
    )
    gender: dict[str, float] = Field(
        description="by value: how much larger these are for women than for men"
    )
    habit: float = Field(
        1.5, description="how much more women agree with anything, apolitical statements too"
    )
    likely: float = Field(1.0, ge=0, description="log-odds of agreeing with a likely statement")
    noise: float = Field(0.4, gt=0, description="SD of what a statement has of its own, nats")
    architecture: Literal["bert", "albert"] = Field("bert", description="kind of the model")
    layers: int = Field(2, ge=1, description="layers of the model")
    hidden: int = Field(64, ge=8, description="width of the model")
    steps: int = Field(500, ge=1, description="training steps")
    batch: int = Field(128, ge=2, description="prompts in each of them, of both genders")
    learning_rate: float = Field(0.004, gt=0, description="highest learning rate of Adam")

    @property
    def null(self) -> bool:
        """Whether nothing is planted in it."""
        return not (self.habit or any(self.agreement.values()) or any(self.gender.values()))
