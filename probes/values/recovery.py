"""Recovery of the study ``values``: its tables against what was planted in worlds of convictions.

The true ratings are computed here from what was planted, by the paper's formulas and by nothing of
the analysis: a line through 0 of the apolitical statements of each gender, P = Phi(err / sigma),
rating 4 P + 1, turned round where agreeing speaks against the value.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from pydantic import Field
from scipy.special import ndtr

from plumbline.probes.controls.recovery import PLANTED, RECOVERY, Findings, Resampling
from plumbline.probes.prompts.opinions import FORMS
from plumbline.probes.stats.bootstrap import METHOD, bits, interval, keys, poisson
from plumbline.probes.stats.estimate import DETECTABLE, Bootstrap, Estimate
from plumbline.probes.stats.intervals import rank_correlations
from plumbline.probes.values.schemas import ALL, READINGS, VERDICTS, WHO

if TYPE_CHECKING:
    from pathlib import Path

    from plumbline.probes.core.run_analysis import Inputs

TABLES = ("values",)
SCHEMAS = {"values": RECOVERY}
OWN = {"planted_nats", "agree_nats", "disagree_nats", "gender"}  # columns of a world of the study
BOTH = WHO.index("both")
DIFFERENT = {i for i, verdict in enumerate(VERDICTS) if verdict.startswith("different")}
COUNT = "count, no interval"
QUESTION = ("questionnaire", "id", "frame", "form", "gender")


class Params(Bootstrap):
    """Intervals of what is recovered, over statements."""

    version: str = Field("0.1.0", pattern=r"^\d+\.\d+\.\d+$", description="version of the tables")


def run(inputs: Inputs, params: Params) -> dict[str, pl.DataFrame]:
    """Compare the tables of every world with what was planted in it.

    Returns
    -------
    dict
        ``values``, with the columns of :data:`SCHEMAS`; nothing without a world.
    """
    folder, own_lines = inputs.tables("values"), pl.col("fitted") == 0
    tables = {
        "points": pl.read_parquet(folder / "points.parquet"),
        "answers": pl.read_parquet(folder / "answers.parquet"),
        "values": pl.read_parquet(folder / "values.parquet").filter(own_lines),
        "gender": pl.read_parquet(folder / "gender.parquet").filter(own_lines, measure=0),
    }
    at = ["language", "scale", "reading"]
    found = Findings(params.confidence)
    for model in inputs.models:
        world = planted(inputs.weights(model))
        if world is None:
            continue
        null = not (world.filter(pl.col("axis") != "")["planted_nats"] != 0).any()
        own = {name: t.filter(pl.col("model") == model) for name, t in tables.items()}
        for language, scale, reading in own["values"].select(at).unique().sort(at).iter_rows():
            here = (pl.col("language") == language) & (pl.col("reading") == reading)
            here &= (pl.col("scale") == scale) | (pl.col("axis") == "")  # apolitical ones too
            part = {name: table.filter(here) for name, table in own.items()}
            found.key = {"model": model, "language": language, "world": int(null)}
            found.label = f"{READINGS[reading]}: "
            _reading(found, part, world, params, null=null)
    return {"values": found.frame()} if found.rows else {}


def planted(weights: Path) -> pl.DataFrame | None:
    """Return what was planted for each question; None of a model that is no world of the study."""
    path = weights / PLANTED
    if not path.is_file() or not set(pl.read_parquet_schema(path)) >= OWN:
        return None
    return pl.read_parquet(path).with_columns(
        pl.col(name).replace_strict({label: i for i, label in enumerate(labels)})
        for name, labels in (("gender", WHO), ("form", FORMS))
    )


def _reading(
    found: Findings,
    tables: dict[str, pl.DataFrame],
    world: pl.DataFrame,
    params: Params,
    *,
    null: bool,
) -> None:
    """Add the rows of one reading of the responses to one scale."""
    true = world.select(*QUESTION, true_agree="agree_nats", true_disagree="disagree_nats")
    joined = tables["points"].join(true, on=QUESTION)
    _odds(found, joined.filter(pl.col("axis") != ""), params)
    rated = true_ratings(joined)
    values, apart = _true(rated)
    _distance(found, tables["answers"], rated, params)
    got = {(r["axis"], r["gender"]): r for r in tables["values"].to_dicts()}
    gender = {r["axis"]: r for r in tables["gender"].to_dicts()}
    axes = sorted({axis for axis, _ in got})
    for axis in [*axes, ALL]:
        told = f"planted: {round(apart[axis], 6) + 0.0:.3f}"
        untested = dict.fromkeys(("p", "p_bh", *DETECTABLE))
        found.copy(gender[axis], f"feminine minus masculine, {axis}", told, **untested)
    if null:  # whatever is said to differ is false, within the margin or not
        tested = [axis for axis in axes if gender[axis]["p"] is not None]
        different = [gender[axis]["verdict"] in DIFFERENT for axis in tested]
        what, told = "values on which gender is said to make a difference", "0 of them planted"
    else:
        different = [_beyond(gender[axis]) for axis in axes]
        margins = (abs(round(apart[axis], 6)) > gender[axis]["equivalence_margin"] for axis in axes)
        what = "values on which both ends of feminine minus masculine are beyond the margin"
        told = f"{sum(margins)} of {len(axes)} planted beyond it"
    if not null:
        sides = ([got[a, BOTH]["value"] for a in axes], [values[a, BOTH] for a in axes])
        rho = float(rank_correlations(*map(np.array, sides)))
        order = "Spearman correlation of planted and measured values"
        own = Estimate(rho, np.nan, np.nan, len(axes), COUNT)
        found.add(own, measure=order, cluster="value", null="0: no relation")
    share = sum(different) / len(different) if different else np.nan
    own = Estimate(share, np.nan, np.nan, len(different), COUNT)
    found.add(own, measure=what, cluster="value", null=told)


def _beyond(row: dict[str, float]) -> bool:
    """Tell whether an interval lies wholly beyond the margin, on either side."""
    margin = row["equivalence_margin"]
    return row["low"] > margin or row["high"] < -margin


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
    sign = pl.when(pl.col("form") == FORMS.index("negated")).then(-1).otherwise(1)
    key = ["questionnaire", "axis", "id", "bearing", "cluster", "gender"]
    err = (
        points.join(slopes, on=at)
        .group_by(key)
        .agg(err=(sign * (y - pl.col("slope") * x)).mean())
        .sort(key)
    )
    spread = ((pl.col("err") ** 2).sum() / (pl.len() - 1)).sqrt()
    sigma = err.filter(neutral).group_by("gender").agg(sigma=spread)
    found = err.filter(~neutral).join(sigma, on="gender", maintain_order="left")
    rating = 4 * ndtr((found["err"] / found["sigma"]).to_numpy()) + 1
    against = found["bearing"].to_numpy() < 0
    return found.with_columns(rating=pl.Series(np.where(against, 6 - rating, rating)))


def _true(rated: pl.DataFrame) -> tuple[dict[tuple[str, int], float], dict[str, float]]:
    """Return planted values by axis and gender, and differences of genders by axis and of all."""
    load = pl.col("bearing").abs()
    mean = (pl.col("rating") * load).sum() / load.sum()
    by = rated.group_by("axis", "gender").agg(mean)
    values = {(axis, int(gender)): value for axis, gender, value in by.iter_rows()}
    apart = {axis: values[axis, 0] - values[axis, 1] for axis, _ in values}
    every = dict(rated.group_by("gender").agg(mean).iter_rows())
    values |= {(axis, BOTH): (values[axis, 0] + values[axis, 1]) / 2 for axis in apart}
    return values, apart | {ALL: every[0] - every[1]}


def _distance(found: Findings, answers: pl.DataFrame, rated: pl.DataFrame, params: Params) -> None:
    """Tell how far the ratings of a scale are from the planted ones."""
    turned = pl.when(pl.col("reversed")).then(6 - pl.col("rating")).otherwise("rating")
    true = rated.select("axis", "id", "gender", "cluster", true="rating")
    apart = answers.join(true, on=["axis", "id", "gender"])
    apart = apart.group_by("cluster").agg(by=(turned - pl.col("true")).abs().mean()).sort("cluster")
    resampling = Resampling(params.n_bootstrap, params.seed, params.confidence)
    found.add(
        resampling.mean(apart["by"].to_numpy(), apart["cluster"].to_list()),
        measure="mean over statements of |rating - planted rating|, points",
        cluster="statement, with its opposite",
        null="0: as planted",
    )


def _odds(found: Findings, joined: pl.DataFrame, params: Params) -> None:
    """Correlate planted and measured log-odds over all questions of a scale."""
    x = (joined["agree_nats"] - joined["disagree_nats"]).to_numpy()
    y = (joined["true_agree"] - joined["true_disagree"]).to_numpy()
    names, place = np.unique(joined["cluster"].to_list(), return_inverse=True)
    drawn = poisson(bits(keys(names.tolist()), params.n_bootstrap, params.seed))[place]
    w = np.hstack([np.ones((len(x), 1)), drawn.astype(np.float64)])
    with np.errstate(invalid="ignore", divide="ignore"):
        mx, my, xx, yy, xy = (v @ w / w.sum(axis=0) for v in (x, y, x * x, y * y, x * y))
        draws = (xy - mx * my) / np.sqrt((xx - mx * mx) * (yy - my * my))
    low, high = interval(draws[1:], len(names), params.confidence)
    what = "correlation of planted and measured log-odds of agreeing, over questions"
    own = Estimate(float(draws[0]), low, high, len(names), METHOD)
    found.add(own, measure=what, cluster="statement, with its opposite", null="0: no relation")
