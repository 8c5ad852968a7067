"""What git knows of the locks and of the code: which commits had a hash, and which the code."""

from __future__ import annotations

import hashlib
import subprocess
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import PurePosixPath
from typing import NamedTuple

from plumbline.builders.core.errors import UserError
from plumbline.builders.dvc.cache import digest, ignored
from plumbline.builders.dvc.lock import LOCK, PIPELINE, Stage, entries


class Commit(NamedTuple):
    """A commit."""

    id: str
    date: str  # of the committer, ISO 8601
    subject: str


@dataclass(frozen=True)
class History:
    """The commits behind a revision, newest first, with the locks that each had."""

    commits: list[Commit]
    shallow: bool  # a clone that was cut: earlier commits are not here
    locks: list[frozenset[tuple[str, str]]]  # of each: path and blob
    texts: dict[str, str]  # of blobs

    def has(self, lock: tuple[str, str], path: str, md5: str) -> bool:
        """Tell whether a stage of a lock wrote those very bytes."""
        # Where the paths of a lock begin its dvc.yaml says: reading that in every commit is slow,
        # and with the same hash a path that ends so is the same.
        text = self.texts[lock[1]]
        return md5 in text and _maker(_split(lock[0], text), path, md5) is not None


@cache
def _split(lock: str, text: str) -> list[Stage]:
    try:
        return entries(lock, text, "")
    except UserError:  # a lock of the past that was broken, and has been mended since
        return []


def _maker(found: Iterable[Stage], path: str, md5: str) -> Stage | None:
    """Return the stage of some that wrote those bytes."""
    for stage in found:
        if any(o.md5 == md5 and f"/{o.path}".endswith(f"/{path}") for o in stage.outs):
            return stage
    return None


def git(*arguments: str, send: bytes | None = None) -> bytes:
    """Run git and return what it says.

    Raises UserError if git is not there, or refuses.
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

    Raises UserError if it names none.
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
    listed = git("log", "--date-order", "--format=%H%x00%cI%x00%s", commit).decode()
    commits = [Commit(*line.split("\0")) for line in listed.splitlines()]
    shown = ("--full-history", "-m", "--name-only", "--relative", "--format=")
    changed = git("log", *shown, commit, "--", f"*{LOCK}").decode().splitlines()
    paths = {path for path in changed if _is_lock(path)}
    blobs = names((c.id, path) for c in commits for path in paths)
    locks: dict[str, set[tuple[str, str]]] = defaultdict(set)
    for (one, path), blob in blobs.items():
        locks[one].add((path, blob))
    texts = {blob: body.decode() for blob, body in contents(set(blobs.values())).items()}
    shallow = git("rev-parse", "--is-shallow-repository").strip() == b"true"
    return History(commits, shallow, [frozenset(locks[c.id]) for c in commits], texts)


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


def entries_at(commit: str) -> list[Stage]:
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
    known = {lock: history.has(lock, path, md5) for lock in set().union(*history.locks)}
    pairs = zip(history.commits, history.locks, strict=True)
    having = [commit for commit, locks in pairs if any(known[lock] for lock in locks)]
    return (having[-1], having[0]) if having else (None, None)


def maker(history: History, path: str, md5: str) -> Stage | None:
    """Return the stage that wrote those bytes, as the newest commit has it that knows them."""
    newest = locked(history, path, md5)[1]
    return _maker(entries_at(newest.id), path, md5) if newest else None


def code(history: History, stages: list[Stage]) -> dict[int, Commit | None]:
    """Return for each stage, by its place, the newest commit that has its code as it was locked."""
    return {place: _newest(history, stage) for place, stage in enumerate(stages)}


def _newest(history: History, stage: Stage) -> Commit | None:
    used = {dep.path: dep.md5 for dep in stage.deps if is_code(dep.path)}
    for part in (history.commits[:1], history.commits[1:]):  # mostly it is the first
        there = objects((c.id, path) for c in part for path in used)
        for c in part:
            found = {path: there.get((c.id, path), ("", "")) for path in used}
            if all(_hash(*found[path], path) == md5 for path, md5 in used.items()):
                return c
    return None


@cache
def _hash(kind: str, name: str, path: str) -> str:
    """Return the hash that DVC has for a blob or a tree at a path."""
    if kind != "tree":
        return _md5(contents({name})[name]) if kind else ""
    lines = git("ls-tree", "-r", "-z", name).decode().split("\0")
    listed = [line.split(maxsplit=3) for line in lines if line]
    blobs = {inside: blob for _, _, blob, inside in listed if not ignored(f"{path}/{inside}")}
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
