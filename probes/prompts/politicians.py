"""Prompt templates (frames) for predicting a word about a person.

The paper's frame contains only the name, with the mask before or after it. Other frames are
sentences, listed in the params by language and part of speech. Each is paired with the same
sentence about a neutral person; the effect of the name on a word's log-probability is the
difference between the two sentences.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from plumbline.builders.core.errors import UserError
from plumbline.builders.core.params import Params as Section
from plumbline.probes.models.scorer import MASK
from plumbline.probes.prompts import BARE, gaps

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

NAME = "{name}"  # placeholder for the person's name in templates

Kind = Literal["masked", "causal", "seq2seq"]  # kinds of models that support `fill`
Pos = Literal["ADJ", "VERB"]


class Frame(Section):
    """A sentence about a person, and the same sentence about a neutral person."""

    prompt: Annotated[str, gaps(NAME, MASK)] = Field(
        description="template that contains one {name} and one <mask>"
    )
    without: Annotated[str, gaps(MASK, **{NAME: 0})] | None = Field(
        None, description="same template with a neutral person instead of the name; null: no prior"
    )

    def about(self, name: str) -> str:
        """Return the prompt about a person."""
        return self.prompt.replace(NAME, name)


Frames = dict[str, dict[str, dict[Pos, Frame]]]  # by name, language and part of speech
FAITHFUL: dict[Kind, list[str]] = {"masked": [BARE], "seq2seq": [BARE]}


def bare(side: str) -> Frame:
    """Return the paper's frame, which consists of the name with the mask before or after it.

    It has no prior, since a mask alone is not a sentence about a neutral person.
    """
    return Frame(prompt=f"{MASK} {NAME}" if side == "before" else f"{NAME} {MASK}", without=None)


def check(frames: Frames, frames_of: Mapping[Kind, Sequence[str]]) -> None:
    """Raise ValueError if a frame is unknown, or if a kind of model cannot fill its mask."""
    if BARE in frames:
        raise ValueError(f"frames.{BARE}: is reserved for the paper's frame; rename yours")
    names_there = ", ".join([BARE, *frames])
    for kind, names in frames_of.items():
        if len(set(names)) < len(names) or set(names) - {BARE, *frames}:
            raise ValueError(f"frames_of.{kind}: must name each of {names_there} once, not {names}")
    for name in frames_of.get("causal", ()):
        texts = [frame for by_pos in frames.get(name, {}).values() for frame in by_pos.values()]
        ends = [text.endswith(MASK) for f in texts for text in (f.prompt, f.without or MASK)]
        if name == BARE or not all(ends):
            raise ValueError(
                f"frames_of.causal: in {name!r} the mask is not always at the end; causal models "
                "predict the end only"
            )


def chosen(
    frames: Frames, names: Sequence[str], language: str, places: Mapping[str, str]
) -> dict[str, dict[str, Frame]]:
    """Return the selected frames by part of speech and name, in the order of ``names``.

    ``places``: position of a word relative to a name (before or after), by part of speech. Raises
    UserError if a frame has no template for the language and a part of speech.
    """
    result: dict[str, dict[str, Frame]] = {pos: {} for pos in places}
    for name in names:
        by_pos = frames[name].get(language, {}) if name != BARE else {}
        texts = {str(pos): frame for pos, frame in by_pos.items()}
        for pos, position in places.items():
            frame = bare(position) if name == BARE else texts.get(pos)
            if frame is None:
                raise UserError(
                    f"probes.associations.frames.{name}: no {pos} for {language!r}; add one, or "
                    "remove the frame from probes.associations.frames_of"
                )
            result[pos][name] = frame
    return result
