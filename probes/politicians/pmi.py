"""Analysis ``pmi``: which words go with which gender, from the outputs of ``associations``.

Stańczak et al. (2023), equation 1 and Table 3, with intervals, a null and control of multiplicity.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from pydantic import Field

from plumbline.builders.core.errors import Problem
from plumbline.builders.core.schema import Column, Schema
from plumbline.builders.datasets.politicians.build import GENDERS
from plumbline.builders.datasets.words.build import POS
from plumbline.probes.politicians import resample_counts, word_counts
from plumbline.probes.stats.estimate import (
    ESTIMATE,
    Bootstrap,
    Estimate,
    adjusted,
    typed,
)
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
PMI = Schema(
    columns=(
        Column("model", "string", "name of the model in params.yaml"),
        Column("language", "string", "language of names and words"),
        Column("pos", "label", "universal part of speech", labels=POS),
        Column("word", "string", "form of the word"),
        Column("lemma", "string", "its lemma"),
        Column("gender", "label", "the paper's grouping", labels=GENDERS),
        Column("reading", "label", "plug-in: as the paper; smoothed: additive", labels=READINGS),
        Column("count", "int64", "people of this gender in whose list the word is", minimum=0),
        Column("count_all", "int64", "people in whose list the word is", minimum=1),
        Column("people", "int64", "people of this gender", minimum=1),
        Column("list_length", "int64", "words in the list of each", minimum=1),
        *ESTIMATE,
        Column("family", "int64", "tests in the family that p_bh is taken over", minimum=1),
    ),
    key=("language", "pos", "word", "gender", "reading"),
)

SCHEMAS = {"pmi": PMI}


class Estimation(Bootstrap):
    """How estimates and intervals are made."""

    version: str = Field(pattern=r"^\d+\.\d+\.\d+$", description="version of the tables")
    smoothing: float = Field(gt=0, description="added to every cell in the smoothed reading")
    min_count: int = Field(ge=1, description="lists that must have the word")


class Params(Estimation):
    """How estimates and intervals are made."""


def run(inputs: Inputs, params: Params) -> dict[str, pl.DataFrame]:
    """Compute the tables of one model.

    Returns
    -------
    dict
        ``pmi``; columns as in :data:`SCHEMAS`.

    Raises
    ------
    Problem
        If no word is in enough lists.
    """
    (model,) = inputs.models
    outputs = inputs.outputs("associations", model)
    people = inputs.datasets["politicians"]
    tables: list[pl.DataFrame] = []
    for language in word_counts.languages(outputs):
        folk = word_counts.people(people / f"{language}.parquet")
        for pos in range(len(POS)):
            source = word_counts.Lists((outputs / language,), pos)
            counts = word_counts.count(source, folk)
            if len(chosen := counts.common(params.min_count)):
                p = fisher_p(counts.distinct[chosen], counts.names)
                table = rows(source, folk, counts, p, params)
                tables.append(table.with_columns(model=pl.lit(model), language=pl.lit(language)))
    if not tables:
        raise Problem(
            f"{outputs}: no word is in {params.min_count} lists; lower analysis.pmi.min_count, or "
            "see the config coverage for what the model lacks"
        )
    return {"pmi": typed(adjusted(pl.concat(tables), over=["reading"]), PMI)}


def rows(
    source: word_counts.Lists,
    folk: word_counts.People,
    counts: word_counts.Counts,
    p: NDArray[np.float64],
    params: Estimation,
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
    draws = resample_counts.draw(source, folk, counts, chosen, params.bootstrap, params.seed)
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
                    pos=source.pos,
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
