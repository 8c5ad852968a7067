"""Versions of a folder under data/: as it is now, at a commit, on the Hub, or anywhere on disk.

A commit is read from its dvc.lock files and the DVC cache, in a seventh of the time that DVC takes
for it; DVC itself is asked only for what the cache lacks, where a remote may have it.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from plumbline.builders.core.errors import Problem
from plumbline.builders.core.front_matter import CARD
from plumbline.builders.core.yaml_text import parse
from plumbline.builders.release import hub

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

WORKSPACE = "workspace"
ON_HUB = re.compile(r"(?P<repo>[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*)@(?P<revision>[\w./-]+)")
STATED = re.compile(r"^Version (\S+); sha256", re.MULTILINE)
PARQUET = ".parquet"


@dataclass(frozen=True)
class Version:
    """One version of a folder: its card, and where each of its parquet files can be read."""

    named: str  # as the user named it
    told: str  # what that is
    files: dict[str, Path]  # by path inside the folder
    card: str = ""  # its text

    @property
    def stated(self) -> str | None:
        """The version that the card states."""
        found = STATED.search(self.card)
        return found[1] if found else None


def find(named: str, folder: Path, scratch: Path) -> Version:
    """Return a version of a folder.

    Parameters
    ----------
    named
        ``workspace``, ``OWNER/NAME@REVISION`` on the Hub, anything git knows, or a folder; a folder
        that git could take for a commit is written with ``./`` before it.
    folder
        Under data/, as it is called in the project.
    scratch
        An empty folder for what has to be brought from a DVC remote.

    Raises
    ------
    Problem
        If there is no such version, or it does not have the folder, or cannot be read.
    """
    if named == WORKSPACE:
        if not folder.is_dir():
            raise Problem(f"{folder}: not in the workspace; `make repro` or `dvc pull` it first")
        return _on_disk(named, "as it is now", folder)
    there = ON_HUB.fullmatch(named)
    if there:
        at = hub.fetch(there["repo"], there["revision"], os.environ.get("HF_TOKEN") or None)
        return _on_disk(named, f"on the Hub, commit {at.name[:10]}", at)
    path = Path(named).expanduser()
    commit = None if named.startswith((".", "/", "~")) else _commit(named)
    if commit:
        files = _locked(commit, named, folder, scratch)
        return _version(named, f"commit {commit[:10]}", files)
    if not path.is_dir():
        raise Problem(
            f"{named}: no such version; name `{WORKSPACE}`, a commit, tag or branch of git, "
            "OWNER/NAME@TAG on the Hub, or a folder"
        )
    return _on_disk(named, "a folder", path)


def _on_disk(named: str, told: str, folder: Path) -> Version:
    found = {p.relative_to(folder).as_posix(): p for p in folder.rglob("*") if p.is_file()}
    files = {k: p for k, p in found.items() if not any(x[0] == "." for x in k.split("/"))}
    return _version(named, told, files)


def _version(named: str, told: str, files: dict[str, Path]) -> Version:
    data = {name: path for name, path in sorted(files.items()) if name.endswith(PARQUET)}
    if not data:
        raise Problem(f"{named}: no parquet file there; only folders of rows can be compared")
    card = files[CARD].read_text(encoding="utf-8") if CARD in files else ""
    return Version(named, told, data, card)


def _git(*arguments: str) -> str | None:
    """Return what git says, or nothing if it does not know."""
    command = ["git", *arguments]
    try:
        done = subprocess.run(command, check=False, capture_output=True)  # noqa: S603
    except FileNotFoundError as error:
        raise Problem("git: not installed; install it, or name folders to compare") from error
    return done.stdout.decode("utf-8", "replace") if done.returncode == 0 else None


def _commit(named: str) -> str | None:
    asked = ("rev-parse", "--verify", "--quiet", "--end-of-options", f"{named}^{{commit}}")
    return (_git(*asked) or "").strip() or None


def _locked(commit: str, named: str, folder: Path, scratch: Path) -> dict[str, Path]:
    """Return the files that a commit's locks name for a folder, from the cache or a remote."""
    outs = list(_outs(commit, folder))
    if not outs:
        raise Problem(
            f"{folder}: in no dvc.lock of {named} ({commit[:10]}); it was not made there, or has "
            "another name"
        )
    cache, remote = _storage()
    wanted: dict[str, Path] = {}
    for out in outs:
        listed = _listed(cache, out)
        if listed is None:
            return _brought(commit, named, folder, scratch, remote)
        for path, md5 in listed:
            if path.is_relative_to(folder) and path.suffix in (PARQUET, ".md"):
                wanted[path.relative_to(folder).as_posix()] = _cached(cache, md5)
    if not all(path.is_file() for path in wanted.values()):
        return _brought(commit, named, folder, scratch, remote)
    return wanted


def _outs(commit: str, folder: Path) -> Iterator[dict[str, Any]]:
    """Yield the outputs of stages, and what was added by hand, that are or hold the folder."""
    tree = (_git("ls-tree", "-r", "--name-only", "-z", commit) or "").split("\0")
    above = {p.as_posix() for p in (folder, *folder.parents)}
    for path in (p for p in tree if p.rpartition("/")[2] == "dvc.lock" or p.endswith(".dvc")):
        added = path.endswith(".dvc")
        if added and path.removesuffix(".dvc") not in above:
            continue
        text = _git("show", f"{commit}:./{path}") or ""
        if (
            not added
            and f"path: {folder}" not in text
            and not any(f"path: {part}\n" in text for part in above)
        ):
            continue  # to parse a lock takes longer than to read it
        found = parse(text)
        stages = [found] if added else (found.get("stages") or {}).values()
        for out in (out for stage in stages for out in stage.get("outs") or ()):
            where = Path(path).parent / out["path"] if added else Path(out["path"])
            if folder.is_relative_to(where) or where.is_relative_to(folder):
                yield out | {"path": where.as_posix()}
                if folder.is_relative_to(where):
                    return  # an output is that of one stage: no other lock has more of it


def _listed(cache: Path, out: dict[str, Any]) -> Iterable[tuple[Path, str]] | None:
    """Return paths and hashes of the files of an output; None if the cache does not know them."""
    where, md5 = Path(out["path"]), str(out.get("md5") or "")
    if not md5.endswith(".dir"):
        return [(where, md5)]
    path = _cached(cache, md5)
    if not path.is_file():
        return None
    entries = json.loads(path.read_text(encoding="utf-8"))
    return [(where / entry["relpath"], entry["md5"]) for entry in entries]


def _cached(cache: Path, md5: str) -> Path:
    return cache / "files" / "md5" / md5[:2] / md5[2:]


def _storage() -> tuple[Path, dict[str, Any]]:
    """Return DVC's cache, and its remotes as they are configured now: empty if there is none."""
    from dvc.config import Config, ConfigError
    from dvc.exceptions import NotDvcRepoError

    try:
        config = Config.from_cwd()
    except (ConfigError, NotDvcRepoError) as error:
        raise Problem(f"DVC cannot be used here ({_said(error)}); mend .dvc/config") from error
    remotes = config.get("remote") or {}
    named = (config.get("core") or {}).get("remote") or next(iter(remotes), None)
    cache = Path((config.get("cache") or {}).get("dir") or ".dvc/cache")
    return cache, {"core": {"remote": named}, "remote": dict(remotes)} if named else {}


def _brought(
    commit: str, named: str, folder: Path, scratch: Path, remote: dict[str, Any]
) -> dict[str, Path]:
    """Bring what the cache lacks from the remote into the scratch folder."""
    if not remote:
        raise Problem(
            f"{folder}: the DVC cache lacks it as it was at {named} ({commit[:10]}), and DVC has "
            f"no remote; add one, or `git checkout {named}` and `dvc fetch {folder}` where one is"
        )
    from dvc.api import DVCFileSystem

    into = scratch / commit
    try:
        # The remotes of now: those in the configuration of that commit may be gone, or not yet be.
        there = DVCFileSystem(rev=commit, config=remote)
        there.get(folder.as_posix(), into.as_posix(), recursive=True)
    except Exception as error:  # DVC, its remotes and their clients raise errors of many families
        raise Problem(
            f"{folder}: neither the DVC cache nor its remote {remote['core']['remote']} gives it "
            f"as it was at {named} ({_said(error)}); `git checkout {named}` and `dvc fetch "
            f"{folder}` where it can be reached"
        ) from error
    return {p.relative_to(into).as_posix(): p for p in into.rglob("*") if p.is_file()}


def _said(error: Exception) -> str:
    return " ".join(str(error).split())[:200] or type(error).__name__
