"""Prompts about opinions: templates (frames) in which somebody agrees with a statement or not.

They are separate from the probe ``agreement``, because control models are trained on the same
questions.
"""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple

import polars as pl
from pydantic import Field

from plumbline.builders.core import parquet
from plumbline.builders.core.errors import UserError
from plumbline.builders.core.params import Params as Section
from plumbline.probes.models.scorer import MASK
from plumbline.probes.prompts import gaps

if TYPE_CHECKING:
    from pathlib import Path

GENDERED, STATEMENT = "{gendered}", "{statement}"
Gender = Literal["feminine", "masculine"]
Form = Literal["plain", "negated"]
GENDERS: tuple[Gender, ...] = ("feminine", "masculine")
FORMS: tuple[Form, ...] = ("plain", "negated")
METHODS = ("together", "l2r", "sequence")  # methods of computing the log-probability of a word


class Frame(Section):
    """A sentence in which one word marks the gender of the person whose opinion it states."""

    text: Annotated[str, gaps(GENDERED, MASK, STATEMENT)] = Field(
        description=f"the sentence, with {GENDERED}, {STATEMENT}, and {MASK} for (dis)agreement"
    )
    feminine: str = Field(min_length=1, description=f"text in place of {GENDERED} for a woman")
    masculine: str = Field(min_length=1, description="text in the same place for a man")
    agree: str = Field(min_length=1, description=f"word in place of {MASK} for agreement")
    disagree: str = Field(min_length=1, description="word in the same place for disagreement")


class Frames(Section):
    """The templates (frames) for one language."""

    frames: dict[str, Frame] = Field(
        min_length=1, description="templates by name; the variant `faithful` uses the first"
    )
    negated: Annotated[str, gaps(STATEMENT)] = Field(
        description=f"template of the negated statement, with {STATEMENT}"
    )


class Asking(Section):
    """The templates (frames) of the prompts."""

    frames: dict[str, Frames] = Field(min_length=1, description="by language")

    @property
    def languages(self) -> list[str]:
        """Return the languages that have templates."""
        return list(self.frames)


class Question(NamedTuple):
    """One statement, plain or negated, in one template, for one gender."""

    questionnaire: str  # config of `statements`
    scale: str
    id: str
    frame: str
    gender: Gender
    form: Form
    text: str  # prompt that contains the mask
    agree: str
    disagree: str


def questions(asking: Asking, folder: Path, language: str) -> list[Question]:
    """Return the questions for every statement in a language, in every template, gender and form.

    Raises UserError if the dataset ``statements`` has no statement in the language.
    """
    frames, result = asking.frames[language], list[Question]()
    for config in parquet.configs(folder):
        columns = ["id", "language", "scale", "text"]
        table = pl.read_parquet(folder / f"{config}.parquet", columns=columns)
        rows = table.filter(language=language).unique("id").sort("id").iter_rows()
        for (name, _, scale, statement), (called, frame), gender, form in product(
            rows, frames.frames.items(), GENDERS, FORMS
        ):
            sentence = statement
            if form == "negated":
                sentence = frames.negated.replace(STATEMENT, statement)
            text = frame.text.replace(GENDERED, getattr(frame, gender))
            text = text.replace(STATEMENT, sentence)
            key = (config, scale, name, called, gender, form)
            result.append(Question(*key, text, frame.agree, frame.disagree))
    if not result:
        raise UserError(
            f"probes.agreement.frames: no statement in {language!r}; name a questionnaire under "
            "datasets.statements.configs, or remove the frames"
        )
    return result
