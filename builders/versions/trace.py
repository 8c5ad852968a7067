"""Tracing a row of any table, outputs or dataset back to the snapshots that it was made of.

Everything is read from the locks, from git, from the cards and from the snapshots' manifests. A
file that came from elsewhere can be traced once :func:`start` knows the output and its hash.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import Any

from plumbline.builders.core.errors import UserError
from plumbline.builders.core.snapshot import MANIFEST
from plumbline.builders.dvc import cache, git
from plumbline.builders.dvc import lock as locks
from plumbline.builders.dvc.git import Commit
from plumbline.builders.dvc.lock import Item
from plumbline.builders.versions import cards, lineage
from plumbline.builders.versions.cards import Matches, Row
from plumbline.builders.versions.lineage import Graph, Node

NAMED = 6  # files in a message
ROWS = ("tables", "outputs", "dataset")  # what rows are counted in
THROUGH = ("tables", "outputs")  # and are followed through: training texts are not behind a row
SOURCE = {  # what is said first of a snapshot
    "as locked": "as locked",
    "differs": "DIFFERS from what was read",
    "not here": "NOT HERE",
    "not compared": "size as locked",
}


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

    @property
    def node(self) -> Node:
        """The output that the file is of."""
        return self.nodes[self.output]

    @property
    def inside(self) -> str:
        """The path of the file in its output; of the output itself it is empty."""
        path = self.node.path
        return "" if self.file == path else PurePosixPath(self.file).relative_to(path).as_posix()

    def files(self) -> dict[str, Path] | None:
        """Return the files of the output: as they are here, or for a revision as locked."""
        base = Path(self.node.path)
        if self.revision is not None or not base.exists():
            return cache.files(self.node.item)
        if base.is_file():
            return {"": base}
        return {p.relative_to(base).as_posix(): p for p in sorted(base.rglob("*")) if p.is_file()}


def trace(named: str, revision: str | None = None) -> Trace:
    """Trace ``FILE``, ``FILE#ROW`` or ``FILE#column=value``.

    ``revision``: a commit whose locks are read; without it those of the working folder.

    Raises UserError if there is no git, the file is not there, no stage makes it, or it has no such
    row.
    """
    path, _, selector = named.partition("#")
    whole = os.path.relpath(path) if Path(path).is_absolute() else os.path.normpath(path)
    if not path or whole.startswith(".."):
        raise UserError(f"{path or '#'}: not a file of this project; name one from its top folder")
    file = PurePosixPath(whole).as_posix()  # as the locks write it
    past = git.read(git.resolve(revision or "HEAD"))
    graph = lineage.Graph(past, git.entries_at(past.commits[0].id) if revision else locks.here())
    item = start(file, graph, revision)
    found = Trace(file, graph.add(item), graph.nodes, past.commits[0], revision, past.shallow)
    lineage.code(graph)
    inside, files = found.inside, found.files() if found.inside or selector else None
    if inside and files is not None and not any(f"{n}/".startswith(f"{inside}/") for n in files):
        raise UserError(f"{file}: no such file; {found.node.path} has {_some(files)}")
    if selector:
        _row(found, files, selector)
        _count(found, found.row.names if found.row else {})
    found.headline = _headline(found)
    found.differs = [s for n in found.nodes.values() for s in _differs(n, itself=n is found.node)]
    return found


def as_json(found: Trace) -> dict[str, Any]:
    """Return a trace as plain values."""
    tree = asdict(replace(found, nodes={}))
    nodes = []
    for node in found.nodes.values():
        tuples = {name: getattr(node, name) for name in ("here", "first", "newest", "code")}
        plain = {name: value._asdict() if value else None for name, value in tuples.items()}
        nodes.append(asdict(node) | {"key": node.key} | plain)
    return tree | {"nodes": nodes, "top": found.top._asdict()}


def start(file: str, graph: Graph, revision: str | None) -> Item:
    """Return the output that a file is of, or the snapshot.

    Raises UserError if it is neither.
    """
    owner = graph.owner(file)
    if owner is not None:
        return owner
    if graph.inside(file):
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


def _row(found: Trace, files: dict[str, Path] | None, selector: str) -> None:
    """Read the selected row."""
    inside = found.inside
    if files is None:
        raise UserError(
            f"{found.file}: its bytes are not here, so no row can be read; `dvc checkout` or "
            "`dvc pull` them, or leave out the row"
        )
    tables = [name for name in files if PurePosixPath(name).suffix == ".parquet"]
    if inside not in files and len(tables) == 1:
        inside = tables[0]
        found.file = f"{found.node.path}/{inside}"
    if inside not in files:
        raise UserError(f"{found.file}: which file? a row is in one of {_some(tables)}")
    if PurePosixPath(inside).suffix != ".parquet":
        raise UserError(f"{found.file}: has no rows; leave out what follows #, or name a .parquet")
    found.row = cards.row(files[inside], inside, cards.read(files), selector)


def _some(listed: Iterable[str]) -> str:
    names = list(listed)
    shown = names if len(names) <= NAMED else [*names[:NAMED], f"{len(names) - NAMED} more"]
    return ", ".join(shown) or "none"


def _count(found: Trace, names: dict[str, Any]) -> None:
    """Count rows that share the row's name in all that is behind it but what made the models."""
    todo = list(found.node.inputs) if found.node.kind in THROUGH else []
    while todo:
        of = found.nodes[todo.pop()]
        if of.kind == "folder":
            todo += of.inputs
        if of.key in found.matches or of.kind not in ROWS:
            continue
        small = (of.item.size or 0) <= cache.LARGE
        files = cache.files(of.item) if small and names else None
        found.matches[of.key] = cards.matches(files, names) if files else []
        todo += of.inputs if of.kind in THROUGH else []


def _headline(found: Trace) -> str:
    """Say first whether what is traced is what the lock has."""
    node, (state, differing) = found.node, found.node.here
    if node.stage is None:
        return f"{SOURCE[state]}: {found.file}, a {node.kind} that no stage makes"
    where = f"commit {found.top.id[:8]}" if found.revision else "the working folder"
    lock = f"{node.stage.lock} of {where} has for {node.stage.name} (md5 {node.item.md5[:8]})"
    if state == "as locked":
        return f"as locked: {found.file} is what {lock}"
    if state == "not compared":
        return f"size as locked: {node.path} is large, its bytes were not compared with what {lock}"
    if state == "not here":
        return f"NOT HERE: {node.path} is missing; what follows is of what {lock}"
    changed = _some(differing) if differing else ""
    if changed and found.inside and found.inside not in differing:
        return f"as locked: {found.file}; but DIFFERS beside it: {changed}, from what {lock}"
    names = f" (changed: {changed})" if changed else ""
    shown = "; the row is of the file as it is here" if found.row and not found.revision else ""
    return f"DIFFERS: {node.path} is not what {lock}{names}; what follows is of the latter{shown}"


def _differs(node: Node, *, itself: bool) -> Iterator[str]:
    """Say in sentences what of a node is not here as it was when the row was made."""
    if not itself and node.here.state == "differs":
        names = f" ({_some(node.here.changed)})" if node.here.changed else ""
        yield f"{node.path} is here in another version than was read{names}"
    if not itself and node.here.state == "not here" and node.kind != "folder":
        yield f"{node.path} is not here"
    if node.stage and node.code_differs:
        names = _some(node.code_differs)
        yield f"the code of {node.stage.name} is not as it was then: {names}"
    if node.stage and node.newest is None:
        yield f"{node.stage.lock} with {node.path} at {node.item.md5[:8]} is in no commit"
