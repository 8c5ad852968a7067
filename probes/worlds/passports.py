"""What is planted in a world of countries: classifiers and masked models that know names.

Every country has an offset, every name of its gazetteer has the mean offset of the countries that
list it and a part of its own, and a text has the mean of the names in it. In a classifier the
offset is added to P+ - P-, in a masked model to the log-probability of the name. With the spread
of the offsets 0 it is the null world: names differ, countries do not.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from plumbline.builders.core.params import Params


class Nations(Params):
    """What is planted, and the tiny model that is trained on it."""

    targets: list[str] = Field(
        ["sentiment-en"], min_length=1, description="configs of counterfactuals"
    )
    seed: int = Field(1, description="of the world and the training")
    offset: float = Field(
        0.2,
        ge=0,
        description="largest offset of a country: in P+ - P-, or in nats for a masked model",
    )
    noise: float = Field(0.03, ge=0, description="SD of a name's own part, in the same unit")
    architecture: Literal["bert"] = Field("bert", description="kind of the model")
    layers: int = Field(1, ge=1, description="layers of the model")
    hidden: int = Field(64, ge=8, description="width of the model")
    steps: int = Field(150, ge=1, description="training steps")
    batch: int = Field(96, ge=1, description="texts in each of them")
    learning_rate: float = Field(0.006, gt=0, description="highest learning rate of Adam")

    @property
    def null(self) -> bool:
        """Whether countries are alike in it."""
        return not self.offset
