"""Planes with axes as SVG, and a grid of them as a figure.

Text stays text, and the same numbers give the same bytes. Lengths are pixels; the width of text is
estimated, so that nothing has to be drawn to be measured.
"""

from __future__ import annotations

import math
from html import escape
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    Ends = tuple[float, float]

FONT = 11
GREY = "#777"
FAINT = "#ddd"
HOLLOW = "#fff"
SLOPE = 0.6  # of slanted names: sine of their angle


class Mark(NamedTuple):
    """The look of a dot."""

    shape: str = "circle"
    face: str = "#000"
    edge: str = "#000"


def number(value: float, digits: int = 1) -> str:
    """Write a length in few bytes."""
    return f"{round(value, digits) + 0.0:g}"


def wide(text: str) -> float:
    """Estimate the width of a text."""
    return sum(FONT if ord(letter) > 0x2E80 else 0.6 * FONT for letter in text)


def ticks(ends: Ends, most: int = 5) -> list[tuple[float, str]]:
    """Return round numbers inside of an interval, about as many as ``most``, and their texts.

    Examples
    --------
    >>> ticks((-0.1, 1.04))
    [(0.0, '0'), (0.25, '0.25'), (0.5, '0.5'), (0.75, '0.75'), (1.0, '1')]
    """
    rough = (ends[1] - ends[0]) / most
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * m for m in (1, 2, 2.5, 5, 10) if power * m >= rough)
    first, last = math.ceil(ends[0] / step - 1e-9), math.floor(ends[1] / step + 1e-9)
    return [(n * step, f"{round(n * step, 9) + 0.0:g}") for n in range(first, last + 1)]


def around(values: Iterable[float | None]) -> Ends:
    """Return ends with some room around what is there."""
    known = [value for value in values if value is not None]
    low, high = min(known, default=0.0), max(known, default=1.0)
    room = 0.05 * (high - low) or 0.5
    return low - room, high + room


class Panel:
    """A plane with axes; what is drawn in it is in units of the data."""

    def __init__(
        self,
        x: Ends,
        y: Ends,
        size: tuple[float, float],
        *,
        title: str = "",
        labels: tuple[str, str] = ("", ""),
        xticks: Sequence[tuple[float, str]] | None = None,
        yticks: Sequence[tuple[float, str]] | None = None,
        slanted: bool = False,
    ) -> None:
        self.x, self.y, self.size = x, y, size
        self.title, self.labels, self.slanted = title, labels, slanted
        self.xticks = ticks(x) if xticks is None else xticks
        self.yticks = ticks(y) if yticks is None else yticks
        self.bold: Collection[str] = ()
        self._drawn: list[str] = []

    def across(self, value: float) -> float:
        """Return where a value is from the left."""
        return (value - self.x[0]) / (self.x[1] - self.x[0]) * self.size[0]

    def down(self, value: float) -> float:
        """Return where a value is from the top."""
        return (1 - (value - self.y[0]) / (self.y[1] - self.y[0])) * self.size[1]

    def path(self, points: Iterable[Ends], look: str) -> None:
        """Draw a line through points, or with ``fill`` in its look a face."""
        steps = [f"{number(self.across(x))} {number(self.down(y))}" for x, y in points]
        self._drawn.append(f'<path d="M{"L".join(steps)}" {look}/>')

    def spans(
        self, ends: Iterable[tuple[float, float, float]], stroke: str, *, upright: bool = False
    ) -> None:
        """Draw level lines (low, high, height), or upright ones (low, high, from the left)."""
        d = ""
        for low, high, at in ends:
            if upright:
                start, end = self.down(low), self.down(high)
                d += f"M{number(self.across(at))} {number(start)}V{number(end)}"
            else:
                start, end = self.across(low), self.across(high)
                d += f"M{number(start)} {number(self.down(at))}H{number(end)}"
        if d:
            self._drawn.append(f'<path d="{d}" stroke="{stroke}"/>')

    def marks(self, at: Iterable[Ends], mark: Mark, size: float = 4) -> None:
        """Draw dots of one look."""
        d = "".join(_shape(mark.shape, self.across(x), self.down(y), size) for x, y in at)
        if d:
            self._drawn.append(f'<path d="{d}" fill="{mark.face}" stroke="{mark.edge}"/>')

    def words(self, at: Ends, text: str, look: str = "", move: Ends = (0, 0)) -> None:
        """Write text, moved by some pixels."""
        x, y = self.across(at[0]) + move[0], self.down(at[1]) + move[1]
        self._drawn.append(_words(x, y, text, look))

    def rect(self, x: Ends, y: Ends, face: str) -> None:
        """Fill a rectangle."""
        left, top = self.across(x[0]), self.down(y[1])
        sides = self.across(x[1]) - left, self.down(y[0]) - top
        place = f'x="{number(left)}" y="{number(top)}"'
        sized = f'width="{number(sides[0])}" height="{number(sides[1])}"'
        self._drawn.append(f'<rect {place} {sized} fill="{face}" stroke="none"/>')

    def ellipse(self, at: Ends, radii: Ends, face: str) -> None:
        """Fill an ellipse."""
        rx = self.across(at[0] + radii[0]) - self.across(at[0])
        ry = self.down(at[1]) - self.down(at[1] + radii[1])
        centre = f'cx="{number(self.across(at[0]))}" cy="{number(self.down(at[1]))}"'
        shape = f'{centre} rx="{number(rx)}" ry="{number(ry)}"'
        self._drawn.append(f'<ellipse {shape} fill="{face}" stroke="none"/>')

    def margins(self) -> tuple[float, float, float]:
        """Return what text takes to the left, above and below."""
        left = max((wide(text) for _, text in self.yticks), default=0.0) + 8
        left += 16 * bool(self.labels[1])
        longest = max((wide(text) for _, text in self.xticks), default=0.0)
        below = SLOPE * longest + 12 if self.slanted else 18 * bool(self.xticks)
        if self.slanted and self.xticks:
            left = max(left, (1 - SLOPE**2) ** 0.5 * wide(self.xticks[0][1]))
        return left, 18.0 * bool(self.title), below + 16 * bool(self.labels[0])

    def svg(self, left: float, top: float) -> str:
        """Return the panel with its axes, its upper left corner at a place."""
        width, height = self.size
        out = [f'<g transform="translate({number(left)} {number(top)})">']
        if self.xticks and not self.slanted:
            places = "".join(
                f"M{number(self.across(x))} {number(height)}v4" for x, _ in self.xticks
            )
            frame = f"M0 0V{number(height)}H{number(width)}{places}"
            out.append(f'<path d="{frame}" stroke="{GREY}"/>')
        out += self._drawn
        for place, text in self.xticks:
            x = self.across(place)
            if self.slanted:
                turned = f"rotate(-37 {number(x)} {number(height + 10)})"
                look = f'text-anchor="end" transform="{turned}"'
                out.append(_words(x, height + 10, text, look))
            else:
                out.append(_words(x, height + 15, text, 'text-anchor="middle"'))
        for place, text in self.yticks:
            weight = ' font-weight="bold"' if text in self.bold else ""
            out.append(_words(-6, self.down(place) + 4, text, f'text-anchor="end"{weight}'))
        _, above, below = self.margins()
        if above:
            out.append(_words(width / 2, -6, self.title, 'text-anchor="middle"'))
        if self.labels[0]:
            out.append(
                _words(width / 2, height + below - 2, self.labels[0], 'text-anchor="middle"')
            )
        if self.labels[1]:
            at = f"{number(12 - self.margins()[0])} {number(height / 2)}"
            turned = f'transform="translate({at})rotate(-90)" text-anchor="middle"'
            out.append(_words(0, 0, self.labels[1], turned))
        return "".join([*out, "</g>"])


def _words(x: float, y: float, text: str, look: str) -> str:
    space = " " if look else ""
    return f'<text x="{number(x)}" y="{number(y)}"{space}{look}>{escape(text)}</text>'


def _shape(name: str, x: float, y: float, r: float) -> str:
    def at(dx: float, dy: float) -> str:
        return f"{number(x + dx)} {number(y + dy)}"

    if name == "circle":
        a = f"a{number(r)} {number(r)} 0 1 0"
        return f"M{at(-r, 0)}{a} {number(2 * r)} 0{a} {number(-2 * r)} 0z"
    if name == "cross":
        return f"M{at(-r, -r)}L{at(r, r)}M{at(r, -r)}L{at(-r, r)}"
    corners = {
        "square": ((-1, -1), (1, -1), (1, 1), (-1, 1)),
        "diamond": ((0, -1.3), (1.3, 0), (0, 1.3), (-1.3, 0)),
        "up": ((0, -1.2), (1.1, 1), (-1.1, 1)),
        "down": ((0, 1.2), (1.1, -1), (-1.1, -1)),
        "left": ((-1.2, 0), (1, -1.1), (1, 1.1)),
        "right": ((1.2, 0), (-1, -1.1), (-1, 1.1)),
    }[name]
    return "M" + "L".join(at(r * dx, r * dy) for dx, dy in corners) + "z"


def assemble(
    rows: Sequence[Sequence[Panel]],
    shows: str,
    *,
    title: str = "",
    legend: Sequence[tuple[str, str]] = (),
    below: str = "",
) -> str:
    """Put panels, equal in size, into a grid and return the figure.

    Parameters
    ----------
    shows
        What is to be seen, in words: for a reader who does not see the figure.
    legend
        What is drawn for each entry (24 by 12 pixels), and its name.
    below
        A label of the horizontal axes of all panels.
    """
    body: list[str] = []
    lefts = [max(r[c].margins()[0] for r in rows if c < len(r)) for c in range(len(rows[0]))]
    wides = [panel.size[0] for panel in rows[0]]
    width = 12 + sum(lefts) + sum(wides) + 22 * len(wides)
    width = max(width, wide(title) * 1.05 + 8, wide(below) + 8)
    top = 22.0 if title else 4.0
    for row in rows:
        above, under = (max(panel.margins()[i] for panel in row) for i in (1, 2))
        x = 4.0
        for panel, left in zip(row, lefts, strict=False):
            body.append(panel.svg(x + left, top + above))
            x += left + panel.size[0] + 22
        top += above + max(panel.size[1] for panel in row) + under + 8
    if below:
        body.append(_words(width / 2, top + 8, below, 'text-anchor="middle"'))
        top += 18
    x, started = 8.0, False
    for drawn, name in legend:
        needed = 30 + wide(name) + 12
        if started and x + needed > width:
            x, top = 8.0, top + 18
        body.append(f'<g transform="translate({number(x)} {number(top)})">{drawn}')
        body.append(_words(28, 10, name, "") + "</g>")
        x, started = x + needed, True
        width = max(width, x)
    top += 20 if legend else 0
    sizes = f'width="{math.ceil(width)}" height="{math.ceil(top)}"'
    box = f'viewBox="0 0 {math.ceil(width)} {math.ceil(top)}"'
    head = _words(4, 14, title, 'font-weight="bold"') if title else ""
    role = f'role="img" aria-label="{escape(shows)}"'
    look = f'font-family="Verdana,DejaVu Sans,sans-serif" font-size="{FONT}"'
    return f'<svg {role} {sizes} {box} {look} fill="none">{head}{"".join(body)}</svg>'


def key(mark: Mark | None = None, stroke: str = "", dash: str = "") -> str:
    """Return the drawing of an entry of a legend."""
    line = f'<path d="M0 6H24" stroke="{stroke}" stroke-dasharray="{dash}"/>' if stroke else ""
    if mark is None:
        return line
    shape = _shape(mark.shape, 12, 6, 4)
    return f'{line}<path d="{shape}" fill="{mark.face}" stroke="{mark.edge}"/>'


def box(face: str) -> str:
    """Return the drawing of a legend's entry of a face."""
    return f'<rect width="24" height="12" fill="{face}"/>'
