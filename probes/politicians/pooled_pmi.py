"""Analysis ``pooled_pmi``: PMI from the lists of several models added up, as the paper pools them.

Stańczak et al. (2023), section 4 and Table 3, with intervals and a null over names: what several
models answer to one name is no independent evidence. Of one model it is the table ``pmi``; it is a
stage of its own, as a further model changes the sums and not the tables of the others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from plumbline.builders.core.errors import UserError
from plumbline.builders.core.schema import Column
from plumbline.probes.politicians import pmi
from plumbline.probes.politicians.pmi import CELL, EXACT, rows
from plumbline.probes.politicians.words import columns, gender_difference, word_counts
from plumbline.probes.politicians.words.columns import UNITS
from plumbline.probes.politicians.words.gender_difference import differences
from plumbline.probes.politicians.words.resample_counts import bootstrap_counts
from plumbline.probes.stats.estimate import ESTIMATE, least_p
from plumbline.probes.stats.tests import permuted_sums_p

if TYPE_CHECKING:
    from collections.abc import Iterator

    import polars as pl

    from plumbline.probes.core.run_analysis import Inputs

EACH = False
DATASETS = ("politicians",)
OUTPUTS = ("associations",)
TABLES = ()
PLACE = (
    Column("group", "string", "name of the group of models in params.yaml"),
    Column("models", "int64", "models of the group with outputs in the language", minimum=1),
    Column("members", "string", "their names"),
    columns.LANGUAGE,
    columns.PART,
)
POOLED = columns.schema(
    "group language pos unit word gender reading",
    *PLACE,
    *CELL,
    Column("count", "int64", "lists of people of this gender that have the word", minimum=0),
    Column("count_all", "int64", "lists that have the word", minimum=1),
    Column("people", "int64", "people of this gender; each has a list of a model", minimum=1),
    *ESTIMATE,
    columns.FAMILY,
)
DIFFERENCES = columns.schema(
    "group language pos unit word reading", *PLACE, *gender_difference.COLUMNS
)
SCHEMAS = {"pooled_pmi": POOLED, "differences": DIFFERENCES}


class Params(pmi.Params):
    """Which models are pooled, and how estimates, intervals and tests are made."""

    groups: dict[str, list[str] | Literal["all"]] = Field(
        min_length=1,
        description="models by name of the group; `all`: every assigned model but the worlds",
    )
    n_permutations: int = Field(ge=999, description="drawn where models are several")


def run(inputs: Inputs, params: Params) -> dict[str, pl.DataFrame]:
    """Compute the tables of all groups; columns as in :data:`SCHEMAS`.

    Raises
    ------
    UserError
        If a group names a model without outputs, or no word is in enough lists.
    """
    tables = [
        table
        for group, models in members(inputs, params).items()
        for table in _tables(inputs, group, models, params)
    ]
    if not tables:
        raise UserError(
            f"analysis.pooled_pmi.min_count: no word is in {params.min_count} lists of any group; "
            "lower it, or name models under analysis.pooled_pmi.groups"
        )
    each, apart = zip(*tables, strict=True)
    return {
        "pooled_pmi": columns.table_of(POOLED, each, ["group", "unit", "reading"], "least"),
        "differences": columns.table_of(DIFFERENCES, apart),
    }


def members(inputs: Inputs, params: Params) -> dict[str, list[str]]:
    """Return the models of each group that has some."""
    real = [m for m in inputs.models if not (inputs.weights(m) / "world.json").is_file()]
    found = {}
    for group, models in sorted(params.groups.items()):
        chosen = real if models == "all" else sorted(set(models))
        if strange := sorted(set(chosen) - set(inputs.models)):
            raise UserError(
                f"analysis.pooled_pmi.groups.{group}: {', '.join(strange)} not under "
                f"assignments.associations; there are {', '.join(inputs.models)}"
            )
        if chosen:
            found[group] = chosen
    return found


def _tables(
    inputs: Inputs, group: str, models: list[str], params: Params
) -> Iterator[tuple[pl.DataFrame, pl.DataFrame]]:
    """Yield the rows of both tables of a group, for each language, part of speech and unit."""
    for language, source, path in word_counts.sources(inputs, *models):
        people = word_counts.read_people(path)
        for unit in UNITS:
            counts = word_counts.count(source._replace(unit=unit), people)
            if not len(chosen := counts.common(params.min_count)):
                continue
            times = word_counts.overlaps(counts, chosen)
            p = permuted_sums_p(
                times, counts.distinct[chosen], counts.names, params.n_permutations, params.seed
            )
            several = bool(times[:, 2:].any())
            test = f"{params.n_permutations} drawn" if several else EXACT
            least = several * least_p(params.n_permutations)
            draws = bootstrap_counts(counts, chosen, params.n_bootstrap, params.seed)
            at: dict[str, Any] = {"group": group, "models": len(source.folders)}
            at["language"] = language
            at["members"] = ", ".join(folder.parent.name for folder in source.folders)
            how = params.smoothing, params.seed, params.confidence
            yield (
                rows(counts, draws, p, params, test, **at).with_columns(least=least),
                differences(counts, chosen, draws, *how, **at),
            )
