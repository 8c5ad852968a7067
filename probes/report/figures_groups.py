"""Figures of the study of social groups: curves of recall, heat maps, a matrix of models."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import matplotlib as mpl
from matplotlib.figure import Figure

from plumbline.probes.report.drawing import named, svg

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

COLUMNS = 3
MIDDLE = 40  # percent: darker cells have light marks
GREYS = mpl.colormaps["Greys"].resampled(14)  # with many more the scale would be a bitmap
STYLES = {
    "probability": ("0.55", "-"),
    "faithful": ("black", "--"),
    "corrected": ("black", "-"),
    "corrected_one": ("0.55", "--"),
}


def curves(panels: dict[str, list[dict[str, Any]]], title: str) -> str:
    """Draw recall at k, a panel for each category, a line for each reading.

    The band is the interval of the reading ``corrected``; dotted is random order of its lists,
    dashed and dotted the lists of other groups.

    Parameters
    ----------
    panels
        By category: dicts with reading, and lists k, value, low, high, chance, exchanged.
    """
    rows = -(-len(panels) // COLUMNS)
    figure = Figure(figsize=(7.4, 2.1 * rows + 0.9))
    every = figure.subplots(rows, COLUMNS, sharex=True, sharey=True, squeeze=False).ravel()
    for axes in every[len(panels) :]:
        axes.set_axis_off()
    for axes, (category, lines) in zip(every, panels.items(), strict=False):
        for line in lines:
            colour, style = STYLES[line["reading"]]
            axes.plot(
                line["k"], line["value"], color=colour, ls=style, lw=1.1, label=line["reading"]
            )
            if line["reading"] == "corrected":
                axes.fill_between(line["k"], line["low"], line["high"], color="0.88", lw=0)
                axes.plot(line["k"], line["chance"], "k:", lw=0.9, label="random order")
                axes.plot(line["k"], line["exchanged"], "k-.", lw=0.9, label="other groups' lists")
        axes.set_title(category, fontsize=9)
        axes.set_ylim(0, 1)
    handles, labels = every[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="lower center", ncols=3, frameon=False, fontsize=8)
    for axes in every:
        if axes.get_subplotspec().is_last_row():  # a label of the figure would lie on the legend
            axes.set_xlabel("k: words of each list", fontsize=9)
    figure.supylabel("recall", fontsize=9)
    shows = (
        f"{title}. Curves of recall against k, a panel for each category: {', '.join(panels)}. "
        f"Lines: {', '.join(map(str, labels))}; the band is the interval of the reading corrected."
    )
    return svg(figure, title, shows=shows)


def heat(
    values: NDArray[np.float64],
    rows: Sequence[str],
    columns: Sequence[str],
    marked: NDArray[np.bool_],
    title: str,
) -> str:
    """Draw shares as a heat map, darker the larger; a dot where ``marked``.

    Parameters
    ----------
    values, marked : (rows, columns) arrays
        Percent; nan is left white.
    """
    size = (1.8 + 0.5 * len(columns), 0.19 * len(rows) + 1.3)
    figure = Figure(figsize=size)
    axes = figure.add_subplot()
    drawn = axes.pcolormesh(values, cmap=GREYS, vmin=0, vmax=70, edgecolors="white", lw=0.4)
    for light in (True, False):
        y, x = (marked & ((values > MIDDLE) == light)).nonzero()
        axes.scatter(x + 0.5, y + 0.5, s=4, color="white" if light else "black")
    slanted = {"rotation": 60, "ha": "right", "rotation_mode": "anchor"}
    named(axes.xaxis, [x + 0.5 for x in range(len(columns))], columns, marks=False, **slanted)
    named(axes.yaxis, [y + 0.5 for y in range(len(rows))], rows, marks=False, fontsize=7)
    axes.invert_yaxis()
    scale = axes.inset_axes((1 + 0.4 / len(columns), 0.05, 0.3 / len(columns), 0.9))
    figure.colorbar(drawn, cax=scale, label="percent of\ncovered words")
    shows = (
        f"{title}. Heat map of percent of covered words, {len(rows)} rows by {len(columns)} affects"
        f" ({', '.join(columns)}); darker is more. {int(marked.sum())} cells have a dot."
    )
    return svg(figure, title, shows=shows)


def matrix(values: NDArray[np.float64], names: Sequence[str], title: str) -> str:
    """Draw likeness of models, (models, models); nan is left white."""
    size = 1.9 + 0.62 * len(names)
    figure = Figure(figsize=(size + 0.6, size))
    axes = figure.add_subplot()
    axes.pcolormesh(values, cmap="Greys", vmin=-0.2, vmax=1, edgecolors="white", lw=0.6)
    for y in range(len(names)):
        for x in range(len(names)):
            if values[y, x] == values[y, x]:
                shade = "white" if values[y, x] > 0.5 else "black"
                text = f"{round(values[y, x], 2) + 0.0:.2f}"
                axes.text(x + 0.5, y + 0.5, text, ha="center", va="center", color=shade, fontsize=8)
    ticks = [i + 0.5 for i in range(len(names))]
    slanted = {"rotation": 45, "ha": "right", "rotation_mode": "anchor"}
    named(axes.xaxis, ticks, names, marks=False, **slanted)
    named(axes.yaxis, ticks, names, marks=False)
    axes.invert_yaxis()
    shows = f"{title}. Likeness of each pair of {len(names)} models: {', '.join(names)}."
    return svg(figure, title, shows=shows)
