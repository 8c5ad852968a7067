"""Draw forest plots, curves, scatter plots and heat maps as SVG that is readable in greyscale.

Text remains selectable, and equal inputs give equal bytes. Lengths are in pixels. The width of
text is estimated, so that nothing has to be rendered.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from jinja2 import Environment, FileSystemLoader
from markupsafe import escape

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    Row = dict[str, Any]
    Ends = tuple[float, float]

FONT = 11
FAINT, HOLLOW = "#ddd", "#fff"
TICKS = 5  # approximate number of ticks on an axis
SLOPE = 0.6  # sine of the angle of slanted labels
COLUMNS = 3  # number of panels in a row
TEMPLATES = Environment(
    loader=FileSystemLoader(Path(__file__).parent),
    autoescape=True,
    trim_blocks=True,
    lstrip_blocks=True,
)
CORNERS = {
    "square": ((-1, -1), (1, -1), (1, 1), (-1, 1)),
    "diamond": ((0, -1.3), (1.3, 0), (0, 1.3), (-1.3, 0)),
    "up": ((0, -1.2), (1.1, 1), (-1.1, 1)),
    "down": ((0, 1.2), (1.1, -1), (-1.1, -1)),
    "left": ((-1.2, 0), (1, -1.1), (1, 1.1)),
    "right": ((1.2, 0), (-1, -1.1), (-1, 1.1)),
}


class Mark(NamedTuple):
    """The shape and colours of a marker."""

    shape: str = "circle"
    face: str = "#000"
    edge: str = "#000"


class Series(NamedTuple):
    """Points (x, y) with a marker and whiskers or, if ``mark`` is None, a curve with a band.

    ``across``, ``along``: the interval (low, high) of each point on the x axis and on the y axis.
    """

    label: str
    points: Sequence[tuple[float, float | None]]
    mark: Mark | None = None
    across: Sequence[Ends | None] = ()
    along: Sequence[Ends | None] = ()
    stroke: str = "#000"
    dash: str = ""
    size: float = 4


@dataclass
class Panel:
    """A panel with axes; its elements are positioned in units of the data."""

    x: Ends
    y: Ends
    size: tuple[float, float]
    title: str = ""
    labels: tuple[str, str] = ("", "")
    xticks: Sequence[tuple[float, str]] = ()
    yticks: Sequence[tuple[float, str]] = ()
    slanted: bool = False  # whether tick labels of the x axis are slanted
    elements: list[str] = field(default_factory=list)

    def across(self, value: float) -> float:
        """Return the distance of an x value from the left edge, in pixels."""
        return (value - self.x[0]) / (self.x[1] - self.x[0]) * self.size[0]

    def down(self, value: float) -> float:
        """Return the distance of a y value from the top edge, in pixels."""
        return (1 - (value - self.y[0]) / (self.y[1] - self.y[0])) * self.size[1]

    def path(self, points: Iterable[Ends], look: str) -> None:
        """Draw a line through points, or an area if ``look`` sets ``fill``."""
        steps = [_position(self.across(x), self.down(y)) for x, y in points]
        self.elements.append(f'<path d="M{"L".join(steps)}" {look}/>')

    def spans(
        self, ends: Iterable[tuple[float, float, float]], stroke: str, *, upright: bool = False
    ) -> None:
        """Draw horizontal lines (low, high, y), or vertical ones (low, high, x)."""
        d = ""
        for low, high, level in ends:
            if upright:
                d += f"M{_position(self.across(level), self.down(low))}V{length(self.down(high))}"
            else:
                d += f"M{_position(self.across(low), self.down(level))}H{length(self.across(high))}"
        if d:
            self.elements.append(f'<path d="{d}" stroke="{stroke}"/>')

    def marks(self, points: Iterable[Ends], mark: Mark, size: float = 4) -> None:
        """Draw points with the same marker."""
        d = "".join(_shape(mark.shape, self.across(x), self.down(y), size) for x, y in points)
        if d:
            self.elements.append(f'<path d="{d}" fill="{mark.face}" stroke="{mark.edge}"/>')

    def words(self, point: Ends, text: str, look: str = "", move: Ends = (0, 0)) -> None:
        """Write text at a point, moved by an offset in pixels."""
        x, y = self.across(point[0]) + move[0], self.down(point[1]) + move[1]
        self.elements.append(f'<text x="{length(x)}" y="{length(y)}" {look}>{escape(text)}</text>')

    def ellipse(self, center: Ends, radii: Ends, face: str) -> None:
        """Fill an ellipse."""
        x, y = self.across(center[0]), self.down(center[1])
        edges = self.across(center[0] + radii[0]) - x, y - self.down(center[1] + radii[1])
        cx, cy, rx, ry = map(length, (x, y, *edges))
        place = f'cx="{cx}" cy="{cy}" rx="{rx}" ry="{ry}"'
        self.elements.append(f'<ellipse {place} fill="{face}" stroke="none"/>')

    def margins(self) -> tuple[float, float, float]:
        """Return the space that text needs to the left, above and below, in pixels."""
        across, down = ([_width(text) for _, text in t] for t in (self.xticks, self.yticks))
        left = max(down, default=0.0) + 8 + 16 * bool(self.labels[1])
        below = 18.0 * bool(self.xticks)
        if self.slanted:
            below = SLOPE * max(across, default=0.0) + 12
            left = max(left, (1 - SLOPE**2) ** 0.5 * next(iter(across), 0.0))
        return left, 18.0 * bool(self.title), below + 16 * bool(self.labels[0])


def forest(
    rows: Sequence[Row],
    *,
    unit: str,
    title: str = "",
    marks: Mapping[str, Mark] | None = None,
    zero: Mapping[str, float] | None = None,
    limits: Ends | None = None,
    spread: bool = False,
) -> str:
    """Draw a forest plot of estimates with intervals, with one line per name.

    Parameters
    ----------
    rows
        Dictionaries with ``value``, ``low``, ``high`` and the name of their ``line``, from top to
        bottom; optionally, with ``series`` within a line, ``panel``, and ``filled``, True for a
        filled marker.
    marks
        Marker of each series.
    zero
        Null value of each panel, drawn as a grey line; by default, a single panel with 0.
    spread
        True to draw all estimates of a line at different heights.
    """
    counted = any("filled" in row for row in rows)
    missing = {"series": "", "panel": "", "filled": True}
    rows = [missing | row for row in rows if row["value"] is not None]
    marks = marks or {"": Mark()}
    zero = {"": 0.0} if zero is None else zero
    panels = list(zero) or [""]
    lines = list(dict.fromkeys(row["line"] for row in rows))
    used = [name for name in marks if any(row["series"] == name for row in rows)]
    cells: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        cells.setdefault((row["panel"], row["line"]), []).append(row)
    most = max([1, *map(len, cells.values())]) if spread else len(used)
    numbers = [row[end] for row in rows for end in ("value", "low", "high")]
    low, high = ends = limits or _around([*numbers, *zero.values()])
    multiple = len(panels) > 1
    size = (190.0 if multiple else 420.0, min(44.0, 5 + 13.0 * most) * len(lines) + 6)
    yticks = list(enumerate(reversed(lines)))
    plots: list[Panel] = []
    for name in panels:
        reach, label = (-0.6, len(lines) - 0.4), ("" if multiple else unit, "")
        ticks = _ticks(ends), [] if plots else yticks
        plot = Panel(ends, reach, size, name, label, *ticks)
        if name in zero:
            plot.spans([(*plot.y, zero[name])], "#bbb", upright=True)
        dots: list[tuple[float, Row]] = []
        for height, text in yticks:
            cell = cells.get((name, text), [])
            for n, row in enumerate(cell):
                step, steps = (n, len(cell)) if spread else (used.index(row["series"]), len(used))
                dots.append((height + 0.35 - 0.7 * (step + 0.5) / steps, row))
        for entry, mark in marks.items():
            own = [(y, row) for y, row in dots if row["series"] == entry]
            spans = [(r["low"], r["high"], y) for y, r in own if None not in (r["low"], r["high"])]
            plot.spans([(max(low, a), min(high, b), y) for a, b, y in spans], mark.edge)
            for full, shown in ((True, mark), (False, mark._replace(face=HOLLOW))):
                some = [(r["value"], y) for y, r in own if r["filled"] == full]
                plot.marks(some, shown)
        plots.append(plot)
    values = [row["value"] for row in rows]
    shows = [
        f"{title or unit}. Dots with intervals: {unit}",
        f"Lines: {', '.join(lines)}",
        f"Panels: {', '.join(panels)}" if multiple else "",
        f"Marks: {', '.join(used)}" if len(used) > 1 else "",
        f"From {min(values):.2f} to {max(values):.2f}" if values else "",
        f"{sum(row['filled'] for row in rows)} filled" if counted else "",
    ]
    entries = [(key(marks[n], marks[n].edge), n or "none") for n in used] if len(used) > 1 else []
    text = ". ".join(filter(None, shows)) + "."
    return _assemble([plots], text, title, entries, below=unit if multiple else "")


def plane(
    panels: Mapping[str, Sequence[Series]],
    *,
    labels: tuple[str, str],
    title: str,
    size: tuple[float, float],
    limits: Ends | None = None,
    reach: Sequence[Ends] = (),
    under: Callable[[Panel], None] | None = None,
    legend: Sequence[tuple[str, str]] = (),
) -> str:
    """Draw points and curves, with one panel per name.

    Parameters
    ----------
    labels
        Labels of the x axis and of the y axis.
    size
        Width and height of a panel.
    limits
        Ends of the y axis; by default, those of the data.
    reach
        Additional points that the axes must include.
    under
        A function that draws the background of a panel.
    legend
        Symbol and name of additional legend entries.
    """
    every = [series for group in panels.values() for series in group]
    ranges = []
    for axis in (0, 1):
        values = [point[axis] for points in (reach, *(s.points for s in every)) for point in points]
        values += [end for s in every for ends in (s.across, s.along)[axis] for end in ends or ()]
        ranges.append(_around(values))
    plots: list[Panel] = []
    for name, group in panels.items():
        names = (labels[0], "" if len(plots) % COLUMNS else labels[1])
        ends = ranges[0], limits or ranges[1]
        plot = Panel(*ends, size, name, names, _ticks(ends[0]), _ticks(ends[1]))
        if under:
            under(plot)
        for s in group:
            points = [(x, y) for x, y in s.points if y is not None]
            if s.mark:
                spans = [(*e, y) for (_, y), e in zip(points, s.across, strict=False) if e]
                plot.spans(spans, s.mark.edge)
                spans = [(*e, x) for (x, _), e in zip(points, s.along, strict=False) if e]
                plot.spans(spans, s.mark.edge, upright=True)
                plot.marks(points, s.mark, s.size)
                continue
            band = [(x, *e) for (x, _), e in zip(s.points, s.along, strict=False) if e]
            if band:
                edge = [(x, low) for x, low, _ in band] + [(x, high) for x, _, high in band[::-1]]
                plot.path(edge, f'fill="{FAINT}"')
            if points:
                plot.path(points, f'stroke="{s.stroke}" stroke-dasharray="{s.dash}"')
        plots.append(plot)
    symbols = {s.label: key(s.mark, "" if s.mark else s.stroke, s.dash) for s in every}
    entries = [(symbol, label) for label, symbol in symbols.items()]
    shows = f"{title}. Vertical axis: {labels[1]}; horizontal axis: {labels[0]}"
    shows += f"; a panel for each of {', '.join(panels)}" if len(panels) > 1 else ""
    grid = [plots[i : i + COLUMNS] for i in range(0, len(plots), COLUMNS)]
    return _assemble(grid, f"{shows}. Series: {', '.join(symbols)}.", title, [*entries, *legend])


def heat(
    values: Sequence[Sequence[float | None]],
    rows: Sequence[str],
    columns: Sequence[str],
    *,
    ends: Ends,
    title: str = "",
) -> str:
    """Draw a heat map; larger numbers are darker, and missing ones are white."""
    size = (46.0 * len(columns), 30.0 * len(rows))
    across = [(c + 0.5, name) for c, name in enumerate(columns)]
    downwards = [(len(rows) - r - 0.5, name) for r, name in enumerate(rows)]
    reach = ((0, len(columns)), (0, len(rows)))
    plot = Panel(*reach, size, slanted=True, xticks=across, yticks=downwards)
    for y, row in zip((y for y, _ in downwards), values, strict=True):
        for x, value in zip((x for x, _ in across), row, strict=True):
            if value is None:
                continue
            share = min(1.0, max(0.0, (value - ends[0]) / (ends[1] - ends[0])))
            face = "#" + 3 * f"{round(250 - 220 * share):02x}"
            corner = f'x="{length(plot.across(x - 0.48))}" y="{length(plot.down(y + 0.47))}"'
            look = f'width="44.2" height="28.2" fill="{face}" stroke="none"'
            plot.elements.append(f"<rect {corner} {look}/>")
            look = f'text-anchor="middle" style="fill:{HOLLOW if share > 0.55 else "#000"}"'
            plot.words((x, y), f"{round(value, 2) + 0.0:.2f}", look, (0, 4))
    shows = (
        f"{title}. Heat map of {len(rows)} rows by {len(columns)} columns ({', '.join(columns)}); "
        "darker is more."
    )
    return _assemble([[plot]], shows, title)


def key(mark: Mark | None = None, stroke: str = "", dash: str = "") -> str:
    """Return the SVG of a legend symbol: a line, a marker or both."""
    line = f'<path d="M0 6H24" stroke="{stroke}" stroke-dasharray="{dash}"/>' if stroke else ""
    if mark is None:
        return line
    return (
        f'{line}<path d="{_shape(mark.shape, 12, 6, 4)}" fill="{mark.face}" stroke="{mark.edge}"/>'
    )


def box(face: str) -> str:
    """Return the SVG of a legend symbol for a fill colour."""
    return f'<rect width="24" height="12" fill="{face}"/>'


def length(value: float) -> str:
    """Format a length with one decimal."""
    return f"{round(value, 1) + 0.0:g}"


def _width(text: str) -> float:
    """Return the estimated width of a text, in pixels."""
    return sum(FONT if ord(letter) > 0x2E80 else 0.6 * FONT for letter in text)


def _ticks(ends: Ends) -> list[tuple[float, str]]:
    """Return about :data:`TICKS` round numbers inside an interval, with their labels.

    Examples
    --------
    >>> _ticks((-0.1, 1.04))
    [(0.0, '0'), (0.25, '0.25'), (0.5, '0.5'), (0.75, '0.75'), (1.0, '1')]
    """
    rough = (ends[1] - ends[0]) / TICKS
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * m for m in (1, 2, 2.5, 5, 10) if power * m >= rough)
    first, last = math.ceil(ends[0] / step - 1e-9), math.floor(ends[1] / step + 1e-9)
    return [(n * step, f"{round(n * step, 9) + 0.0:g}") for n in range(first, last + 1)]


def _around(values: Iterable[float | None]) -> Ends:
    """Return the range of values, extended by a margin."""
    numbers = [value for value in values if value is not None]
    low, high = min(numbers, default=0.0), max(numbers, default=1.0)
    room = 0.05 * (high - low) or 0.5
    return low - room, high + room


def _position(x: float, y: float) -> str:
    return f"{length(x)} {length(y)}"


def _shape(name: str, x: float, y: float, r: float) -> str:
    """Return the SVG path of a marker centred at a point."""
    if name == "circle":
        a, d = f"a{_position(r, r)} 0 1 0", length(2 * r)
        return f"M{_position(x - r, y)}{a} {d} 0{a} -{d} 0z"
    if name == "cross":
        left, right, top, bottom = x - r, x + r, y - r, y + r
        falling = f"M{_position(left, top)}L{_position(right, bottom)}"
        return f"{falling}M{_position(right, top)}L{_position(left, bottom)}"
    return "M" + "L".join(_position(x + r * dx, y + r * dy) for dx, dy in CORNERS[name]) + "z"


def _assemble(
    rows: Sequence[Sequence[Panel]],
    shows: str,
    title: str,
    legend: Sequence[tuple[str, str]] = (),
    below: str = "",
) -> str:
    """Arrange panels of equal size in a grid and return the figure.

    ``shows``: alternative text.
    ``legend``: symbol (24 by 12 pixels) and name of each entry.
    ``below``: a common label of the horizontal axes of all panels.
    """
    placed: list[tuple[Panel, float, float]] = []
    lefts = [max(r[c].margins()[0] for r in rows if c < len(r)) for c in range(len(rows[0]))]
    width = 12 + sum(lefts) + sum(22 + panel.size[0] for panel in rows[0])
    width = max(width, _width(title) * 1.05 + 8, _width(below) + 8)
    top = 22.0 if title else 4.0
    for row in rows:
        above, under = (max(panel.margins()[i] for panel in row) for i in (1, 2))
        x = 4.0
        for panel, left in zip(row, lefts, strict=False):
            placed.append((panel, x + left, top + above))
            x += left + panel.size[0] + 22
        top += above + max(panel.size[1] for panel in row) + under + 8
    label = (width / 2, top + 8, below)
    top += 18 if below else 0
    x, entries = 8.0, list[tuple[float, float, str, str]]()
    for symbol, name in legend:
        needed = 42 + _width(name)
        if entries and x + needed > width:
            x, top = 8.0, top + 18
        entries.append((x, top, symbol, name))
        x += needed
        width = max(width, x)
    top += 20 if legend else 0
    return TEMPLATES.get_template("figure.svg.j2").render(
        shows=shows,
        title=title,
        size=(math.ceil(width), math.ceil(top)),
        placed=placed,
        below=label,
        legend=entries,
        font=FONT,
        grey="#777",
        n=length,
    )
