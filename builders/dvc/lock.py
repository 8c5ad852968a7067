"""The stages as the ``dvc.lock`` files have them: what made what, of what, with what parameters.

DVC's own API takes many seconds for the same. A lock is split into stages, and only those that
matter are parsed: YAML takes longer than everything else here.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any

import yaml

from plumbline.builders.core.errors import UserError
from plumbline.builders.core.yaml_text import parse

LOCK = "dvc.lock"
PIPELINE = "dvc.yaml"
NAME = re.compile(r"^  (?! )(?P<name>.+):\n", re.MULTILINE)  # of a stage, as DVC writes it
MARKS = re.compile(r"^(<{7}|>{7}) ", re.MULTILINE)  # of git, in a conflict


@dataclass(frozen=True)
class Item:
    """A file or folder that a stage read or wrote."""

    path: str  # from the top of the project
    md5: str  # of a folder it ends in ``.dir``
    size: int | None = None  # bytes
    files: int | None = None  # of a folder


@dataclass(frozen=True)
class Stage:
    """A stage as it ran last."""

    name: str
    lock: str  # the file that says so
    command: str
    deps: tuple[Item, ...]
    params: dict[str, Any]
    outs: tuple[Item, ...]


@dataclass(frozen=True)
class Entry:
    """The text of one stage in a lock."""

    name: str
    lock: str
    text: str
    folder: str  # that the paths in it begin at

    @cached_property
    def outs(self) -> tuple[Item, ...]:
        """What the stage writes."""
        return self._items("outs")

    def stage(self) -> Stage:
        """Return the whole stage."""
        params: dict[str, Any] = {}
        for part in (self._tree.get("params") or {}).values():
            params |= part
        command = str(self._tree.get("cmd", ""))
        return Stage(self.name, self.lock, command, self._items("deps"), params, self.outs)

    @cached_property
    def _tree(self) -> dict[str, Any]:
        try:
            return dict(next(iter(parse(self.text).values())))
        except yaml.YAMLError as error:
            raise UserError(
                f"{self.lock}, stage {self.name}: not valid YAML; `git checkout` the file"
            ) from error

    def _items(self, part: str) -> tuple[Item, ...]:
        return tuple(
            Item(within(self.folder, i["path"]), i.get("md5", ""), i.get("size"), i.get("nfiles"))
            for i in self._tree.get(part) or ()
        )


def within(folder: str, path: str) -> str:
    """Return a path relative to a folder as one from the top, ``..`` resolved."""
    return PurePosixPath(os.path.normpath(PurePosixPath(folder) / path)).as_posix()


def entries(lock: str, text: str, pipeline: str) -> list[Entry]:
    """Split a lock into its stages.

    Parameters
    ----------
    lock
        Path of the file, from the top.
    text
        Its content.
    pipeline
        The ``dvc.yaml`` beside it, which says at which folder the paths of a stage begin.
    """
    head, _, body = text.partition("stages:\n")
    if head.strip() and not head.startswith("schema:"):
        raise UserError(f"{lock}: not a lock that DVC wrote; `git checkout` it, or `make repro`")
    folders = _folders(lock, pipeline)
    starts = list(NAME.finditer(body))
    ends = [m.start() for m in starts[1:]] + [len(body)]
    here = PurePosixPath(lock).parent.as_posix()
    found = []
    for match, end in zip(starts, ends, strict=True):
        name = match["name"].strip("'\"")
        folder = within(here, folders.get(name.partition("@")[0], "."))
        found.append(Entry(name, lock, body[match.start() : end], folder))
    return found


def _folders(lock: str, pipeline: str) -> dict[str, str]:
    """Return the ``wdir`` of each stage of a ``dvc.yaml``."""
    try:
        tree = parse(pipeline)
    except yaml.YAMLError as error:
        beside = PurePosixPath(lock).with_name(PIPELINE)
        raise UserError(f"{beside}: not valid YAML; mend the indentation or quoting") from error
    stages = (tree or {}).get("stages") or {}
    return {
        name: str(entry.get("wdir") or (entry.get("do") or {}).get("wdir") or ".")
        for name, entry in stages.items()
    }


def here(*, needed: bool = True) -> list[Entry]:
    """Return the stages of all locks in the working folder.

    Raises
    ------
    UserError
        If there is none, and one is needed.
    """
    found = []
    for folder, inner, files in os.walk("."):
        inner[:] = sorted(d for d in inner if not d.startswith(".") and d not in ("data", "docs"))
        if LOCK in files:
            lock = Path(folder) / LOCK
            beside = lock.with_name(PIPELINE)
            pipeline = beside.read_text(encoding="utf-8") if beside.is_file() else ""
            text = lock.read_text(encoding="utf-8")
            if MARKS.search(text):
                raise UserError(f"{lock}: has the marks of a merge conflict; solve it, then trace")
            found += entries(lock.as_posix(), text, pipeline)
    if needed and not found:
        raise UserError(
            f"{Path.cwd()}: no {LOCK} here; run the command in the project's top folder, after "
            "`make repro`"
        )
    return found
