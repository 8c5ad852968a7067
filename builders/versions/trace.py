"""Tracing a row of any table, outputs or dataset back to the snapshots that it was made of.

Everything is read from the locks, from git, from the cards and from the snapshots' manifests. A
file that came from elsewhere can be traced once :func:`start` knows the output and its hash.
"""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from plumbline.builders.core.errors import UserError
from plumbline.builders.core.snapshot import MANIFEST
from plumbline.builders.dvc import cache, git
from plumbline.builders.dvc import lock as locks
from plumbline.builders.versions import cards, lineage

if TYPE_CHECKING:
    from plumbline.builders.dvc.git import Commit
    from plumbline.builders.dvc.lock import Item
    from plumbline.builders.versions.cards import Matches, Row
    from plumbline.builders.versions.lineage import Graph, Node

NAMED = 6  # files in a message
ROWS = ("tables", "outputs", "dataset")  # what rows are counted in
THROUGH = ("tables", "outputs")  # and are followed through: training texts are not behind a row


@dataclass
class Trace:
    """All that is known of where a file, or a row of it, comes from."""

    file: str
    output: str  # key of the node that the file is of
    nodes: dict[str, Node]
    top: Commit  # of the history that was read
    revision: str | None  # as given; None: the working folder
    shallow: bool
    row: Row | None = None
    matches: dict[str, list[Matches]] = field(default_factory=dict)  # by key of the node
    headline: str = ""
    differs: list[str] = field(default_factory=list)  # sentences, of what is behind it


def trace(named: str, revision: str | None = None) -> Trace:
    """Trace ``FILE``, ``FILE#ROW`` or ``FILE#column=value``.

    Parameters
    ----------
    revision
        A commit whose locks are read; without it those of the working folder.

    Raises
    ------
    UserError
        If there is no git, the file is not there, no stage makes it, or it has no such row.
    """
    path, _, selector = named.partition("#")
    file = _inside(path)
    past = git.read(git.resolve(revision or "HEAD"))
    graph = lineage.Graph(past, git.entries_at(past.commits[0].id) if revision else locks.here())
    item = start(file, graph, revision)
    found = Trace(file, graph.add(item), graph.nodes, past.commits[0], revision, past.shallow)
    lineage.code(graph)
    node = found.nodes[found.output]
    inside = _within(file, node)
    if inside:
        _known(found, node, inside)
    if selector:
        found.row = _row(found, node, inside, selector)
        _count(found, node)
    found.headline = _headline(found, node)
    found.differs = [s for n in found.nodes.values() for s in _differs(n, itself=n is node)]
    return found


def as_json(found: Trace) -> dict[str, Any]:
    """Return a trace as plain values."""
    tree = asdict(replace(found, nodes={}))
    nodes = [_plain(node) for node in found.nodes.values()]
    return tree | {"nodes": nodes, "top": found.top._asdict()}


def _plain(node: Node) -> dict[str, Any]:
    tree = asdict(node) | {"key": node.key, "here": node.here._asdict()}
    commits = {"first": node.first, "newest": node.newest, "code": node.code}
    return tree | {name: commit._asdict() if commit else None for name, commit in commits.items()}


def start(file: str, graph: Graph, revision: str | None) -> Item:
    """Return the output that a file is of, or the snapshot.

    Raises
    ------
    UserError
        If it is neither.
    """
    owner = graph.owner(file)
    if owner is not None:
        return owner
    if any(out.path.startswith(f"{file}/") for entry in graph.entries for out in entry.outs):
        raise UserError(f"{file}: holds the outputs of several stages; name one of them")
    path = PurePosixPath(file)
    for folder in (path, *path.parents):
        if (Path(folder) / MANIFEST).is_file():
            read = (d for e in graph.entries for d in e.deps if d.path == str(folder))
            return next(read, None) or lineage.here(Path(folder))
    where = f"the locks of {revision}" if revision else "the locks here"
    if not Path(file).exists():
        raise UserError(
            f"{file}: no such file, and none in {where}; name one that `make repro` made"
        )
    raise UserError(
        f"{file}: no stage in {where} makes it, so there is nothing to trace; name a file under "
        "data/ that `make repro` writes"
    )


def _inside(path: str) -> str:
    """Return a path as the locks write it."""
    whole = os.path.relpath(path) if Path(path).is_absolute() else os.path.normpath(path)
    if not path or whole.startswith(".."):
        raise UserError(f"{path or '#'}: not a file of this project; name one from its top folder")
    return PurePosixPath(whole).as_posix()


def _within(file: str, node: Node) -> str:
    """Return the path of a file in its output; of the output itself it is empty."""
    return "" if file == node.path else PurePosixPath(file).relative_to(node.path).as_posix()


def _files(found: Trace, node: Node) -> dict[str, Path] | None:
    """Return the files of what is traced: as they are here, or for a revision as locked."""
    base = Path(node.path)
    if found.revision is not None or not base.exists():
        return cache.files(node.item)
    if base.is_file():
        return {"": base}
    return {p.relative_to(base).as_posix(): p for p in sorted(base.rglob("*")) if p.is_file()}


def _row(found: Trace, node: Node, inside: str, selector: str) -> Row:
    """Read the selected row."""
    files = _files(found, node)
    if files is None:
        raise UserError(
            f"{found.file}: its bytes are not here, so no row can be read; `dvc checkout` or "
            "`dvc pull` them, or leave out the row"
        )
    path = files.get(inside)
    tables = [name for name in files if PurePosixPath(name).suffix == ".parquet"]
    if path is None and len(tables) == 1:
        path, inside = files[tables[0]], tables[0]
        found.file = f"{node.path}/{inside}"
    if path is None:
        raise UserError(f"{found.file}: which file? a row is in one of {_some(tables)}")
    if PurePosixPath(inside).suffix != ".parquet":
        raise UserError(f"{found.file}: has no rows; leave out what follows #, or name a .parquet")
    return cards.row(path, inside, cards.read(files), selector)


def _known(found: Trace, node: Node, inside: str) -> None:
    """Refuse a file that is not in the output that it would lie in."""
    files = _files(found, node)
    if files is not None and not any(f"{name}/".startswith(f"{inside}/") for name in files):
        raise UserError(f"{found.file}: no such file; {node.path} has {_some(list(files))}")


def _some(names: list[str]) -> str:
    shown = names if len(names) <= NAMED else [*names[:NAMED], f"{len(names) - NAMED} more"]
    return ", ".join(shown) or "none"


def _count(found: Trace, node: Node) -> None:
    """Count rows that share the row's name in all that is behind it but what made the models."""
    assert found.row
    todo = list(node.inputs) if node.kind in THROUGH else []
    while todo:
        of = found.nodes[todo.pop()]
        if of.kind == "folder":
            todo += of.inputs
        if of.key in found.matches or of.kind not in ROWS:
            continue
        small = (of.item.size or 0) <= cache.LARGE
        files = cache.files(of.item) if small and found.row.names else None
        found.matches[of.key] = cards.matches(files, found.row.names) if files else []
        todo += of.inputs if of.kind in THROUGH else []


def _headline(found: Trace, node: Node) -> str:
    """Say first whether what is traced is what the lock has."""
    where = f"commit {found.top.id[:8]}" if found.revision else "the working folder"
    if node.stage is None:
        return f"{_SOURCE[node.here.state]}: {found.file}, a {node.kind} that no stage makes"
    lock = f"{node.stage.lock} of {where} has for {node.stage.name} (md5 {node.item.md5[:8]})"
    if node.here.state == "as locked":
        return f"as locked: {found.file} is what {lock}"
    if node.here.state == "not compared":
        return f"size as locked: {node.path} is large, its bytes were not compared with what {lock}"
    if node.here.state == "not here":
        return f"NOT HERE: {node.path} is missing; what follows is of what {lock}"
    inside = _within(found.file, node)
    changed = _some(list(node.here.changed)) if node.here.changed else ""
    if changed and inside and inside not in node.here.changed:
        return f"as locked: {found.file}; but DIFFERS beside it: {changed}, from what {lock}"
    names = f" (changed: {changed})" if changed else ""
    shown = "; the row is of the file as it is here" if found.row and not found.revision else ""
    return f"DIFFERS: {node.path} is not what {lock}{names}; what follows is of the latter{shown}"


_SOURCE = {
    "as locked": "as locked",
    "differs": "DIFFERS from what was read",
    "not here": "NOT HERE",
    "not compared": "size as locked",
}


def _differs(node: Node, *, itself: bool) -> list[str]:
    """Say in sentences what of a node is not here as it was when the row was made."""
    said = []
    if not itself and node.here.state == "differs":
        names = f" ({_some(list(node.here.changed))})" if node.here.changed else ""
        said.append(f"{node.path} is here in another version than was read{names}")
    if not itself and node.here.state == "not here" and node.kind != "folder":
        said.append(f"{node.path} is not here")
    if node.stage and node.code_differs:
        said.append(
            f"the code of {node.stage.name} is not as it was then: {_some(list(node.code_differs))}"
        )
    if node.stage and node.newest is None:
        said.append(f"{node.stage.lock} with {node.path} at {node.item.md5[:8]} is in no commit")
    return said
