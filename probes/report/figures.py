"""Figures as SVG, readable in grey, the same bytes for the same numbers."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import matplotlib as mpl

mpl.use("svg")

from matplotlib.figure import Figure

if TYPE_CHECKING:
    import polars as pl

mpl.rcParams.update({"svg.hashsalt": "plumbline", "svg.fonttype": "path", "font.size": 9})
METADATA = {"Date": None, "Creator": None}


def recovery(frame: pl.DataFrame) -> str:
    """Draw planted log-ratio against measured PMI difference, one point a word.

    Parameters
    ----------
    frame
        Columns planted, contrast, sentiment.
    """
    figure = Figure(figsize=(5.2, 3.6), layout="constrained")
    axes = figure.add_subplot()
    axes.axhline(0, color="0.8", lw=0.8)
    axes.axvline(0, color="0.8", lw=0.8)
    marks = {"positive": ("^", "black"), "negative": ("v", "0.45"), "neutral": ("o", "0.7")}
    for sentiment, (marker, colour) in marks.items():
        part = frame.filter(frame["sentiment"] == sentiment)
        axes.scatter(
            part["planted"], part["contrast"], marker=marker, s=18, color=colour, label=sentiment
        )
    axes.set_xlabel("planted log-odds ratio, female to male (nats)")
    axes.set_ylabel("measured PMI, female minus male (nats)")
    axes.legend(title="planted sentiment", frameon=False, fontsize=8)
    return _svg(figure)


def words(rows: list[dict[str, Any]], title: str) -> str:
    """Draw PMI with intervals for some words, one line a word, in the order given."""
    figure = Figure(figsize=(5.2, 0.24 * len(rows) + 0.9), layout="constrained")
    axes = figure.add_subplot()
    for y, row in enumerate(reversed(rows)):
        low = row["low"] if row["low"] is not None else row["value"]
        high = row["high"] if row["high"] is not None else row["value"]
        axes.plot([low, high], [y, y], color="0.4", lw=1.2)
        significant = row["p_bh"] is not None and row["p_bh"] <= 0.05
        face = "black" if significant else "white"
        axes.plot([row["value"]], [y], "o", ms=4.5, mfc=face, mec="black")
    axes.axvline(0, color="0.8", lw=0.8, zorder=0)
    axes.set_yticks(range(len(rows)), [r["word"] for r in reversed(rows)])
    axes.set_xlabel("PMI (nats), with interval; filled: adjusted p at most 0.05")
    axes.set_title(title, fontsize=9, loc="left")
    return _svg(figure)


def clusters(frame: pl.DataFrame, title: str) -> str:
    """Draw words in the plane of their first two principal components.

    Shades are clusters, markers genders, so that either is read without colour.

    Parameters
    ----------
    frame
        Columns x, y, part and gender (its label); one row a word.
    """
    figure = Figure(figsize=(5.2, 3.9), layout="constrained")
    axes = figure.add_subplot()
    parts = frame["part"].unique().sort().to_list()
    shades = mpl.colormaps["viridis"]
    marks = {"male": "s", "female": "o", "non-binary": "D"}
    for i, part in enumerate(parts):
        colour = shades(0.9 * i / max(1, len(parts) - 1))
        for gender, marker in marks.items():
            own = frame.filter((frame["part"] == part) & (frame["gender"] == gender))
            if len(own):
                axes.scatter(
                    own["x"],
                    own["y"],
                    marker=marker,
                    s=22,
                    color=[colour],
                    edgecolor="black",
                    linewidth=0.4,
                    label=f"cluster {part}, {gender} ({len(own)})",
                )
    axes.set_xlabel("first principal component of the states")
    axes.set_ylabel("second principal component")
    axes.set_title(title, fontsize=9, loc="left")
    axes.legend(frameon=False, fontsize=7, ncols=2, loc="upper center", bbox_to_anchor=(0.5, -0.16))
    return _svg(figure)


def _svg(figure: Figure) -> str:
    out = io.StringIO()
    figure.savefig(out, format="svg", metadata=METADATA)
    text = out.getvalue()
    return text[text.index("<svg") :]
