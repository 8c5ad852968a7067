"""The Hugging Face Hub: what is there, one commit with a tag, the parquet files of a version."""

from __future__ import annotations

import hashlib
import os
import sys
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from plumbline.builders.core.errors import Problem
from plumbline.builders.core.front_matter import CARD, FACTS
from plumbline.builders.core.snapshot import digest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from huggingface_hub import HfApi

    from plumbline.builders.release.terms import Gated, Release

ENDPOINT = "HF_ENDPOINT"
ROWS = [CARD, FACTS, "*.parquet"]
KEPT = ".gitattributes"  # the Hub's own: says which files are large
STRICT: tuple[Gated, ...] = (False, "auto", "manual")


@dataclass(frozen=True)
class Remote:
    """A repository of the Hub as it is before publishing."""

    sha: str | None = None  # of the last commit; None: there is no such repository
    private: bool = True
    gated: Gated = False
    tags: tuple[str, ...] = ()
    files: dict[str, str] = field(default_factory=dict)  # path to sha256 (large) or git's sha1
    card: str = ""
    reached: bool = True

    @property
    def fresh(self) -> bool:
        """Whether nothing was ever published there."""
        return not self.tags and not set(self.files) - {KEPT}


class Unreachable(Problem):
    """The Hub did not answer, or not in its own way."""


def look(repo: str, kind: str, token: str | None) -> Remote:
    """Return what is on the Hub.

    Raises
    ------
    Problem
        If the Hub cannot be reached or refuses the token.
    """
    from huggingface_hub import RepoFile
    from huggingface_hub.errors import RepositoryNotFoundError

    api = _api(token)
    with _told(repo):
        try:
            info: Any = api.repo_info(repo, repo_type=kind)
        except RepositoryNotFoundError:
            return Remote()
        refs = api.list_repo_refs(repo, repo_type=kind)
        tree = api.list_repo_tree(repo, repo_type=kind, revision=info.sha, recursive=True)
        files = {
            entry.path: entry.lfs.sha256 if entry.lfs else entry.blob_id
            for entry in tree
            if isinstance(entry, RepoFile)
        }
        text = ""
        if CARD in files:
            with TemporaryDirectory() as folder:
                path = api.hf_hub_download(
                    repo, CARD, repo_type=kind, revision=info.sha, local_dir=folder
                )
                text = Path(path).read_text(encoding="utf-8")
    tags = tuple(sorted(tag.name for tag in refs.tags))
    return Remote(info.sha, bool(info.private), info.gated or False, tags, files, text)


def validate(release: Release, repo: str) -> None:
    """Let the Hub's own validator read the card, which sends nothing else.

    Raises
    ------
    Problem
        If it refuses the card, or does not answer.
    """
    from huggingface_hub import DatasetCard, ModelCard

    kind = ModelCard if release.kind == "model" else DatasetCard
    with _told(repo):
        kind(release.card).validate(repo_type=release.kind)


def fetch(repo: str, revision: str, token: str | None) -> Path:
    """Return a folder with the card and the parquet files of a version of a dataset.

    What was fetched before lies in the cache of huggingface_hub, and serves without a network.

    Raises
    ------
    Problem
        If there is no such version, or the Hub cannot be reached or refuses the token.
    """
    from huggingface_hub.errors import (
        HfHubHTTPError,
        LocalEntryNotFoundError,
        RepositoryNotFoundError,
        RevisionNotFoundError,
    )

    with _told(repo):
        try:
            return Path(
                _api(token).snapshot_download(
                    repo, repo_type="dataset", revision=revision, allow_patterns=ROWS
                )
            )
        except (HfHubHTTPError, LocalEntryNotFoundError) as error:
            cause = error.__cause__ if isinstance(error, LocalEntryNotFoundError) else error
            if not isinstance(cause, HfHubHTTPError):
                raise Unreachable(
                    f"{repo}: the Hub was not reached; try again when the network is there"
                ) from error
            if isinstance(cause, RevisionNotFoundError):
                raise Problem(
                    f"{repo}@{revision}: no such version on the Hub; its page lists the tags"
                ) from cause
            forbidden = cause.response.status_code in (401, 403)
            if forbidden or isinstance(cause, RepositoryNotFoundError):
                raise Problem(
                    f"{repo}: no such dataset on the Hub, or none that may be read with the token "
                    "in HF_TOKEN; check both"
                ) from cause
            raise cause from error


def settings(release: Release, remote: Remote) -> tuple[bool, Gated]:
    """Return whether the repository will be private, and how gated: never less than it is."""
    if remote.sha is None or remote.fresh:
        return release.private, release.gated
    return release.private or remote.private, max(release.gated, remote.gated, key=STRICT.index)


def changes(release: Release, remote: Remote) -> dict[str, str]:
    """Return ``new``, ``changed``, ``same`` or ``removed`` for every file here and on the Hub."""
    found = {path: _change(path, what, remote) for path, what in release.files.items()}
    gone = set(remote.files) - set(found) - {KEPT}
    return dict(sorted((found | dict.fromkeys(gone, "removed")).items()))


def _change(path: str, what: Path | bytes, remote: Remote) -> str:
    there = remote.files.get(path)
    if there is None:
        return "new"
    if len(there) == 64:
        here = hashlib.sha256(what).hexdigest() if isinstance(what, bytes) else digest(what)
    else:
        body = what if isinstance(what, bytes) else what.read_bytes()
        blob = b"blob %d\0" % len(body) + body
        here = hashlib.sha1(blob, usedforsecurity=False).hexdigest()
    return "same" if here == there else "changed"


def send(release: Release, remote: Remote, repo: str, version: str, token: str) -> str:
    """Publish: the repository, its settings, one commit, the tag; return the commit's id.

    The settings come before the first byte: at no time can data be read by more people than they
    allow. The commit is made by ``create_commit``, since ``upload_folder`` of huggingface_hub 2
    may split a folder into several, and is refused by the Hub if anybody has committed since
    :func:`look`. Cut off anywhere, the same call completes it.

    Raises
    ------
    Problem
        If the Hub refuses or does not answer.
    """
    from huggingface_hub import CommitOperationAdd, CommitOperationDelete

    from plumbline.builders.core.progress import as_json, during

    api = _api(token)
    private, gated = settings(release, remote)
    kind = release.kind
    with _told(repo):
        parent = remote.sha
        if parent is None:
            api.create_repo(repo, repo_type=kind, private=True)
            parent = api.repo_info(repo, repo_type=kind).sha
        if remote.sha is None or (private, gated) != (remote.private, remote.gated):
            api.update_repo_settings(repo, repo_type=kind, private=private, gated=gated)
        state = changes(release, remote)
        gone = [path for path, change in state.items() if change == "removed"]
        operations: list[Any] = [CommitOperationDelete(path, is_folder=False) for path in gone]
        operations += [
            CommitOperationAdd(path, what if isinstance(what, bytes) else str(what))
            for path, what in sorted(release.files.items())
        ]
        with during(f"sending to {repo}") if as_json() else nullcontext():
            done = api.create_commit(
                repo,
                operations,
                commit_message=f"Version {version}",
                repo_type=kind,
                parent_commit=parent,
            )
        api.create_tag(repo, tag=version, repo_type=kind, revision=done.oid)
    return str(done.oid)


def _api(token: str | None) -> HfApi:
    """Return a client with the token given, or none: never one that lies on the disk."""
    from huggingface_hub import HfApi
    from huggingface_hub.utils.tqdm import disable_progress_bars

    from plumbline.builders.core.progress import as_json

    if as_json() or not sys.stderr.isatty():  # else the client shows its own
        disable_progress_bars()
    return HfApi(os.environ.get(ENDPOINT) or None, token=token or False)


@contextmanager
def _told(repo: str) -> Iterator[None]:
    """Tell in a sentence what the Hub refused; no message of the client's, no header, no token."""
    from httpx2 import HTTPError
    from huggingface_hub.errors import HfHubHTTPError

    try:
        yield
    except (HTTPError, OSError, RuntimeError, ValueError) as error:
        cause: BaseException | None = error
        while cause is not None and not isinstance(cause, HfHubHTTPError):
            cause = cause.__cause__
        status = 0 if cause is None else cause.response.status_code
        if status in (401, 403):
            raise Problem(
                f"{repo}: the Hub refuses the token in HF_TOKEN ({status}); give one that may "
                "write there"
            ) from error
        if status in (409, 412):
            raise Problem(
                f"{repo}: somebody changed it meanwhile ({status}) and nothing was committed; look "
                "at it with --dry-run, then run the command again"
            ) from error
        if (status and status < 500 and status != 429) or isinstance(error, ValueError):
            said = " ".join(str(error).split())[:300]
            raise Problem(f"{repo}: the Hub refuses this ({said}); mend that first") from error
        how = f"answered {status}" if status else f"was not reached ({type(error).__name__})"
        raise Unreachable(
            f"{repo}: the Hub {how}; run the same command again, it completes what is missing"
        ) from error
