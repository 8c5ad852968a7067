"""A trace as people read it: an indented tree in words, each thing once, or a picture as SVG.

The picture goes from the snapshots on the left to the row on the right, in greys alone; its text
can be selected, and a pointer on a box shows its whole path and hash.
"""

from __future__ import annotations

import json
import re
import textwrap
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

import networkx as nx
from jinja2 import Environment, FileSystemLoader

from plumbline.builders.dvc.git import Commit, is_code
from plumbline.builders.versions.cards import Row
from plumbline.builders.versions.lineage import Node
from plumbline.builders.versions.trace import Trace

SHORT = 100  # of a value; --json has all of it
ESTIMATE = ("value", "low", "high", "n", "cluster", "method", "null", "p", "p_bh")
FILES = 2  # of a snapshot, that are named with their sha256
ROW = "row"
BOX, BETWEEN, GAP = 216, 64, 14  # pixels: width of a box, between layers, between boxes
LINE, EDGE = 15, 20
LEGEND = (
    "Code as in {} unless a box says otherwise. Since: the first commit that had these bytes. "
    "Rows: those that share the columns that name the row."
)
LETTER = 7.6  # width of a letter of the heading and of the legend, about


def text(found: Trace) -> str:
    """Return a trace in words: what differs first, then the row, then all that is behind it."""
    template = _template(
        "trace.txt.j2",
        found=found,
        steps=list(_steps(found)),
        parts=_parts(found.row) if found.row else (),
        n=lambda number: f"{number:,}",
        short=_short,
        commit=commit,
        files=files,
        code=lambda stage: sum(is_code(dep.path) for dep in stage.deps),
        title=title,
        verdict=verdict,
    )
    said = [template.head(), template.row() if found.row else "", template.tree()]
    blocks = ["\n".join(line for line in part.splitlines() if line.strip()) for part in said]
    return "\n\n".join(block for block in blocks if block)


def _template(name: str, **context: Any) -> Any:
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=name.endswith(".svg.j2"),
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template(name, globals=context).module


def _parts(row: Row) -> list[tuple[str, dict[str, Any]]]:
    """Return the parts of a row: what names it, its estimate, and the rest."""
    estimate = {k: v for k, v in row.values.items() if k in ESTIMATE and "value" in row.values}
    numbers = {k: v for k, v in estimate.items() if not isinstance(v, str)}
    words = [("", {k: v}) for k, v in estimate.items() if isinstance(v, str)]
    rest = {k: v for k, v in row.values.items() if k not in estimate}
    return [("named by", row.names), ("estimate", numbers), *words, ("has", rest)]


class Step(NamedTuple):
    """A node as it stands in the tree."""

    node: Node
    indent: str
    where: str = ""  # it is described: above or below; empty: here
    report: Node | None = None
    params: tuple[str, ...] = ()  # sections that are shown here
    again: tuple[str, ...] = ()  # and that were shown before


def files(node: Node) -> str:
    """Return the first files of a snapshot, with their hashes."""
    named = [f"{name} {sha256[:8]}" for name, sha256 in (node.facts.get("files") or {}).items()]
    more = [f"{len(named) - FILES} more"] if len(named) > FILES else []
    return ", ".join(named[:FILES] + more)


def _steps(found: Trace) -> Iterator[Step]:
    """Yield the nodes in the order of the tree, each described where it is nearest to the row."""
    graph, reports = _graph(found)
    nearest = {found.output: "", **dict(nx.bfs_predecessors(graph, found.output))}
    seen: set[str] = set()

    def walk(key: str, indent: str) -> Iterator[Step]:
        node = found.nodes[key]
        given = {n: f"{n}: {v}" for n, v in (node.stage.params if node.stage else {}).items()}
        new, again = (tuple(n for n in given if (given[n] in seen) is old) for old in (False, True))
        yield Step(node, indent, "", reports.get(key), new, again)
        seen.update(given.values(), [key])
        for inner in graph.successors(key):
            if nearest[inner] == key:
                yield from walk(inner, f"{indent}    ")
            else:
                where = "above" if inner in seen else "below"
                yield Step(found.nodes[inner], f"{indent}    ", where)

    yield from walk(found.output, "")


def _graph(found: Trace) -> tuple[nx.DiGraph[str], dict[str, Node]]:
    """Return what was made of what, from the output on, and the validation beside each dataset."""
    reports = {
        node.inputs[0]: node
        for node in found.nodes.values()
        if node.kind == "validation" and node.key != found.output and node.inputs
    }
    beside = {report.key for report in reports.values()}
    graph: nx.DiGraph[str] = nx.DiGraph()
    for key, node in found.nodes.items():
        if key not in beside:
            graph.add_node(key)
            graph.add_edges_from((key, inner) for inner in node.inputs if inner not in beside)
    return graph, reports


def title(node: Node) -> str:
    """Return a node's path, what it is, its version and its hash."""
    version = f" {node.facts['version']}" if "version" in node.facts else ""
    return f"{node.path}  [{node.kind}{version}, {node.item.md5[:8]}]"


def verdict(node: Node) -> str:
    """Say what the validation found."""
    success = node.facts.get("success")
    if success is None:
        return "the report is not here as locked"
    return f"{'valid' if success else 'NOT VALID'}, {node.facts.get('warnings', 0)} warnings"


def commit(of: Commit | None) -> str:
    """Return a commit with its day, or that there is none."""
    return f"{of.id[:8]} ({of.date[:10]})" if of else "no commit"


def _short(value: Any) -> str:
    """Return a value on one line, cut where it is long."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    line = " ".join(text.split())
    return line if len(line) <= SHORT else f"{line[: SHORT - 4]} ..."


@dataclass
class Box:
    """What is drawn of a node, and where."""

    kind: str
    lines: list[str]  # name, and what else there is to say
    whole: str  # shown under the pointer
    differs: bool = False
    x: int = 0
    y: float = 0
    width: int = BOX

    @property
    def word(self) -> str:
        """The kind alone, without a version."""
        return re.split(r"[ ,]", self.kind)[0]

    @property
    def height(self) -> int:
        """Height in pixels."""
        return LINE * (2 + len(self.lines))


def picture(found: Trace) -> str:
    """Return a trace as the text of an SVG file."""
    made_of, reports = _graph(found)
    graph = made_of.reverse()
    boxes = {key: _box(found, found.nodes[key], reports.get(key)) for key in graph}
    if found.row:
        boxes[ROW] = _row_box(found.row, found.file)
        graph.add_edge(found.output, ROW)
    depth = _place(graph, boxes)
    width = max(2 * EDGE + depth * BOX + (depth - 1) * BETWEEN, 640)
    heading, legend = (
        textwrap.wrap(text, int((width - 2 * EDGE) / LETTER))
        for text in (found.headline, LEGEND.format(commit(found.top)))
    )
    top = 2 * EDGE + 21 * len(heading)
    for box in boxes.values():
        box.y += top
    low = max(box.y + box.height for box in boxes.values())
    ends = [(boxes[a], boxes[b]) for a, b in graph.edges]
    drawn = _template(
        "trace.svg.j2",
        found=found,
        width=width,
        height=low + 2 * EDGE + 21 * len(legend),
        layers=depth,
        kinds=Counter(box.word for box in boxes.values()),
        heading=heading,
        legend=legend,
        low=low,
        boxes=list(boxes.values()),
        ways=[(a.x + BOX, a.y + a.height / 2, b.x, b.y + b.height / 2) for a, b in ends],
    )
    return f"{drawn}\n"


def _place(graph: nx.DiGraph[str], boxes: dict[str, Box]) -> int:
    """Put each box right of all that it was made of, near the height of that; return the layers."""
    layers = [list(layer) for layer in nx.topological_generations(graph)]
    tall = max(sum(boxes[key].height + GAP for key in layer) for layer in layers)
    for i, layer in enumerate(layers):
        near = {key: [boxes[a].y for a in graph.predecessors(key)] for key in layer}
        layer.sort(key=lambda key: (sum(near[key]) / max(len(near[key]), 1), key))
        at = (tall - sum(boxes[key].height + GAP for key in layer)) / 2
        for key in layer:
            boxes[key].x, boxes[key].y = EDGE + i * (BOX + BETWEEN), at
            at += boxes[key].height + GAP
    return len(layers)


def _box(found: Trace, node: Node, report: Node | None) -> Box:
    facts = node.facts
    version = f" {facts['version']}" if "version" in facts else ""
    checked = f", {verdict(report).split(',')[0]}" if report else ""
    lines = ["/".join(PurePosixPath(node.path).parts[2:]) or node.path]
    if node.kind == "snapshot" and "retrieved" in facts:
        lines += [f"retrieved {facts['retrieved']}", str(facts["licence"])]
    elif node.kind == "model":
        lines += [f"revision {str(facts.get('revision') or 'not known')[:8]}"]
        if "planted" in facts:
            lines.append(f"{facts['planted']}, seed {facts['seed']}")
    shared = [part for part in found.matches.get(node.key, ()) if part.matched]
    lines += [f"{part.config}: {part.rows:,} of {part.of:,} rows" for part in shared[:3]]
    if node.stage:
        lines.append(f"since {commit(node.first)}" if node.first else "in no commit")
    if node.stage and node.code != found.top:
        lines.append(f"code of {commit(node.code)}")
    differs = node.here.state == "differs" or bool(node.code_differs)
    lines += [*["DIFFERS here"] * differs, node.item.md5[:8]]
    whole = "\n".join([title(node), *([node.stage.command] if node.stage else [])])
    return Box(f"{node.kind}{version}{checked}", lines, whole, differs)


def _row_box(of: Row, file: str) -> Box:
    value, *ends = (of.values.get(name) for name in ("value", "low", "high"))
    lines = [f"row {of.number:,} of {of.of:,}", *(f"{k}: {name}" for k, name in of.names.items())]
    if isinstance(value, float):
        known = all(isinstance(end, float) for end in ends)
        interval = f" [{ends[0]:.4g}, {ends[1]:.4g}]" if known else ""
        lines.append(f"value {value:.4g}{interval}")
    return Box(ROW, lines, f"{file}, row {of.number}")
