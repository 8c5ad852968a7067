"""What git has of the locks: the stages and files of a commit."""

from __future__ import annotations

import subprocess
from pathlib import PurePosixPath

from plumbline.builders.core.errors import UserError
from plumbline.builders.dvc.lock import LOCK, PIPELINE, Stage, entries


def git(*arguments: str) -> bytes:
    """Run git and return its output.

    Raises UserError if git is not installed, or refuses.
    """
    try:
        done = subprocess.run(["git", *arguments], capture_output=True, check=False)  # noqa: S603, S607
    except FileNotFoundError as error:
        raise UserError("git: not found; install it, the commits are read with it") from error
    if done.returncode:
        reason = " ".join(done.stderr.decode(errors="replace").split())
        raise UserError(f"git {arguments[0]}: {reason or 'failed'}")
    return done.stdout


def resolve(revision: str) -> str | None:
    """Return the commit that a revision names, or None if it names none.

    Raises UserError if git is not installed.
    """
    try:
        name = f"{revision}^{{commit}}"
        return git("rev-parse", "--verify", "--quiet", "--end-of-options", name).decode().strip()
    except UserError as problem:
        if isinstance(problem.__cause__, FileNotFoundError):
            raise
        return None


def file_at(commit: str, path: str) -> bytes | None:
    """Return a file's bytes in a commit, or None."""
    try:
        return git("cat-file", "blob", f"{commit}:./{path}")
    except UserError:
        return None


def entries_at(commit: str) -> list[Stage]:
    """Return the stages of all locks in a commit."""
    found = []
    for path in git("ls-tree", "-r", "--name-only", "-z", commit).decode().split("\0"):
        if PurePosixPath(path).name == LOCK:
            pipeline = PurePosixPath(path).with_name(PIPELINE).as_posix()
            lock, stages = (file_at(commit, p) or b"" for p in (path, pipeline))
            found += entries(path, lock.decode(), stages.decode())
    return found
