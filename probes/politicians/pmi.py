"""Analysis ``pmi``: which words go with which gender, from the outputs of ``associations``.

Stańczak et al. (2023), equation 1 and Table 3, with intervals, a null and control of multiplicity;
of lemmas, as the paper counts, and of forms, of which some agree with a person's gender.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from pydantic import Field

from plumbline.builders.core.errors import UserError
from plumbline.builders.core.schema import Column
from plumbline.probes.politicians.words import columns, word_counts
from plumbline.probes.politicians.words.columns import OF_PMI, UNITS
from plumbline.probes.politicians.words.resample_counts import bootstrap_counts
from plumbline.probes.stats.estimate import ESTIMATE, Bootstrap
from plumbline.probes.stats.pmi import intervals, pmi
from plumbline.probes.stats.tests import fisher_p

if TYPE_CHECKING:
    import polars as pl
    from numpy.typing import NDArray

    from plumbline.probes.core.run_analysis import Inputs
    from plumbline.probes.politicians.words.resample_counts import Draws

EACH = True
DATASETS = ("politicians",)
OUTPUTS = ("associations",)
TABLES = ()
METHODS = ("bootstrap percentile (Poisson weights)", "Bayesian bootstrap percentile")
EXACT = "exact"
READING = Column("reading", "label", "plug-in: as the paper; smoothed: additive", labels=OF_PMI)
CELL = (columns.UNIT, columns.WORD, columns.LEMMA, columns.FORM, columns.GENDER, READING)
PMI = columns.schema(
    "language pos unit word gender reading",
    *columns.PLACE,
    *CELL,
    Column("count", "int64", "people of this gender in whose list the word is", minimum=0),
    Column("count_all", "int64", "people in whose list the word is", minimum=1),
    Column("people", "int64", "people of this gender", minimum=1),
    Column("list_length", "int64", "forms in the list of each", minimum=1),
    *ESTIMATE,
    columns.FAMILY,
)
SCHEMAS = {"pmi": PMI}


class Params(Bootstrap):
    """How estimates and intervals are made."""

    smoothing: float = Field(gt=0, description="added to every cell in the smoothed reading")
    min_count: int = Field(ge=1, description="lists that must have the word")


def run(inputs: Inputs, params: Params) -> dict[str, pl.DataFrame]:
    """Compute the table ``pmi`` of one model; columns as in :data:`SCHEMAS`.

    Raises
    ------
    UserError
        If no word is in enough lists.
    """
    (model,) = inputs.models
    tables = []
    for language, source, path in word_counts.sources(inputs, model):
        people = word_counts.read_people(path)
        for unit in UNITS:
            counts = word_counts.count(source._replace(unit=unit), people)
            if len(chosen := counts.common(params.min_count)):
                draws = bootstrap_counts(counts, chosen, params.n_bootstrap, params.seed)
                p = fisher_p(counts.distinct[chosen], counts.names)
                tables.append(rows(counts, draws, p, params, EXACT, language=language))
    if not tables:
        raise UserError(
            f"{inputs.outputs('associations', model)}: no word is in {params.min_count} lists; "
            "lower analysis.pmi.min_count, or see the config coverage for what the model lacks"
        )
    return {"pmi": columns.table_of(PMI, tables, ["unit", "reading"], model=model)}


def rows(
    counts: word_counts.Counts,
    draws: Draws,
    p: NDArray[np.float64],
    params: Params,
    null: str,
    **same: str | int,
) -> pl.DataFrame:
    """Return a row for each common word, gender and reading; readings alternate row by row.

    Parameters
    ----------
    counts
        At least one word is common.
    draws
        Of the common words.
    p : (words, groups) array
        For the common words.
    null
        What ``p`` is judged against.
    same
        Columns that have one value in all rows.
    """
    chosen = counts.common(params.min_count)
    estimates = []
    for smoothing, drawn in ((0.0, draws.ordinary), (params.smoothing, draws.bayesian)):
        limits = intervals(drawn, smoothing, params.seed, params.confidence, draws.merged)
        values = pmi(counts.lists.astype(np.float64), smoothing)[chosen]
        estimates.append([values, *(ends[: len(chosen)] for ends in limits)])
    lists = counts.lists[chosen, :, None]
    words, lemmas, forms = (
        np.array(of, dtype=object)[chosen] for of in (counts.words, counts.lemmas, counts.forms)
    )
    return columns.rows_of(
        {"word": words.tolist(), "gender": counts.genders, "reading": range(len(OF_PMI))},
        np.stack(estimates, axis=-1),
        lemma=lemmas[:, None, None],
        form=forms[:, None, None],
        count=lists,
        count_all=lists.sum(axis=1, keepdims=True),
        people=counts.people[:, None],
        method=np.array([f"{params.confidence:.0%} {method} over names" for method in METHODS]),
        p=p[..., None],
        pos=counts.source.pos,
        unit=UNITS.index(counts.source.unit),
        list_length=round(counts.rows / counts.people.sum()),
        n=counts.clusters,
        cluster="name",
        null=f"gender labels permuted over distinct names, {null}",
        **same,
    )
