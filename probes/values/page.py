"""The page of the study of values: what models agree with, and grammatical gender."""

from __future__ import annotations

from typing import Any

import polars as pl

from plumbline.probes.report import figures
from plumbline.probes.report.view import (
    Listing,
    Place,
    Readings,
    Step,
    Study,
    Tables,
    fold,
    kept,
    view,
)

MARKS = {
    "feminine": figures.Mark("circle", "#fff", "#000"),
    "masculine": figures.Mark("square", "#000", "#000"),
}
POOLED = {"fitted": "pooled", "intercept": False}
SHOWN = POOLED | {"spread": "n-1"}


def _scatter(lines: pl.DataFrame, place: Place) -> str:
    """Draw LogDisagree against LogAgree, with the line through 0 and one sigma around it."""
    every = place.read("values/points", "scale")
    points = kept(every, {"scale": (place.at["scale"], "calibration")})
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

    said = f"LogAgree = {slope:.3f} LogDisagree, ± sigma"
    return figures.scatter(
        {"": shown},
        labels=("log-probability of disagreeing (nats)", "log-probability of agreeing (nats)"),
        title=f"{place.at['model']}, {place.at['language']}",
        under=line,
        legend=[(figures.key(stroke="#000"), said)],
    )


def standing(respondents: pl.DataFrame, scale: str) -> tuple[dict[str, dict[str, Any]], str]:
    """Return quartiles of all respondents of the first survey of a scale, and what it is."""
    own = kept(respondents, {"scale": scale, "gender": "all", "infected": "all"})
    if own.is_empty():
        return {}, ""
    first = own["survey"][0]
    rows = kept(own, {"survey": first}).to_dicts()
    said = f"the SIMULATED survey {first!r}" if rows[0]["simulated"] else f"the survey {first!r}"
    return {row["axis"]: row for row in rows}, said


def _values(own: pl.DataFrame, place: Place) -> str:
    people, about = standing(place.tables.read("values/respondents"), place.at["scale"])
    names = ("quartile_low", "median", "quartile_high")
    beside = f"; grey: quartiles and median of {about}" if about else ""
    return figures.forest(
        kept(own, {"gender": tuple(MARKS)}).sort("axis", "gender").to_dicts(),
        line="axis",
        unit=f"mean rating{beside}",
        title=f"{place.at['model']}, {place.at['language']}, {place.at['reading']}",
        series="gender",
        marks=MARKS,
        quartiles={axis: tuple(row[n] for n in names) for axis, row in people.items()},  # type: ignore[misc]
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
    told = (pl.col("measure") == "value") | (pl.col("axis") == "calibration")
    return table.filter(told) if len(table) else table


STEP = Step(
    "values",
    "What models agree with, and whether gender matters",
    "How far a model agrees with political statements beyond its habit of agreeing, which "
    "statements about nothing political tell: the line of the figure. Ratings from 1 to 5, 3 is "
    "the habit itself. Gender: the same sentences said by a woman or a man; 'equivalent' means "
    "that a difference as large as the bound is rejected, which a large p alone never shows. "
    "Read first how often a likely statement is agreed with more than an unlikely one: at one "
    "half, the model does not understand the question, and the rest says nothing.",
    "values",
    (
        fold(
            *("{model}, {language}, {scale}", "language scale"),
            view(
                lines,
                Listing(
                    *("reading; frame; form; measure", "value; interval; p; n=statements"),
                    "calibration",
                    where={"measure": ("slope", "sigma (n-1)", "likely above unlikely")},
                    sort="reading measure frame form",
                    digits=3,
                ),
                caption="One frame, as the paper has it. Marks far from the line are strong "
                "opinions.",
                figure=_scatter,
            ),
            view(
                "values/values",
                Listing(
                    "axis=value; gender",
                    "value=mean; sd=SD; interval; p=p, random answers; p_bh; items=statements",
                    sort="axis gender",
                ),
                where=SHOWN,
                facets="reading",
                heading="values, {reading}",
                figure=_values,
                beside=True,
            ),
            view(
                genders,
                Listing(
                    "axis=value; reading; verdict",
                    "value=feminine − masculine; interval; p; p_bh; bound:2; "
                    "equivalence_low..equivalence_high=interval of the tests; "
                    "p_equivalence_bh=p equivalence adj.; n=clusters",
                    "gender",
                    sort="reading axis",
                    digits=3,
                ),
                Listing(
                    "compared; {first} – {second}=sides",
                    "value=Pearson; interval; spearman=Spearman; p_bh; n=clusters",
                    "does the model agree with itself?",
                    "values/consistency",
                    sort="compared first second",
                ),
            ),
        ),
    ),
    "model",
)


def _main(tables: Tables) -> pl.DataFrame:
    table = kept(tables.read("values/values"), SHOWN | {"gender": tuple(MARKS)})
    return table.sort("model", "language", "scale", "axis", "gender") if len(table) else table


STUDY = Study(
    "values",
    "Political values and grammatical gender",
    "With which political statements does a masked model agree, and does it matter whether a "
    "woman or a man is speaking?",
    "Al Ali and Libovický (2024)",
    (STEP,),
    ("values",),
    ("agreement",),
    ("statements", "survey"),
    Readings(
        "Mean ratings from 1 to 5, 3 being the habit of agreeing: the paper's one frame with the "
        "pieces of an answer scored apart, and answers scored from left to right in all frames.",
        "mean rating",
        "values",
        _main,
        "language scale axis gender",
    ),
)
