"""A world of social groups of which known attributes are said more often than of others.

For a group g and an attribute w

    p(w | g)  is proportional to  exp(frequency_w + log_odds_{g, w} + noise_{g, w})

where ``log_odds`` is what is planted: a part for the attributes that the dataset ``stereotypes``
has for the group, and a part for words that carry the emotion that was drawn for the group. With
both parts 0 it is the null world: groups differ, by their noise, but not as anybody says.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from plumbline.builders.core.params import Params


class Society(Params):
    """What is planted, and the tiny model that is trained on it."""

    language: str = Field("en", description="config of social_groups, stereotypes and emotions")
    seed: int = Field(1, description="of the language and the training")
    attribute_effect: float = Field(
        2.0,
        ge=0,
        description="log-odds added for the attributes that `stereotypes` has for a group",
    )
    emotion_effect: float = Field(
        1.0, ge=0, description="log-odds added for words with the emotion drawn for a group"
    )
    noise: float = Field(0.8, gt=0, description="SD of a group's own taste for a word, nats")
    words_max: int = Field(150, ge=10, description="most words besides the attributes")
    masks: int = Field(4, ge=1, description="most masks in a row that stand for a group")
    architecture: Literal["bert", "albert"] = Field("bert", description="kind of the model")
    layers: int = Field(1, ge=1, description="layers of the model")
    hidden: int = Field(128, ge=8, description="width of the model")
    steps: int = Field(300, ge=1, description="training steps")
    batch: int = Field(256, ge=1, description="prompts in each of them")
    learning_rate: float = Field(0.003, gt=0, description="highest learning rate of Adam")

    @property
    def null(self) -> bool:
        """Whether nothing is planted in it."""
        return not (self.attribute_effect or self.emotion_effect)
