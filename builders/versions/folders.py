"""Versions of a folder of parquet files, and their configs, with keys and labels.

Keys and labels are read from ``build.json``; without it, each parquet file is treated as a
config without a key.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import polars as pl

from plumbline.builders.core import front_matter
from plumbline.builders.core.errors import UserError
from plumbline.builders.core.parquet import REJECTS
from plumbline.builders.release import hub

WORKSPACE = "workspace"
ON_HUB = re.compile(r"(?P<repo>[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*)@(?P<revision>[\w./-]+)")


@dataclass(frozen=True)
class Version:
    """One version of a folder, and the paths of its files."""

    named: str  # name given by the user
    described: str  # description for the report
    files: dict[str, Path]  # by path relative to the folder


def find_version(named: str, folder: Path, scratch: Path) -> Version:
    """Return a version of a folder.

    ``named``: ``workspace``, ``OWNER/NAME@REVISION`` on the Hub, a git revision, or a folder; a
    folder with the name of a revision needs the prefix ``./``.
    ``folder``: the folder under data/ in the project.
    ``scratch``: an empty folder, to which the files of a commit are copied.

    Raises UserError if the version does not exist, lacks the folder, or cannot be read.
    """
    root = Path(named).expanduser()
    if named == WORKSPACE:
        described, root = "as it is now", folder
        if not folder.is_dir():
            raise UserError(f"{folder}: not in the workspace; run `make repro` or `dvc pull`")
    elif match := ON_HUB.fullmatch(named):
        root = hub.fetch(match["repo"], match["revision"], os.environ.get("HF_TOKEN") or None)
        described = f"on the Hub, commit {root.name[:10]}"
    elif not named.startswith((".", "/", "~")) and (commit := _commit_of(named)):
        described, root = f"commit {commit[:10]}", _get_from_dvc(commit, named, folder, scratch)
    elif root.is_dir():
        described = "a folder"
    else:
        raise UserError(
            f"{named}: no such version; name `{WORKSPACE}`, a commit, tag or branch of git, "
            "OWNER/NAME@TAG on the Hub, or a folder"
        )
    paths = {p.relative_to(root).as_posix(): p for p in root.rglob("*") if p.is_file()}
    files = {k: p for k, p in paths.items() if not any(x[0] == "." for x in k.split("/"))}
    if not any(inside.endswith(".parquet") for inside in files):
        raise UserError(f"{named}: no parquet files; only folders of rows can be compared")
    return Version(named, described, files)


def _commit_of(revision: str) -> str:
    """Return the commit of a revision, or "" if it does not exist or git is not installed."""
    command = ["git", "rev-parse", "--verify", "--quiet", "--end-of-options"]
    try:
        done = subprocess.run(  # noqa: S603
            [*command, f"{revision}^{{commit}}"], capture_output=True, text=True, check=False
        )
    except FileNotFoundError:
        return ""
    return done.stdout.strip()


def _get_from_dvc(commit: str, named: str, folder: Path, scratch: Path) -> Path:
    """Copy a folder, as of a commit, from DVC's cache or remote into the scratch folder."""
    from dvc.api import DVCFileSystem
    from dvc.config import Config as Configuration

    into, remote = scratch / commit, None
    try:
        # Use the current remotes, since those configured in that commit may not exist.
        config = Configuration.from_cwd()
        remotes = dict(config.get("remote") or {})
        remote = (config.get("core") or {}).get("remote") or next(iter(remotes), None)
        now: dict[str, Any] = {"core": {"remote": remote}, "remote": remotes} if remote else {}
        DVCFileSystem(rev=commit, config=now).get(folder.as_posix(), str(into), recursive=True)
    except Exception as error:  # DVC and the clients of remotes raise errors of many classes
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        where = f"the remote {remote} contains" if remote else "any remote contains"
        raise UserError(
            f"{folder}: neither the DVC cache nor {where} its files at {named} ({reason}); run "
            f"`git checkout {named}` and `dvc fetch {folder}` where a remote can be reached"
        ) from error
    return into


@dataclass(frozen=True)
class Config:
    """The files of one config, and facts from its schema."""

    paths: list[Path]
    key: tuple[str, ...] = ()
    names: tuple[str, ...] = ()  # columns shown next to the key
    labels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # by column

    def read(self) -> tuple[pl.DataFrame, dict[str, str]]:
        """Return all rows, with labels in place of their codes, and the type of each column."""
        try:
            frame = pl.concat(pl.read_parquet(path, glob=False) for path in self.paths)
        except (OSError, pl.exceptions.PolarsError) as error:
            reason = " ".join(str(error).split())[:150]
            raise UserError(
                f"{self.paths[0]}: cannot be read as parquet ({reason}); make or fetch it again"
            ) from error
        types = {name: str(kind).lower() for name, kind in frame.schema.items()}
        for name, labels in self.labels.items():
            if frame.schema.get(name, pl.String()).is_integer():
                types[name] = f"label: {', '.join(labels)}"
                texts, codes = dict(enumerate(labels)), pl.col(name)
                unknown = codes.cast(pl.String)
                frame = frame.with_columns(codes.replace_strict(texts, default=unknown))
        return frame, types


def read_configs(files: Mapping[str, Path]) -> tuple[dict[str, Config], str | None]:
    """Return the configs of a folder, by name, and the version that the folder states.

    ``files``: path of each file, by path relative to the folder.
    """
    data = {inside: path for inside, path in files.items() if inside.endswith(".parquet")}
    data.pop(REJECTS, None)
    configs: dict[str, Config] = {}
    if front_matter.FACTS not in files:
        for inside, path in sorted(data.items()):
            name = inside.split("/")[0].removesuffix(".parquet")
            configs.setdefault(name, Config([])).paths.append(path)
        return configs, None
    built = front_matter.read(files[front_matter.FACTS])
    for name, schema in sorted(built.schemas.items()):
        pattern = built.files.format(config=name)
        if paths := [data[inside] for inside in sorted(data) if fnmatch(inside, pattern)]:
            labels = {c.name: c.labels for c in schema.columns if c.labels}
            shown = tuple(c.name for c in schema.columns if c.role == "label")
            configs[name] = Config(paths, schema.key, shown, labels)
    return configs, built.origin.version
