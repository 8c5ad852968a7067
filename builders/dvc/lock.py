"""The records of DVC: stages in ``dvc.lock`` files, and their outputs in the cache.

DVC's own API takes many seconds to read these.
"""

from __future__ import annotations

import configparser
import json
import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from plumbline.builders.core.errors import UserError
from plumbline.builders.core.params import yaml_of

LOCK = "dvc.lock"
PIPELINE = "dvc.yaml"
USED = Path(".dvc/tmp/rwlock")
HELD = Path(".dvc/tmp/lock")  # which DVC holds while it writes its files, but not during a stage
MARKS = re.compile(r"^(<{7}|>{7}) ", re.MULTILINE)  # markers of a merge conflict in git


@dataclass(frozen=True)
class Item:
    """An input or output of a stage."""

    path: str  # relative to the project's folder
    md5: str  # ends in ``.dir`` for a folder


@dataclass(frozen=True)
class Stage:
    """The record of the last run of a stage."""

    name: str
    lock: str  # path of the lock that records it
    deps: tuple[Item, ...]
    params: dict[str, Any]
    outs: tuple[Item, ...]
    cached: tuple[Item, ...]  # outputs that DVC caches


def here() -> list[Stage]:
    """Return the stages of all locks in the working folder, at most two folders deep.

    Raises UserError if a lock contains a merge conflict, or a file is not in DVC's format.
    """
    locks = (lock for level in ("", "*/", "*/*/") for lock in sorted(Path().glob(level + LOCK)))
    return [stage for lock in locks for stage in _stages(lock)]


def _stages(lock: Path) -> list[Stage]:
    written = _read(lock.with_name(PIPELINE))
    stages = []
    for name, tree in _read(lock).items():
        stage = written.get(name.partition("@")[0]) or {}
        stage = stage.get("do") or stage
        folder = lock.parent / str(stage.get("wdir") or ".")
        deps, outs = (items(folder, tree.get(part)) for part in ("deps", "outs"))
        params = {k: v for part in (tree.get("params") or {}).values() for k, v in part.items()}
        options = [out for out in stage.get("outs") or () if isinstance(out, dict)]
        plain = {p for out in options for p, how in out.items() if not how.get("cache", True)}
        others = {item.path for item in items(folder, [{"path": path} for path in plain])}
        cached = tuple(out for out in outs if out.path not in others)
        stages.append(Stage(name, lock.as_posix(), deps, params, outs, cached))
    return stages


def items(folder: Path, entries: list[dict[str, Any]] | None) -> tuple[Item, ...]:
    """Convert a list in DVC's format to items, whose paths are relative to the project's folder."""
    paths = [Path(os.path.normpath(folder / entry["path"])) for entry in entries or ()]
    return tuple(
        Item(path.as_posix(), str(entry.get("md5") or ""))
        for path, entry in zip(paths, entries or (), strict=True)
    )


def _read(path: Path) -> dict[str, Any]:
    """Return the stages in a lock or pipeline file, or none if the file is missing."""
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    if MARKS.search(text):
        raise UserError(f"{path}: contains a merge conflict; resolve it")
    try:
        return dict((yaml_of(text) or {}).get("stages") or {})
    except (yaml.YAMLError, AttributeError, TypeError, ValueError) as error:
        raise UserError(f"{path}: not in DVC's format; `git checkout` it") from error


def is_cached(item: Item, folder: Path | None = None) -> bool:
    """Return True if all files of an output are in a cache of DVC, by default the project's."""
    folder = (folder or cache_folder()) / "files" / "md5"
    path = folder / item.md5[:2] / item.md5[2:]
    if not item.md5 or not path.is_file():
        return False
    if not item.md5.endswith(".dir"):
        return True
    listed = (row["md5"] for row in json.loads(path.read_text(encoding="utf-8")))
    return all((folder / md5[:2] / md5[2:]).is_file() for md5 in listed)


def cache_folder() -> Path:
    """Return the folder that this project's configuration sets for DVC's cache."""
    where = Path(".dvc/cache")
    for path in (Path(".dvc/config"), Path(".dvc/config.local")):
        config = configparser.ConfigParser(strict=False, interpolation=None)
        config.read(path, encoding="utf-8")
        if named := config.get("cache", "dir", fallback=""):
            where = path.parent / named
    return where


def mend() -> list[Path]:
    """Restore the locks that DVC truncated when it was killed; return their paths.

    `dvc repro` restores the results of later runs from DVC's run cache. DVC's list of files in use,
    which it also writes in place, is removed if it is truncated. If another process of DVC holds
    DVC's lock, nothing is restored, since that process may be writing these files.
    """
    from dvc.lock import Lock, LockError

    HELD.parent.mkdir(parents=True, exist_ok=True)
    try:
        with Lock(str(HELD)):
            return _mend()
    except LockError:
        return []


def _mend() -> list[Path]:
    command = ["git", "ls-files", "-z", LOCK, f"*/{LOCK}"]
    listed = subprocess.run(command, check=False, capture_output=True, text=True).stdout  # noqa: S603
    torn = [lock for name in listed.split("\0") if name and not _sound(lock := Path(name))]
    for lock in torn:
        subprocess.run(["git", "checkout", "--quiet", "--", str(lock)], check=True)  # noqa: S603, S607
    try:
        json.loads(USED.read_text(encoding="utf-8") if USED.is_file() else "{}")
    except ValueError:
        USED.unlink()
        torn.append(USED)
    return torn


def _sound(lock: Path) -> bool:
    """Return True if DVC accepts a lock, or if the user must resolve a merge conflict in it."""
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
        done = "removed" if torn == USED else "restored from git"
        print(f"{torn}: truncated when DVC was stopped; {done}")
