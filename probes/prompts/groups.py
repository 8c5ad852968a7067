"""Questions about social groups: templates and groups, and the same with the group masked.

They stand apart from the probe ``stereotypes``, since worlds are trained on the same questions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

import polars as pl
from pydantic import Field, model_validator

from plumbline.builders.core import parquet
from plumbline.builders.core.errors import Problem
from plumbline.builders.core.params import Params as Section
from plumbline.builders.datasets.social_groups.read import KINDS
from plumbline.probes.models.scorer import MASK

if TYPE_CHECKING:
    from pathlib import Path

DATASETS = ("social_groups", "stereotypes")  # that they are made of
GROUP = "{group}"
Kind = Literal["people", "country"]
OF: dict[int, Kind] = {KINDS.index("people"): "people", KINDS.index("country"): "country"}


class Frames(Section):
    """How a language asks."""

    templates: dict[Kind, list[str]] = Field(
        description=f"for people and a country: texts with {GROUP}, up to where the answer begins"
    )
    ending: str = Field("?", description="what stands behind the answer, for models with a mask")
    released: str = Field(
        description=f"the frame of the released code's prior, with {MASK} for group and answer"
    )
    neutral: dict[Kind, str] = Field(
        description="the group that stands for none, for models that read from left to right"
    )

    @model_validator(mode="after")
    def _gaps(self) -> Frames:
        for kind, texts in self.templates.items():
            for text in texts:
                if text.count(GROUP) != 1 or MASK in text:
                    raise ValueError(f"templates.{kind}: {text!r} must have {GROUP} once, no mask")
        if self.released.count(MASK) != 2:
            raise ValueError(f"released: must have {MASK} twice, for the group and the answer")
        if lacking := set(self.templates) - set(self.neutral):
            raise ValueError(f"neutral: lacks {', '.join(sorted(lacking))}")
        return self


class Asking(Section):
    """How a model is asked about which groups."""

    spelling: Literal["paper", "usual"] = Field(
        "paper", description="of groups in prompts: the paper's, or the usual one"
    )
    suggested_only: bool = Field(
        False, description="ask only about groups that `stereotypes` has suggestions for"
    )
    frames: dict[str, Frames] = Field(min_length=1, description="by language")

    @property
    def languages(self) -> list[str]:
        """Return the languages that have frames."""
        return list(self.frames)


class Query(NamedTuple):
    """One group in one template."""

    category: str
    group: str  # as the paper spells it
    kind: Kind
    template: str  # as the params have it
    written: str = ""  # the group as it is asked about; default: as the paper spells it

    @property
    def text(self) -> str:
        """Return the template with the group."""
        return self.template.replace(GROUP, self.written or self.group)


def queries(asking: Asking, folders: dict[str, Path], language: str) -> list[Query]:
    """Return every group in every template of its kind.

    Raises
    ------
    Problem
        If none is left.
    """
    frames = asking.frames[language]
    groups = pl.read_parquet(folders["social_groups"] / f"{language}.parquet")
    if asking.suggested_only:
        known = suggested(folders["stereotypes"], language)
        groups = groups.filter(  # the wave and what was published may spell it either way
            pl.struct("category", pl.col("group").str.to_lowercase()).is_in(known)
            | pl.struct("category", group=pl.col("name").str.to_lowercase()).is_in(known)
        )
    column = "group" if asking.spelling == "paper" else "name"
    found = [
        Query(row["category"], row["group"], kind, template, row[column])
        for row in groups.sort("category", "group").iter_rows(named=True)
        for kind in (OF[row["kind"]],)
        for template in frames.templates.get(kind, [])
    ]
    if not found:
        raise Problem(
            f"probes.stereotypes: no group to ask about in {language!r}; check suggested_only and "
            "the templates"
        )
    return found


def suggested(folder: Path, language: str) -> list[dict[str, str]]:
    """Return category and group, in lower case, of all that have suggestions in a language."""
    columns = ["language", "category", "group"]
    rows = pl.concat(
        pl.read_parquet(folder / f"{config}.parquet", columns=columns)
        for config in parquet.configs(folder)
    ).filter(pl.col("language") == language)
    distinct = rows.select("category", pl.col("group").str.to_lowercase()).unique()
    return distinct.sort("category", "group").to_dicts()


def prompt(text: str, ending: str) -> str:
    """Return a question: its first letter a capital, the answer masked."""
    return f"{text[:1].upper()}{text[1:]} {MASK}{ending}"


def masked(template: str, masks: int, gap: str = " ") -> str:
    """Return a template with so many masks for the group."""
    return template.replace(GROUP, gap.join([MASK] * masks))
