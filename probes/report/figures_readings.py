"""The figure of two readings of the same numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from matplotlib.figure import Figure

from plumbline.probes.report.drawing import named, spans, svg

if TYPE_CHECKING:
    from collections.abc import Sequence

    Pair = tuple[str, dict[str, Any], dict[str, Any]]

STYLES = {"faithful": ("s", "white", "0.5", 0.16), "corrected": ("o", "black", "black", -0.16)}


def pairs(rows: Sequence[Pair], unit: str, title: str) -> str:
    """Draw numbers with intervals, the faithful reading above the corrected one.

    Parameters
    ----------
    rows
        What was measured, and value, low and high of both readings.
    unit
        Of all numbers.
    """
    figure = Figure(figsize=(6.4, 0.24 * len(rows) + 1.1))
    axes = figure.add_subplot()
    readings = {"faithful": [row[1] for row in rows], "corrected": [row[2] for row in rows]}
    for name, (mark, face, colour, shift) in STYLES.items():
        placed: list[tuple[float, dict[str, Any]]] = [
            (len(rows) - 1 - y + shift, row)
            for y, row in enumerate(readings[name])
            if row["value"] is not None
        ]
        limits = [
            (row["low"], row["high"], y)
            for y, row in placed
            if row["low"] is not None and row["high"] is not None
        ]
        spans(axes, limits, color=colour, lw=1.1)
        values, ys = [row["value"] for _, row in placed], [y for y, _ in placed]
        axes.plot(values, ys, mark, ms=4.5, mfc=face, mec=colour, label=name)
    axes.set_ylim(-0.6, len(rows) - 0.4)
    named(axes.yaxis, range(len(rows)), [row[0] for row in reversed(rows)], fontsize=8)
    axes.set_xlabel(f"{unit}, with interval")
    figure.legend(loc="lower center", ncols=2, frameon=False, fontsize=8)
    shows = (
        f"{title}. {unit} of {len(rows)} things, dots with intervals, the faithful reading above "
        "the corrected one. The table beside has all numbers."
    )
    return svg(figure, title, shows=shows)
