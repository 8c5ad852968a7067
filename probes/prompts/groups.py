"""Prompts about social groups: templates with groups, and the same with the group masked.

They stand apart from the probe ``completions``, since worlds are trained on the same prompts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple

import polars as pl
from pydantic import Field

from plumbline.builders.core import parquet
from plumbline.builders.core.errors import UserError
from plumbline.builders.core.params import Params as Section
from plumbline.builders.datasets.social_groups.read import KINDS
from plumbline.probes.models.scorer import MASK
from plumbline.probes.prompts import gaps

if TYPE_CHECKING:
    from pathlib import Path

DATASETS = ("social_groups", "stereotypes")  # that they are made of
GROUP = "{group}"
Kind = Literal["people", "country"]
OF: dict[int, Kind] = {KINDS.index("people"): "people", KINDS.index("country"): "country"}


class Frames(Section):
    """The templates of a language."""

    templates: dict[Kind, list[Annotated[str, gaps(GROUP, **{MASK: 0})]]] = Field(
        description=f"for people and a country: texts with {GROUP}, up to the word to predict"
    )
    ending: str = Field("?", description="what stands behind that word, for models with a mask")
    released: Annotated[str, gaps(**{MASK: 2})] = Field(
        description=f"the frame of the released code's prior, with {MASK} for group and word"
    )
    neutral: dict[Kind, str] = Field(
        description="the group that stands for none, for models that read from left to right"
    )


class Asking(Section):
    """Which groups prompts are about, and how these are made."""

    spelling: Literal["original", "usual"] = Field(
        "original", description="of groups in prompts: the paper's, or the usual one"
    )
    groups: Literal["suggested", "all"] = Field(
        "all", description="those that `stereotypes` has suggestions for, or all"
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
    written: str = ""  # the group as it stands in the prompt; default: as the paper spells it
    rewritten: bool = False  # by its own attribute's key term: asked of this group alone

    @property
    def text(self) -> str:
        """Return the template with the group."""
        return self.template.replace(GROUP, self.written or self.group)


def queries(asking: Asking, folders: dict[str, Path], language: str) -> list[Query]:
    """Return every group in every template of its kind; that none is left is a ``UserError``."""
    groups = pl.read_parquet(folders["social_groups"] / f"{language}.parquet")
    rows = suggestions(folders["stereotypes"], language, "category", "group").unique()
    suggested = {(category, group.lower()) for category, group in rows.iter_rows()}
    templates, result = asking.frames[language].templates, list[Query]()
    for row in groups.sort("category", "group").iter_rows(named=True):
        # the wave and what was published may spell it either way
        keys = {(row["category"], row[column].lower()) for column in ("group", "name")}
        if asking.groups == "all" or keys & suggested:
            written = row["group" if asking.spelling == "original" else "name"]
            kind = OF[row["kind"]]
            key = (row["category"], row["group"], kind)
            result += [Query(*key, template, written) for template in templates.get(kind, [])]
    if not result:
        raise UserError(
            f"probes.completions: no group to prompt for in {language!r}; check groups and the "
            "templates"
        )
    return result


def prompted(asking: Asking, folders: dict[str, Path], language: str) -> list[Query]:
    """Return :func:`queries`, and of the same groups those that suggestions were rewritten to.

    "Why are they so" with "good at chess" is asked as "Why are they so good at", so that the word
    to predict is the one that tells (Choenni et al. 2021, section 3, step 4).
    """
    usual_queries = queries(asking, folders, language)
    rows = suggestions(folders["stereotypes"], language, "category", "group", "template").unique()
    suggested = {
        (category, group.lower(), template) for category, group, template in rows.iter_rows()
    }
    usual = {t.lower() for frames in asking.frames[language].templates.values() for t in frames}
    one_each = {(query.category, query.group): query for query in reversed(usual_queries)}
    return usual_queries + [
        one_each[category, group]._replace(template=template, rewritten=True)
        for category, group in sorted(one_each)
        for template in sorted({t for c, g, t in suggested if (c, g) == (category, group.lower())})
        if GROUP in template and template not in usual
    ]


def suggestions(folder: Path, language: str, *columns: str) -> pl.DataFrame:
    """Return columns of the dataset ``stereotypes`` in a language, of all configs."""
    files = [folder / f"{config}.parquet" for config in parquet.configs(folder)]
    rows = pl.concat(pl.read_parquet(file, columns=["language", *columns]) for file in files)
    return rows.filter(language=language).select(columns)


def prompt(text: str, ending: str) -> str:
    """Return a prompt: its first letter a capital, the word to predict masked."""
    return f"{text[:1].upper()}{text[1:]} {MASK}{ending}"


def masked(template: str, masks: int, gap: str = " ") -> str:
    """Return a template with so many masks for the group."""
    return template.replace(GROUP, gap.join([MASK] * masks))
