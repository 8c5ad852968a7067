"""The Hugging Face Hub: what is there, one commit with a tag, the parquet files of a version."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from plumbline.builders.core.errors import UserError
from plumbline.builders.core.front_matter import CARD, FACTS
from plumbline.builders.core.masking import HUB, wrong_hub
from plumbline.builders.core.snapshot import digest
from plumbline.builders.release.terms import Gated, Release

if TYPE_CHECKING:
    from huggingface_hub import HfApi

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


class Missing(UserError):  # noqa: N818
    """The Hub has no such repository or version, or none for this token."""


class Unreachable(UserError):  # noqa: N818
    """The Hub did not answer, or not in its own way."""


def look(repo: str, kind: str, token: str | None) -> Remote:
    """Return what is on the Hub.

    Raises UserError if the Hub cannot be reached or refuses the token.
    """
    from huggingface_hub import RepoFile
    from huggingface_hub.errors import RepositoryNotFoundError

    api = client(token)
    with answering(repo):
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
            at: dict[str, Any] = {"repo_type": kind, "revision": info.sha}
            with TemporaryDirectory() as folder:
                path = api.hf_hub_download(repo, CARD, local_dir=folder, **at)
                text = Path(path).read_text(encoding="utf-8")
    tags = tuple(sorted(tag.name for tag in refs.tags))
    return Remote(info.sha, bool(info.private), info.gated or False, tags, files, text)


def validate(release: Release, repo: str) -> None:
    """Let the Hub's own validator read the card, which sends nothing else.

    Raises UserError if it refuses the card, or does not answer.
    """
    from huggingface_hub import DatasetCard, ModelCard

    kind = ModelCard if release.kind == "model" else DatasetCard
    with answering(repo):
        kind(release.card).validate(repo_type=release.kind)


def fetch(repo: str, revision: str, token: str | None) -> Path:
    """Return a folder with the card and the parquet files of a version of a dataset.

    What was fetched before lies in the cache of huggingface_hub, and serves without a network.

    Raises UserError if there is no such version, or the Hub cannot be reached or refuses the token.
    """
    wanted: dict[str, Any] = {"repo_type": "dataset", "revision": revision, "allow_patterns": ROWS}
    with answering(f"{repo}@{revision}"):
        return Path(client(token).snapshot_download(repo, **wanted))


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
    from huggingface_hub.utils.sha import git_hash

    there = remote.files.get(path)
    if there is None:
        return "new"
    if len(there) == 64:
        here = hashlib.sha256(what).hexdigest() if isinstance(what, bytes) else digest(what)
    else:
        here = git_hash(what if isinstance(what, bytes) else what.read_bytes())
    return "same" if here == there else "changed"


def send(release: Release, remote: Remote, repo: str, version: str, token: str) -> str:
    """Publish: the repository, its settings, one commit, the tag; return the commit's id.

    The settings come before the first byte: at no time can data be read by more people than they
    allow. The commit is made by ``create_commit``, since ``upload_folder`` of huggingface_hub 2
    may split a folder into several, and is refused by the Hub if anybody has committed since
    :func:`look`. Cut off anywhere, the same call completes it.

    Raises UserError if the Hub refuses or does not answer.
    """
    from huggingface_hub import CommitOperationAdd, CommitOperationDelete

    api, kind = client(token), release.kind
    private, gated = settings(release, remote)
    state = changes(release, remote)
    operations: list[Any] = [
        CommitOperationDelete(path, is_folder=False)
        for path, change in state.items()
        if change == "removed"
    ]
    operations += [
        CommitOperationAdd(path, what if isinstance(what, bytes) else str(what))
        for path, what in sorted(release.files.items())
    ]
    with answering(repo):
        parent = remote.sha
        if parent is None:
            api.create_repo(repo, repo_type=kind, private=True)
            parent = api.repo_info(repo, repo_type=kind).sha
        if remote.sha is None or (private, gated) != (remote.private, remote.gated):
            api.update_repo_settings(repo, repo_type=kind, private=private, gated=gated)
        message = f"Version {version}"
        done = api.create_commit(
            repo, operations, commit_message=message, repo_type=kind, parent_commit=parent
        )
        api.create_tag(repo, tag=version, repo_type=kind, revision=done.oid)
    return str(done.oid)


def client(token: str | None) -> HfApi:
    """Return a client with the token given, or none: never one that lies on the disk."""
    from huggingface_hub import HfApi
    from huggingface_hub.utils.tqdm import disable_progress_bars

    if not sys.stderr.isatty():  # else the client shows its own
        disable_progress_bars()
    if said := wrong_hub(token):
        raise UserError(said)
    return HfApi(os.environ.get(HUB) or None, token=token or False)


@contextmanager
def answering(name: str) -> Iterator[None]:
    """Turn what the Hub refuses into one sentence.

    ``name``: the repository, with ``@REVISION`` where one of its versions is read.

    Raises
    ------
    Missing
        If there is no such repository or version, or none for this token.
    Unreachable
        If the Hub did not respond, or is busy or broken.
    UserError
        If it refuses for another reason.
    """
    from httpx2 import HTTPError
    from huggingface_hub import errors

    try:
        yield
    except (HTTPError, OSError, RuntimeError, ValueError) as error:
        cause: BaseException | None = error
        while cause is not None and not isinstance(cause, errors.HfHubHTTPError):
            cause = cause.__cause__
        status = 0 if cause is None else cause.response.status_code
        repo, reason = name.partition("@")[0], " ".join(str(error).split())[:300]
        unread = status in (401, 403, 404) and "@" in name
        if unread or isinstance(error, errors.HFValidationError):
            raise Missing(
                f"{name}: not on the Hub, or not to be read with the token in HF_TOKEN; check id, "
                "version and token, and accept the terms on its page where it has such"
            ) from error
        refused = isinstance(error, ValueError) and not isinstance(error, OSError)
        if status == 429 or status >= 500 or not (status or refused):
            how = f"answered {status}" if status else f"was not reached ({type(error).__name__})"
            raise Unreachable(
                f"{repo}: the Hub {how}; run the same command again, it completes what is missing"
            ) from error
        raise UserError(
            f"{name}: the Hub refuses this ({status or ''} {reason}); check HF_TOKEN and what is "
            "there with --dry-run, then run the command again"
        ) from error
