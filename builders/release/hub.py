"""Access to the Hugging Face Hub: repository state, commits with tags, files of a version."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from plumbline.builders.core.errors import HUB, UserError, wrong_hub
from plumbline.builders.core.front_matter import CARD, FACTS
from plumbline.builders.release.terms import Gated, Release

if TYPE_CHECKING:
    from huggingface_hub import HfApi

ROWS = [CARD, FACTS, "*.parquet"]
STRICT: tuple[Gated, ...] = (False, "auto", "manual")


@dataclass(frozen=True)
class Remote:
    """The state of a repository on the Hub before publishing."""

    sha: str | None = None  # last commit, or None if there is no such repository
    private: bool = True
    gated: Gated = False
    tags: tuple[str, ...] = ()
    files: frozenset[str] = frozenset()
    card: str = ""


class Missing(UserError):  # noqa: N818
    """The repository or version does not exist, or the token has no access."""


class Unreachable(UserError):  # noqa: N818
    """The Hub did not respond, or returned a server error."""


def look(repo: str, kind: str, token: str | None) -> Remote:
    """Return the state of a repository.

    Raises UserError if the Hub cannot be reached or refuses the token.
    """
    api = client(token)
    with answering(repo):
        if not api.repo_exists(repo, repo_type=kind):
            return Remote()
        info: Any = api.repo_info(repo, repo_type=kind)
        refs = api.list_repo_refs(repo, repo_type=kind)
        files = frozenset(file.rfilename for file in info.siblings or ())
        text = ""
        if CARD in files:
            path = api.hf_hub_download(repo, CARD, repo_type=kind, revision=info.sha)
            text = Path(path).read_text(encoding="utf-8")
    tags = tuple(sorted(tag.name for tag in refs.tags))
    shown = files - {".gitattributes"}  # written by the Hub
    return Remote(info.sha, bool(info.private), info.gated or False, tags, shown, text)


def validate(release: Release, repo: str) -> None:
    """Check the card with the Hub's validator, to which nothing else is sent.

    Raises UserError if the validator rejects the card or does not respond.
    """
    from huggingface_hub import DatasetCard, ModelCard

    kind = ModelCard if release.kind == "model" else DatasetCard
    with answering(repo):
        kind(release.card).validate(repo_type=release.kind)


def fetch(repo: str, revision: str, token: str | None) -> Path:
    """Return a folder that contains the card and the parquet files of a version of a dataset.

    A version that is in the cache of huggingface_hub is read without network access.

    Raises UserError if the version does not exist, or the Hub cannot be reached or refuses the
    token.
    """
    options: dict[str, Any] = {"repo_type": "dataset", "revision": revision, "allow_patterns": ROWS}
    with answering(f"{repo}@{revision}"):
        return Path(client(token).snapshot_download(repo, **options))


def settings(release: Release, remote: Remote) -> tuple[bool, Gated]:
    """Return the new values of private and gated, never more open than the current ones."""
    if not remote.tags and not remote.files:
        return release.private, release.gated
    return release.private or remote.private, max(release.gated, remote.gated, key=STRICT.index)


def send(release: Release, remote: Remote, repo: str, version: str, token: str) -> str:
    """Create the repository, apply its settings, commit and tag; return the id of the commit.

    The settings are applied before any data are sent, so that access is never wider than intended.
    The commit is made by ``create_commit``, since ``upload_folder`` of huggingface_hub 2 may split
    a folder into several; the Hub refuses the commit if another one followed :func:`look`.
    After an interruption, the same call completes the upload.

    Raises UserError if the Hub refuses the upload or does not respond.
    """
    from huggingface_hub import CommitOperationAdd, CommitOperationDelete

    api, kind, parent = client(token), release.kind, remote.sha
    private, gated = settings(release, remote)
    gone = sorted(remote.files - set(release.files))
    operations: list[Any] = [CommitOperationDelete(path, is_folder=False) for path in gone]
    operations += [CommitOperationAdd(*file) for file in sorted(release.files.items())]
    with answering(repo):
        if parent is None:
            api.create_repo(repo, repo_type=kind, private=True)
            parent = api.repo_info(repo, repo_type=kind).sha
        api.update_repo_settings(repo, repo_type=kind, private=private, gated=gated)
        message = f"Version {version}"
        done = api.create_commit(
            repo, operations, commit_message=message, repo_type=kind, parent_commit=parent
        )
    commit = f"{repo} (commit {done.oid} was made, but not the tag {version})"
    with answering(commit):
        api.create_tag(repo, tag=version, repo_type=kind, revision=done.oid)
    return str(done.oid)


def client(token: str | None) -> HfApi:
    """Return a client that uses the given token, if any, but never a token stored on disk."""
    from huggingface_hub import HfApi
    from huggingface_hub.utils.tqdm import disable_progress_bars

    if not sys.stderr.isatty():  # keep the client's progress bars out of logs
        disable_progress_bars()
    if problem := wrong_hub(token):
        raise UserError(problem)
    return HfApi(os.environ.get(HUB) or None, token=token or False)


@contextmanager
def answering(name: str) -> Iterator[None]:
    """Convert errors of the Hub into Missing, Unreachable, or (for a refusal) UserError.

    ``name``: the repository, with ``@REVISION`` if one of its versions is read.
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
        reason = " ".join(str(error).split())[:300]
        unread = status in (401, 403, 404) and "@" in name
        if unread or isinstance(error, errors.HFValidationError):
            raise Missing(
                f"{name}: not on the Hub, or not accessible with this token; check id, version and "
                "HF_TOKEN, and accept any terms on its page"
            ) from error
        refused = status or (isinstance(error, ValueError) and not isinstance(error, OSError))
        if not refused or status == 429 or status >= 500:
            how = f"answered {status}" if status else f"was not reached ({type(error).__name__})"
            raise Unreachable(f"{name}: the Hub {how}; run the same command again") from error
        raise UserError(f"{name}: the Hub refused the request ({status or ''} {reason})") from error
