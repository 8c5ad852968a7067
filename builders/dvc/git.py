"""What git knows of the locks and of the code: which commits had a hash, and which the code."""

from __future__ import annotations

import hashlib
import subprocess
from dataclasses import dataclass, field
from functools import cache
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, NamedTuple

from plumbline.builders.core.errors import UserError
from plumbline.builders.dvc.cache import digest, ignored
from plumbline.builders.dvc.lock import LOCK, PIPELINE, Entry, Item, Stage, entries

if TYPE_CHECKING:
    from collections.abc import Iterable


class Commit(NamedTuple):
    """A commit."""

    id: str
    date: str  # of the committer, ISO 8601
    subject: str


@dataclass
class History:
    """The commits behind a revision, newest first, with the locks that each had."""

    commits: list[Commit]
    shallow: bool  # a clone that was cut: earlier commits are not here
    locks: list[frozenset[tuple[str, str]]]  # of each: path and blob
    texts: dict[str, str]  # of blobs
    split: dict[tuple[str, str], list[Entry]] = field(default_factory=dict)

    def entries(self, lock: tuple[str, str]) -> list[Entry]:
        """Return the stages of one state of one lock."""
        if lock not in self.split:
            path, blob = lock
            self.split[lock] = entries(path, self.texts[blob], "")
        return self.split[lock]

    def has(self, lock: tuple[str, str], path: str, md5: str) -> Entry | None:
        """Return the stage of a lock that wrote those very bytes, or None."""
        if md5 not in self.texts[lock[1]]:
            return None
        # Where the paths of a lock begin its dvc.yaml says: reading that in every commit is slow,
        # and with the same hash a path that ends so is the same.
        made = (e for e in self.entries(lock) if md5 in e.text)
        return next((e for e in made if any(_is(out, path, md5) for out in e.outs)), None)


def _is(out: Item, path: str, md5: str) -> bool:
    return out.md5 == md5 and (out.path == path or out.path.endswith(f"/{path}"))


def git(*arguments: str, send: bytes | None = None) -> bytes:
    """Run git and return what it says.

    Raises
    ------
    UserError
        If git is not there, or refuses.
    """
    try:
        done = subprocess.run(  # noqa: S603
            ["git", *arguments],  # noqa: S607
            input=send,
            capture_output=True,
            check=False,
        )
    except FileNotFoundError as error:
        raise UserError("git: not found; install it, the commits are read with it") from error
    if done.returncode:
        said = done.stderr.decode(errors="replace")
        if "not a git repository" in said:
            raise UserError(
                "no git repository here, and so no commits to trace to; run the command in a clone"
            )
        raise UserError(f"git {arguments[0]}: {' '.join(said.split())}")
    return done.stdout


def resolve(revision: str) -> str:
    """Return the commit that a revision names.

    Raises
    ------
    UserError
        If it names none.
    """
    try:
        name = f"{revision}^{{commit}}"
        return git("rev-parse", "--verify", "--quiet", "--end-of-options", name).decode().strip()
    except UserError as problem:
        if "no git" in str(problem) or "not found" in str(problem):
            raise
        hint = "commit the dvc.lock files first" if revision == "HEAD" else "`git log` lists them"
        raise UserError(f"{revision}: no such commit here; {hint}") from problem


def read(commit: str) -> History:
    """Read the history behind a commit."""
    listed = git("log", "--date-order", "--format=%H%x00%cI%x00%s%x00%P", commit).decode()
    lines = [line.split("\0") for line in listed.splitlines()]
    commits = [Commit(*line[:3]) for line in lines]
    parents = {line[0]: line[3].split() for line in lines}
    changed, paths = _changed(commit)
    # A commit that changed no lock has those of its parent; only the others are looked into.
    looked = [c.id for c in commits if c.id in changed or len(parents[c.id]) != 1]
    looked += [c.id for c in commits if parents[c.id] and parents[c.id][0] not in parents]
    blobs = names((c, path) for c in looked for path in sorted(paths))
    has: dict[str, frozenset[tuple[str, str]]] = {}
    for c in looked:
        has[c] = frozenset((path, blobs[c, path]) for path in paths if (c, path) in blobs)
    for one in reversed(commits):
        if one.id not in has:
            has[one.id] = has[parents[one.id][0]]
    texts = {blob: body.decode() for blob, body in contents(set(blobs.values())).items()}
    shallow = git("rev-parse", "--is-shallow-repository").strip() == b"true"
    return History(commits, shallow, [has[c.id] for c in commits], texts)


def _changed(commit: str) -> tuple[set[str], set[str]]:
    """Return the commits that changed a lock, and the paths of all locks that there were."""
    shown = ("--full-history", "-m", "--name-only", "--relative", "--format=%x00%H")
    said = git("log", *shown, commit, "--", f"*{LOCK}").decode()
    lines = [line for line in said.splitlines() if line]
    commits = {line[1:] for line in lines if line.startswith("\0")}
    return commits, {line for line in lines if _is_lock(line)}


def objects(places: Iterable[tuple[str, str]]) -> dict[tuple[str, str], tuple[str, str]]:
    """Return kind (blob or tree) and name of what is at paths in commits, where anything is."""
    keys = list(dict.fromkeys(places))
    lines = "".join(f"{commit}:./{path}\n" for commit, path in keys).encode()
    said = git("cat-file", "--batch-check=%(objecttype) %(objectname)", send=lines).decode()
    found = {key: line.split() for key, line in zip(keys, said.splitlines(), strict=True)}
    return {key: (line[0], line[1]) for key, line in found.items() if line[0] in ("blob", "tree")}


def names(places: Iterable[tuple[str, str]]) -> dict[tuple[str, str], str]:
    """Return the names of the blobs at paths in commits, of those that are there."""
    return {key: name for key, (kind, name) in objects(places).items() if kind == "blob"}


def contents(blobs: set[str]) -> dict[str, bytes]:
    """Return the contents of blobs."""
    order = sorted(blobs)
    said = git("cat-file", "--batch", send="".join(f"{b}\n" for b in order).encode())
    found, at = {}, 0
    for blob in order:
        end = said.index(b"\n", at)
        size = int(said[at:end].split()[2])
        found[blob] = said[end + 1 : end + 1 + size]
        at = end + 1 + size + 1
    return found


def file_at(commit: str, path: str) -> bytes | None:
    """Return a file's bytes in a commit, or None."""
    blob = names([(commit, path)])
    return contents(set(blob.values())).popitem()[1] if blob else None


def entries_at(commit: str) -> list[Entry]:
    """Return the stages of all locks in a commit."""
    listed = git("ls-tree", "-r", "--name-only", "-z", commit).decode().split("\0")
    beside = {p: PurePosixPath(p).with_name(PIPELINE).as_posix() for p in listed if _is_lock(p)}
    blobs = names((commit, path) for pair in beside.items() for path in pair)
    texts = contents(set(blobs.values()))
    found = []
    for path, pipeline in beside.items():
        bodies = (texts.get(blobs.get((commit, p), ""), b"").decode() for p in (path, pipeline))
        found += entries(path, *bodies)
    return found


def _is_lock(path: str) -> bool:
    return PurePosixPath(path).name == LOCK


def locked(history: History, path: str, md5: str) -> tuple[Commit | None, Commit | None]:
    """Return the first commit whose lock had those bytes as an output, and the newest one."""
    known: dict[tuple[str, str], bool] = {}

    def has(locks: frozenset[tuple[str, str]]) -> bool:
        for lock in locks - known.keys():
            known[lock] = history.has(lock, path, md5) is not None
        return any(known[lock] for lock in locks)

    pairs = list(zip(history.commits, history.locks, strict=True))
    newest = next((c for c, locks in pairs if has(locks)), None)
    first = next((c for c, locks in reversed(pairs) if has(locks)), None)
    return first, newest


def maker(history: History, path: str, md5: str) -> Entry | None:
    """Return the stage that wrote those bytes, as the newest commit has it that knows them."""
    for place, locks in enumerate(history.locks):
        if any(history.has(lock, path, md5) for lock in locks):
            made = (e for e in entries_at(history.commits[place].id) if md5 in e.text)
            return next(e for e in made if any(_is(out, path, md5) for out in e.outs))
    return None


def code(history: History, stages: list[Stage]) -> dict[int, Commit | None]:
    """Return for each stage, by its place, the newest commit that has its code as it was locked."""
    found: dict[int, Commit | None] = {}
    for i, stage in enumerate(stages):
        used = {dep.path: dep.md5 for dep in stage.deps if is_code(dep.path)}
        for part in (history.commits[:1], history.commits[1:]):  # mostly it is the first
            there = objects((c.id, path) for c in part for path in used)
            same = (
                c
                for c in part
                if all(_hash(there.get((c.id, path)), path) == md5 for path, md5 in used.items())
            )
            found[i] = next(same, None)
            if found[i]:
                break
    return found


def _hash(there: tuple[str, str] | None, path: str) -> str:
    """Return the hash that DVC has for a file or folder in a commit."""
    return _hashed(*there, path) if there else ""


@cache
def _hashed(kind: str, name: str, path: str) -> str:
    if kind == "blob":
        return _md5(contents({name})[name])
    lines = git("ls-tree", "-r", "-z", name).decode().split("\0")
    entries = [line.split(maxsplit=3) for line in lines if line]
    blobs = {inside: blob for _, _, blob, inside in entries if not ignored(f"{path}/{inside}")}
    bodies = contents(set(blobs.values()))
    return digest({inside: _md5(bodies[blob]) for inside, blob in blobs.items()})


def _md5(body: bytes) -> str:
    return hashlib.md5(body, usedforsecurity=False).hexdigest()


def is_code(path: str) -> bool:
    """Return whether a dependency is part of the project itself: code, a page, no data."""
    return not path.startswith("data/")


def last_change(commit: str, path: str) -> Commit | None:
    """Return the newest commit that changed something at a path, or None where git has nothing."""
    said = git("log", "-1", "--format=%H%x00%cI%x00%s", commit, "--", path).decode().rstrip("\n")
    return Commit(*said.split("\0")) if said else None
