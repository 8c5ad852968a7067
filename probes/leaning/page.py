"""Figure of the study ``leaning``: a model and its checkpoints in the plane of two axes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from plumbline.probes.report import figures
from plumbline.probes.report.results import Drawing

if TYPE_CHECKING:
    from plumbline.probes.report.tables import Tables

# blue, grey and vermilion from Okabe and Ito's palette, which colour-blind readers can distinguish
SIDES = {"left": ("#0072B2", "left"), "center": ("#737373", "circle")}
SIDES |= {"right": ("#D55E00", "right")}
OTHER = ("#009E73", "square")
RADIUS = 2.447747  # radius that contains 95% of a bivariate standard normal distribution
READINGS = {  # method variants that are drawn, by response format
    "mask": ("faithful", "corrected"),
    "generation": ("faithful", "corrected"),
    "multiple_choice": ("named", "likeliest"),
}
ITSELF = "the model itself"


def style(corpus: str) -> figures.Mark:
    """Return the mark of a corpus (hollow for social media) or of the model itself (black)."""
    if not corpus:
        return figures.Mark("circle", "#fff", "#000")
    styles = [style for side, style in SIDES.items() if corpus.endswith(side)]
    colour, shape = styles[0] if styles else OTHER
    return figures.Mark(shape, "#fff" if corpus.startswith("social") else colour, colour)


def latest(table: pl.DataFrame) -> pl.DataFrame:
    """Return each corpus's last checkpoint at its largest share, for period ``all`` if any."""
    for name in ("share", "epoch"):
        table = table.filter(pl.col(name) == pl.col(name).max().over("corpus", "period"))
    periods = table.filter(pl.col("corpus") != "")["period"].to_list()
    return table.filter(period="all") if "all" in periods else table


def draw_compass(table: pl.DataFrame, title: str, tables: Tables) -> str:
    """Draw the checkpoints of a model in the plane of two axes, one panel per method variant."""
    axes = table["axis"].unique().sort().to_list()
    east = min(axes, key=lambda axis: not axis.startswith("econ"))
    axes = sorted(axes, key=lambda axis: (axis != east, axis not in ("social", "govt")))[:2]
    if len(axes) < 2:
        return ""
    lines = tables.read("compass/baselines").sort("baseline", maintain_order=True)
    lines = lines.filter(questionnaire=table["questionnaire"][0], constants="corrected")
    spots = {
        baseline: [row for axis in axes for row in part.filter(axis=axis).to_dicts()]
        for (baseline,), part in lines.group_by("baseline", maintain_order=True)
    }
    random = spots.pop("random answers")
    centre, radii = [row["value"] for row in random], [RADIUS * row["sd"] for row in random]
    constant = [tuple(row["value"] for row in rows) for rows in spots.values()]

    def under(plot: figures.Panel) -> None:
        plot.ellipse((centre[0], centre[1]), (radii[0], radii[1]), figures.FAINT)
        plot.spans([(*plot.x, centre[1])], "#ccc")
        plot.spans([(*plot.y, centre[0])], "#ccc", upright=True)
        plot.path(constant, 'stroke="#555" stroke-dasharray="2 3"')
        signs: dict[Any, list[str]] = {}
        for sign, spot in zip(("−−", "−", "+", "++"), constant, strict=True):
            signs.setdefault(tuple(round(value, 3) for value in spot), []).append(sign)
        for spot, names in signs.items():  # answers at the same point share a label
            plot.words(spot, " ".join(names), 'font-size="9"', (4, -4))

    panels = {}
    for reading in READINGS[str(table["response_format"][0])]:
        if points := _states(latest(table).filter(reading=reading), axes):
            panels[reading] = points
    if not panels:
        return ""
    edge = [(centre[0] + sign * radii[0], centre[1] + sign * radii[1]) for sign in (-1, 1)]
    sides = {"economic": "economic (plus: right)", "social": "social (plus: authoritarian)"}
    legend = [
        (figures.box(figures.FAINT), "95% of random responses"),
        (figures.key(stroke="#555", dash="2 3"), "the same answer to all: −− to ++"),
    ]
    return figures.plane(
        panels,
        labels=(sides.get(axes[0], axes[0]), sides.get(axes[1], axes[1])),
        title=title,
        under=under,
        reach=[*edge, *constant],
        legend=legend,
        size=(300.0, 300.0),
    )


def _states(table: pl.DataFrame, axes: list[str]) -> list[figures.Series]:
    """Return the points of a model's checkpoints with their intervals, the model itself first."""
    points = []
    table = table.drop_nulls("value").sort("corpus", "period", maintain_order=True)
    for (corpus, period), part in table.group_by("corpus", "period", maintain_order=True):
        by_axis = {row["axis"]: row for row in part.to_dicts()}
        if set(axes) <= set(by_axis):
            x, y = (by_axis[axis] for axis in axes)
            spans = [[None if r["low"] is None else (r["low"], r["high"])] for r in (x, y)]
            label = (corpus or ITSELF) + (f", {period}" if corpus and period != "all" else "")
            spot = [(x["value"], y["value"])]
            points.append(figures.Series(label, spot, style(corpus), spans[0], spans[1], size=5))
    return points


FACETS = ("model", "questionnaire", "response_format")
DRAWINGS = {"compass/coordinates": Drawing(FACETS, draw_compass)}
