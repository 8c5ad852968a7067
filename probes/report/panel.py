"""Planes with axes as SVG, and a grid of them as a figure.

Text stays text, and the same numbers give the same bytes. Lengths are pixels; the width of text is
estimated, so that nothing has to be drawn to be measured.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from jinja2 import Environment, FileSystemLoader

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    Ends = tuple[float, float]

FONT = 11
GREY = "#777"
FAINT = "#ddd"
HOLLOW = "#fff"
TICKS = 5  # of an axis, about
SLOPE = 0.6  # of slanted names: sine of their angle
FIGURES = Environment(
    loader=FileSystemLoader(Path(__file__).parent),
    autoescape=True,
    trim_blocks=True,
    lstrip_blocks=True,
)


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


def ticks(ends: Ends) -> list[tuple[float, str]]:
    """Return round numbers inside of an interval, about :data:`TICKS`, and their texts.

    Examples
    --------
    >>> ticks((-0.1, 1.04))
    [(0.0, '0'), (0.25, '0.25'), (0.5, '0.5'), (0.75, '0.75'), (1.0, '1')]
    """
    rough = (ends[1] - ends[0]) / TICKS
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


@dataclass
class Panel:
    """A plane with axes; what is drawn in it is in units of the data."""

    x: Ends
    y: Ends
    size: tuple[float, float]
    title: str = ""
    labels: tuple[str, str] = ("", "")
    xticks: Sequence[tuple[float, str]] | None = None  # round numbers
    yticks: Sequence[tuple[float, str]] | None = None
    slanted: bool = False  # names of ticks below
    drawn: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Put ticks where none are given."""
        self.xticks = ticks(self.x) if self.xticks is None else self.xticks
        self.yticks = ticks(self.y) if self.yticks is None else self.yticks

    def across(self, value: float) -> float:
        """Return where a value is from the left."""
        return (value - self.x[0]) / (self.x[1] - self.x[0]) * self.size[0]

    def down(self, value: float) -> float:
        """Return where a value is from the top."""
        return (1 - (value - self.y[0]) / (self.y[1] - self.y[0])) * self.size[1]

    def draw(self, name: str, look: str = "", text: str = "", **at: str | float) -> None:
        """Add an element, its attributes text or lengths."""
        places = (f'{k}="{v if isinstance(v, str) else number(v)}"' for k, v in at.items())
        inner = f">{escape(text)}</{name}>" if text else "/>"
        self.drawn.append(" ".join([f"<{name}", *places, *([look] if look else [])]) + inner)

    def path(self, points: Iterable[Ends], look: str) -> None:
        """Draw a line through points, or with ``fill`` in its look a face."""
        steps = [f"{number(self.across(x))} {number(self.down(y))}" for x, y in points]
        self.draw("path", look, d=f"M{'L'.join(steps)}")

    def spans(
        self, ends: Iterable[tuple[float, float, float]], stroke: str, *, upright: bool = False
    ) -> None:
        """Draw level lines (low, high, height), or upright ones (low, high, from the left)."""
        d = ""
        for low, high, at in ends:
            (x, y), end = ((at, low), high) if upright else ((low, at), high)
            to = f"V{number(self.down(end))}" if upright else f"H{number(self.across(end))}"
            d += f"M{number(self.across(x))} {number(self.down(y))}{to}"
        if d:
            self.draw("path", d=d, stroke=stroke)

    def marks(self, at: Iterable[Ends], mark: Mark, size: float = 4) -> None:
        """Draw dots of one look."""
        d = "".join(shape(mark.shape, self.across(x), self.down(y), size) for x, y in at)
        if d:
            self.draw("path", d=d, fill=mark.face, stroke=mark.edge)

    def words(self, at: Ends, text: str, look: str = "", move: Ends = (0, 0)) -> None:
        """Write text, moved by some pixels."""
        x, y = self.across(at[0]) + move[0], self.down(at[1]) + move[1]
        self.draw("text", look, text, x=x, y=y)

    def rect(self, x: Ends, y: Ends, face: str) -> None:
        """Fill a rectangle."""
        left, top = self.across(x[0]), self.down(y[1])
        width, height = self.across(x[1]) - left, self.down(y[0]) - top
        self.draw("rect", x=left, y=top, width=width, height=height, fill=face, stroke="none")

    def ellipse(self, at: Ends, radii: Ends, face: str) -> None:
        """Fill an ellipse."""
        x, y = self.across(at[0]), self.down(at[1])
        rx, ry = self.across(at[0] + radii[0]) - x, y - self.down(at[1] + radii[1])
        self.draw("ellipse", cx=x, cy=y, rx=rx, ry=ry, fill=face, stroke="none")

    def margins(self) -> tuple[float, float, float]:
        """Return what text takes to the left, above and below."""
        across, down = ([wide(text) for _, text in of or ()] for of in (self.xticks, self.yticks))
        left = max(down, default=0.0) + 8 + 16 * bool(self.labels[1])
        longest = max(across, default=0.0)
        below = SLOPE * longest + 12 if self.slanted else 18 * bool(self.xticks)
        if self.slanted and across:
            left = max(left, (1 - SLOPE**2) ** 0.5 * across[0])
        return left, 18.0 * bool(self.title), below + 16 * bool(self.labels[0])


def shape(name: str, x: float, y: float, r: float) -> str:
    """Return the path of a mark around a place."""

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

    ``shows``: what is to be seen, in words: for a reader who does not see the figure.
    ``legend``: what is drawn for each entry (24 by 12 pixels), and its name.
    ``below``: a label of the horizontal axes of all panels.
    """
    placed: list[tuple[Panel, float, float]] = []
    lefts = [max(r[c].margins()[0] for r in rows if c < len(r)) for c in range(len(rows[0]))]
    wides = [panel.size[0] for panel in rows[0]]
    width = 12 + sum(lefts) + sum(wides) + 22 * len(wides)
    width = max(width, wide(title) * 1.05 + 8, wide(below) + 8)
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
    for drawn, name in legend:
        needed = 30 + wide(name) + 12
        if entries and x + needed > width:
            x, top = 8.0, top + 18
        entries.append((x, top, drawn, name))
        x += needed
        width = max(width, x)
    top += 20 if legend else 0
    return FIGURES.get_template("figure.svg.j2").render(
        shows=shows,
        title=title,
        size=(math.ceil(width), math.ceil(top)),
        placed=placed,
        below=label,
        legend=entries,
        font=FONT,
        grey=GREY,
        n=number,
    )


def key(mark: Mark | None = None, stroke: str = "", dash: str = "") -> str:
    """Return the drawing of an entry of a legend."""
    line = f'<path d="M0 6H24" stroke="{stroke}" stroke-dasharray="{dash}"/>' if stroke else ""
    if mark is None:
        return line
    around_it = shape(mark.shape, 12, 6, 4)
    return f'{line}<path d="{around_it}" fill="{mark.face}" stroke="{mark.edge}"/>'


def box(face: str) -> str:
    """Return the drawing of a legend's entry of a face."""
    return f'<rect width="24" height="12" fill="{face}"/>'
