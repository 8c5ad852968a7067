"""The provenance of a file or a row: hashes, commands, dates and queries of all builds behind it.

Every parquet file states the path and sha256 of each of its inputs (``core.parquet``), as do the
inputs themselves, back to snapshots and models. Other facts are read from the ``build.json`` of a
folder, the manifest of a snapshot or model, and the ``dvc.lock`` of a stage.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import yaml

from plumbline.builders.core import front_matter, parquet
from plumbline.builders.core.errors import UserError
from plumbline.builders.core.parquet import inputs_of
from plumbline.builders.core.snapshot import MANIFEST, digest
from plumbline.builders.dvc.lock import Stage, here
from plumbline.builders.versions.folders import read_configs

SHORT = 100  # maximum number of characters of a value in the text
SHOWN = 5  # maximum number of rows or files listed in a message
MODEL = "model.json"  # file that records id, revision and files of a model from the Hub
BUILD_STATES = ("version", "command", "sources")
SOURCE_STATES = (
    *("source", "address", "retrieved", "licence", "citation", "request"),  # snapshots
    *("id", "revision", "world", "parameters", "files"),  # models
)
COUNTED = ("sources", "code", "files")  # only counted in the text; the JSON lists them

State = Literal["unchanged", "changed", "missing"]


@dataclass(frozen=True)
class Node:
    """A folder, snapshot or model in the chain of inputs."""

    path: str
    sha256: str  # when it was read as an input; for the traced folder, the current hash
    state: State  # the current bytes, compared with ``sha256``
    facts: dict[str, Any]
    inputs: dict[str, str]  # sha256 by path


@dataclass(frozen=True)
class Trace:
    """The provenance of a file, and optionally of one of its rows."""

    file: str
    row: dict[str, Any] | None  # its number and its columns, with labels in place of codes
    nodes: list[Node]  # the file's folder, then its inputs


def trace(named: str) -> Trace:
    """Trace a file or row, named ``FILE``, ``FILE#ROW`` or ``FILE#column=value``.

    Raises UserError if the file is missing, belongs to no build or snapshot, or has no such row.
    """
    path, _, selector = named.partition("#")
    file = Path(os.path.relpath(path) if Path(path).is_absolute() else os.path.normpath(path))
    if not file.exists():
        raise UserError(f"{file}: no such file; name one that `make repro` has made")
    folder = next((p for p in (file, *file.parents) if _facts_file(p)), None)
    if folder is None:
        raise UserError(f"{file}: not in a folder that contains {front_matter.FACTS} or {MANIFEST}")
    row = read_row(folder, file, selector) if selector else None
    nodes: dict[tuple[str, str], Node] = {}
    stages = {out.path: stage for stage in here() for out in stage.outs}
    todo = [(folder.as_posix(), fingerprint(folder))]
    while todo:
        key = todo.pop(0)
        if key not in nodes:
            nodes[key] = read_node(*key, stages)
            todo += nodes[key].inputs.items()
    return Trace(file.as_posix(), row, list(nodes.values()))


def read_node(path: str, sha256: str, stages: Mapping[str, Stage]) -> Node:
    """Return an input with all facts that are recorded about it.

    ``sha256``: its hash when it was read as an input.
    ``stages``: the stages in the locks, by path of their outputs.
    """
    folder = Path(path).parent if Path(path).name in (MANIFEST, MODEL) else Path(path)
    facts, inputs = dict[str, Any](), dict[str, str]()
    facts_path, pointer = _facts_file(folder), Path(f"{folder}.dvc")
    if facts_path:
        facts = json.loads(facts_path.read_text(encoding="utf-8"))
    elif pointer.is_file():  # a snapshot that DVC has not checked out
        facts = dict(yaml.safe_load(pointer.read_text(encoding="utf-8")).get("meta") or {})
    built = facts_path is not None and facts_path.name == front_matter.FACTS
    if built:
        for file in sorted(folder.rglob("*.parquet")):
            with suppress(UserError):  # the file states no inputs
                inputs |= inputs_of(file)
    elif facts_path:  # worlds (control models) list their datasets
        inputs = {f"data/datasets/{k}": v for k, v in (facts.get("datasets") or {}).items()}
    else:  # a folder that contains several builds
        parts = sorted(path.parent for path in folder.glob(f"*/{front_matter.FACTS}"))
        inputs = {part.as_posix(): fingerprint(part) for part in parts}
    facts = {k: facts[k] for k in (BUILD_STATES if built else SOURCE_STATES) if k in facts}
    above = (p.as_posix() for p in (folder, *folder.parents))
    if stage := next((stages[p] for p in above if p in stages), None):
        code = {dep.path: dep.md5 for dep in stage.deps if not dep.path.startswith("data/")}
        facts |= {"stage": f"{stage.name} of {stage.lock}", "params": stage.params, "code": code}
        if not inputs:
            data = (Path(dep.path) for dep in stage.deps if dep.path.startswith("data/"))
            stating = (dep for dep in data if _facts_file(dep) or not dep.exists())
            inputs = {dep.as_posix(): fingerprint(dep) for dep in stating}
    current = fingerprint(Path(path))
    report = parquet.VALIDATION / f"{folder.name}.json"
    if folder.parent == parquet.DATASETS and report.is_file():
        checked = json.loads(report.read_text(encoding="utf-8"))
        valid = checked["success"] and checked["fingerprint"] == current
        facts["validation"] = "valid" if valid else "not valid for these bytes"
    state: State = "changed" if current != sha256 else "unchanged"
    return Node(path, sha256, state if current else "missing", facts, inputs)


def _facts_file(folder: Path) -> Path | None:
    """Return the file that contains the facts of a folder, or None."""
    files = (folder / name for name in (front_matter.FACTS, MANIFEST, MODEL))
    return next((path for path in files if path.is_file()), None)


def fingerprint(path: Path) -> str:
    """Return the sha256 of a file or folder that is an input, or "" if it is missing."""
    if path.is_file():
        return digest(path)
    facts_path = _facts_file(path)
    if facts_path and facts_path.name != front_matter.FACTS:
        return digest(facts_path)
    return parquet.fingerprint(path) if path.is_dir() else ""


def read_row(folder: Path, file: Path, selector: str) -> dict[str, Any]:
    """Return a row, selected by its number (from 0) or by ``column=value`` pairs joined by commas.

    Raises UserError unless exactly one row matches.
    """
    files = {p.relative_to(folder).as_posix(): p for p in folder.rglob("*") if p.is_file()}
    configs = {path: config for config in read_configs(files)[0].values() for path in config.paths}
    if file not in configs and len(configs) == 1:
        file = next(iter(configs))
    if file not in configs:
        names = ", ".join(path.relative_to(folder).as_posix() for path in [*configs][:SHOWN])
        raise UserError(f"{file}: not a file of rows; available: {names or 'none'}")
    config = configs[file]
    config.paths[:] = [file]
    frame, _ = config.read()
    if selector.removeprefix("-").isdecimal():
        numbers = [int(selector)] if 0 <= int(selector) < len(frame) else []
    else:
        values = dict(part.partition("=")[::2] for part in selector.split(","))
        if unknown := sorted({*values} - {*frame.columns}):
            columns = ", ".join(frame.columns)
            raise UserError(f"{file}: no column {unknown[0]!r}; its columns are {columns}")
        rows = enumerate(frame.select(*values).iter_rows())
        numbers = [i for i, row in rows if [*map(str, row)] == [*values.values()]]
    if len(numbers) != 1:
        shown = f" ({', '.join(map(str, numbers[:SHOWN]))}); name more columns" if numbers else ""
        raise UserError(f"{file}: {selector} matches {len(numbers)} of {len(frame)} rows{shown}")
    return {"number": numbers[0]} | frame.row(numbers[0], named=True)


def as_json(traced: Trace) -> str:
    """Serialise a trace as JSON, with every hash, parameter, query and file."""
    return json.dumps(asdict(traced), ensure_ascii=False, indent=1, default=str)


def as_text(traced: Trace) -> Iterator[str]:
    """Yield the lines of a trace: each node, then its inputs; details are shown only once."""
    nodes = {(node.path, node.sha256): node for node in traced.nodes}
    yield traced.file
    for column, value in (traced.row or {}).items():
        yield f"  {column}: {_short(value)}"
    seen: set[tuple[str, str]] = set()

    def walk(key: tuple[str, str], indent: str) -> Iterator[str]:
        node = nodes[key]
        head = f"{indent}{node.path} [{node.sha256[:16]}]"
        head += "" if node.state == "unchanged" else f", {node.state.upper()}"
        if key in seen:
            yield f"{head}, see above"
            return
        seen.add(key)
        yield head
        for name, value in node.facts.items():
            if name in COUNTED:
                yield f"{indent}  {name}: {len(value)}"
            elif isinstance(value, dict):
                yield from (f"{indent}  {name}: {k}: {_short(v)}" for k, v in value.items())
            else:
                yield f"{indent}  {name}: {_short(value)}"
        for inner in node.inputs.items():
            yield from walk(inner, f"{indent}    ")

    first = traced.nodes[0]
    yield from walk((first.path, first.sha256), "")


def _short(value: Any) -> str:
    """Return a value on one line, truncated to :data:`SHORT`."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    line = " ".join(text.split())
    return line if len(line) <= SHORT else f"{line[: SHORT - 1]}…"
