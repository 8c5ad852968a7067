"""Analysis ``pmi``: which words go with which gender, from the outputs of ``associations``.

Stańczak et al. (2023), equation 1 and Table 3, with intervals, a null and control of multiplicity.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from pydantic import Field

from plumbline.builders.core.errors import UserError
from plumbline.builders.core.schema import Column, Schema
from plumbline.builders.datasets.words.build import POS
from plumbline.probes.politicians.words import word_counts
from plumbline.probes.politicians.words.columns import FAMILY, GENDER, LEMMA, PLACE, WORD
from plumbline.probes.politicians.words.resample_counts import bootstrap_counts
from plumbline.probes.stats.estimate import ESTIMATE, Bootstrap, Estimate, adjusted, typed
from plumbline.probes.stats.pmi import intervals, pmi
from plumbline.probes.stats.tests import fisher_p

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from plumbline.probes.core.run_analysis import Inputs

EACH = True
DATASETS = ("politicians",)
OUTPUTS = ("associations",)
TABLES = ()
READINGS = ("plug-in", "smoothed")
METHODS = {
    "plug-in": "bootstrap percentile (Poisson weights)",
    "smoothed": "Bayesian bootstrap percentile",
}
READING = Column("reading", "label", "plug-in: as the paper; smoothed: additive", labels=READINGS)
PMI = Schema(
    columns=(
        *PLACE,
        WORD,
        LEMMA,
        GENDER,
        READING,
        Column("count", "int64", "people of this gender in whose list the word is", minimum=0),
        Column("count_all", "int64", "people in whose list the word is", minimum=1),
        Column("people", "int64", "people of this gender", minimum=1),
        Column("list_length", "int64", "words in the list of each", minimum=1),
        *ESTIMATE,
        FAMILY,
    ),
    key=("language", "pos", "word", "gender", "reading"),
)

SCHEMAS = {"pmi": PMI}


class Params(Bootstrap):
    """How estimates and intervals are made."""

    smoothing: float = Field(gt=0, description="added to every cell in the smoothed reading")
    min_count: int = Field(ge=1, description="lists that must have the word")


def run(inputs: Inputs, params: Params) -> dict[str, pl.DataFrame]:
    """Compute the tables of one model.

    Returns
    -------
    dict
        ``pmi``; columns as in :data:`SCHEMAS`.

    Raises
    ------
    UserError
        If no word is in enough lists.
    """
    (model,) = inputs.models
    outputs = inputs.outputs("associations", model)
    tables: list[pl.DataFrame] = []
    for language in word_counts.languages(outputs):
        path = inputs.datasets["politicians"] / f"{language}.parquet"
        people = word_counts.read_people(path)
        for pos in range(len(POS)):
            counts = word_counts.count(word_counts.Lists((outputs / language,), pos), people)
            if len(chosen := counts.common(params.min_count)):
                p = fisher_p(counts.distinct[chosen], counts.names)
                table = rows(counts, p, params)
                tables.append(table.with_columns(model=pl.lit(model), language=pl.lit(language)))
    if not tables:
        raise UserError(
            f"{outputs}: no word is in {params.min_count} lists; lower analysis.pmi.min_count, or "
            "see the config coverage for what the model lacks"
        )
    return {"pmi": typed(adjusted(pl.concat(tables), over=["reading"]), PMI)}


def rows(
    counts: word_counts.Counts,
    p: NDArray[np.float64],
    params: Params,
    null: str = "gender labels permuted over distinct names, exact",
) -> pl.DataFrame:
    """Return a row for each common word, gender and reading; readings alternate row by row.

    Parameters
    ----------
    counts
        At least one word is common.
    p : (words, groups) array
        For the common words.
    """
    chosen = counts.common(params.min_count)
    draws = bootstrap_counts(counts, chosen, params.n_bootstrap, params.seed)
    estimates = []
    for smoothing, drawn in ((0.0, draws.ordinary), (params.smoothing, draws.bayesian)):
        limits = intervals(drawn, smoothing, params.seed, params.confidence, draws.merged)
        values = pmi(counts.lists.astype(np.float64), smoothing)[chosen]
        estimates.append((values, limits.low, limits.high))
    length = round(counts.lists.sum() / counts.people.sum())
    out: list[dict[str, Any]] = []
    for i, w in enumerate(chosen):
        for g, label in enumerate(counts.genders):
            for r, reading in enumerate(READINGS):
                method = f"{params.confidence:.0%} {METHODS[reading]} over names"
                value, low, high = (float(x[i, g]) for x in estimates[r])
                row = Estimate(value, low, high, counts.clusters, method).row(
                    pos=counts.source.pos,
                    word=counts.words[w],
                    lemma=counts.lemmas[w],
                    gender=int(label),
                    reading=r,
                    count=int(counts.lists[w, g]),
                    count_all=int(counts.lists[w].sum()),
                    people=int(counts.people[g]),
                    list_length=length,
                    cluster="name",
                    null=null,
                    p=p[i, g],
                )
                out.append(row)
    return pl.DataFrame(out, infer_schema_length=None)
