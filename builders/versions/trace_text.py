"""A trace as people read it: an indented tree, each thing once."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from plumbline.builders.dvc.git import is_code

if TYPE_CHECKING:
    from collections.abc import Iterator

    from plumbline.builders.dvc.git import Commit
    from plumbline.builders.dvc.lock import Stage
    from plumbline.builders.versions.lineage import Node
    from plumbline.builders.versions.rows import Behind, Row
    from plumbline.builders.versions.trace import Trace

WIDTH = 100  # of a value; --json has all of it
ESTIMATE = ("value", "low", "high", "n", "cluster", "method", "null", "p", "p_bh")
FILES = 2  # of a snapshot, that are named with their sha256


def text(found: Trace) -> Iterator[str]:
    """Yield the lines of a trace: what differs first, then the row, then all that is behind it."""
    yield found.headline
    yield from (f"DIFFERS here: {sentence}" for sentence in found.differs)
    if not found.differs:
        yield "behind it: everything is here as it was locked, the code too"
    if found.shallow:
        yield "note: a shallow clone; commits before it are not known, so 'first' may be too late"
    yield ""
    if found.row:
        yield from row(found.row)
        yield ""
    yield from _tree(found, found.output, "", _homes(found), set())


def row(of: Row) -> Iterator[str]:
    """Yield the lines of a row: what names it, its estimate, and the rest."""
    config = f" of config {of.config}" if of.config else ""
    yield f"row {of.number}{config}, counted from 0, of {of.of:,}"
    estimate = {k: v for k, v in of.values.items() if k in ESTIMATE and "value" in of.values}
    rest = {k: v for k, v in of.values.items() if k not in estimate}
    numbers = {k: v for k, v in estimate.items() if not isinstance(v, str)}
    words = [{k: v} for k, v in estimate.items() if isinstance(v, str)]
    parts = [("named by", of.names), ("estimate", numbers), *(("", w) for w in words)]
    for name, values in (*parts, ("has", rest)):
        if values:
            yield f"  {name:<9} " + ", ".join(f"{k} {_short(v)}" for k, v in values.items())


def folded(found: Trace) -> dict[str, Node]:
    """Return the reports of validation that are told with their dataset, by the dataset's key."""
    return {
        node.inputs[0]: node
        for node in found.nodes.values()
        if node.kind == "validation" and node.key != found.output and node.inputs
    }


def inputs(found: Trace, node: Node) -> list[str]:
    """Return the keys of what a node was made of, reports left out that a dataset tells."""
    reports = {report.key for report in folded(found).values()}
    return [key for key in node.inputs if key not in reports]


def _tree(
    found: Trace, key: str, indent: str, homes: dict[str, str], seen: set[str]
) -> Iterator[str]:
    """Yield a node and what is behind it, each where it is nearest to the row."""
    node = found.nodes[key]
    seen.add(key)
    yield f"{indent}{title(node)}"
    for name, line in _lines(found, node, seen):
        yield f"{indent}  {name:<8} {line}"
    for inner in inputs(found, node):
        if homes[inner] == key:
            yield from _tree(found, inner, f"{indent}    ", homes, seen)
        else:
            where = "above" if inner in seen else "below"
            yield f"{indent}    {title(found.nodes[inner])} ({where})"


def _homes(found: Trace) -> dict[str, str]:
    """Return under which node each other one is told: of the shortest way to it the last."""
    homes: dict[str, str] = {found.output: ""}
    todo = [found.output]
    for key in todo:
        for inner in inputs(found, found.nodes[key]):
            if inner not in homes:
                homes[inner] = key
                todo.append(inner)
    return homes


def title(node: Node) -> str:
    """Return a node's path, what it is, its version and its hash."""
    version = f" {node.facts['version']}" if "version" in node.facts else ""
    return f"{node.path}  [{node.kind}{version}, {node.item.md5[:8]}]"


def _lines(found: Trace, node: Node, seen: set[str]) -> Iterator[tuple[str, str]]:
    """Yield what is told of one node, as names and values; parameters that were told, by name."""
    if node.here.state != "as locked":
        yield "here", node.here.state
    if node.note:
        yield "note", node.note
    for part in found.behind.get(node.key, ()):
        yield "rows", shared(part)
    if node.kind == "model":
        yield "model", model(node.facts)
    if node.kind == "snapshot":
        yield from _snapshot(node)
    if node.kind == "validation":
        yield "says", verdict(node)
    if report := folded(found).get(node.key):
        yield "checked", f"{verdict(report)}: {report.path} [{report.item.md5[:8]}]"
    if node.stage:
        yield from _made(node, node.stage, seen)


def _made(node: Node, stage: Stage, seen: set[str]) -> Iterator[tuple[str, str]]:
    yield "made by", f"{stage.command}  ({stage.name} of {stage.lock})"
    given = {name: f"{name}: {value}" for name, value in stage.params.items()}
    for section in (name for name, whole in given.items() if whole not in seen):
        yield "params", f"{section}: {_short(stage.params[section])}"
    if again := [name for name, whole in given.items() if whole in seen]:
        yield "params", f"as above: {', '.join(again)}"
    seen |= set(given.values())
    first, newest = commit(node.first), commit(node.newest)
    yield "locked", f"first in {first}, newest in {newest}" if node.first else "in no commit"
    number = sum(is_code(dep.path) for dep in stage.deps)
    yield "code", f"{number} files, as locked in {commit(node.code)}"


def shared(part: Behind) -> str:
    """Say how many rows share what names the row, and by which columns that is known."""
    where = f"{part.config} (the {part.config_is})" if part.config_is else part.config
    if not part.matched:
        return f"{where}: all {part.of:,}; they share no column with what names the row"
    return f"{where}: {part.rows:,} of {part.of:,} have the same {', '.join(part.matched)}"


def model(facts: dict[str, Any]) -> str:
    """Say which model it is."""
    revision = str(facts.get("revision") or "not known")
    if facts.get("origin") == "hub":
        return f"{facts.get('id')} of the Hub, commit {revision}"
    seed = f", {facts['planted']} with seed {facts['seed']}" if "seed" in facts else ""
    return f"{facts.get('id')}, revision {revision[:8]}{seed}, {facts.get('origin')}"


def verdict(node: Node) -> str:
    """Say what the validation found."""
    success = node.facts.get("success")
    if success is None:
        return "the report is not here as locked"
    return f"{'valid' if success else 'NOT VALID'}, {node.facts.get('warnings', 0)} warnings"


def _snapshot(node: Node) -> Iterator[tuple[str, str]]:
    facts = node.facts
    if "retrieved" not in facts:
        return
    yield "source", f"{facts['source']}, {facts['address']}"
    yield "date", f"{facts['retrieved']}"
    yield "licence", _short(facts["licence"])
    yield "cite", _short(facts["citation"])
    for key, value in (facts.get("request") or {}).items():
        yield "query", f"{key}: {_short(value)}"
    files = list((facts.get("files") or {}).items())
    if files:
        named = ", ".join(f"{name} {sha256[:8]}" for name, sha256 in files[:FILES])
        more = f", {len(files) - FILES} more" if len(files) > FILES else ""
        yield "sha256", f"{named}{more}"
    yield "known by", f"{facts['manifest']}; last changed in {commit(node.newest)}"


def commit(of: Commit | None) -> str:
    """Return a commit with its day, or that there is none."""
    return f"{of.id[:8]} ({of.date[:10]})" if of else "no commit"


def _short(value: Any) -> str:
    """Return a value on one line, cut where it is long."""
    told = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    line = " ".join(told.split())
    return line if len(line) <= WIDTH else f"{line[: WIDTH - 4]} ..."
