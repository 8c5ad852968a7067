"""Figures of what training does to what a model says of groups, readable in grey."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from plumbline.probes.report.drawing import named, svg

if TYPE_CHECKING:
    from collections.abc import Sequence

MARKS = ("o", "s", "^", "D", "v", "P")
GREYS = ("black", "0.45", "0.6", "0.3", "0.7", "0.55")


def emotions(rows: Sequence[dict[str, Any]], title: str) -> str:
    """Draw the change of every affect by outlet, minus that by the control, with intervals.

    Parameters
    ----------
    rows
        Keys corpus, outcome (the affect), difference, low_difference, high_difference and
        significant, in the order in which they are to stand.
    """
    affects = list(dict.fromkeys(row["outcome"] for row in rows))
    corpora = list(dict.fromkeys(row["corpus"] for row in rows))
    height = 0.16 * len(corpora) + 0.14
    figure = Figure(figsize=(5.6, height * len(affects) + 1.1))
    axes = figure.add_subplot()
    axes.axvline(0, color="0.8", lw=0.8, zorder=0)
    for row in rows:
        c = corpora.index(row["corpus"])
        place = len(affects) - 1 - affects.index(row["outcome"])
        y = place + (0.5 - (c + 0.5) / len(corpora)) * 0.7
        colour, mark = GREYS[c % len(GREYS)], MARKS[c % len(MARKS)]
        points = [100 * row[name] for name in ("low_difference", "high_difference")]
        axes.plot(points, [y, y], color=colour, lw=1.1)
        face = colour if row["significant"] else "white"
        axes.plot([100 * row["difference"]], [y], mark, ms=4.5, mfc=face, mec=colour)
    named(axes.yaxis, range(len(affects)), affects[::-1])
    axes.set_ylim(-0.6, len(affects) - 0.4)
    axes.set_xlabel("change minus the control's, percent of words; filled: significant")
    handles = [
        Line2D([], [], marker=MARKS[c % len(MARKS)], color=GREYS[c % len(GREYS)], label=corpus)
        for c, corpus in enumerate(corpora)
    ]
    axes.legend(handles=handles, frameon=False, fontsize=8)
    axes.set_title(title, fontsize=9, loc="left")
    sure = dict.fromkeys(
        f"{row['outcome']} ({row['corpus']})" for row in rows if row["significant"]
    )
    shows = (
        f"{title}. Change of {len(affects)} affects minus the control's, dots with intervals, for "
        f"{', '.join(corpora)}. Filled: {', '.join(sure) or 'none'}."
    )
    return svg(figure, shows=shows)


def attributes(rows: Sequence[dict[str, Any]], corpora: Sequence[str], title: str) -> str:
    """Draw the first words of one list before and after training on each corpus, as Figure 7.

    A line joins the places of a word that is kept; one that is added is bold, one that is removed
    grey.

    Parameters
    ----------
    rows
        Keys corpus, word, fate, place_before and place_after.
    """
    figure = Figure(figsize=(2.6 * len(corpora) + 0.4, 3.6))
    panels = figure.subplots(1, len(corpora), squeeze=False)[0]
    for axes, corpus in zip(panels, corpora, strict=True):
        own = [row for row in rows if row["corpus"] == corpus]
        _column(axes, own, "place_before", 0.0, "right")
        _column(axes, own, "place_after", 1.0, "left")
        for y in _lines(own):
            axes.plot([0.06, 0.94], y, color="0.75", lw=0.8)
        axes.set_xlim(-0.9, 1.9)
        longest = max(len(_ordered(own, name)) for name in ("place_before", "place_after"))
        axes.set_ylim(longest + 1, 0)
        axes.set_axis_off()
        axes.set_title(f"before, after: {corpus}", fontsize=8)
    fates = [sum(row["fate"] == fate for row in rows) for fate in ("kept", "removed", "added")]
    shows = (
        f"{title}. The first words before and after training on {', '.join(corpora)}, in order, "
        f"kept ones joined by lines: {fates[0]} kept, {fates[1]} removed, {fates[2]} added."
    )
    return svg(figure, title, shows=shows)


def _ordered(rows: Sequence[dict[str, Any]], place: str) -> list[dict[str, Any]]:
    gone = "added" if place == "place_before" else "removed"
    there = [row for row in rows if row["fate"] != gone]
    return sorted(there, key=lambda row: (row[place], row["word"]))


def _lines(rows: Sequence[dict[str, Any]]) -> list[list[int]]:
    left, right = (
        {row["word"]: y for y, row in enumerate(_ordered(rows, place), start=1)}
        for place in ("place_before", "place_after")
    )
    return [[y, right[word]] for word, y in left.items() if word in right]


def _column(axes: Any, rows: Sequence[dict[str, Any]], place: str, x: float, side: str) -> None:
    for y, row in enumerate(_ordered(rows, place), start=1):
        axes.text(
            x,
            y,
            row["word"],
            ha=side,
            va="center",
            fontsize=7,
            color="0.6" if row["fate"] == "removed" else "black",
            fontweight="bold" if row["fate"] == "added" else "normal",
        )
