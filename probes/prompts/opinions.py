"""Prompts about opinions: statements in frames in which somebody agrees, or does not.

They stand apart from the probe ``agreement``, since worlds are trained on the same questions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

import polars as pl
from pydantic import Field, model_validator

from plumbline.builders.core import parquet
from plumbline.builders.core.errors import UserError
from plumbline.builders.core.params import Params as Section
from plumbline.probes.models.scorer import MASK

if TYPE_CHECKING:
    from pathlib import Path

GENDERED, STATEMENT = "{gendered}", "{statement}"
GENDERS: tuple[Literal["feminine", "masculine"], ...] = ("feminine", "masculine")
FORMS: tuple[Literal["plain", "negated"], ...] = ("plain", "negated")
METHODS = ("together", "l2r", "sequence")  # how the log-probability of a word is taken


class Frame(Section):
    """A sentence in which one word tells the gender of whoever has the opinion."""

    text: str = Field(
        description=f"the sentence, with {GENDERED}, {MASK} for agreeing or not, and {STATEMENT}"
    )
    feminine: str = Field(min_length=1, description=f"what stands for {GENDERED} about a woman")
    masculine: str = Field(min_length=1, description="and about a man")
    agree: str = Field(min_length=1, description=f"what stands for {MASK} if they agree")
    disagree: str = Field(min_length=1, description="and if they do not")

    @model_validator(mode="after")
    def _gaps(self) -> Frame:
        for gap in (GENDERED, MASK, STATEMENT):
            if self.text.count(gap) != 1:
                raise ValueError(f"text: {self.text!r} must have {gap} exactly once")
        if self.feminine == self.masculine or self.agree == self.disagree:
            raise ValueError("feminine and masculine, agree and disagree must differ")
        return self


class Frames(Section):
    """The frames of a language."""

    frames: dict[str, Frame] = Field(
        min_length=1, description="by name; the first is the one of the reading `faithful`"
    )
    negated: str = Field(description=f"how a statement is denied, with {STATEMENT}")

    @model_validator(mode="after")
    def _gap(self) -> Frames:
        if self.negated.count(STATEMENT) != 1:
            raise ValueError(f"negated: {self.negated!r} must have {STATEMENT} exactly once")
        return self


class Asking(Section):
    """The frames of the prompts."""

    frames: dict[str, Frames] = Field(min_length=1, description="by language")

    @property
    def languages(self) -> list[str]:
        """Return the languages that have frames."""
        return list(self.frames)


class Question(NamedTuple):
    """One statement in one frame, of one gender, as it stands or denied."""

    questionnaire: str  # config of `statements`
    scale: str
    id: str
    frame: str
    gender: Literal["feminine", "masculine"]
    form: Literal["plain", "negated"]
    text: str  # with the mask
    agree: str
    disagree: str


def questions(asking: Asking, folder: Path, language: str) -> list[Question]:
    """Return every statement of a language in every frame, gender and form.

    Parameters
    ----------
    folder
        The dataset ``statements``.

    Raises
    ------
    UserError
        If there is no statement in the language.
    """
    frames = asking.frames[language]
    found = []
    for config in parquet.configs(folder):
        columns = ["id", "language", "scale", "text"]
        table = pl.read_parquet(folder / f"{config}.parquet", columns=columns)
        own = table.filter(pl.col("language") == language).unique("id").sort("id")
        found += [
            Question(config, scale, name, called, gender, form, text, frame.agree, frame.disagree)
            for name, _, scale, statement in own.iter_rows()
            for called, frame in frames.frames.items()
            for gender in GENDERS
            for form in FORMS
            for text in (written(frame, frames.negated, gender, form, statement),)
        ]
    if not found:
        raise UserError(
            f"probes.agreement.frames: no statement in {language!r}; name a questionnaire under "
            "datasets.statements.configs, or take the frames out"
        )
    return found


def written(
    frame: Frame,
    negated: str,
    gender: Literal["feminine", "masculine"],
    form: Literal["plain", "negated"],
    statement: str,
) -> str:
    """Return a statement in its frame, with the mask.

    Examples
    --------
    >>> frame = Frame(
    ...     text="{gendered} <mask> that {statement}.",
    ...     feminine="She",
    ...     masculine="He",
    ...     agree="agrees",
    ...     disagree="denies",
    ... )
    >>> written(frame, "it is false that {statement}", "feminine", "negated", "tea is good")
    'She <mask> that it is false that tea is good.'
    """
    said = negated.replace(STATEMENT, statement) if form == "negated" else statement
    word = frame.feminine if gender == "feminine" else frame.masculine
    return frame.text.replace(GENDERED, word).replace(STATEMENT, said)
