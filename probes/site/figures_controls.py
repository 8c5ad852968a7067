"""The figure of all controls: what each analysis finds of what was planted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from plumbline.probes.report.drawing import named, spans, svg
from plumbline.probes.site.controls import FALSE, HOLD, NO, NOMINAL, ORDER, QUESTIONS, UNCLEAR, YES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from plumbline.probes.site.controls import Check

MARKS = {YES: ("o", "black"), UNCLEAR: ("o", "white"), NO: ("x", "black")}
IDEAL = {HOLD: NOMINAL, ORDER: 0.0}


def controls(checks: Sequence[Check]) -> str:
    """Draw every number of a control with its interval, a panel for each question.

    Parameters
    ----------
    checks
        In the order in which analyses are to stand.
    """
    analyses = list(dict.fromkeys(check.analysis for check in checks))
    figure = Figure(figsize=(9.6, 0.42 * len(analyses) + 1.2))
    every = figure.subplots(1, len(QUESTIONS), sharey=True)
    for axes, question in zip(every, QUESTIONS, strict=True):
        placed = []
        for y, analysis in enumerate(reversed(analyses)):
            own = [c for c in checks if (c.analysis, c.question) == (analysis, question)]
            for place, check in enumerate(own):
                placed.append((y + 0.35 - 0.7 * (place + 0.5) / len(own), check))
        limits = [(c.low, c.high, y) for y, c in placed if c.low is not None and c.high is not None]
        spans(axes, limits, color="0.55", lw=0.8)
        for verdict, (mark, face) in MARKS.items():
            dots = [(c.value, y) for y, c in placed if c.verdict == verdict]
            if dots:
                width = 1.6 if mark == "x" else 0.7
                axes.plot(*zip(*dots, strict=True), mark, ms=4.5, mfc=face, mec="black", mew=width)
        axes.axvline(IDEAL.get(question, FALSE), color="0.4", lw=0.8, ls=":", zorder=0)
        axes.hlines(
            [y + 0.5 for y in range(len(analyses) - 1)], -0.25, 1.05, color="0.92", lw=0.6, zorder=0
        )
        axes.set_xlim(-0.25, 1.05)
        axes.set_ylim(-0.5, len(analyses) - 0.5)
        axes.set_title(question, fontsize=8.5)
    named(every[0].yaxis, range(len(analyses)), analyses[::-1])
    names = {YES: "as it should be", UNCLEAR: "unclear", NO: "not as it should be"}
    handles = [
        Line2D([], [], ls="", marker=mark, mfc=face, mec="black", ms=5, label=names[verdict])
        for verdict, (mark, face) in MARKS.items()
    ]
    figure.legend(handles=handles, loc="lower center", ncols=3, frameon=False, fontsize=8)
    counts = [f"{sum(c.verdict == v for c in checks)} {names[v]}" for v in MARKS]
    shows = (
        f"{len(checks)} numbers of controls with intervals, a line for each of {len(analyses)} "
        f"analyses and a panel for each of four questions. {', '.join(counts)}. The tables below "
        "have all of them."
    )
    return svg(figure, shows=shows)
