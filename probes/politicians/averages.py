"""Analysis ``averages``: shares of sentiments averaged over models, by language.

Stańczak et al. (2023), Figures 6 to 9: for each language the mean over models of the shares of the
words that deviate most towards each gender, of all politicians and of parts of them; with an
interval whose cluster is the model. The paper has points without intervals.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from pydantic import Field
from scipy.special import stdtrit

from plumbline.builders.core.errors import UserError
from plumbline.builders.core.params import Params as Section
from plumbline.builders.core.schema import Column
from plumbline.builders.datasets.lexica.build import SENTIMENTS
from plumbline.builders.datasets.politicians.person import GENDERS
from plumbline.probes.models.params import model as params_of
from plumbline.probes.politicians.subgroups import SUBGROUPS
from plumbline.probes.politicians.words import columns
from plumbline.probes.politicians.words.columns import FEMALE, MALE
from plumbline.probes.politicians.words.sentiment_shares import CORRECTED, DEVIATIONS, READINGS
from plumbline.probes.stats.estimate import ESTIMATE, rounded, typed

if TYPE_CHECKING:
    from plumbline.probes.core.run_analysis import Inputs

TABLES = ("sentiment", "subgroups")
MODELS = ("models", "worlds", "null worlds")
EVERYBODY = "everybody"
PEOPLE = (EVERYBODY, *SUBGROUPS)
RESPONSES = (*GENDERS, "male minus female")
UNTESTED = "none: see `sentiment` and `subgroups` for tests over names"
UNSOUND = f"{UNTESTED}; by latent-corrected differences are found where there are none"
AVERAGES = columns.schema(
    "models language pos deviation reading people response sentiment",
    Column("models", "label", "real models, worlds, null ones: never mixed", labels=MODELS),
    columns.LANGUAGE,
    columns.PART,
    Column("deviation", "label", "as in `sentiment`; of subgroups by PMI", labels=DEVIATIONS),
    Column("reading", "label", "as in `sentiment`", labels=READINGS),
    Column("people", "label", "whose names: everybody, or a subgroup", labels=PEOPLE),
    Column("response", "label", "whose share, or the difference of two", labels=RESPONSES),
    Column("sentiment", "label", "of which sentiment", labels=SENTIMENTS),
    Column("lowest", "float64", "least value of a model"),
    Column("highest", "float64", "largest value of a model"),
    *ESTIMATE,
)
SCHEMAS = {"averages": AVERAGES}


class Params(Section):
    """How intervals are made."""

    version: str = Field(pattern=r"^\d+\.\d+\.\d+$", description="version of the tables")
    confidence: float = Field(0.95, gt=0.5, lt=1, description="of the intervals")


def run(inputs: Inputs, params: Params) -> dict[str, pl.DataFrame]:
    """Average the shares of all models; columns as in :data:`SCHEMAS`.

    Raises UserError if there are no shares.
    """
    parts = [pl.read_parquet(inputs.tables("sentiment") / "shares.parquet")]
    parts[0] = parts[0].with_columns(people=PEOPLE.index(EVERYBODY))
    for model in inputs.models:
        path = inputs.tables("subgroups", model) / "shares.parquet"
        if path.is_file():  # not all models are compared in subgroups
            plain = {"deviation": DEVIATIONS.index("pmi"), "reading": READINGS.index("argmax")}
            of = pl.col("subgroup").replace_strict(range(len(SUBGROUPS)), range(1, len(PEOPLE)))
            known = {name: pl.lit(value, pl.Int64) for name, value in plain.items()}
            parts.append(pl.read_parquet(path).with_columns(people=of, **known))
    keys = ["language", "pos", "deviation", "reading", "people", "gender", "sentiment"]
    codes = pl.col(*keys[1:]).cast(pl.Int64)
    table = pl.concat([p.select("model", "language", codes, "value") for p in parts])
    if table.is_empty():
        raise UserError("analysis.averages: no model has shares; see the table sentiment")
    controls = (None, "positive", "negative")  # as MODELS
    kinds = {name: controls.index(params_of(name, inputs.data).control) for name in inputs.models}
    table = table.with_columns(
        models=pl.col("model").replace_strict(kinds, return_dtype=pl.Int64)
    ).drop_nulls("value")
    place = ["models", *keys[:-2], "sentiment"]
    table = _mean(with_difference(table, place), place, params)
    return {"averages": typed(table, AVERAGES, params.confidence)}


def with_difference(table: pl.DataFrame, place: list[str]) -> pl.DataFrame:
    """Return the shares of each gender, and of men less women, as ``response``.

    ``table``: columns model, gender, value and those of ``place``.
    """
    each = table.rename({"gender": "response"})
    men, women = (
        table.filter(pl.col("gender") == gender).drop("gender") for gender in (MALE, FEMALE)
    )
    apart = men.join(women, on=["model", *place], suffix="_women").with_columns(
        value=pl.col("value") - pl.col("value_women"),
        response=pl.lit(RESPONSES.index("male minus female"), pl.Int64),
    )
    return pl.concat([each, apart.select(each.columns)])


def _mean(table: pl.DataFrame, place: list[str], params: Params) -> pl.DataFrame:
    """Return the mean over models with Student's interval, which one model alone has not."""
    value, by = pl.col("value"), [*place, "response"]
    found = table.group_by(by).agg(
        n=pl.len(), spread=value.std(), lowest=value.min(), highest=value.max(), value=value.mean()
    )
    n = found["n"].to_numpy()
    t = np.where(n > 1, stdtrit(np.maximum(n - 1, 1), (1 + params.confidence) / 2), np.nan)
    half = pl.Series(t / np.sqrt(n)) * found["spread"]
    least = pl.when(pl.col("response") < len(GENDERS)).then(0.0).otherwise(-1.0)
    several = pl.col("n") > 1
    method = f"{params.confidence:.0%} t over models, names held"
    found = found.with_columns(
        low=pl.max_horizontal(value - half, least),
        high=pl.min_horizontal(value + half, 1.0),
        cluster=pl.lit("model"),
        method=pl.when(several).then(pl.lit(method)).otherwise(pl.lit("none: one model")),
        null=pl.when(deviation=CORRECTED).then(pl.lit(UNSOUND)).otherwise(pl.lit(UNTESTED)),
        p=pl.lit(None, pl.Float64),
        p_bh=pl.lit(None, pl.Float64),
    ).with_columns(pl.when(several).then(pl.col("low", "high")))
    numbers = ["value", "low", "high", "lowest", "highest"]
    return rounded(found.sort(AVERAGES.key), numbers)
