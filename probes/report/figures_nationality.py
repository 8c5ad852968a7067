"""Figures of the study of names: countries ranked by what a classifier makes of their names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from matplotlib.figure import Figure

from plumbline.probes.report.drawing import named, spans, svg

if TYPE_CHECKING:
    from collections.abc import Sequence

MARKED = 0.05  # adjusted p: filled dots


def ranked(rows: Sequence[dict[str, Any]], placebo: dict[str, float], title: str) -> str:
    """Draw countries as dots with intervals, the highest on top.

    A filled dot differs from the other countries at 5% false discoveries, a hollow one does not.
    Crosses are placebo swaps within the country.

    Parameters
    ----------
    rows
        Dicts with country, value, low, high and p_country_bh.
    placebo
        The value of placebo swaps, by country.
    """
    order = sorted(rows, key=lambda row: (row["value"], row["country"]))
    figure = Figure(figsize=(5.6, 0.9 + 0.17 * max(6, len(order))))
    axes = figure.add_subplot()
    known = [(row["low"], row["high"], y) for y, row in enumerate(order)]
    limits = [span for span in known if None not in span]
    spans(axes, limits, color="0.45", lw=0.9)
    for filled, face in ((True, "black"), (False, "white")):
        own = [(row["value"], y) for y, row in enumerate(order) if _sure(row) == filled]
        if own:
            axes.plot(*zip(*own, strict=True), "ko", ms=4, mfc=face, mew=0.8)
    crosses = [
        (placebo[row["country"]], y) for y, row in enumerate(order) if row["country"] in placebo
    ]
    if crosses:
        axes.plot(*zip(*crosses, strict=True), "x", color="0.55", ms=3.5, mew=0.8)
    axes.axvline(0, color="black", lw=0.6, ls=":")
    countries = [row["country"] for row in order]
    named(axes.yaxis, range(len(order)), countries, marks=False, fontsize=7)
    axes.set_ylim(-1, len(order))
    axes.set_xlabel("change of P+ − P−, points", fontsize=9)
    sure = [row["country"] for row in order if _sure(row)]
    shows = (
        f"{title}. Change of P+ minus P− by country of the name, in points, dots with intervals: "
        f"from {order[0]['country']} ({order[0]['value']:.1f}) to {order[-1]['country']} "
        f"({order[-1]['value']:.1f}). Unlike the other countries: {', '.join(sure) or 'none'}."
    )
    return svg(figure, title, shows=shows)


def _sure(row: dict[str, Any]) -> bool:
    return row["p_country_bh"] is not None and bool(row["p_country_bh"] <= MARKED)
