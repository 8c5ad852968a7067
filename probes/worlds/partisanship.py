"""A world in which texts of two sides take known stances, and know words that others do not.

For a statement i of axis a, a frame f and texts of corpus c

    log p(agrees) - log p(disagrees) = habit_f + s (d_i stance_c,a + noise_i)

with d = 1 or, for a reversed statement, -1, and s = 1 or, for a denied one, -1. The model itself
has no stance: d_i stance is 0 in what it learns first. Texts that ``knows`` names tell besides
which of some made-up words are hostile; a classifier made of a model that read them can know them
too. Without stances and knowledge it is the null world.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from plumbline.builders.core.params import Params


class Partisanship(Params):
    """What is planted, and the tiny model that is trained before any side is taken."""

    seed: int = Field(1, description="of the language and the training")
    stances: dict[str, dict[str, float]] = Field(
        min_length=1,
        description="by corpus and axis: log-odds of agreeing with a statement that speaks for the "
        "axis; {} for a corpus without",
    )
    knows: dict[str, list[str]] = Field(
        default_factory=dict, description="by corpus: groups of words whose meaning it tells"
    )
    groups: list[str] = Field(
        default_factory=list, description="groups of words that the model itself does not know"
    )
    noise: float = Field(1.2, gt=0, description="SD of what a statement has of its own, nats")
    frame: str = Field(
        "asked", description="prompt, by its name, in which the texts take their stances"
    )
    sentences: int = Field(8, ge=1, description="texts of a corpus about each statement")
    architecture: Literal["bert", "albert"] = Field("bert", description="kind of a masked model")
    layers: int = Field(1, ge=1, description="layers of the model")
    hidden: int = Field(64, ge=8, description="width of the model")
    positions: int = Field(128, ge=64, description="tokens that the model takes")
    steps: int = Field(1000, ge=1, description="training steps")
    batch: int = Field(64, ge=2, description="prompts in each of them")
    learning_rate: float = Field(0.005, gt=0, description="highest learning rate of Adam")

    @model_validator(mode="after")
    def _known(self) -> Partisanship:
        for corpus, groups in self.knows.items():
            if corpus not in self.stances:
                raise ValueError(f"knows: {corpus!r} is not under stances; {{}} is for no stance")
            if other := sorted(set(groups) - set(self.groups)):
                raise ValueError(f"knows.{corpus}: {other[0]!r} is not under groups")
        return self

    @property
    def null(self) -> bool:
        """Whether nothing is planted in it."""
        return not (any(any(s.values()) for s in self.stances.values()) or any(self.knows.values()))
