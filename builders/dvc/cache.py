"""Bytes under ``data``: whether they are what a lock says, and where else they are kept.

DVC's cache has the files of every version that was made or pulled here, named by their md5.
"""

from __future__ import annotations

import configparser
import hashlib
import json
from functools import cache
from operator import itemgetter
from pathlib import Path
from typing import Literal

from plumbline.builders.dvc.lock import Item

LARGE = 256 * 2**20  # bytes; more is compared by size and number of files alone

State = Literal["as locked", "differs", "not here", "not compared"]


def md5_of(path: Path) -> str:
    """Return a file's md5."""
    with path.open("rb") as file:
        found = hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False))
    return found.hexdigest()


def _inside(folder: Path) -> dict[str, Path]:
    """Return the files in a folder by their paths in it, sorted."""
    found = {p.relative_to(folder).as_posix(): p for p in folder.rglob("*") if p.is_file()}
    return dict(sorted(found.items()))


def listed(folder: Path) -> dict[str, str]:
    """Return the md5 of every file in a folder, sorted as DVC sorts them."""
    return {name: md5_of(path) for name, path in _inside(folder).items()}


def digest(files: dict[str, str]) -> str:
    """Return the hash that DVC has for a folder: md5 over the sorted list of its files' md5."""
    rows = sorted(({"md5": m, "relpath": n} for n, m in files.items()), key=itemgetter("relpath"))
    text = json.dumps(rows, sort_keys=True).encode()
    return hashlib.md5(text, usedforsecurity=False).hexdigest() + ".dir"


@cache
def compare(item: Item) -> State:
    """Compare what is in the working folder with a lock."""
    path = Path(item.path)
    if not path.exists():
        return "not here"
    if not path.is_dir():
        return "as locked" if md5_of(path) == item.md5 else "differs"
    if (item.size or 0) > LARGE:
        sizes = [p.stat().st_size for p in _inside(path).values()]
        same = (sum(sizes), len(sizes)) == (item.size, item.files)
        return "not compared" if same else "differs"
    return "as locked" if digest(listed(path)) == item.md5 else "differs"


def listing(md5: str, folder: Path | None = None) -> dict[str, str] | None:
    """Return the files of a folder of that hash with their md5, if the cache has the list."""
    path = cached(md5, folder)
    if path is None:
        return None
    return {row["relpath"]: row["md5"] for row in json.loads(path.read_text(encoding="utf-8"))}


def cached(md5: str, folder: Path | None = None) -> Path | None:
    """Return where DVC's cache, by default the project's, has a file of that hash, or None."""
    path = (folder or cache_folder()) / "files" / "md5" / md5[:2] / md5[2:]
    return path if md5 and path.is_file() else None


def cache_folder() -> Path:
    """Return the folder of DVC's cache, as its config files of this project name it."""
    where = Path(".dvc/cache")
    for path in (Path(".dvc/config"), Path(".dvc/config.local")):
        config = configparser.ConfigParser(strict=False, interpolation=None)
        config.read(path, encoding="utf-8")
        if named := config.get("cache", "dir", fallback=""):
            where = path.parent / named
    return where


def stored(item: Item, folder: Path | None = None) -> dict[str, Path] | None:
    """Return where DVC's cache has the files of an output, by their paths in it: all, or None."""
    folder = folder or cache_folder()
    then = listing(item.md5, folder) if item.md5.endswith(".dir") else {"": item.md5}
    found = {name: cached(md5, folder) for name, md5 in (then or {}).items()}
    kept = {name: where for name, where in found.items() if where is not None}
    return kept if then is not None and len(kept) == len(found) else None
