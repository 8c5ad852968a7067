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
from typing import TYPE_CHECKING, Literal, NamedTuple

from plumbline.builders.dvc.lock import Item

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

IGNORE = Path(".dvcignore")
LARGE = 256 * 2**20  # bytes; more is compared by size and number of files alone

State = Literal["as locked", "differs", "not here", "not compared"]


class Here(NamedTuple):
    """What is in the working folder of a file or folder."""

    state: State
    changed: tuple[str, ...] = ()  # files that differ, where DVC's cache still lists them


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


def ignored(path: str) -> bool:
    """Return whether DVC leaves a file out of the folder that it is in."""
    return _spec(IGNORE.read_text(encoding="utf-8") if IGNORE.is_file() else "").match_file(path)


@cache
def _spec(text: str) -> GitIgnoreSpec:
    from pathspec import GitIgnoreSpec

    return GitIgnoreSpec.from_lines(text.splitlines())


def of_code(path: Path) -> str | None:
    """Return the hash that DVC has for a file or folder of code, or None if it is not there."""
    if not path.is_dir():
        return md5_of(path) if path.is_file() else None
    files = {name: p for name, p in _inside(path).items() if not ignored(p.as_posix())}
    return digest({name: md5_of(p) for name, p in files.items()})


@cache
def compare(item: Item) -> Here:
    """Compare what is in the working folder with a lock."""
    path = Path(item.path)
    if not path.exists():
        return Here("not here")
    if not path.is_dir():
        return Here("as locked" if md5_of(path) == item.md5 else "differs")
    if (item.size or 0) > LARGE:
        sizes = [p.stat().st_size for p in _inside(path).values()]
        same = (sum(sizes), len(sizes)) == (item.size, item.files)
        return Here("not compared" if same else "differs")
    files = listed(path)
    if digest(files) == item.md5:
        return Here("as locked")
    then = listing(item.md5) or files  # nothing is known to have changed where there is no list
    names = sorted({*files, *then})
    return Here("differs", tuple(n for n in names if files.get(n) != then.get(n)))


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


def files(item: Item) -> dict[str, Path] | None:
    """Return where the files of an output lie, by their paths in it, with just the bytes locked.

    Returned: from the working folder, or DVC's cache; None if neither has all of them. An output
    that is one file has it under the empty path.
    """
    path = Path(item.path)
    if compare(item).state in ("as locked", "not compared"):
        return _inside(path) if path.is_dir() else {"": path}
    return stored(item)


def stored(item: Item, folder: Path | None = None) -> dict[str, Path] | None:
    """Return where DVC's cache has the files of an output, by their paths in it: all, or None."""
    folder = folder or cache_folder()
    then = listing(item.md5, folder) if item.md5.endswith(".dir") else {"": item.md5}
    found = {name: cached(md5, folder) for name, md5 in (then or {}).items()}
    kept = {name: where for name, where in found.items() if where is not None}
    return kept if then is not None and len(kept) == len(found) else None
