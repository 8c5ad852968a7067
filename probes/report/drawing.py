"""From a figure to SVG: margins that fit its text, few bytes, the same for the same figure.

Matplotlib's own layout measures all text about four times a figure, and its files hold the outline
of every letter. Here text is measured once and stays text.
"""

from __future__ import annotations

import io
import re
from html import escape
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import numpy as np
from matplotlib.backends.backend_svg import RendererSVG
from matplotlib.lines import Line2D
from matplotlib.markers import TICKDOWN, TICKLEFT
from matplotlib.ticker import FixedLocator, NullFormatter, NullLocator
from matplotlib.transforms import ScaledTranslation

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

mpl.rcParams.update(
    {
        "svg.hashsalt": "plumbline",
        "svg.fonttype": "none",
        "font.size": 9,
        "axes.titley": 1.0,  # else its place is sought, at the cost of all tick labels
    }
)
METADATA = {"Date": None, "Creator": None, "Format": None, "Type": None}
# Letters are measured in DejaVu Sans; Verdana is as wide, and other fonts are narrower.
FONT = "DejaVu Sans, Verdana, sans-serif"
POINTS = 72  # in an inch: all lengths here are points
EDGE = 3.0  # around the figure and between panels
APART = 4.0  # label from tick labels
LINE = 11.0  # of text of 9 points
LENGTH = 3.5  # of a mark on an axis
RIGHT = 8.0  # least room to the right of a panel


def svg(figure: Figure, title: str = "", *, shows: str) -> str:
    """Lay a figure out and write it as SVG, the same bytes for the same figure.

    Parameters
    ----------
    figure
        Panels of equal size in one grid; one legend of the figure, if any, stands at the bottom.
    title
        Of the figure, at the top left.
    shows
        What is to be seen, in words: what a reader who does not see the figure is told.
    """
    figure.set_dpi(POINTS)
    width, height = figure.get_size_inches() * POINTS
    out = io.StringIO()
    # savefig would draw all twice, and measure with another renderer, which remembers no text
    renderer: Any = RendererSVG(  # type: ignore[no-untyped-call]
        width, height, out, image_dpi=POINTS, metadata=METADATA
    )
    fit(figure, title, renderer)
    figure.patch.set_visible(False)
    figure.draw(renderer)
    renderer.finalize()
    return _compact(out.getvalue(), shows)


def fit(figure: Figure, title: str, renderer: RendererSVG) -> None:
    """Place panels, title, legend and labels of a figure so that their text has room."""
    width, height = (float(inches) * POINTS for inches in figure.get_size_inches())
    left, bottom, top = _around(figure, title, renderer)
    # what ticks there are depends on the size of a panel: begin near the end
    figure.subplots_adjust(
        left=min(0.4, (left + 60) / width),
        right=1 - (RIGHT + EDGE) / width,
        bottom=min(0.4, (bottom + 32) / height),
        top=1 - (top + 18) / height,
    )
    every = figure.axes
    grid = every[0].get_subplotspec().get_gridspec()  # type: ignore[union-attr]
    for axes in every:
        if axes.axison:
            _ticks(axes)
    for axes in every:  # which may share their axes
        axes.xaxis.set_major_locator(NullLocator())
        axes.yaxis.set_major_locator(NullLocator())
    margins = np.zeros((4, grid.nrows, grid.ncols))
    at = {}
    for axes in every:
        spec = axes.get_subplotspec()
        assert spec is not None
        at[axes] = row, column = spec.rowspan.start, spec.colspan.start
        margins[:, row, column] = _margins(axes, renderer)
    west, east = margins[0].max(axis=0), margins[1].max(axis=0)
    south, north = margins[2].max(axis=1), margins[3].max(axis=1)
    gaps = 2 * EDGE * (np.array([grid.ncols, grid.nrows]) - 1)
    wide = (width - left - EDGE - west.sum() - east.sum() - gaps[0]) / grid.ncols
    tall = (height - top - bottom - south.sum() - north.sum() - gaps[1]) / grid.nrows
    for axes, (row, column) in at.items():
        x = left + west[: column + 1].sum() + east[:column].sum() + column * (wide + 2 * EDGE)
        down = north[: row + 1].sum() + south[:row].sum() + row * (tall + 2 * EDGE) + tall
        y = height - top - down
        axes.set_position((x / width, y / height, wide / width, tall / height))
        if axes.axison and axes.get_xlabel():
            beyond = axes.xaxis.label.get_window_extent(renderer).x1 - (width - EDGE)
            axes.xaxis.label.set_x(0.5 - max(0.0, beyond) / wide)


def _around(figure: Figure, title: str, renderer: RendererSVG) -> tuple[float, float, float]:
    """Return what text of the figure takes left of, below and above all panels; place it."""
    width, height = (float(inches) * POINTS for inches in figure.get_size_inches())
    left = bottom = top = EDGE
    if title:
        place = {"x": EDGE / width, "y": 1 - EDGE / height, "ha": "left", "va": "top"}
        head = figure.suptitle(title, fontsize=POINTS / 8, **place)
        top += head.get_window_extent(renderer).height + EDGE
    for legend in figure.legends:
        bottom += legend.get_window_extent(renderer).height + EDGE
    if figure.get_supxlabel():
        below = figure.supxlabel(figure.get_supxlabel(), fontsize=9, y=bottom / height, va="bottom")
        bottom += below.get_window_extent(renderer).height + EDGE
    if figure.get_supylabel():
        beside = figure.supylabel(figure.get_supylabel(), fontsize=9, x=left / width, ha="left")
        left += beside.get_window_extent(renderer).width + EDGE
    return left, bottom, top


def _margins(axes: Axes, renderer: RendererSVG) -> tuple[float, float, float, float]:
    """Return what text takes around a panel, left, right, below and above; place its labels."""
    said = axes.get_title(loc="center") or axes.get_title(loc="left")
    above = LINE * (said.count("\n") + 1) + mpl.rcParams["axes.titlepad"] if said else 0.0
    if not axes.axison:
        return 0.0, 0.0, 0.0, above
    left, right, below, over = 0.0, RIGHT, 0.0, 0.0
    box = axes.get_window_extent(renderer)
    for text in axes.texts:
        x0, y0, x1, y1 = text.get_window_extent(renderer).extents
        left, below = max(left, box.x0 - x0), max(below, box.y0 - y0)
        right, over = max(right, x1 - box.x1), max(over, y1 - box.y1)
    for child in axes.child_axes:
        outside = child.get_tightbbox(renderer)
        right = max(right, outside.x1 - box.x1 if outside else 0.0)
    inches = axes.get_figure().dpi_scale_trans  # type: ignore[union-attr]
    if axes.get_xlabel():
        shift = ScaledTranslation(0, -(below + APART) / POINTS, inches)
        axes.xaxis.set_label_coords(0.5, 0, axes.transAxes + shift)
        below += APART + axes.xaxis.label.get_window_extent(renderer).height
    if axes.get_ylabel():
        shift = ScaledTranslation(-(left + APART) / POINTS, 0, inches)
        axes.yaxis.set_label_coords(0, 0.5, axes.transAxes + shift)
        left += APART + axes.yaxis.label.get_window_extent(renderer).width
    return left, right, below, max(above, over)


def _ticks(axes: Axes) -> None:
    """Draw marks and numbers of both axes as few artists: ticks of Matplotlib are five each."""
    for axis, side in ((axes.xaxis, "bottom"), (axes.yaxis, "left")):
        places = axis.get_majorticklocs()
        numbers = axis.get_major_formatter().format_ticks(places)  # type: ignore[arg-type]
        low, high = sorted(axis.get_view_interval())
        slack = 1e-9 * (high - low)
        shown = [
            (place, number)
            for place, number in zip(places, numbers, strict=True)
            if low - slack <= place <= high + slack
        ]
        along, zero = [place for place, _ in shown], [0.0] * len(shown)
        if side == "bottom":
            at, mark, to = (along, zero), TICKDOWN, axes.get_xaxis_transform()
        else:
            at, mark, to = (zero, along), TICKLEFT, axes.get_yaxis_transform()
        style = {"marker": mark, "ms": LENGTH, "mew": 0.8, "color": "black", "ls": ""}
        axes.add_artist(Line2D(*at, transform=to, clip_on=False, zorder=2.01, **style))  # type: ignore[arg-type]
        if axis.get_tick_params()[f"label{side}"]:
            _beside(axes, axis, along, [number for _, number in shown], {})


def named(
    axis: Axis, places: Sequence[float], names: Sequence[str], *, marks: bool = True, **style: Any
) -> None:
    """Write names along an axis in place of numbers.

    Parameters
    ----------
    axis
        Of the panel beside which the names stand; panels that share it have the marks alone.
    places
        Where, in units of the data.
    marks
        Whether there are marks.
    style
        Of the text, as Matplotlib has it.
    """
    axis.set_major_locator(FixedLocator(places) if marks else NullLocator())
    axis.set_major_formatter(NullFormatter())
    _beside(axis.axes, axis, places, names, style)


def spans(axes: Axes, every: Iterable[tuple[float, float, float]], **style: Any) -> None:
    """Draw level lines, each from its first number to its second at the height of the third.

    They are one artist: Matplotlib takes a millisecond for each.
    """
    found = list(every)
    xs = [x for low, high, _ in found for x in (low, high, np.nan)]
    axes.plot(xs, [y for *_, y in found for _ in range(3)], **style)


def _beside(
    axes: Axes, axis: Axis, places: Sequence[float], names: Sequence[str], style: dict[str, Any]
) -> None:
    below = axis is axes.xaxis
    pad = LENGTH + 3.5
    to, va, ha = (axes.get_xaxis_text1_transform if below else axes.get_yaxis_text1_transform)(pad)
    look = {"transform": to, "va": va, "ha": ha, "clip_on": False} | style
    for place, name in zip(places, names, strict=True):
        if name:
            axes.text(place if below else 0.0, 0.0 if below else place, name, **look)


def _compact(text: str, shows: str) -> str:
    """Return the SVG without what no browser needs, lengths in hundredths of a point."""
    text = text[text.index("<svg") :]
    text = re.sub(r"\s*<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r"\s*<style.*?</style>", "", text, flags=re.DOTALL)
    text = re.sub(r"<[^>]+>", lambda tag: _short(tag[0]), text)
    text = re.sub(r">\s+<", ">\n<", text)
    said = f'role="img" aria-label="{escape(shows)}"'
    head = f'<svg {said} font-family="{FONT}" stroke-linejoin="round" '
    return text.replace("<svg ", head, 1)


def _short(tag: str) -> str:
    tag = re.sub(r" ?font-family: [^;\"]*(; ?)?", "", tag)
    tag = re.sub(r"\s+", " ", tag)
    tag = re.sub(r"(?<=[:;]) ", "", tag)
    tag = re.sub(r" (?=[MLQCz\"])|(?<=[MLQC]) ", "", tag) if ' d="' in tag else tag
    return re.sub(r"-?\d+\.\d{3,}", lambda n: f"{round(float(n[0]), 2) + 0.0:g}", tag)
