"""Analysis ``pooled_pmi``: PMI from the lists of several models added up, as the paper pools them.

Stańczak et al. (2023), section 4 and Table 3, with intervals and a null over names: what several
models answer to one name is no independent evidence.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import polars as pl
from pydantic import Field

from plumbline.builders.core.errors import UserError
from plumbline.builders.core.schema import Column, Schema
from plumbline.builders.datasets.words.build import POS
from plumbline.probes.politicians import pmi
from plumbline.probes.politicians.pmi import READING, rows
from plumbline.probes.politicians.words import word_counts
from plumbline.probes.politicians.words.columns import FAMILY, GENDER, LANGUAGE, LEMMA, PART, WORD
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
        Column("models", "int64", "models of the group with outputs in the language", minimum=1),
        LANGUAGE,
        PART,
        WORD,
        LEMMA,
        GENDER,
        READING,
        Column("count", "int64", "lists of people of this gender that have the word", minimum=0),
        Column("count_all", "int64", "lists that have the word", minimum=1),
        Column("people", "int64", "people of this gender; each has a list of a model", minimum=1),
        *ESTIMATE,
        FAMILY,
    ),
    key=("group", "language", "pos", "word", "gender", "reading"),
)
SCHEMAS = {"pooled_pmi": POOLED}


class Params(pmi.Params):
    """Which models are pooled, and how estimates, intervals and tests are made."""

    groups: dict[str, list[str] | Literal["all"]] = Field(
        min_length=1,
        description="models by name of the group; `all`: every assigned model but the worlds",
    )
    n_permutations: int = Field(ge=999, description="drawn where models are several")


def run(inputs: Inputs, params: Params) -> dict[str, pl.DataFrame]:
    """Compute the table of all groups.

    Returns
    -------
    dict
        ``pooled_pmi``; columns as in :data:`SCHEMAS`.

    Raises
    ------
    UserError
        If a group names a model without outputs, or no word is in enough lists.
    """
    tables = []
    for group, models in sorted(members(inputs, params).items()):
        if found := _tables(inputs, group, models, params):
            tables.append(adjusted(pl.concat(found), over=["reading"]))
    if not tables:
        raise UserError(
            f"analysis.pooled_pmi.min_count: no word is in {params.min_count} lists of any group; "
            "lower it, or name models under analysis.pooled_pmi.groups"
        )
    return {"pooled_pmi": typed(pl.concat(tables), POOLED)}


def members(inputs: Inputs, params: Params) -> dict[str, list[str]]:
    """Return the models of each group that has some."""
    real = [m for m in inputs.models if not (inputs.weights(m) / "world.json").is_file()]
    found = {}
    for group, models in params.groups.items():
        chosen = real if models == "all" else sorted(set(models))
        if strange := sorted(set(chosen) - set(inputs.models)):
            raise UserError(
                f"analysis.pooled_pmi.groups.{group}: {', '.join(strange)} not under "
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
        lists = tuple(folders[m] / language for m in models if language in languages[m])
        people = word_counts.read_people(inputs.datasets["politicians"] / f"{language}.parquet")
        for pos in range(len(POS)):
            counts = word_counts.count(word_counts.Lists(lists, pos), people)
            chosen = counts.common(params.min_count)
            if not len(chosen):
                continue
            times = word_counts.overlaps(counts, chosen)
            p = permuted_sums_p(
                times, counts.distinct[chosen], counts.names, params.n_permutations, params.seed
            )
            null = "gender labels permuted over distinct names, " + (
                f"{params.n_permutations} drawn" if times[:, 2:].any() else "exact"
            )
            table = rows(counts, p, params, null)
            found.append(
                table.with_columns(
                    group=pl.lit(group), models=pl.lit(len(lists)), language=pl.lit(language)
                )
            )
    return found
