"""Analysis ``averages``: shares of sentiments averaged over models, by language.

Stańczak et al. (2023), Figures 6 to 9, show, for each language, shares among the words most
associated with each gender, averaged over models, for all politicians and for subgroups. The paper
reports no intervals over models.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from pydantic import Field
from scipy.special import stdtrit

from plumbline.builders.core.errors import UserError
from plumbline.builders.core.params import Params as Section
from plumbline.builders.core.schema import Schema
from plumbline.builders.datasets.lexica.build import SENTIMENTS
from plumbline.probes.models.params import model as params_of
from plumbline.probes.politicians.subgroups import SUBGROUPS
from plumbline.probes.politicians.words import word_counts
from plumbline.probes.politicians.words.sentiment_shares import DEVIATIONS, READINGS
from plumbline.probes.politicians.words.word_counts import (
    CONTROLS,
    DIFFERENCE,
    MODELS,
    RESPONSES,
    category,
    with_difference,
)
from plumbline.probes.stats.estimate import estimates, rounded, typed

if TYPE_CHECKING:
    from plumbline.probes.core.run_analysis import Inputs

TABLES = ("sentiment", "subgroups")
EVERYBODY = "everybody"
PEOPLE = (EVERYBODY, *SUBGROUPS)
AVERAGES = Schema.keyed(
    (
        category("models", MODELS, "models, worlds (control models) or null worlds; never pooled"),
        word_counts.LANGUAGE,
        word_counts.PART,
        category("deviation", DEVIATIONS, "deviation that ranks words; always PMI for subgroups"),
        category("reading", READINGS, "ranked units, as in `sentiment`"),
        category("people", PEOPLE, "all people or a subgroup"),
        category("response", RESPONSES, "gender whose share is averaged, or the difference"),
        category("sentiment", SENTIMENTS, "sentiment of the share"),
    ),
    *estimates(cluster="model", method="95% t over models, given the names; null for one model"),
)
SCHEMAS = {"averages": AVERAGES}


class Params(Section):
    """Confidence level."""

    version: str = Field(pattern=r"^\d+\.\d+\.\d+$", description="version of the tables")
    confidence: float = Field(0.95, gt=0.5, lt=1, description="confidence level of the intervals")


def run(inputs: Inputs, params: Params) -> dict[str, pl.DataFrame]:
    """Average the shares over models; :data:`SCHEMAS` describes the table.

    Raises UserError if no model has shares.
    """
    shares = pl.read_parquet(inputs.tables("sentiment") / "shares.parquet")
    parts = [shares.with_columns(people=pl.lit(EVERYBODY))]
    for model in inputs.models:
        path = inputs.tables("subgroups", model) / "shares.parquet"
        if path.is_file():  # subgroups are analysed for some models only
            plain = {"deviation": pl.lit("pmi"), "reading": pl.lit("argmax")}
            parts.append(pl.read_parquet(path).rename({"subgroup": "people"}).with_columns(**plain))
    keys = ["language", "pos", "deviation", "reading", "people", "gender", "sentiment"]
    table = pl.concat([part.select("model", *keys, "value") for part in parts])
    if table.is_empty():
        raise UserError("analysis.averages: no model has shares; check the table sentiment")
    kinds = {name: CONTROLS[params_of(name, inputs.data).control] for name in inputs.models}
    table = table.with_columns(models=pl.col("model").replace_strict(kinds)).drop_nulls("value")
    cells = ["models", *keys[:-2], "sentiment"]
    table = with_difference(table, ["model", *cells], ["value"])
    value = pl.col("value")
    table = table.group_by(*cells, "response").agg(n=pl.len(), sd=value.std(), value=value.mean())
    n = table["n"].to_numpy()
    t = np.where(n > 1, stdtrit(np.maximum(n - 1, 1), (1 + params.confidence) / 2), np.nan)
    half = pl.Series(t / np.sqrt(n)) * table["sd"]  # null if there is only one model
    least = pl.when(pl.col("response") == DIFFERENCE).then(-1.0).otherwise(0.0)
    table = table.with_columns(
        low=pl.max_horizontal(value - half, least), high=pl.min_horizontal(value + half, 1.0)
    ).with_columns(pl.when(pl.col("n") > 1).then(pl.col("low", "high")))
    table = rounded(word_counts.sort_by_key(table, AVERAGES), ["value", "low", "high"], ())
    return {"averages": typed(table, AVERAGES, params.confidence)}
