"""Figures as SVG, readable in grey, the same bytes for the same numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator

from plumbline.probes.report.drawing import named, spans, svg

if TYPE_CHECKING:
    import polars as pl

MARKS = {  # marker, face, edge
    "male": ("s", "black", "black"),
    "female": ("o", "white", "black"),
    "non-binary": ("D", "0.75", "0.5"),
}


def recovery(frame: pl.DataFrame) -> str:
    """Draw planted log-ratio against measured PMI difference, one point a word.

    Parameters
    ----------
    frame
        Columns planted, contrast, sentiment.
    """
    figure = Figure(figsize=(5.2, 3.6))
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
    shows = (
        f"Scatter plot of {len(frame)} words: planted log-odds ratio, female to male, from left to "
        "right; measured PMI, female minus male, upwards. Marks tell the planted sentiment."
    )
    return svg(figure, shows=shows)


def words(rows: list[dict[str, Any]], title: str) -> str:
    """Draw PMI with intervals for some words, one line a word, in the order given."""
    figure = Figure(figsize=(5.2, 0.24 * len(rows) + 0.9))
    axes = figure.add_subplot()
    placed = list(enumerate(reversed(rows)))
    limits = [
        (*(row["value"] if row[end] is None else row[end] for end in ("low", "high")), y)
        for y, row in placed
    ]
    spans(axes, limits, color="0.4", lw=1.2)
    for significant, face in ((True, "black"), (False, "white")):
        own = [
            (row["value"], y)
            for y, row in placed
            if (row["p_bh"] is not None and row["p_bh"] <= 0.05) == significant
        ]
        if own:
            axes.plot(*zip(*own, strict=True), "o", ms=4.5, mfc=face, mec="black")
    axes.axvline(0, color="0.8", lw=0.8, zorder=0)
    named(axes.yaxis, range(len(rows)), [r["word"] for r in reversed(rows)])
    axes.set_xlabel("PMI (nats), with interval; filled: adjusted p at most 0.05")
    axes.set_title(title, fontsize=9, loc="left")
    sure = sum(row["p_bh"] is not None and row["p_bh"] <= 0.05 for row in rows)
    shows = f"{title}. Dots with intervals, the highest on top: PMI {_ends(rows)}; {sure} filled."
    return svg(figure, shows=shows)


def _ends(rows: list[dict[str, Any]]) -> str:
    """Say from where to where values go."""
    values = [row["value"] for row in rows if row["value"] is not None]
    return f"from {min(values):.2f} to {max(values):.2f}" if values else "nowhere"


def sentiments(rows: list[dict[str, Any]], title: str) -> str:
    """Draw shares of sentiments among the largest deviations, men beside women, as Figures 4 and 6.

    One panel a sentiment, one line a ``label`` (a model, or a language), in the order given.

    Parameters
    ----------
    rows
        Keys label, sentiment, gender (male, female, non-binary), value, low, high, base (the share
        among all candidates), and significant (whether men and women differ).
    """
    return _panels(rows, title, 0.42)


def subgroups(rows: list[dict[str, Any]], title: str) -> str:
    """Draw shares of sentiments in parts of the people, men beside women, as Figures 7 to 9.

    Parameters
    ----------
    rows
        As of :func:`sentiments`, a label for each part, without base.
    """
    return _panels([{"base": None, **row} for row in rows], title, 0.55)


def _panels(rows: list[dict[str, Any]], title: str, height: float) -> str:
    labels = list(dict.fromkeys(row["label"] for row in rows))
    genders = [g for g in MARKS if any(row["gender"] == g for row in rows)]
    panels = ("positive", "negative", "neutral")
    figure = Figure(figsize=(7.4, height * len(labels) + 1.5))
    every = figure.subplots(1, len(panels), sharex=True, sharey=True)
    for axes, sentiment in zip(every, panels, strict=True):
        here = [
            (len(labels) - 1 - labels.index(row["label"]), row)
            for row in rows
            if row["sentiment"] == sentiment
        ]
        for place, gender in enumerate(genders):
            marker, face, colour = MARKS[gender]
            lower = 0.22 * (place - (len(genders) - 1) / 2)
            own = [(y - lower, row) for y, row in here if row["gender"] == gender]
            limits = [(row["low"], row["high"], y) for y, row in own]
            spans(axes, limits, color=colour, lw=1.1)
            values, ys = [row["value"] for _, row in own], [y for y, _ in own]
            axes.plot(values, ys, marker, ms=5, mfc=face, mec=colour, color=colour)
        for y, row in here:
            if row["gender"] == "male":
                if row["base"] is not None:
                    axes.plot([row["base"]] * 2, [y - 0.36, y + 0.36], color="0.7", lw=1)
                if row["significant"]:
                    axes.text(1.02, y, "*", ha="left", va="center", fontsize=12, clip_on=False)
        axes.set_title(sentiment, fontsize=9)
        axes.set_xlim(0, 1)
        axes.set_ylim(-0.6, len(labels) - 0.4)
        quarters = [0, 0.25, 0.5, 0.75, 1]
        axes.vlines(quarters, -1, len(labels), color="0.93", lw=0.6, zorder=0.5)
        named(axes.xaxis, quarters, ["0", "25", "50", "75", "100"])
    named(every[0].yaxis, range(len(labels)), labels[::-1])
    handles = [
        Line2D([], [], marker=marker, mfc=face, mec=colour, color=colour, lw=1.1, label=gender)
        for gender, (marker, face, colour) in MARKS.items()
        if gender in genders
    ]
    if any(row["base"] is not None for row in rows):
        handles.append(Line2D([], [], color="0.7", lw=1, label="all candidates"))
    figure.legend(
        handles=handles, loc="lower center", ncols=len(handles), frameon=False, fontsize=8
    )
    every[1].set_xlabel("percent of the words that deviate most; *: men and women differ")
    apart = sum(1 for row in rows if row["gender"] == "male" and row["significant"])
    shows = (
        f"{title}. Shares of positive, negative and neutral words by gender "
        f"({', '.join(genders)}) for {len(labels)} lines: {', '.join(labels)}. Dots with "
        f"intervals; men and women differ in {apart} places."
    )
    return svg(figure, title, shows=shows)


def supersenses(rows: list[dict[str, Any]], genders: tuple[str, str], title: str) -> str:
    """Draw the share of each class among either gender's words, with intervals.

    After figure 3 of Stańczak et al. (2023). Classes stand in the order given, the first on top; a
    class in bold differs between the genders at a Bonferroni-adjusted p of at most 0.05.

    Parameters
    ----------
    rows
        One for each class: supersense (its name), share_, low_ and high_ of first and second, and
        p_bonferroni.
    genders
        Names of the first and the second gender.
    """
    figure = Figure(figsize=(5.2, 0.3 * len(rows) + 1.0))
    axes = figure.add_subplot()
    styles = (("first", 0.14, "o", "black"), ("second", -0.14, "s", "0.6"))
    for (side, shift, marker, colour), gender in zip(styles, genders, strict=True):
        placed = [(y + shift, row) for y, row in enumerate(reversed(rows))]
        limits = [(row[f"low_{side}"], row[f"high_{side}"], y) for y, row in placed]
        spans(axes, limits, color=colour, lw=1.2)
        values, ys = [row[f"share_{side}"] for _, row in placed], [y for y, _ in placed]
        axes.plot(values, ys, marker, ms=4.5, color=colour, label=gender, clip_on=False)
    for y, row in enumerate(reversed(rows)):
        weight = "bold" if row["p_bonferroni"] <= 0.05 else "normal"
        named(axes.yaxis, [y], [row["supersense"]], fontweight=weight)
    axes.yaxis.set_major_locator(FixedLocator(range(len(rows))))
    axes.set_xlim(left=0)
    axes.set_xlabel("share of the words, with interval; bold: adjusted p at most 0.05")
    axes.set_title(title, fontsize=9, loc="left")
    axes.legend(frameon=False, fontsize=8)
    apart = [row["supersense"] for row in rows if row["p_bonferroni"] <= 0.05]
    shows = (
        f"{title}. Share of {len(rows)} classes among the words of {genders[0]} and of "
        f"{genders[1]}, dots with intervals. In bold: {', '.join(apart) or 'none'}."
    )
    return svg(figure, shows=shows)


def clusters(frame: pl.DataFrame, title: str) -> str:
    """Draw words in the plane of their first two principal components.

    Shades are clusters, markers genders, so that either is read without colour.

    Parameters
    ----------
    frame
        Columns x, y, part and gender (its label); one row a word.
    """
    figure = Figure(figsize=(5.2, 3.9))
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
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="lower center", ncols=2, frameon=False, fontsize=7)
    shows = (
        f"{title}. Scatter plot of {len(frame)} words in the plane of two principal components, "
        f"in {len(parts)} clusters by shade; marks tell genders: {'; '.join(map(str, labels))}."
    )
    return svg(figure, shows=shows)
