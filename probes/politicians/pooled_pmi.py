"""Analysis ``pooled``: PMI from the lists of several models added up, as the paper pools them.

Stańczak et al. (2023), section 4 and Table 3, with intervals and a null over names: what several
models answer to one name is no independent evidence.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import polars as pl
from pydantic import Field

from plumbline.builders.core.errors import Problem
from plumbline.builders.core.schema import Column, Schema
from plumbline.builders.datasets.politicians.build import GENDERS
from plumbline.builders.datasets.words.build import POS
from plumbline.probes.politicians import word_counts
from plumbline.probes.politicians.pmi import READINGS, Estimation, rows
from plumbline.probes.stats.estimate import ESTIMATE, adjusted, typed
from plumbline.probes.stats.tests import permuted_sums_p

if TYPE_CHECKING:
    from plumbline.probes.core.run_analysis import Inputs

EACH = False
DATASETS = ("politicians",)
OUTPUTS = ("associations",)
TABLES = ()
POOLED = Schema(
    columns=(
        Column("group", "string", "name of the group of models in params.yaml"),
        Column("models", "int64", "models of the group that were asked in the language", minimum=1),
        Column("language", "string", "language of names and words"),
        Column("pos", "label", "universal part of speech", labels=POS),
        Column("word", "string", "form of the word"),
        Column("lemma", "string", "its lemma"),
        Column("gender", "label", "the paper's grouping", labels=GENDERS),
        Column("reading", "label", "plug-in: as the paper; smoothed: additive", labels=READINGS),
        Column("count", "int64", "lists of people of this gender that have the word", minimum=0),
        Column("count_all", "int64", "lists that have the word", minimum=1),
        Column("people", "int64", "people of this gender; each has a list of a model", minimum=1),
        *ESTIMATE,
        Column("family", "int64", "tests in the family that p_bh is taken over", minimum=1),
    ),
    key=("group", "language", "pos", "word", "gender", "reading"),
)
SCHEMAS = {"pooled": POOLED}


class Params(Estimation):
    """Which models are pooled, and how estimates, intervals and tests are made."""

    groups: dict[str, list[str] | Literal["all"]] = Field(
        min_length=1,
        description="models by name of the group; `all`: all that are asked, without worlds",
    )
    permutations: int = Field(ge=999, description="drawn where models are several")


def run(inputs: Inputs, params: Params) -> dict[str, pl.DataFrame]:
    """Compute the table of all groups.

    Returns
    -------
    dict
        ``pooled``; columns as in :data:`SCHEMAS`.

    Raises
    ------
    Problem
        If a group names a model that was not asked, or no word is in enough lists.
    """
    tables = []
    for group, models in sorted(members(inputs, params).items()):
        if found := _tables(inputs, group, models, params):
            tables.append(adjusted(pl.concat(found), over=["reading"]))
    if not tables:
        raise Problem(
            f"analysis.pooled.min_count: no word is in {params.min_count} lists of any group; "
            "lower it, or name models under analysis.pooled.groups"
        )
    return {"pooled": typed(pl.concat(tables), POOLED)}


def members(inputs: Inputs, params: Params) -> dict[str, list[str]]:
    """Return the models of each group that has some."""
    real = [m for m in inputs.models if not (inputs.weights(m) / "world.json").is_file()]
    found = {}
    for group, models in params.groups.items():
        chosen = real if models == "all" else sorted(set(models))
        if strange := sorted(set(chosen) - set(inputs.models)):
            raise Problem(
                f"analysis.pooled.groups.{group}: {', '.join(strange)} not under "
                f"assignments.associations; there are {', '.join(inputs.models)}"
            )
        if chosen:
            found[group] = chosen
    return found


def _tables(inputs: Inputs, group: str, models: list[str], params: Params) -> list[pl.DataFrame]:
    """Return the rows of a group, a table for each language and part of speech."""
    folders = {m: inputs.outputs("associations", m) for m in models}
    languages = {m: word_counts.languages(folder) for m, folder in folders.items()}
    found = []
    for language in sorted({one for each in languages.values() for one in each}):
        asked = tuple(folders[m] / language for m in models if language in languages[m])
        folk = word_counts.people(inputs.datasets["politicians"] / f"{language}.parquet")
        for pos in range(len(POS)):
            source = word_counts.Lists(asked, pos)
            counts = word_counts.count(source, folk)
            chosen = counts.common(params.min_count)
            if not len(chosen):
                continue
            times = word_counts.overlaps(source, folk, counts, chosen)
            p = permuted_sums_p(
                times, counts.distinct[chosen], counts.names, params.permutations, params.seed
            )
            null = "gender labels permuted over distinct names, " + (
                f"{params.permutations} drawn" if times[:, 2:].any() else "exact"
            )
            table = rows(source, folk, counts, p, params, null)
            found.append(
                table.with_columns(
                    group=pl.lit(group), models=pl.lit(len(asked)), language=pl.lit(language)
                )
            )
    return found
