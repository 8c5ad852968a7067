"""Recovery of the study ``values``: its tables against what was planted in worlds of convictions.

The true ratings are computed here from what was planted, by the paper's formulas and by nothing of
the analysis: a line through 0 of the apolitical statements of each gender, P = Phi(err / sigma),
rating 4 P + 1, turned round where agreeing speaks against the value.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from scipy.special import ndtr

from plumbline.builders.core.params import section
from plumbline.probes.controls.compare import PLANTED, Comparison, Params, read_table
from plumbline.probes.controls.measures import RECOVERY
from plumbline.probes.stats.bootstrap import bits, interval, keys, poisson
from plumbline.probes.stats.estimate import Estimate
from plumbline.probes.stats.intervals import rank_correlations
from plumbline.probes.values.schemas import ALL
from plumbline.probes.values.schemas import Params as AnalysisParams

if TYPE_CHECKING:
    from plumbline.probes.core.run_analysis import Inputs

    Tables = dict[str, pl.DataFrame]

TABLES = ("values",)
SCHEMAS = {"values": RECOVERY}
PARAMS = Params(n_bootstrap=2000)
OWN = {"planted_nats", "agree_nats", "disagree_nats", "gender"}  # columns of a world of the study
QUESTION = ("questionnaire", "id", "frame", "form", "gender")
STATEMENT = "statement, with its opposite"


def run(inputs: Inputs, params: Params = PARAMS) -> dict[str, pl.DataFrame]:
    """Compare the tables of every world with what was planted in it."""
    folder = inputs.tables("values")
    names = ("points", "answers", "values", "gender")
    tables = {name: read_table(folder / f"{name}.parquet") for name in names}
    if any(table.is_empty() for table in tables.values()):
        return {}
    for name in ("values", "gender"):
        tables[name] = tables[name].filter(fitted="by gender")
    tables["gender"] = tables["gender"].filter(measure="value")
    at = ["language", "scale", "reading"]
    rows = Comparison(params)
    for model in inputs.models:
        world = truth(inputs, model)
        if world is None:
            continue
        some = (world.filter(pl.col("axis") != "")["planted_nats"] != 0).any()
        own = {name: table.filter(model=model) for name, table in tables.items()}
        for language, scale, reading in own["values"].select(at).unique().sort(at).iter_rows():
            here = (pl.col("language") == language) & (pl.col("reading") == reading)
            here &= (pl.col("scale") == scale) | (pl.col("axis") == "")  # apolitical ones too
            part = {name: table.filter(here) for name, table in own.items()}
            world_kind = "planted" if some else "null"
            rows.at = {"model": model, "language": language, "world": world_kind}
            _reading(rows, part, world, {"reading": reading, "item": scale})
    return {"values": rows.frame()} if rows.rows else {}


def truth(inputs: Inputs, model: str) -> pl.DataFrame | None:
    """Return what was planted for each question; None where a model is no world of the study."""
    path = inputs.weights(model) / PLANTED
    if not path.is_file() or not set(pl.read_parquet_schema(path)) >= OWN:
        return None
    return pl.read_parquet(path)


def _reading(rows: Comparison, tables: Tables, world: pl.DataFrame, key: dict[str, Any]) -> None:
    """Add the rows of one reading of the responses to one scale."""
    true = world.select(*QUESTION, true_agree="agree_nats", true_disagree="disagree_nats")
    joined = tables["points"].join(true, on=QUESTION)
    _odds(rows, joined.filter(pl.col("axis") != ""), key)
    rated = true_ratings(joined)
    values, differences = _true_means(rated)
    _error(rows, tables["answers"], rated, key)
    measured = {(r["axis"], r["gender"]): r["value"] for r in tables["values"].to_dicts()}
    gender = {row["axis"]: row for row in tables["gender"].to_dicts()}
    axes = sorted({axis for axis, _ in measured})
    for axis in [*axes, ALL]:
        about = {**key, "item": f"feminine minus masculine, {axis}"}
        rows.copy("estimate", gender[axis], STATEMENT, expected=differences[axis], **about)
    if rows.at["world"] == "null":  # every difference is false, within the margin or not
        tested = [axis for axis in axes if gender[axis]["p"] is not None]
        different = [gender[axis]["verdict"].startswith("different") for axis in tested]
        _count(rows, "false_discoveries_bh", different, key)
        return
    sides = ([measured[a, "both"] for a in axes], [values[a, "both"] for a in axes])
    rho = float(rank_correlations(*map(np.array, sides)))
    rows.add("rank_correlation", Estimate(rho, np.nan, np.nan, len(axes)), "value", **key)
    margin = section("analysis.values", AnalysisParams).equivalence_margin
    beyond = [
        max(gender[a]["low"], -gender[a]["high"]) > margin for a in axes
    ]  # all of an interval
    margins = [abs(round(differences[a], 6)) > margin for a in axes]
    _count(rows, "beyond_margin", beyond, key, expected=sum(margins) / len(axes))


def _count(
    rows: Comparison, measure: str, held: list[bool], key: dict[str, Any], **more: Any
) -> None:
    share = sum(held) / len(held) if held else np.nan
    estimate = Estimate(share, np.nan, np.nan, len(held))
    rows.add(measure, estimate, "value", **key, **more)


def true_ratings(points: pl.DataFrame) -> pl.DataFrame:
    """Return the planted rating of every statement and gender, in the direction of its value.

    Parameters
    ----------
    points
        A row for each prompt: columns axis (empty: apolitical), id, bearing, gender, frame, form,
        true_agree, true_disagree.

    Returns
    -------
    DataFrame
        Columns axis, id, bearing, gender, rating; political statements alone.
    """
    x, y = pl.col("true_disagree"), pl.col("true_agree")
    neutral = pl.col("axis") == ""
    at = ["frame", "form", "gender"]
    slopes = points.filter(neutral).group_by(at).agg(slope=(x * y).sum() / (x**2).sum())
    sign = pl.when(pl.col("form") == "negated").then(-1).otherwise(1)
    key = ["questionnaire", "axis", "id", "bearing", "cluster", "gender"]
    residual = (sign * (y - pl.col("slope") * x)).mean()
    err = points.join(slopes, on=at).group_by(key).agg(err=residual).sort(key)
    spread = ((pl.col("err") ** 2).sum() / (pl.len() - 1)).sqrt()
    sigma = err.filter(neutral).group_by("gender").agg(sigma=spread)
    political = err.filter(~neutral).join(sigma, on="gender", maintain_order="left")
    rating = 4 * ndtr((political["err"] / political["sigma"]).to_numpy()) + 1
    against = political["bearing"].to_numpy() < 0
    return political.with_columns(rating=pl.Series(np.where(against, 6 - rating, rating)))


def _true_means(rated: pl.DataFrame) -> tuple[dict[tuple[str, str], float], dict[str, float]]:
    """Return planted values by axis and gender, and differences of genders by axis and of all."""
    load = pl.col("bearing").abs()
    mean = (pl.col("rating") * load).sum() / load.sum()
    rows = rated.group_by("axis", "gender").agg(mean).iter_rows()
    values = {(axis, gender): value for axis, gender, value in rows}
    sides = {axis: (values[axis, "feminine"], values[axis, "masculine"]) for axis, _ in values}
    values |= {(axis, "both"): sum(pair) / 2 for axis, pair in sides.items()}
    every = dict(rated.group_by("gender").agg(mean).iter_rows())
    differences = {axis: feminine - masculine for axis, (feminine, masculine) in sides.items()}
    return values, differences | {ALL: every["feminine"] - every["masculine"]}


def _error(
    rows: Comparison, answers: pl.DataFrame, rated: pl.DataFrame, key: dict[str, Any]
) -> None:
    """Add how far the ratings of a scale are from the planted ones."""
    turned = pl.when(pl.col("reversed")).then(6 - pl.col("rating")).otherwise("rating")
    true = rated.select("axis", "id", "gender", "cluster", true="rating")
    both = answers.join(true, on=["axis", "id", "gender"])
    error = (turned - pl.col("true")).abs().mean()
    errors = both.group_by("cluster").agg(error=error).sort("cluster")
    clusters = errors["cluster"].to_list()
    rows.mean("error", errors["error"].to_numpy(), clusters, STATEMENT, **key)


def _odds(rows: Comparison, joined: pl.DataFrame, key: dict[str, Any]) -> None:
    """Correlate planted and measured log-odds over all questions of a scale."""
    x = (joined["agree_nats"] - joined["disagree_nats"]).to_numpy()
    y = (joined["true_agree"] - joined["true_disagree"]).to_numpy()
    names, place = np.unique(joined["cluster"].to_list(), return_inverse=True)
    drawn = poisson(bits(keys(names.tolist()), rows.params.n_bootstrap, rows.params.seed))[place]
    w = np.hstack([np.ones((len(x), 1)), drawn.astype(np.float64)])
    with np.errstate(invalid="ignore", divide="ignore"):
        mx, my, xx, yy, xy = (v @ w / w.sum(axis=0) for v in (x, y, x * x, y * y, x * y))
        draws = (xy - mx * my) / np.sqrt((xx - mx * mx) * (yy - my * my))
    ends = interval(draws[1:], len(names), rows.confidence)
    rows.add("correlation", Estimate(float(draws[0]), *ends, len(names)), STATEMENT, **key)
