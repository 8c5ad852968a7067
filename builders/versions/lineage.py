"""Everything behind one output: stages, code, models, datasets and the snapshots that it ends at.

An edge is taken from what the stage had locked: where the output that it read has been made anew
since, the stage that made the older bytes is looked for in git.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import cache as cached
from pathlib import Path, PurePosixPath
from typing import Any

from plumbline.builders.core.errors import UserError
from plumbline.builders.core.params import yaml_of
from plumbline.builders.core.snapshot import MANIFEST
from plumbline.builders.dvc import cache, git
from plumbline.builders.dvc.git import Commit, History
from plumbline.builders.dvc.lock import Item, Stage

KINDS = {  # of what lies in a folder under data
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


class Graph:
    """Nodes by their key, found from one output on."""

    def __init__(self, past: History, entries: list[Stage]) -> None:
        self.past, self.entries, self.nodes = past, entries, dict[str, Node]()
        self._outs = {out.path: (entry, out) for entry in entries for out in entry.outs}

    def owner(self, path: str) -> Item | None:
        """Return the output that a path is, or lies in."""
        found = (p.as_posix() for p in (PurePosixPath(path), *PurePosixPath(path).parents))
        return next((self._outs[p][1] for p in found if p in self._outs), None)

    def inside(self, path: str) -> list[Item]:
        """Return the outputs that lie in a folder."""
        return [out for inner, (_, out) in self._outs.items() if inner.startswith(f"{path}/")]

    def add(self, item: Item) -> str:
        """Add what a path with a hash stands for, and all that is behind it; return its key."""
        owner = self.owner(item.path)
        if owner is not None and owner.path != item.path and key(item) not in self.nodes:
            return self.add(owner)
        if key(item) not in self.nodes:
            node = Node(item.path, kind(item.path), item, cache.compare(item))
            self.nodes[node.key] = node
            if owner is not None:
                self._made(node)
            elif inside := self.inside(item.path):
                node.kind = "folder"
                node.inputs = [self.add(out) for out in sorted(inside, key=_order)]
            else:
                self._source(node)
        return key(item)

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
        node.facts = facts(node, node.stage)
        if node.facts.get("origin") not in ("hub", "endpoint"):
            node.inputs = [self.add(item) for item in sorted(read(node, node.stage), key=_order)]

    def _source(self, node: Node) -> None:
        """Fill in a snapshot's manifest."""
        top = self.past.commits[0]
        node.newest = git.last_change(top.id, node.path)
        found = manifest(node.item, top)
        if found is None:
            parts = sorted(p.parent for p in Path(node.path).glob(f"*/{MANIFEST}"))
            if parts:
                node.kind, node.inputs = "folder", [self.add(here(part)) for part in parts]
            else:
                node.note = "no stage makes it, and it has no manifest"
        elif "world" in found:
            node.kind = "model"
            node.facts = {key: found[key] for key in ("id", "revision", "manifest")}
            node.facts |= {"planted": found["world"], "origin": "planted"}
            node.facts |= {SEED: found["parameters"].get(SEED)}
        else:
            node.kind, node.facts = "snapshot", found


def read(node: Node, stage: Stage) -> list[Item]:
    """Return the data that a node was made of: what its stage read, less what was for others.

    A stage that writes the same of several models or datasets reads those of all; of a folder of
    planted models each output is made of the one of its name.
    """

    def name(item: Item) -> str:
        return PurePosixPath(item.path).name.removesuffix(".json")

    found, own = [], name(node.item)
    others = {name(out) for out in stage.outs} - {own}
    for dep in stage.deps:
        one = Path(dep.path) / own
        if git.is_code(dep.path) or name(dep) in others:
            continue
        of_all = (one / MANIFEST).is_file() and cache.compare(dep).state == "as locked"
        found.append(here(one) if of_all else dep)
    return found


def here(folder: Path) -> Item:
    """Return a folder as it is here."""
    files = cache.listed(folder)
    return Item(folder.as_posix(), cache.digest(files), None, len(files))


def code(graph: Graph) -> None:
    """Fill in, for every stage, the commit that has its code, and what differs here."""
    made = [(node, node.stage) for node in graph.nodes.values() if node.stage]
    found = git.code(graph.past, [stage for _, stage in made])
    now = cached(lambda path: cache.of_code(Path(path)))
    for i, (node, stage) in enumerate(made):
        own = (dep for dep in stage.deps if git.is_code(dep.path))
        node.code = found[i]
        node.code_differs = tuple(dep.path for dep in own if now(dep.path) != dep.md5)


def kind(path: str) -> str:
    """Return what lies at a path, by where it lies."""
    parts = PurePosixPath(path).parts
    return KINDS.get(parts[1], "file") if len(parts) > 2 or parts[-1] == "report" else "folder"


def _order(item: Item) -> tuple[int, str]:
    """Sort outputs and tables first: the shortest way from a row to its model."""
    of = kind(item.path)
    return (ORDER.index(of) if of in ORDER else len(ORDER), item.path)


def facts(node: Node, stage: Stage) -> dict[str, Any]:
    """Return what is to be known of an output besides its stage: version, revision, verdict."""
    stated = version(stage)
    found: dict[str, Any] = {} if stated is None else {"version": stated}
    if node.kind == "validation":
        return found | _json(node, "", ("dataset", "success", "warnings", "fingerprint"))
    if node.kind != "model":
        return found
    params = stage.params.get(f"models.{PurePosixPath(node.path).name}") or {}
    found |= {"id": params.get("id"), "revision": params.get("revision")}
    found |= _json(node, POINTER, ("id", "revision"))
    if seeds := {k: v[SEED] for k, v in params.items() if isinstance(v, dict) and SEED in v}:
        found["planted"], found[SEED] = seeds.popitem()
    away = "hub" if params.get("id") else "endpoint" if params.get("endpoint") else ""
    return found | {"origin": away or "made here"}


def version(stage: Stage) -> str | None:
    """Return the version that a stage's parameters give to what it makes."""
    names = set(stage.name.split("@"))
    for section, value in stage.params.items():
        last = section.split(".")[-1]
        if isinstance(value, dict) and "version" in value and last in names:
            return str(value["version"])
        if last == "version":
            return str(value)
    return None


def _json(node: Node, name: str, keys: tuple[str, ...]) -> dict[str, Any]:
    """Return some keys of a JSON file of an output, if just the locked bytes are to be had."""
    path = (cache.files(node.item) or {}).get(name)
    tree = json.loads(path.read_text(encoding="utf-8")) if path else {}
    return {k: tree[k] for k in keys if k in tree}


def manifest(item: Item, top: Commit) -> dict[str, Any] | None:
    """Return a snapshot's manifest: from its folder, DVC's cache, git, or its ``.dvc`` file.

    The last has the address, date and licence, but not the query nor the hashes of files.
    """
    whence, pointer = f"{item.path}/{MANIFEST}", f"{item.path}.dvc"
    inside = (cache.files(item) or {}).get(MANIFEST)
    text = inside.read_bytes() if inside else git.file_at(top.id, whence)
    if inside is None:
        whence = f"commit {top.id[:8]}, {whence}"
    if text is not None:
        try:
            return dict(json.loads(text)) | {"manifest": whence}
        except ValueError as error:
            raise UserError(
                f"{whence}: not valid JSON; `git checkout` or `dvc checkout` it"
            ) from error
    known = git.file_at(top.id, pointer)
    tree = yaml_of(known) if known is not None else {}
    outs = tree.get("outs") or [{}]
    if not tree.get("meta") or outs[0].get("md5") != item.md5:
        return None
    return dict(tree["meta"]) | {"manifest": f"commit {top.id[:8]}, {pointer}"}
