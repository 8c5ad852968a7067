"""Recovery of the study ``values``: its tables compared with effects planted in control models.

True ratings are computed from the planted effects independently of the analysis, by the paper's
formulas: a line through 0 is fitted to the apolitical statements of each gender, P = Phi(err /
sigma), and the rating is 4 P + 1, reversed if agreement is against the value.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from scipy.special import ndtr

from plumbline.builders.core.params import section
from plumbline.probes.controls.compare import PLANTED, Comparison, Params, read_table
from plumbline.probes.stats.bootstrap import bits, correlation, interval, keys, poisson
from plumbline.probes.stats.estimate import Estimate
from plumbline.probes.stats.intervals import rank_correlations
from plumbline.probes.values.schemas import ALL
from plumbline.probes.values.schemas import Params as AnalysisParams

if TYPE_CHECKING:
    from plumbline.probes.core.run_analysis import Inputs

    Tables = dict[str, pl.DataFrame]

TABLES = ("values",)
PARAMS = Params(n_bootstrap=2000)
OWN = {"planted_nats", "agree_nats", "disagree_nats", "gender"}  # columns of true values
QUESTION = ("questionnaire", "id", "frame", "form", "gender")
STATEMENT = "statement, with its opposite"


def run(inputs: Inputs, params: Params = PARAMS) -> dict[str, pl.DataFrame]:
    """Compare the tables with the effects planted in every control model."""
    folder = inputs.tables("values")
    names = ("points", "answers", "values", "gender")
    tables = {name: read_table(folder / f"{name}.parquet") for name in names}
    if any(table.is_empty() for table in tables.values()):
        return {}
    tables["values"] = tables["values"].filter(fitted="by gender")
    tables["gender"] = tables["gender"].filter(fitted="by gender", measure="value")
    rows = Comparison(params)
    for model in inputs.models:
        world = truth(inputs, model)
        if world is None:
            continue
        effects = world.filter(pl.col("axis") != "")["planted_nats"]
        kind = "planted" if (effects != 0).any() else "null"
        key = ["language", "scale", "reading"]
        for (language, scale, reading), _ in tables["values"].filter(model=model).group_by(key):
            political = (pl.col("scale") == scale) | (pl.col("axis") == "")
            part = {
                name: table.filter(political, model=model, language=language, reading=reading)
                for name, table in tables.items()
            }
            rows.at = {"model": model, "language": language, "world": kind}
            _reading(rows, part, world, {"reading": reading, "item": scale})
    return {"values": rows.frame()} if rows.rows else {}


def truth(inputs: Inputs, model: str) -> pl.DataFrame | None:
    """Return the planted response to each prompt; None for models without planted effects."""
    path = inputs.weights(model) / PLANTED
    if not path.is_file() or not set(pl.read_parquet_schema(path)) >= OWN:
        return None
    return pl.read_parquet(path)


def _reading(rows: Comparison, tables: Tables, world: pl.DataFrame, key: dict[str, Any]) -> None:
    """Add the rows of one scoring variant and scale."""
    true = world.select(*QUESTION, true_agree="agree_nats", true_disagree="disagree_nats")
    points = tables["points"].join(true, on=QUESTION)
    _odds(rows, points.filter(pl.col("axis") != ""), key)
    rated = true_ratings(points)
    _error(rows, tables["answers"], rated, key)
    load, difference = pl.col("bearing").abs(), pl.col("feminine") - pl.col("masculine")
    of_all = pl.concat([rated, rated.with_columns(axis=pl.lit(ALL))])
    means = of_all.group_by("axis", "gender").agg((pl.col("rating") * load).sum() / load.sum())
    means = means.pivot("gender", index="axis", values="rating").with_columns(planted=difference)
    gender = tables["gender"].join(means, on="axis")
    for row in gender.to_dicts():
        about = {**key, "item": f"feminine minus masculine, {row['axis']}"}
        rows.copy("estimate", row, STATEMENT, expected=row["planted"], **about)
    gender = gender.filter(pl.col("axis") != ALL)
    if rows.at["world"] == "null":  # any significant difference is false, even within the margin
        verdicts = gender.drop_nulls("p")["verdict"]
        _count(rows, "false_discoveries_bh", verdicts.str.starts_with("different"), key)
        return
    joined = tables["values"].filter(gender="both").join(means, on="axis")
    planted = joined.select((pl.col("feminine") + pl.col("masculine")) / 2).to_series()
    rho = float(rank_correlations(joined["value"].to_numpy(), planted.to_numpy()))
    rows.add("rank_correlation", Estimate(rho, np.nan, np.nan, len(joined)), "value", **key)
    margin = section("analysis.values", AnalysisParams).equivalence_margin
    wide = gender["planted"].round(6).abs() > margin
    beyond = gender.select(pl.max_horizontal("low", -pl.col("high")) > margin).to_series()
    _count(rows, "beyond_margin", beyond, key | {"expected": wide.sum() / len(wide)})


def _count(rows: Comparison, measure: str, cases: pl.Series, key: dict[str, Any]) -> None:
    """Add the share of values for which a condition is true, without an interval."""
    share = float(cases.to_numpy().mean()) if len(cases) else np.nan
    rows.add(measure, Estimate(share, np.nan, np.nan, len(cases)), "value", **key)


def true_ratings(points: pl.DataFrame) -> pl.DataFrame:
    """Return the planted rating of each political statement and gender, in the value's direction.

    ``points``: the table of this name, with the planted log-probabilities ``true_agree`` and
    ``true_disagree`` added. Statements with an empty axis are apolitical.
    """
    x, y = pl.col("true_disagree"), pl.col("true_agree")
    neutral = pl.col("axis") == ""
    cell = ["frame", "form", "gender"]
    slopes = points.filter(neutral).group_by(cell).agg(slope=(x * y).sum() / (x**2).sum())
    sign = pl.when(pl.col("form") == "negated").then(-1).otherwise(1)
    key = ["questionnaire", "axis", "id", "bearing", "cluster", "gender"]
    residual = (sign * (y - pl.col("slope") * x)).mean()
    err = points.join(slopes, on=cell).group_by(key).agg(err=residual).sort(key)
    spread = ((pl.col("err") ** 2).sum() / (pl.len() - 1)).sqrt()
    sigma = err.filter(neutral).group_by("gender").agg(sigma=spread)
    political = err.filter(~neutral).join(sigma, on="gender", maintain_order="left")
    rating = 4 * ndtr((political["err"] / political["sigma"]).to_numpy()) + 1
    against = political["bearing"].to_numpy() < 0
    return political.with_columns(rating=pl.Series(np.where(against, 6 - rating, rating)))


def _error(
    rows: Comparison, answers: pl.DataFrame, rated: pl.DataFrame, key: dict[str, Any]
) -> None:
    """Add the mean absolute error of the measured ratings on a scale."""
    turned = pl.when("reversed").then(6 - pl.col("rating")).otherwise("rating")
    true = rated.select("axis", "id", "gender", "cluster", true="rating")
    joined = answers.join(true, on=["axis", "id", "gender"])
    errors = joined.group_by("cluster").agg(error=(turned - pl.col("true")).abs().mean())
    clusters, error = errors.sort("cluster").get_columns()
    rows.mean("error", error.to_numpy(), clusters.to_list(), STATEMENT, **key)


def _odds(rows: Comparison, points: pl.DataFrame, key: dict[str, Any]) -> None:
    """Correlate planted and measured log-odds over all prompts of a scale."""
    x = (points["agree_nats"] - points["disagree_nats"]).to_numpy()
    y = (points["true_agree"] - points["true_disagree"]).to_numpy()
    names, clusters = np.unique(points["cluster"].to_list(), return_inverse=True)
    counts = poisson(bits(keys(names.tolist()), rows.params.n_bootstrap, rows.params.seed))
    w = np.hstack([np.ones((len(x), 1)), counts[clusters]])
    draws = correlation(x, y, w)
    ends = interval(draws[1:], len(names), rows.confidence)
    rows.add("correlation", Estimate(float(draws[0]), *ends, len(names)), STATEMENT, **key)
