"""The stages as the ``dvc.lock`` files have them: what made what, of what, with what parameters.

DVC's own API takes many seconds for the same.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import yaml

from plumbline.builders.core.errors import UserError
from plumbline.builders.core.params import yaml_of

LOCK = "dvc.lock"
PIPELINE = "dvc.yaml"
USED = Path(".dvc/tmp/rwlock")
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
    plain: frozenset[str] = frozenset()  # paths of outputs that DVC does not cache


def within(folder: str, path: str) -> str:
    """Return a path relative to a folder as one from the top, ``..`` resolved."""
    return PurePosixPath(os.path.normpath(PurePosixPath(folder) / path)).as_posix()


def entries(lock: str, text: str, pipeline: str) -> list[Stage]:
    """Return the stages of a lock.

    ``lock``: path of the file, from the top.
    ``text``: its content.
    ``pipeline``: the ``dvc.yaml`` beside it, which says at which folder the paths of a stage begin.
    """
    beside = PurePosixPath(lock).with_name(PIPELINE)
    written = _stages(pipeline, f"{beside}: not valid YAML; mend the indentation or quoting")
    found = []
    for name, tree in _stages(
        text, f"{lock}: not a lock that DVC wrote; `git checkout` it, or `make repro`"
    ).items():
        stage = written.get(name.partition("@")[0]) or {}
        wdir = str(stage.get("wdir") or (stage.get("do") or {}).get("wdir") or ".")
        folder = within(PurePosixPath(lock).parent.as_posix(), wdir)
        deps, outs = (
            tuple(
                Item(within(folder, i["path"]), i.get("md5", ""), i.get("size"), i.get("nfiles"))
                for i in tree.get(part) or ()
            )
            for part in ("deps", "outs")
        )
        parts = (tree.get("params") or {}).values()  # by the file that has them
        params = {key: value for part in parts for key, value in part.items()}
        options = [o for o in (stage.get("do") or stage).get("outs") or () if isinstance(o, dict)]
        plain = [path for o in options for path, how in o.items() if not how.get("cache", True)]
        own = frozenset(within(folder, path) for path in plain)
        found.append(Stage(name, lock, str(tree.get("cmd", "")), deps, params, outs, own))
    return found


def _stages(text: str, wrong: str) -> dict[str, Any]:
    try:
        return dict((yaml_of(text) or {}).get("stages") or {})
    except (yaml.YAMLError, AttributeError, TypeError, ValueError) as error:
        raise UserError(wrong) from error


def here() -> list[Stage]:
    """Return the stages of all locks in the working folder."""
    found = []
    for folder, inner, files in os.walk("."):
        inner[:] = sorted(d for d in inner if not d.startswith(".") and d not in ("data", "docs"))
        if LOCK in files:
            lock = Path(folder) / LOCK
            beside = lock.with_name(PIPELINE)
            pipeline = beside.read_text(encoding="utf-8") if beside.is_file() else ""
            text = lock.read_text(encoding="utf-8")
            if MARKS.search(text):
                raise UserError(f"{lock}: has the marks of a merge conflict; resolve it")
            found += entries(lock.as_posix(), text, pipeline)
    return found


def mend() -> list[Path]:
    """Put back the locks of which DVC, killed while it wrote one, has left a part; return them.

    What was made since is in DVC's cache of runs: `dvc repro` finds it there. Its list of what is
    in use, which it writes in place too, is removed where it is torn.
    """
    listed = subprocess.run(  # noqa: S603
        ["git", "ls-files", "-z", LOCK, f"*/{LOCK}"],  # noqa: S607
        check=False,
        capture_output=True,
        text=True,
    ).stdout
    torn = [lock for name in listed.split("\0") if name and not _sound(lock := Path(name))]
    for lock in torn:
        subprocess.run(["git", "checkout", "--quiet", "--", str(lock)], check=True)  # noqa: S603, S607
    return torn + _unused()


def _unused() -> list[Path]:
    """Remove the list of files in use, if it is torn and DVC does not write it now; return it."""
    from dvc.lock import LockError, make_lock

    if USED.is_file():
        with suppress(LockError), make_lock(f"{USED}.lock", tmp_dir=str(USED.parent)):
            try:
                json.loads(USED.read_text(encoding="utf-8"))
            except ValueError:
                USED.unlink()
                return [USED]
    return []


def _sound(lock: Path) -> bool:
    """Return whether DVC takes a lock, or only somebody can who solves a conflict in it."""
    from dvc.schema import COMPILED_LOCKFILE_SCHEMA as CHECK
    from voluptuous import Invalid

    if not lock.is_file():
        return True
    text = lock.read_text(encoding="utf-8", errors="replace")
    try:
        return MARKS.search(text) is not None or bool(CHECK(yaml_of(text)))
    except (yaml.YAMLError, Invalid):
        return False


if __name__ == "__main__":
    for torn in mend():
        done = "removed" if torn == USED else "put back as it is in git"
        print(f"{torn}: DVC was stopped while it wrote it; {done}")
