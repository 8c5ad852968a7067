"""Everything behind one output: stages, code, models, datasets and the snapshots that it ends at.

An edge is taken from what the stage had locked: where the output that it read has been made anew
since, the stage that made the older bytes is looked for in git.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from plumbline.builders.core.errors import UserError
from plumbline.builders.core.snapshot import MANIFEST
from plumbline.builders.core.yaml_text import parse
from plumbline.builders.dvc import cache, git
from plumbline.builders.dvc.lock import Item

if TYPE_CHECKING:
    from plumbline.builders.dvc.git import Commit, History
    from plumbline.builders.dvc.lock import Stage

KINDS = {
    "tables": "tables",
    "outputs": "outputs",
    "pretrained": "checkpoints",
    "models": "model",
    "datasets": "dataset",
    "validation": "validation",
    "report": "report",
    "raw": "snapshot",
    "samples": "snapshot",
}
ORDER = ("tables", "outputs", "folder", "checkpoints", "model", "dataset", "validation")
POINTER = "model.json"  # of a model: its id, revision and files
SEED = "seed"


@dataclass
class Node:
    """An output, a snapshot, or a folder that holds several outputs."""

    path: str
    kind: str
    item: Item
    here: cache.Here
    stage: Stage | None = None
    first: Commit | None = None  # the first commit whose lock had these bytes
    newest: Commit | None = None  # and the newest
    code: Commit | None = None  # the newest commit that has the stage's code as locked
    code_differs: tuple[str, ...] = ()  # files that are not here as locked
    inputs: list[str] = field(default_factory=list)  # paths with hashes: keys of the nodes
    facts: dict[str, Any] = field(default_factory=dict)
    note: str = ""  # what is not known, in a sentence

    @property
    def key(self) -> str:
        """What names a node: the same path may stand for two versions."""
        return key(self.item)


def key(item: Item) -> str:
    """Return a path with the first digits of its hash."""
    return f"{item.path}@{item.md5[:8]}"


@dataclass
class Graph:
    """Nodes by their key, found from one output on."""

    past: History
    entries: list[Stage]
    nodes: dict[str, Node] = field(default_factory=dict)
    _outs: dict[str, tuple[Stage, Item]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """List which stage writes what."""
        self._outs = {out.path: (entry, out) for entry in self.entries for out in entry.outs}

    def owner(self, path: str) -> Item | None:
        """Return the output that a path is, or lies in."""
        found = (p.as_posix() for p in (PurePosixPath(path), *PurePosixPath(path).parents))
        return next((self._outs[p][1] for p in found if p in self._outs), None)

    def add(self, item: Item) -> str:
        """Add what a path with a hash stands for, and all that is behind it; return its key."""
        if key(item) in self.nodes:
            return key(item)
        owner = self.owner(item.path)
        inside = [out for path, (_, out) in self._outs.items() if path.startswith(f"{item.path}/")]
        if owner is not None and owner.path != item.path:
            return self.add(owner)
        node = Node(item.path, kind(item.path), item, cache.compare(item))
        self.nodes[node.key] = node
        if owner is not None:
            self._made(node)
        elif inside:
            node.kind = "folder"
            node.inputs = [self.add(out) for out in sorted(inside, key=_order)]
        else:
            self._source(node)
        return node.key

    def _made(self, node: Node) -> None:
        """Fill in the stage that made the bytes of a node, and what it read."""
        entry: Stage | None
        entry, out = self._outs[node.path]
        if out.md5 != node.item.md5:
            entry = git.maker(self.past, node.path, node.item.md5)
            node.note = "made anew since: this is the older version that was read"
        if entry is None:
            node.note = "no lock, here or in git, has the version that was read: run `make repro`"
            return
        node.stage = entry
        node.first, node.newest = git.locked(self.past, node.path, node.item.md5)
        node.facts = facts(node)
        if node.facts.get("origin") not in ("hub", "endpoint"):
            node.inputs = [self.add(item) for item in sorted(_read(node), key=_order)]

    def _source(self, node: Node) -> None:
        """Fill in a snapshot's manifest."""
        top = self.past.commits[0]
        node.newest = git.last_change(top.id, node.path)
        if (found := manifest(node.item, top)) is None:
            parts = sorted(p.parent for p in Path(node.path).glob(f"*/{MANIFEST}"))
            node.kind = "folder" if parts else node.kind
            node.note = "" if parts else "no stage makes it, and it has no manifest"
            node.inputs = [self.add(here(part)) for part in parts]
        elif "world" in found:
            node.kind = "model"
            node.facts = {key: found[key] for key in ("id", "revision", "manifest")}
            node.facts |= {"planted": found["world"], "origin": "planted"}
            node.facts |= {SEED: found["parameters"].get(SEED)}
        else:
            node.kind = "snapshot"
            node.facts = found


def _read(node: Node) -> list[Item]:
    """Return the data that a node was made of: what its stage read, less what was for others.

    A stage that writes the same of several models or datasets reads those of all; of a folder of
    planted models each output is made of the one of its name.
    """
    assert node.stage
    own = PurePosixPath(node.path).name.removesuffix(".json")
    others = {PurePosixPath(o.path).name.removesuffix(".json") for o in node.stage.outs} - {own}
    found = []
    for dep in (d for d in node.stage.deps if not git.is_code(d.path)):
        one = Path(dep.path) / own
        if PurePosixPath(dep.path).name.removesuffix(".json") in others:
            continue
        if (one / MANIFEST).is_file() and cache.compare(dep).state == "as locked":
            found.append(here(one))
        else:
            found.append(dep)
    return found


def here(folder: Path) -> Item:
    """Return a folder as it is here."""
    files = cache.listed(folder)
    return Item(folder.as_posix(), cache.digest(files), None, len(files))


def code(graph: Graph) -> None:
    """Fill in, for every stage, the commit that has its code, and what differs here."""
    made = [node for node in graph.nodes.values() if node.stage]
    stages = [node.stage for node in made if node.stage]
    known: dict[str, str | None] = {}
    found = git.code(graph.past, stages)
    for i, (node, stage) in enumerate(zip(made, stages, strict=True)):
        node.code = found[i]
        differs = []
        for dep in (d for d in stage.deps if git.is_code(d.path)):
            if dep.path not in known:
                known[dep.path] = cache.of_code(Path(dep.path))
            if known[dep.path] != dep.md5:
                differs.append(dep.path)
        node.code_differs = tuple(differs)


def kind(path: str) -> str:
    """Return what lies at a path, by where it lies."""
    parts = PurePosixPath(path).parts
    return KINDS.get(parts[1], "file") if len(parts) > 2 or parts[-1] == "report" else "folder"


def _order(item: Item) -> tuple[int, str]:
    """Sort outputs and tables first: the shortest way from a row to its model."""
    of = kind(item.path)
    return (ORDER.index(of) if of in ORDER else len(ORDER), item.path)


def facts(node: Node) -> dict[str, Any]:
    """Return what is to be known of an output besides its stage: version, revision, verdict."""
    assert node.stage
    found: dict[str, Any] = {}
    if (stated := version(node.stage)) is not None:
        found["version"] = stated
    if node.kind == "model":
        found |= _model(node)
    elif node.kind == "validation":
        found |= _json(node, "", ("dataset", "success", "warnings", "fingerprint"))
    return found


def version(stage: Stage) -> str | None:
    """Return the version that a stage's parameters give to what it makes."""
    names = set(stage.name.split("@"))
    for section, value in stage.params.items():
        *_, last = section.split(".")
        if isinstance(value, dict) and "version" in value and last in names:
            return str(value["version"])
        if last == "version":
            return str(value)
    return None


def _model(node: Node) -> dict[str, Any]:
    assert node.stage
    name = PurePosixPath(node.path).name
    params = node.stage.params.get(f"models.{name}") or {}
    seeds = {k: v[SEED] for k, v in params.items() if isinstance(v, dict) and SEED in v}
    found: dict[str, Any] = {"id": params.get("id"), "revision": params.get("revision")}
    found |= _json(node, POINTER, ("id", "revision"))
    if seeds:
        found["planted"], found[SEED] = seeds.popitem()
    if params.get("id"):
        found["origin"] = "hub"
    else:
        found["origin"] = "endpoint" if params.get("endpoint") else "made here"
    return found


def _json(node: Node, name: str, keys: tuple[str, ...]) -> dict[str, Any]:
    """Return some keys of a JSON file of an output, if just the locked bytes are to be had."""
    path = (cache.files(node.item) or {}).get(name)
    if path is None:
        return {}
    tree = json.loads(path.read_text(encoding="utf-8"))
    return {k: tree[k] for k in keys if k in tree}


def manifest(item: Item, top: Commit) -> dict[str, Any] | None:
    """Return a snapshot's manifest: from its folder, DVC's cache, git, or its ``.dvc`` file.

    The last has the address, date and licence, but not the query nor the hashes of files.
    """
    inside = (cache.files(item) or {}).get(MANIFEST)
    there = f"{item.path}/{MANIFEST}"
    if inside is not None:
        text: bytes | None = inside.read_bytes()
        whence = there
    else:
        text = git.file_at(top.id, there)
        whence = f"commit {top.id[:8]}, {there}"
    if text is not None:
        try:
            return dict(json.loads(text)) | {"manifest": whence}
        except ValueError as error:
            raise UserError(
                f"{whence}: not valid JSON; `git checkout` or `dvc checkout` it"
            ) from error
    pointer = f"{item.path}.dvc"
    known = git.file_at(top.id, pointer)
    if known is None:
        return None
    tree = parse(known)
    outs = tree.get("outs") or [{}]
    if not tree.get("meta") or outs[0].get("md5") != item.md5:
        return None
    return dict(tree["meta"]) | {"manifest": f"commit {top.id[:8]}, {pointer}"}
