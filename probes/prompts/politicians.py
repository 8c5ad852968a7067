"""Prompt templates (frames) for a word about a person.

The paper's frame is the bare name with the mask before or after it. Others are sentences, given
as data for a language and a part of speech, with the same sentence about nobody in particular
beside them: what a word's log-probability owes to the name is the difference of the two.
"""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Literal

from pydantic import Field, model_validator

from plumbline.builders.core.errors import UserError
from plumbline.builders.core.params import Params as Section
from plumbline.probes.models.scorer import MASK
from plumbline.probes.prompts import BARE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

NAME = "{name}"  # stands in templates for the person's name

Kind = Literal["masked", "causal", "seq2seq"]  # of models that fill
Pos = Literal["ADJ", "VERB"]


class Frame(Section):
    """A sentence about a person, and the same about nobody in particular."""

    prompt: str = Field(description="template with one {name} and one <mask>")
    without: str | None = Field(
        None, description="the same with a neutral person in place of the name; null: no prior"
    )

    @model_validator(mode="after")
    def _one_of_each(self) -> Frame:
        if self.prompt.count(NAME) != 1 or self.prompt.count(MASK) != 1:
            raise ValueError(f"prompt needs one {NAME} and one {MASK}, not {self.prompt!r}")
        if self.without is not None and (NAME in self.without or self.without.count(MASK) != 1):
            raise ValueError(f"without needs one {MASK} and no {NAME}, not {self.without!r}")
        return self

    def about(self, name: str) -> str:
        """Return the prompt about a person."""
        return self.prompt.replace(NAME, name)

    def closing(self) -> bool:
        """Return whether the mask ends both texts, as a causal model needs it."""
        return all(text.endswith(MASK) for text in (self.prompt, self.without) if text is not None)


Frames = dict[str, dict[str, dict[Pos, Frame]]]  # by name, language and part of speech
FAITHFUL: dict[Kind, list[str]] = {"masked": [BARE], "seq2seq": [BARE]}


def bare(place: str) -> Frame:
    """Return the paper's frame: the mask before or after the name, and nothing else.

    It has no prior: a mask alone is no sentence about a neutral person.
    """
    return Frame(prompt=f"{MASK} {NAME}" if place == "before" else f"{NAME} {MASK}", without=None)


def check(frames: Frames, frames_of: Mapping[Kind, Sequence[str]]) -> None:
    """Refuse frames that are not there, or whose mask is where that kind of model sees nothing."""
    if BARE in frames:
        raise ValueError(f"frames.{BARE}: is the paper's own and follows from the word order")
    for kind, names in frames_of.items():
        if len(set(names)) < len(names):
            raise ValueError(f"frames_of.{kind}: names a frame twice")
        for name in names:
            if name not in (BARE, *frames):
                there = ", ".join([BARE, *frames])
                raise ValueError(f"frames_of.{kind}: no frame {name!r}; there are {there}")
            texts = [frame for own in frames.get(name, {}).values() for frame in own.values()]
            ends = name != BARE and all(frame.closing() for frame in texts)
            if kind == "causal" and not ends:
                raise ValueError(
                    f"frames_of.{kind}: in {name!r} the mask is not always at the end, where alone "
                    "such a model can be used"
                )


def chosen(
    frames: Frames,
    names: Sequence[str],
    language: str,
    places: Mapping[str, str],
) -> dict[str, dict[str, Frame]]:
    """Return the frames to ask in, by part of speech and name, in the order of the names.

    ``places``: where a word of each part of speech stands relative to a name, before or after. A
    frame without a template for the language and a part of speech is a ``UserError``.
    """
    found: dict[str, dict[str, Frame]] = {pos: {} for pos in places}
    for name, (pos, place) in product(names, places.items()):
        texts = {pos: bare(place)}
        if name != BARE:
            texts = {str(p): frame for p, frame in frames[name].get(language, {}).items()}
        if pos not in texts:
            raise UserError(
                f"probes.associations.frames.{name}: no {pos} for {language!r}; add one, or "
                "take the frame out of probes.associations.frames_of"
            )
        found[pos][name] = texts[pos]
    return found
