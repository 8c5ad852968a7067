"""Figures of the study of names: countries ranked by what a classifier makes of their names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from matplotlib.figure import Figure

from probes.report.drawing import named, svg

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
    for y, row in enumerate(order):
        p = row["p_country_bh"]
        filled = p is not None and p <= MARKED
        if row["low"] is not None and row["high"] is not None:
            axes.plot([row["low"], row["high"]], [y, y], color="0.45", lw=0.9)
        axes.plot(row["value"], y, "ko", ms=4, mfc="black" if filled else "white", mew=0.8)
        if row["country"] in placebo:
            axes.plot(placebo[row["country"]], y, "x", color="0.55", ms=3.5, mew=0.8)
    axes.axvline(0, color="black", lw=0.6, ls=":")
    countries = [row["country"] for row in order]
    named(axes.yaxis, range(len(order)), countries, marks=False, fontsize=7)
    axes.set_ylim(-1, len(order))
    axes.set_xlabel("change of P+ − P−, points", fontsize=9)
    return svg(figure, title)
