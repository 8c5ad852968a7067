"""Prompts about social groups: templates in which the group is filled in or masked.

They are separate from the probe ``completions``, because control models are trained on the same
prompts.
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

DATASETS = ("social_groups", "stereotypes")  # datasets from which prompts are built
GROUP = "{group}"
Kind = Literal["people", "country"]
OF: dict[int, Kind] = {KINDS.index("people"): "people", KINDS.index("country"): "country"}


class Frames(Section):
    """The templates (frames) for one language."""

    templates: dict[Kind, list[Annotated[str, gaps(GROUP, **{MASK: 0})]]] = Field(
        description=f"for people and for countries: texts with {GROUP}, up to the predicted word"
    )
    ending: str = Field("?", description="text after the predicted word, for models with a mask")
    released: Annotated[str, gaps(**{MASK: 2})] = Field(
        description=f"template for the released code's prior, with {MASK} for group and word"
    )
    neutral: dict[Kind, str] = Field(
        description="neutral group in the prior of models that read from left to right"
    )


class Asking(Section):
    """The selection of groups, and the construction of prompts."""

    spelling: Literal["original", "usual"] = Field(
        "original", description="spelling of groups: as in the paper (original), or usual"
    )
    groups: Literal["suggested", "all"] = Field(
        "all", description="groups that have suggestions in the dataset `stereotypes`, or all"
    )
    frames: dict[str, Frames] = Field(min_length=1, description="by language")

    @property
    def languages(self) -> list[str]:
        """Return the languages that have templates."""
        return list(self.frames)


class Query(NamedTuple):
    """One group in one template."""

    category: str
    group: str  # in the paper's spelling
    kind: Kind
    template: str  # as written in the params
    written: str = ""  # spelling of the group in the prompt; default: that of the paper
    rewritten: bool = False  # extended with the key term of an attribute, for this group only

    @property
    def text(self) -> str:
        """Return the template with the group filled in."""
        return self.template.replace(GROUP, self.written or self.group)


def queries(asking: Asking, folders: dict[str, Path], language: str) -> list[Query]:
    """Fill every template with every group of its kind; raise UserError if there are no groups."""
    groups = pl.read_parquet(folders["social_groups"] / f"{language}.parquet")
    rows = suggestions(folders["stereotypes"], language, "category", "group").unique()
    suggested = {(category, group.lower()) for category, group in rows.iter_rows()}
    templates, result = asking.frames[language].templates, list[Query]()
    for row in groups.sort("category", "group").iter_rows(named=True):
        # suggestions may use either spelling
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
    """Return the result of :func:`queries`, and the suggestions' rewritten queries for its groups.

    For "good at chess", the query "Why are they so" becomes "Why are they so good at", so that the
    word to predict is the informative one (Choenni et al. 2021, section 3, step 4).
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
    """Return columns of the dataset ``stereotypes`` for one language, over all configs."""
    files = [folder / f"{config}.parquet" for config in parquet.configs(folder)]
    rows = pl.concat(pl.read_parquet(file, columns=["language", *columns]) for file in files)
    return rows.filter(language=language).select(columns)


def prompt(text: str, ending: str) -> str:
    """Return a capitalised prompt with a mask for the word to predict."""
    return f"{text[:1].upper()}{text[1:]} {MASK}{ending}"


def masked(template: str, masks: int, gap: str = " ") -> str:
    """Return a template with ``masks`` masks in place of the group."""
    return template.replace(GROUP, gap.join([MASK] * masks))
