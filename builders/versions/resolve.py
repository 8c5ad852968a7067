"""Versions of a folder under data/: as it is now, at a commit, on the Hub, or anywhere on disk.

A commit is read from its dvc.lock files and the DVC cache, in a seventh of the time that DVC takes
for it; DVC itself is used only for what the cache lacks, where a remote may have it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from plumbline.builders.core.errors import UserError
from plumbline.builders.core.params import yaml_of
from plumbline.builders.dvc import cache, git
from plumbline.builders.dvc.lock import Item
from plumbline.builders.release import hub

WORKSPACE = "workspace"
ON_HUB = re.compile(r"(?P<repo>[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*)@(?P<revision>[\w./-]+)")


@dataclass(frozen=True)
class Version:
    """One version of a folder, and where its files can be read."""

    named: str  # as the user named it
    described: str  # what that is
    files: dict[str, Path]  # by path inside the folder


def find(named: str, folder: Path, scratch: Path) -> Version:
    """Return a version of a folder.

    ``named``: ``workspace``, ``OWNER/NAME@REVISION`` on the Hub, anything git knows, or a folder; a
    folder that git could take for a commit is written with ``./`` before it.
    ``folder``: under data/, as it is called in the project.
    ``scratch``: an empty folder for what has to be fetched from a DVC remote.

    Raises UserError if there is no such version, or it does not have the folder, or cannot be read.
    """
    at, commit = Path(named).expanduser(), None
    if named == WORKSPACE:
        described, at = "as it is now", folder
        if not folder.is_dir():
            raise UserError(f"{folder}: not in the workspace; `make repro` or `dvc pull` it first")
    elif there := ON_HUB.fullmatch(named):
        at = hub.fetch(there["repo"], there["revision"], os.environ.get("HF_TOKEN") or None)
        described = f"on the Hub, commit {at.name[:10]}"
    elif not named.startswith((".", "/", "~")) and (commit := git.resolve(named)):
        described = f"commit {commit[:10]}"
    elif at.is_dir():
        described = "a folder"
    else:
        raise UserError(
            f"{named}: no such version; name `{WORKSPACE}`, a commit, tag or branch of git, "
            "OWNER/NAME@TAG on the Hub, or a folder"
        )
    if commit:
        files = _locked(commit, named, folder, scratch)
    else:
        found = {p.relative_to(at).as_posix(): p for p in at.rglob("*") if p.is_file()}
        files = {k: p for k, p in found.items() if not any(x[0] == "." for x in k.split("/"))}
    if not any(inside.endswith(".parquet") for inside in files):
        raise UserError(f"{named}: no parquet file there; only folders of rows can be compared")
    return Version(named, described, files)


def _locked(commit: str, named: str, folder: Path, scratch: Path) -> dict[str, Path]:
    """Return the files that a commit's locks name for a folder, from the cache or a remote."""
    outs = list(_outs(commit, folder))
    if not outs:
        raise UserError(
            f"{folder}: in no dvc.lock of {named} ({commit[:10]}); it was not made there, or has "
            "another name"
        )
    files: dict[str, Path] = {}
    for out in outs:
        stored = cache.stored(out)
        if stored is None:
            return _fetched(commit, named, folder, scratch)
        for inside, path in stored.items():
            where = Path(out.path) / inside
            if where.is_relative_to(folder):
                files[where.relative_to(folder).as_posix()] = path
    return files


def _outs(commit: str, folder: Path) -> Iterator[Item]:
    """Yield the outputs of stages, and what was added by hand, that are or hold the folder."""
    for entry in git.entries_at(commit):
        for out in entry.outs:
            if folder.is_relative_to(out.path) or Path(out.path).is_relative_to(folder):
                yield out
    for parent in (folder, *folder.parents):
        pointer = git.file_at(commit, f"{parent.as_posix()}.dvc") if parent.name else None
        for out in (yaml_of(pointer) or {}).get("outs") or () if pointer else ():
            yield Item(parent.as_posix(), str(out.get("md5") or ""))


def _fetched(commit: str, named: str, folder: Path, scratch: Path) -> dict[str, Path]:
    """Fetch what the cache lacks from the remote into the scratch folder."""
    from dvc.api import DVCFileSystem
    from dvc.config import Config

    into, remote = scratch / commit, None
    try:
        # The remotes of now: those in the configuration of that commit may be gone, or not yet be.
        config = Config.from_cwd()
        remotes = dict(config.get("remote") or {})
        remote = (config.get("core") or {}).get("remote") or next(iter(remotes), None)
        now: dict[str, Any] = {"core": {"remote": remote}, "remote": remotes}
        DVCFileSystem(rev=commit, config=now).get(folder.as_posix(), str(into), recursive=True)
    except Exception as error:  # DVC, its remotes and their clients raise errors of many families
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        where = f"its remote {remote} gives" if remote else "any remote has"
        raise UserError(
            f"{folder}: neither the DVC cache nor {where} it as it was at {named} ({reason}); `git "
            f"checkout {named}` and `dvc fetch {folder}` where a remote can be reached"
        ) from error
    return {p.relative_to(into).as_posix(): p for p in into.rglob("*") if p.is_file()}
