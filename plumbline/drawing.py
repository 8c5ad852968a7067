"""Figures of the report as files of a given width: SVG, and PDF and PNG of the same drawing.

The report writes SVG by itself, in few kinds of elements (``probes/report/panel.py``). Matplotlib
draws just these again, so that no converter is needed; an element that it does not know is an
error, never left out.
"""

from __future__ import annotations

import io
import re
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

from plumbline.builders.core.errors import UserError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

INCH = 2.54  # centimetres
POINTS = 72  # to the inch
DPI = 300
NAMESPACE = "http://www.w3.org/2000/svg"
NARROWEST, WIDEST = 2, 100  # centimetres
MOVES = {"translate": r"translate\(([^ )]+) ([^ )]+)\)", "rotate": r"rotate\(([^)]*)\)"}
IGNORED = {"title", "desc"}


def check(width: float) -> None:
    """Refuse what is no width of a figure."""
    if not NARROWEST <= width <= WIDEST:
        raise UserError(f"width {width}: in centimetres, from {NARROWEST} to {WIDEST}")


def written(svg: str, width: float, kind: str) -> bytes:
    """Return a figure of a page as a file: svg, pdf or png, of a width in centimetres."""
    return standalone(svg, width).encode() if kind == "svg" else drawn(svg, width, kind)


def size(svg: str, width: float) -> tuple[float, float, float]:
    """Return width and height of a figure of this width, in centimetres, and of its letters.

    The letters are in points: those of most text, which a wide figure has small.
    """
    root = ET.fromstring(svg)  # noqa: S314 - our own
    across, down = (float(root.attrib[name]) for name in ("width", "height"))
    letters = float(root.attrib["font-size"]) * width / across / INCH * POINTS
    return width, width * down / across, letters


def standalone(svg: str, width: float) -> str:
    """Return a figure of a page as a file of its own, of a width in centimetres."""
    across, down, _ = size(svg, width)
    head, _, body = svg.strip().partition(">")
    head = re.sub(r' width="[^"]*" height="[^"]*"', "", head, count=1)
    head = head.replace("<svg", f'<svg xmlns="{NAMESPACE}" width="{across:g}cm"', 1)
    page = '<rect width="100%" height="100%" fill="#fff"/><style>text{fill:#000}</style>'
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{head} height="{down:.4f}cm">{page}{body}\n'


def drawn(svg: str, width: float, kind: str) -> bytes:
    """Return a figure of a page as ``pdf`` or ``png`` of a width in centimetres.

    Raises
    ------
    ValueError
        If it has an element, or a step of a path, that cannot be drawn here.
    """
    import matplotlib as mpl

    made = io.BytesIO()
    stamp: dict[str, Any] = {"CreationDate": None} if kind == "pdf" else {}
    with mpl.rc_context({"pdf.fonttype": 42, "font.family": fonts()}):
        figure(svg, width).savefig(made, format=kind, dpi=DPI, metadata=stamp)
    return made.getvalue()


def fonts() -> list[str]:
    """Return the fonts of a figure: Matplotlib's own, then those installed for other scripts."""
    from matplotlib import font_manager

    known = font_manager.get_font_names()
    return ["DejaVu Sans", *sorted(name for name in known if name.startswith("Noto Sans"))]


def figure(svg: str, width: float) -> Figure:
    """Return a figure of a page, drawn by Matplotlib in a width in centimetres."""
    from plumbline.plot import Plot

    root = ET.fromstring(svg)  # noqa: S314 - our own
    across, down = (float(root.attrib[name]) for name in ("width", "height"))
    own = Plot((width / INCH, width * down / across / INCH))
    axes = own.add_axes((0, 0, 1, 1), xlim=(0, across), ylim=(down, 0))
    axes.set_axis_off()
    pen = _Pen(axes, width / across / INCH * POINTS, float(root.attrib["font-size"]))
    pen.all(root, (0.0, 0.0))
    return own


class _Pen:
    """What draws elements into axes whose unit is a pixel of the page."""

    def __init__(self, axes: Any, point: float, letters: float) -> None:
        self.axes, self.point, self.letters, self.order = axes, point, letters, 0

    def all(self, inside: ET.Element, at: tuple[float, float]) -> None:
        """Draw what is in an element, one thing above the other."""
        for element in inside:
            name = element.tag.rpartition("}")[2]
            if name == "g":
                self.all(element, _moved(element, at)[0])
            elif name not in IGNORED:
                draw = getattr(self, name, None)
                if draw is None:
                    raise ValueError(f"a figure with <{name}>, which is not drawn here")
                self.order += 1
                draw(element, at)

    def look(self, element: ET.Element) -> dict[str, Any]:
        """Return colours and lines of a shape; what is not given is not drawn."""
        dashes = [float(n) for n in element.get("stroke-dasharray", "").split()]
        width = float(element.get("stroke-width", "1")) * self.point
        return {
            "facecolor": element.get("fill", "none"),
            "edgecolor": element.get("stroke", "none"),
            "linewidth": width,
            "linestyle": (0, [n * self.point / width for n in dashes]) if dashes else "-",
            "capstyle": "butt",
            "zorder": self.order,
        }

    def text(self, element: ET.Element, at: tuple[float, float]) -> None:
        """Write a text, turned around where it stands."""
        (x, y), turned = _moved(element, at)
        style = element.get("style", "")
        self.axes.text(
            x + float(element.attrib["x"]),
            y + float(element.attrib["y"]),
            (element.text or "").replace("$", r"\$"),
            ha={"middle": "center", "end": "right"}.get(element.get("text-anchor", ""), "left"),
            va="baseline",
            rotation=-turned,
            rotation_mode="anchor",
            color=style.removeprefix("fill:") or "#000",
            fontsize=float(element.get("font-size", self.letters)) * self.point,
            fontweight=element.get("font-weight", "normal"),
            zorder=self.order,
        )

    def shape(self, element: ET.Element, at: tuple[float, float]) -> None:
        """Draw lines and faces."""
        from matplotlib.patches import PathPatch

        self.axes.add_patch(PathPatch(_outline(element, at), **self.look(element)))

    path = rect = ellipse = shape


def _moved(element: ET.Element, at: tuple[float, float]) -> tuple[tuple[float, float], float]:
    """Return where an element's own origin is, and by how many degrees it is turned."""
    words = element.get("transform", "")
    moved, turned = (re.search(pattern, words) for pattern in MOVES.values())
    if re.sub("|".join(MOVES.values()), "", words).strip():
        raise ValueError(f"a figure with {words!r}, which is not drawn here")
    if moved:
        at = at[0] + float(moved[1]), at[1] + float(moved[2])
    return at, float(turned[1].split()[0]) if turned else 0.0


def _outline(element: ET.Element, at: tuple[float, float]) -> Any:
    """Return the outline of a shape for Matplotlib, read by fontTools, which comes with it."""
    from fontTools.pens.recordingPen import RecordingPen
    from fontTools.svgLib.path import PathBuilder, parse_path
    from matplotlib.path import Path

    takes: dict[str, list[Any]] = {
        "moveTo": [Path.MOVETO],
        "lineTo": [Path.LINETO],
        "curveTo": [Path.CURVE4] * 3,
        "closePath": [Path.CLOSEPOLY],
        "endPath": [],
    }
    built, pen = PathBuilder(), RecordingPen()
    built.add_path_from_element(element)
    parse_path(built.paths[0], pen)
    points, codes = list[tuple[float, float]](), list[Any]()
    for step, given in pen.value:
        if step not in takes:
            raise ValueError(f"a figure with a path of {step}, which is not drawn here")
        codes += takes[step]
        points += [(at[0] + x, at[1] + y) for x, y in given] or points[-1:] * len(takes[step])
    return Path(points, codes)
