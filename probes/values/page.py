"""The page of the study of values: what models agree with, and grammatical gender."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from plumbline.probes.report import figures
from plumbline.probes.report.tables import Tables, kept
from plumbline.probes.report.view import Place, study

GENDERS = ("feminine", "masculine")
SAME = {"female": "feminine", "male": "masculine"}
FAITHFUL = {"fitted": "by gender"}


def _scatter(lines: pl.DataFrame, place: Place) -> str:
    """Draw LogDisagree against LogAgree by gender, with its line and one sigma around it."""
    every = place.read("values/points", "scale")
    points = kept(every, {"scale": (place.at["scale"], "calibration"), "reading": "faithful"})
    own = kept(lines, {"reading": "faithful"} | FAITHFUL)
    shown = {}
    for gender in GENDERS:
        here = points.filter(gender=gender)
        neutral = pl.col("scale") == "calibration"
        kinds = {
            "apolitical": (neutral, figures.Mark("circle", "#fff", "#000")),
            "political": (~neutral, figures.Mark("cross")),
        }
        shown[gender] = [
            figures.Points(name, list(part.select("disagree_nats", "agree_nats").iter_rows()), m)
            for name, (where, m) in kinds.items()
            if len(part := here.filter(where))
        ]
    at = {(g, m): v for g, m, v in own.select("gender", "measure", "value").iter_rows()}

    def line(plot: figures.Panel) -> None:
        slope, sigma = at[plot.title, "slope"], at[plot.title, "sigma"]
        xs = [x for part in shown[plot.title] for x, _ in part.at]
        steps = np.linspace(min(xs), max(xs), 99)  # so many that the band bends at the frame alone
        upper, lower = (np.clip(slope * steps + s * sigma, *plot.y) for s in (1, -1))
        band = [*zip(steps, upper, strict=True), *zip(steps[::-1], lower[::-1], strict=True)]
        plot.path(band, f'fill="{figures.FAINT}"')
        plot.path([(x, slope * x) for x in steps[[0, -1]]], 'stroke="#000"')

    alike = {"scale": (place.at["scale"], "calibration"), "reading": "faithful"}
    models = kept(place.tables.read("values/points"), alike).select("disagree_nats", "agree_nats")
    return figures.scatter(
        shown,
        labels=("log-probability of disagreeing (nats)", "log-probability of agreeing (nats)"),
        title=f"{place.at['model']}, {place.at['language']}",
        under=line,
        reach=models.rows(),
        legend=[(figures.key(stroke="#000"), "LogAgree = a LogDisagree, ± sigma")],
        size=(250.0, 220.0),
    )


def reference(respondents: pl.DataFrame, scale: str) -> tuple[dict[str, dict[str, Any]], str]:
    """Return those whom values are held against, by value and gender, and who they are.

    Of the first survey of a scale: by gender, those not infected, or all where it does not say.
    """
    own = kept(respondents, {"scale": scale, "gender": tuple(SAME)})
    if own.is_empty():
        return {}, ""
    own = kept(own, {"survey": own["survey"][0]})
    healthy = kept(own, {"infected": "no"})
    own, who = (
        (healthy, "not infected, of") if len(healthy) else (kept(own, {"infected": "all"}), "of")
    )
    rows = own.to_dicts()
    survey = rows[0]["survey"]
    what = f"the SIMULATED survey {survey!r}" if rows[0]["simulated"] else f"the survey {survey!r}"
    return {f"{r['axis']}, {SAME[r['gender']]}": r for r in rows}, f"respondents {who} {what}"


def _values(own: pl.DataFrame, place: Place) -> figures.Forest:
    people, about = reference(place.tables.read("values/respondents"), place.at["scale"])
    names = ("quartile_low", "median", "quartile_high")
    beside = f"; grey: {about}" if about else ""
    line = pl.format("{}, {}", "axis", "gender").alias("line")
    return figures.shared(
        kept(own, {"gender": GENDERS}).sort("axis", "gender").with_columns(line).to_dicts(),
        line="line",
        unit=f"mean rating{beside}",
        title=f"{place.at['model']}, {place.at['language']}, {place.at['reading']}",
        quartiles={line: tuple(row[n] for n in names) for line, row in people.items()},
        limits=(1.0, 5.0),
        zero={"": 3.0},
    )


def lines(tables: Tables) -> pl.DataFrame:
    """Return the calibration, again for every scale."""
    table, scales = tables.read("values/calibration"), tables.read("values/values")
    if table.is_empty() or scales.is_empty():
        return pl.DataFrame()
    of = scales.select("model", "language", "scale").unique()
    own = (pl.col("fitted") != "by gender, likely half") | (pl.col("measure") == "sigma")
    return table.filter(own).join(of, on=["model", "language"])


def genders(tables: Tables) -> pl.DataFrame:
    """Return the tests of gender: by gender those of values, pooled the habit of agreeing too."""
    table = tables.read("values/gender")
    if table.is_empty():
        return table
    own = (pl.col("measure") == "value") & (pl.col("fitted") == "by gender")
    habit = (pl.col("axis") == "calibration") & (pl.col("fitted") == "pooled")
    return table.filter(own | habit)


def _main(tables: Tables) -> pl.DataFrame:
    table = kept(tables.read("values/values"), FAITHFUL | {"gender": GENDERS})
    order = ("model", "language", "scale", "axis", "gender")
    return table.with_columns(zero=pl.lit(3.0)).sort(order) if len(table) else table


STUDY = study(__file__, globals())
