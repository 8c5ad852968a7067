"""A trace as a picture: from the snapshots on the left to the row on the right, as SVG.

Drawn in greys alone, with what each box is written in it; the text can be selected, and a pointer
on a box shows its whole path and hash.
"""

from __future__ import annotations

import re
import textwrap
from collections import Counter
from html import escape
from itertools import pairwise
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, NamedTuple
from unicodedata import east_asian_width

from plumbline.builders.versions import layers, trace_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from plumbline.builders.versions.lineage import Node
    from plumbline.builders.versions.rows import Row
    from plumbline.builders.versions.trace import Trace

BOX = 216.0  # width
BETWEEN = 64.0  # layers
LINE = 15.0  # height of a line of text
PAD = 8.0
EDGE = 20.0
LETTER = 6.1  # mean width of a letter at 12 pixels
ROW = "row"
FILL = {"snapshot": "#ffffff", "dataset": "#f2f2f2", "model": "#e2e2e2", ROW: "#ffffff"}
STYLE = """
text { font: 12px system-ui, "Segoe UI", Helvetica, Arial, "DejaVu Sans", sans-serif; fill: #111 }
.kind { font-size: 11px; fill: #444 }
.name { font-weight: 600 }
.box { stroke: #555; stroke-width: 1 }
.snapshot .box { stroke-dasharray: 2 2 }
.row .box { stroke: #111; stroke-width: 2 }
.differs .box { stroke: #111; stroke-width: 3; stroke-dasharray: 7 3 }
.way { fill: none; stroke: #888; stroke-width: 1 }
.legend { fill: #444 }
.head { font-size: 14px; font-weight: 600 }
"""


class Box(NamedTuple):
    """What is drawn of a node."""

    kind: str
    name: str
    lines: tuple[str, ...]
    whole: str  # shown under the pointer
    differs: bool

    @property
    def height(self) -> float:
        """Height in pixels."""
        return 2 * PAD + LINE * (2 + len(self.lines))


def picture(found: Trace) -> str:
    """Return a trace as the text of an SVG file."""
    boxes, edges = _boxes(found)
    plan = layers.layout({key: box.height for key, box in boxes.items()}, edges)
    depth = max(place.layer for place in plan.boxes.values()) + 1
    width = max(2 * EDGE + depth * BOX + (depth - 1) * BETWEEN, 640)
    heading = _wrapped(found.headline, width)
    top = 2 * EDGE + LINE * 1.4 * len(heading)
    low = top + max(p.middle + boxes[k].height / 2 for k, p in plan.boxes.items())
    legend = _wrapped(
        f"Code as in {trace_text.commit(found.top)} unless a box says otherwise. Since: the first "
        "commit that had these bytes. Rows: those that share the columns that name the row.",
        width,
    )
    height = low + 2 * EDGE + LINE * 1.4 * len(legend)
    parts = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" '
            f'width="{width:.0f}" height="{height:.0f}" role="img" '
            'aria-labelledby="trace-title trace-desc">'
        ),
        f'<title id="trace-title">Where {escape(found.file)} comes from</title>',
        f'<desc id="trace-desc">{escape(_described(found, boxes, depth))}</desc>',
        f"<style>{STYLE}</style>",
        f'<rect width="{width:.0f}" height="{height:.0f}" fill="#ffffff"/>',
        *_lines("head", heading, EDGE),
        *dict.fromkeys(part for way in plan.ways.values() for part in _way(way, top)),
        *(_drawn(boxes[key], place, top) for key, place in plan.boxes.items()),
        *_lines("legend", legend, low + EDGE),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _lines(style: str, lines: list[str], top: float) -> Iterator[str]:
    for i, line in enumerate(lines):
        y = top + LINE * 1.4 * (i + 0.7)
        yield f'<text class="{style}" x="{EDGE:.0f}" y="{y:.1f}">{escape(line)}</text>'


def _described(found: Trace, boxes: dict[str, Box], depth: int) -> str:
    """Say for those who do not see it what is drawn."""
    counted = Counter(re.split(r"[ ,]", box.kind)[0] for box in boxes.values())
    held = ", ".join(f"{kind}: {number}" for kind, number in counted.items())
    said = (
        f"{found.headline}. Boxes in {depth} layers, left to right from the snapshots to what is "
        f"traced ({held}); each line leads from what was read to what was made of it."
    )
    return " ".join([said, *found.differs])


def _boxes(found: Trace) -> tuple[dict[str, Box], list[tuple[str, str]]]:
    """Return the boxes by key, and the edges; a dataset's report is told in its box."""
    reports = {report.key for report in trace_text.folded(found).values()}
    shown = {key: node for key, node in found.nodes.items() if key not in reports}
    boxes = {key: _box(found, node) for key, node in shown.items()}
    edges = [(a, key) for key, node in shown.items() for a in trace_text.inputs(found, node)]
    if found.row:
        boxes[ROW] = _row_box(found.row, found.file)
        edges.append((found.output, ROW))
    return boxes, edges


def _box(found: Trace, node: Node) -> Box:
    version = f" {node.facts['version']}" if "version" in node.facts else ""
    report = trace_text.folded(found).get(node.key)
    checked = f", {trace_text.verdict(report).split(',')[0]}" if report else ""
    parts = PurePosixPath(node.path).parts
    name = "/".join(parts[2:]) or node.path
    lines = []
    if node.kind == "snapshot" and "retrieved" in node.facts:
        lines = [f"retrieved {node.facts['retrieved']}", str(node.facts["licence"])]
    elif node.kind == "model":
        lines = [f"revision {str(node.facts.get('revision') or 'not known')[:8]}"]
        lines += [f"{node.facts['planted']}, seed {node.facts['seed']}"] * ("seed" in node.facts)
    lines += [
        f"{part.config}: {part.rows:,} of {part.of:,} rows"
        for part in found.behind.get(node.key, ())
        if part.matched
    ][:3]
    if node.stage:
        lines.append(f"since {trace_text.commit(node.first)}" if node.first else "in no commit")
    if node.stage and node.code != found.top:
        lines.append(f"code of {trace_text.commit(node.code)}")
    differs = node.here.state == "differs" or bool(node.code_differs)
    if differs:
        lines.append("DIFFERS here")
    kind = f"{node.kind}{version}{checked}"
    whole = "\n".join([trace_text.title(node), *([node.stage.command] if node.stage else [])])
    return Box(kind, name, (*lines, node.item.md5[:8]), whole, differs)


def _row_box(of: Row, file: str) -> Box:
    value = of.values.get("value")
    estimate = f"{value:.4g}" if isinstance(value, float) else ""
    ends = [of.values.get(end) for end in ("low", "high")]
    if estimate and all(isinstance(end, float) for end in ends):
        estimate += f" [{ends[0]:.4g}, {ends[1]:.4g}]"
    named = tuple(f"{key}: {value}" for key, value in of.names.items())
    lines = (*named, *([f"value {estimate}"] if estimate else []))
    name = f"row {of.number:,} of {of.of:,}"
    return Box(ROW, name, lines, f"{file}, row {of.number}", differs=False)


def _drawn(box: Box, place: layers.Place, top: float) -> str:
    x = EDGE + place.layer * (BOX + BETWEEN)
    y = top + place.middle - box.height / 2
    word = re.split(r"[ ,]", box.kind)[0]
    rounded = 12 if word == "model" else 2
    lines = [("kind", box.kind), ("name", box.name), *(("more", line) for line in box.lines)]
    texts = [
        f'<text class="{style}" x="{x + PAD:.1f}" y="{y + PAD + LINE * (i + 0.8):.1f}">'
        f"{escape(_cut(line, BOX - 2 * PAD))}</text>"
        for i, (style, line) in enumerate(lines)
    ]
    return "\n".join(
        [
            f'<g class="{word}{" differs" if box.differs else ""}">',
            f"<title>{escape(box.whole)}</title>",
            (
                f'<rect class="box" x="{x:.1f}" y="{y:.1f}" width="{BOX:.0f}" '
                f'height="{box.height:.1f}" rx="{rounded}" fill="{FILL.get(word, "#ffffff")}"/>'
            ),
            *texts,
            "</g>",
        ]
    )


def _way(way: list[layers.Place], top: float) -> Iterator[str]:
    """Yield the parts of a line: curves between layers, straight where it passes one."""
    for last, place in pairwise(way):
        x = EDGE + last.layer * (BOX + BETWEEN) + BOX
        left, bend = x + BETWEEN, x + BETWEEN / 2
        y, height = top + last.middle, top + place.middle
        along = "" if place is way[-1] else f"h{BOX:.0f}"
        curve = f"C{bend:.1f} {y:.1f} {bend:.1f} {height:.1f} {left:.1f} {height:.1f}"
        yield f'<path class="way" d="M{x:.1f} {y:.1f}{curve}{along}"/>'


def _width(text: str) -> float:
    return sum(2 * LETTER if east_asian_width(c) in "WF" else LETTER for c in text)


def _cut(text: str, room: float) -> str:
    """Shorten a text to the room that there is."""
    if _width(text) <= room:
        return text
    while text and _width(f"{text}…") > room:
        text = text[:-1]
    return f"{text}…"


def _wrapped(text: str, room: float) -> list[str]:
    return textwrap.wrap(text, int((room - 2 * EDGE) / (LETTER * 1.25)))
