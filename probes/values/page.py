"""The page of the study of values: what models agree with, and grammatical gender."""

from __future__ import annotations

from typing import Any

import polars as pl

from plumbline.probes.report import figures
from plumbline.probes.report.tables import Tables, kept
from plumbline.probes.report.view import Place, study

MARKS = {
    "feminine": figures.Mark("circle", "#fff", "#000"),
    "masculine": figures.Mark("square", "#000", "#000"),
}
POOLED = {"fitted": "pooled", "intercept": False}
SHOWN = POOLED | {"spread": "n-1"}


def _scatter(lines: pl.DataFrame, place: Place) -> str:
    """Draw LogDisagree against LogAgree, with the line through 0 and one sigma around it."""
    every = place.read("values/points", "scale")
    points = kept(every, {"scale": (place.at["scale"], "calibration"), "reading": "faithful"})
    own = kept(lines, {"reading": "faithful"})
    at: dict[str, float] = dict(own.select("measure", "value").iter_rows())
    slope, sigma = at["slope"], at["sigma (n-1)"]
    neutral = pl.col("scale") == "calibration"
    named = {f"calibration, {g}": (neutral & (pl.col("gender") == g), m) for g, m in MARKS.items()}
    named["political, both"] = (~neutral, figures.Mark("cross"))
    shown = [
        figures.Points(name, list(part.select("disagree_nats", "agree_nats").iter_rows()), mark)
        for name, (where, mark) in named.items()
        if len(part := points.filter(where))
    ]

    def line(plot: figures.Panel) -> None:
        ends = [min(x for p in shown for x, _ in p.at), max(x for p in shown for x, _ in p.at)]
        upper, lower = ([(x, slope * x + s * sigma) for x in ends] for s in (1, -1))
        plot.path([*upper, *reversed(lower)], f'fill="{figures.FAINT}"')
        plot.path([(x, slope * x) for x in ends], 'stroke="#000"')

    alike = {"scale": (place.at["scale"], "calibration"), "reading": "faithful"}
    models = kept(place.tables.read("values/points"), alike).select("disagree_nats", "agree_nats")
    label = f"LogAgree = {slope:.3f} LogDisagree, ± sigma"
    return figures.scatter(
        {"": shown},
        labels=("log-probability of disagreeing (nats)", "log-probability of agreeing (nats)"),
        title=f"{place.at['model']}, {place.at['language']}",
        under=line,
        reach=models.rows(),
        legend=[(figures.key(stroke="#000"), label)],
    )


def standing(respondents: pl.DataFrame, scale: str) -> tuple[dict[str, dict[str, Any]], str]:
    """Return quartiles of all respondents of the first survey of a scale, and what it is."""
    own = kept(respondents, {"scale": scale, "gender": "all", "infected": "all"})
    if own.is_empty():
        return {}, ""
    first = own["survey"][0]
    rows = kept(own, {"survey": first}).to_dicts()
    label = f"the SIMULATED survey {first!r}" if rows[0]["simulated"] else f"the survey {first!r}"
    return {row["axis"]: row for row in rows}, label


def _values(own: pl.DataFrame, place: Place) -> figures.Forest:
    people, about = standing(place.tables.read("values/respondents"), place.at["scale"])
    names = ("quartile_low", "median", "quartile_high")
    beside = f"; grey: quartiles and median of {about}" if about else ""
    return figures.shared(
        kept(own, {"gender": tuple(MARKS)}).sort("axis", "gender").to_dicts(),
        line="axis",
        unit=f"mean rating{beside}",
        title=f"{place.at['model']}, {place.at['language']}, {place.at['reading']}",
        series="gender",
        marks=MARKS,
        quartiles={axis: tuple(row[n] for n in names) for axis, row in people.items()},
        limits=(1.0, 5.0),
        zero={"": 3.0},
    )


def lines(tables: Tables) -> pl.DataFrame:
    """Return the calibration, again for every scale."""
    table, scales = tables.read("values/calibration"), tables.read("values/values")
    if table.is_empty() or scales.is_empty():
        return pl.DataFrame()
    of = scales.select("model", "language", "scale").unique()
    return kept(table, POOLED).join(of, on=["model", "language"])


def genders(tables: Tables) -> pl.DataFrame:
    """Return the tests of gender: of values, and of the habit of agreeing."""
    table = kept(tables.read("values/gender"), {"fitted": "pooled"})
    own = (pl.col("measure") == "value") | (pl.col("axis") == "calibration")
    return table.filter(own) if len(table) else table


def _main(tables: Tables) -> pl.DataFrame:
    table = kept(tables.read("values/values"), SHOWN | {"gender": tuple(MARKS)})
    order = ("model", "language", "scale", "axis", "gender")
    return table.with_columns(zero=pl.lit(3.0)).sort(order) if len(table) else table


STUDY = study(__file__, globals())
