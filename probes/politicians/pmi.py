"""Analysis ``pmi``: which words go with which gender, from the outputs of ``associations``.

Stańczak et al. (2023), equation 1, of a model; and section 4 and Table 3, of the lists of several
models added up. With intervals over names, as what several models answer to one name is no
independent evidence. The corrected reading counts names, not people, and alone has a test; of
lemmas, as the paper counts, and of forms, of which some agree with a person's gender.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from pydantic import Field

from plumbline.builders.core.errors import UserError
from plumbline.builders.core.schema import Column
from plumbline.builders.datasets.politicians.person import GENDERS
from plumbline.probes.politicians.words import columns, gender_difference, word_counts
from plumbline.probes.politicians.words.columns import OF_PMI, UNITS
from plumbline.probes.politicians.words.gender_difference import differences
from plumbline.probes.politicians.words.resample_counts import bootstrap_counts
from plumbline.probes.stats.estimate import Bootstrap, estimates, least_p
from plumbline.probes.stats.pmi import intervals, pmi
from plumbline.probes.stats.tests import permuted_sums_p

if TYPE_CHECKING:
    from collections.abc import Iterator

    import polars as pl
    from numpy.typing import NDArray

    from plumbline.probes.core.run_analysis import Inputs
    from plumbline.probes.politicians.words.resample_counts import Draws

DATASETS = ("politicians",)
OUTPUTS = ("associations",)
READING = Column(
    "reading",
    "category",
    "plug-in: as the paper, of people, who share a list with all of their name, and so without p; "
    "smoothed: additive, of distinct names",
    labels=OF_PMI,
)
CELL = (columns.UNIT, columns.WORD, columns.FORM, columns.GENDER, READING)
ESTIMATES = estimates(
    cluster="name",
    method="95% bootstrap percentile over names: Poisson weights, or Bayesian if smoothed",
    null="gender labels permuted over distinct names with lists of one length; exact for one "
    "model, drawn for several",
)
PMI = columns.schema(
    "language pos unit word gender reading",
    *columns.PLACE,
    *CELL,
    Column("count", "int64", "people or names of this gender whose list has it", minimum=0),
    Column("people", "int64", "people of this gender, or their distinct names", minimum=1),
    Column("list_length", "int64", "forms in the list of each", minimum=1),
    *ESTIMATES,
)
GROUP = (
    Column("group", "string", "name of the group of models in params.yaml"),
    Column("models", "int64", "models of the group with outputs in the language", minimum=1),
    Column("members", "string", "their names"),
    columns.LANGUAGE,
    columns.PART,
)
POOLED = columns.schema(
    "group language pos unit word gender reading",
    *GROUP,
    *CELL,
    Column("count", "int64", "lists of people or names of this gender that have it", minimum=0),
    Column("people", "int64", "people of this gender, or their distinct names", minimum=1),
    *ESTIMATES,
)
DIFFERENCES = columns.schema(
    "group language pos unit word reading", *GROUP, *gender_difference.COLUMNS
)
SCHEMAS = {"pmi": PMI, "pooled": POOLED, "differences": DIFFERENCES}


class Params(Bootstrap):
    """How estimates, intervals and tests are made, and which models are pooled."""

    smoothing: float = Field(gt=0, description="added to every cell in the smoothed reading")
    min_count: int = Field(ge=1, description="lists that must have the word")
    groups: dict[str, list[str] | Literal["all"]] = Field(
        {"all": "all"},
        min_length=1,
        description="models by name of the group; `all`: every assigned model but the worlds",
    )
    n_permutations: int = Field(9999, ge=999, description="drawn where several models are pooled")


def run(inputs: Inputs, params: Params) -> dict[str, pl.DataFrame]:
    """Compute the table ``pmi`` of one model; columns as in :data:`SCHEMAS`.

    Raises UserError if no word is in enough lists.
    """
    (model,) = inputs.models
    tables = []
    for language, source, path in word_counts.sources(inputs, model):
        people = word_counts.read_people(path)
        for unit in UNITS:
            counts = word_counts.count(source._replace(unit=unit), people)
            if len(chosen := counts.common(params.min_count)):
                draws = _draws(counts, chosen, params)
                tables.append(rows(counts, draws, params, language=language))
    if not tables:
        raise UserError(
            f"{inputs.outputs('associations', model)}: no word is in {params.min_count} lists; "
            "lower analysis.pmi.min_count, or see the config coverage for what the model lacks"
        )
    how = params.confidence, ["unit", "reading"]
    return {"pmi": columns.table_of(PMI, tables, *how, "least", model=model)}


def pooled(inputs: Inputs, params: Params) -> dict[str, pl.DataFrame]:
    """Compute the tables ``pooled`` and ``differences`` of all groups of models.

    Raises UserError if a group names a model without outputs, or no word is in enough lists.
    """
    tables = [
        table
        for group, models in members(inputs, params).items()
        for table in _added(inputs, group, models, params)
    ]
    if not tables:
        raise UserError(
            f"analysis.pmi.min_count: no word is in {params.min_count} lists of any group; "
            "lower it, or name models under analysis.pmi.groups"
        )
    each, apart = zip(*tables, strict=True)
    return {
        "pooled": columns.table_of(
            POOLED, each, params.confidence, ["group", "unit", "reading"], "least"
        ),
        "differences": columns.table_of(DIFFERENCES, apart, params.confidence),
    }


def members(inputs: Inputs, params: Params) -> dict[str, list[str]]:
    """Return the models of each group that has some."""
    real = [m for m in inputs.models if not (inputs.weights(m) / "world.json").is_file()]
    found = {}
    for group, models in sorted(params.groups.items()):
        chosen = real if models == "all" else sorted(set(models))
        if strange := sorted(set(chosen) - set(inputs.models)):
            raise UserError(
                f"analysis.pmi.groups.{group}: {', '.join(strange)} not under "
                f"assignments.associations; there are {', '.join(inputs.models)}"
            )
        if chosen:
            found[group] = chosen
    return found


def _added(
    inputs: Inputs, group: str, models: list[str], params: Params
) -> Iterator[tuple[pl.DataFrame, pl.DataFrame]]:
    """Yield the rows of both tables of a group, for each language, part of speech and unit."""
    for language, source, path in word_counts.sources(inputs, *models):
        people = word_counts.read_people(path)
        for unit in UNITS:
            counts = word_counts.count(source._replace(unit=unit), people)
            if not len(chosen := counts.common(params.min_count)):
                continue
            draws = _draws(counts, chosen, params)
            at: dict[str, Any] = {"group": group, "models": len(source.folders)}
            at["language"] = language
            at["members"] = ", ".join(folder.parent.name for folder in source.folders)
            how = params.smoothing, params.seed, params.confidence
            yield (
                rows(counts, draws, params, **at),
                differences(counts, chosen, draws, *how, **at),
            )


def _draws(counts: word_counts.Counts, chosen: NDArray[np.intp], params: Params) -> Draws:
    return bootstrap_counts(counts, chosen, params.n_bootstrap, params.seed, once=True)


def rows(
    counts: word_counts.Counts, draws: Draws, params: Params, **same: str | int
) -> pl.DataFrame:
    """Return a row for each common word, gender and reading; readings alternate row by row.

    The column ``least`` has the smallest p of drawn permutations.

    ``counts``: at least one word is common.
    ``draws``: of the common words.
    ``same``: columns that have one value in all rows.
    """
    chosen = counts.common(params.min_count)
    times, sizes = word_counts.overlaps(counts, chosen)
    # given the lengths of lists PMI increases with the count, so that its test is that of the count
    p = permuted_sums_p(times, counts.distinct[chosen], sizes, params.n_permutations, params.seed)
    several = bool(times[:, :, 2:].any())
    estimates = []
    for table, smoothing, drawn in (
        (counts.lists, 0.0, draws.ordinary),
        (counts.distinct, params.smoothing, draws.bayesian),
    ):
        limits = intervals(drawn, smoothing, params.seed, params.confidence, draws.merged)
        values = pmi(table.astype(np.float64), smoothing)[chosen]
        estimates.append([values, *(ends[: len(chosen)] for ends in limits)])
    return columns.rows_of(
        {
            "word": [counts.words[w] for w in chosen],
            "gender": [GENDERS[g] for g in counts.genders],
            "reading": OF_PMI,
        },
        np.stack(estimates, axis=-1),
        form=np.array(counts.forms, dtype=object)[chosen, None, None],
        count=np.stack([counts.lists[chosen], counts.distinct[chosen]], axis=-1),
        people=np.stack([counts.people, counts.names], axis=-1),
        p=np.stack([np.full(p.shape, np.nan), p], axis=-1),
        pos=counts.source.pos,
        unit=counts.source.unit,
        list_length=round(counts.rows / counts.people.sum()),
        n=counts.clusters,
        least=several * least_p(params.n_permutations),
        **same,
    )
