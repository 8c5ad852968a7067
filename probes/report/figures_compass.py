"""Figures of the study of leaning: the compass, its trajectories, and shifts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Ellipse, Patch
from matplotlib.ticker import FixedLocator

from plumbline.probes.report.drawing import named, svg

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

# blue, grey, vermilion of Okabe and Ito, which the colour-blind tell apart, and marks to the side
SIDES = {"left": ("#0072B2", "<"), "center": ("0.45", "o"), "right": ("#D55E00", ">")}
OTHER = ("#009E73", "s")
SOCIAL = "social"  # these corpora have light faces
RADIUS = 2.447747  # of a circle that holds 95% of two independent normals


def style(corpus: str) -> dict[str, Any]:
    """Return colour, mark and face of a corpus; black and hollow: the model itself."""
    if not corpus:
        return {"color": "black", "marker": "o", "mfc": "white", "mec": "black", "ms": 7}
    found = [style for side, style in SIDES.items() if corpus.endswith(side)]
    colour, mark = found[0] if found else OTHER
    face = "white" if corpus.startswith(SOCIAL) else colour
    return {"color": colour, "marker": mark, "mfc": face, "mec": colour, "ms": 6}


def ordered(corpora: set[str]) -> list[str]:
    """Return corpora of one kind from left to right, the model itself first."""
    return sorted(corpora, key=_place)


def _place(corpus: str) -> tuple[str, int, str]:
    kind, _, side = corpus.rpartition("-")
    return kind, list(SIDES).index(side) if side in SIDES else -1, corpus


def compass(
    panels: Mapping[str, Sequence[dict[str, Any]]],
    baselines: Mapping[str, dict[str, tuple[float, float]]],
    axes: tuple[str, str],
    title: str,
) -> str:
    """Draw states of a model in the plane of two axes, a panel for each reading.

    Parameters
    ----------
    panels
        By reading: keys corpus, and for both axes a pair (value, low, high) under its name.
    baselines
        By who answers: by axis the value and the standard deviation; that of "random answers" is
        drawn as the ellipse that holds 95% of them, the others joined as a line.
    """
    figure = Figure(figsize=(4.1 * len(panels) + 0.2, 4.6))
    every = figure.subplots(1, len(panels), squeeze=False, sharex=True, sharey=True)[0]
    x, y = axes
    random = baselines["random answers"]
    constant = [own for name, own in baselines.items() if name != "random answers"]
    for plot, (reading, rows) in zip(every, panels.items(), strict=True):
        (east, wide), (north, tall) = random[x], random[y]
        band = Ellipse((east, north), 2 * RADIUS * wide, 2 * RADIUS * tall, fc="0.9", ec="none")
        plot.add_patch(band)
        plot.axhline(north, color="0.8", lw=0.7, zorder=0)
        plot.axvline(east, color="0.8", lw=0.7, zorder=0)
        line = [[own[axis][0] for own in constant] for axis in axes]
        plot.plot(*line, ":", color="0.35", lw=1, marker=".", ms=5)
        names = ("−−", "−", "+", "++")
        # answers that fall on one place are named together
        at: dict[tuple[float, float], list[str]] = {}
        for name, own in zip(names, constant, strict=True):
            at.setdefault((round(own[x][0], 3), round(own[y][0], 3)), []).append(name)
        for spot, called in at.items():
            said = " ".join(called)
            plot.annotate(said, spot, (4, 3), textcoords="offset points", fontsize=7, color="0.35")
        for row in sorted(rows, key=lambda row: _place(row["corpus"])):
            if row[x][0] is None or row[y][0] is None:
                continue
            look = style(row["corpus"])
            for axis, ends in ((0, row[x]), (1, row[y])):
                if ends[1] is not None:
                    level = [row[y if axis == 0 else x][0]] * 2
                    path = (ends[1:], level) if axis == 0 else (level, ends[1:])
                    plot.plot(*path, color=look["color"], lw=0.9, alpha=0.7)
            period = row.get("period", "all")
            label = row["corpus"] or "the model itself"
            label += "" if period == "all" else f", {period}"
            if period == "before":  # than the year from which the later texts are
                look = look | {"alpha": 0.5}
            plot.plot([row[x][0]], [row[y][0]], ls="", label=label, zorder=5, **look)
        plot.set_xlabel(f"{x} (plus: {_side(x)})" if _side(x) else x)
        plot.set_title(reading, fontsize=9)
        plot.autoscale_view()
    every[0].set_ylabel(f"{y} (plus: {_side(y)})" if _side(y) else y)
    handles, labels = every[0].get_legend_handles_labels()
    handles += [
        Patch(fc="0.9", label="95% of who answers at random"),
        Line2D([], [], ls=":", marker=".", color="0.35", label="the same answer to all: −− to ++"),
    ]
    labels += [handle.get_label() for handle in handles[-2:]]
    figure.legend(handles, labels, loc="lower center", ncols=4, frameon=False, fontsize=7.5)
    states = dict.fromkeys(
        row["corpus"] or "the model itself" for r in panels.values() for row in r
    )
    shows = (
        f"{title}. The plane of {x} (rightwards) and {y} (upwards), a panel for each reading: "
        f"{', '.join(panels)}. States with intervals: {', '.join(states)}; the ellipse of who "
        "answers at random, and the line of who gives the same answer to everything."
    )
    return svg(figure, title, shows=shows)


def _side(axis: str) -> str:
    return {"economic": "right", "social": "authoritarian"}.get(axis, "")


def trajectory(rows: Sequence[dict[str, Any]], axes: Sequence[str], along: str, title: str) -> str:
    """Draw coordinates along a training, a panel for each axis, as Figure 4.

    Parameters
    ----------
    rows
        Keys corpus, axis, at (times that the texts were read, or their share), value, low, high;
        those of the model itself stand at 0.
    along
        What ``at`` is.
    """
    figure = Figure(figsize=(3.5 * len(axes) + 0.3, 3.3))
    every = figure.subplots(1, len(axes), squeeze=False)[0]
    corpora = ordered({row["corpus"] for row in rows if row["corpus"]})
    for plot, axis in zip(every, axes, strict=True):
        own = [row for row in rows if row["axis"] == axis and row["value"] is not None]
        start = [row for row in own if not row["corpus"]]
        for row in start:
            plot.axhline(row["value"], color="0.8", lw=0.7, zorder=0)
        for c, corpus in enumerate(corpora):
            line = [*start, *(row for row in own if row["corpus"] == corpus)]
            line = sorted(line, key=lambda row: row["at"])
            look = style(corpus)
            apart = (c - (len(corpora) - 1) / 2) * 0.02 * max(row["at"] for row in line)
            xs = [row["at"] + apart * bool(row["corpus"]) for row in line]
            plot.plot(xs, [row["value"] for row in line], lw=1.1, label=corpus, **look)
            for at, row in zip(xs, line, strict=True):
                if row["corpus"] and row["low"] is not None:
                    plot.plot([at, at], [row["low"], row["high"]], color=look["color"], lw=0.7)
        if start:
            plot.plot([0], [start[0]["value"]], ls="", zorder=5, **style(""))
        plot.xaxis.set_major_locator(FixedLocator(sorted({row["at"] for row in own})))
        plot.xaxis.set_major_formatter("{x:g}")
        plot.set_xlabel(along)
        plot.set_ylabel(f"{axis} (plus: {_side(axis)})" if _side(axis) else axis)
    handles, labels = every[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="lower center", ncols=4, frameon=False, fontsize=7.5)
    shows = (
        f"{title}. Coordinates on {' and '.join(axes)} by {along}, a line with intervals for "
        f"each corpus: {', '.join(corpora)}."
    )
    return svg(figure, title, shows=shows)


def shifts(rows: Sequence[dict[str, Any]], axes: Sequence[str], title: str) -> str:
    """Draw shifts with intervals, a panel for each axis, a line for each contrast.

    Parameters
    ----------
    rows
        Keys label, corpus, axis, value, low, high and significant, in the order in which they are
        to stand.
    """
    labels = list(dict.fromkeys(row["label"] for row in rows))
    figure = Figure(figsize=(2.6 * len(axes) + 2.0, 0.27 * len(labels) + 1.0))
    every = figure.subplots(1, len(axes), squeeze=False, sharey=True)[0]
    for plot, axis in zip(every, axes, strict=True):
        plot.axvline(0, color="0.8", lw=0.8, zorder=0)
        for row in rows:
            if row["axis"] != axis or row["value"] is None:
                continue
            y = len(labels) - 1 - labels.index(row["label"])
            look = style(row["corpus"])
            look["mfc"] = look["color"] if row["significant"] else "white"
            if row["low"] is not None:
                plot.plot([row["low"], row["high"]], [y, y], color=look["color"], lw=1.1)
            plot.plot([row["value"]], [y], ls="", **look)
        plot.set_title(axis, fontsize=9)
        plot.set_ylim(-0.6, len(labels) - 0.4)
    named(every[0].yaxis, range(len(labels)), labels[::-1])
    figure.supxlabel("shift, with interval; filled: both adjusted p at most 0.05", fontsize=9)
    filled = sum(1 for row in rows if row["significant"])
    shows = (
        f"{title}. Shifts with intervals on {' and '.join(axes)}: {', '.join(labels)}. {filled} of "
        f"{len(rows)} filled."
    )
    return svg(figure, title, shows=shows)
