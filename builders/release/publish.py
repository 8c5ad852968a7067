"""Publish a folder on the Hugging Face Hub: print a plan, then make one commit and a tag."""

from __future__ import annotations

import difflib
import json
import os
import re
from collections.abc import Iterator
from dataclasses import replace

from plumbline.builders.core.errors import HUB, UserError
from plumbline.builders.core.front_matter import CARD
from plumbline.builders.core.private import warn_unmatched
from plumbline.builders.release import card, croissant, hub
from plumbline.builders.release.params import publishing
from plumbline.builders.release.terms import Release, locate, release

TOKEN = "HF_TOKEN"  # noqa: S105 - the variable's name
REPO = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")
VERSION = re.compile(r"\d+\.\d+\.\d+")


def publish(named: str, repo: str, version: str, *, dry: bool) -> None:
    """Publish a folder, or print what would be published.

    ``named``: name of a dataset, or folder of outputs, tables or a checkpoint.
    ``repo``: ``OWNER/NAME`` on the Hub, whose address ``HF_ENDPOINT`` may override.
    ``version``: three numbers, which become a tag; a tag is never moved.

    Raises UserError if the folder may not be published, the version already exists, the token
    or contact is missing, or the Hub refuses the upload or does not respond.
    """
    token, params = os.environ.get(TOKEN) or None, publishing()
    needed = {
        f"--repo {repo}: not a repository; write it as OWNER/NAME": REPO.fullmatch(repo),
        f"--version {version}: write three numbers, such as 1.2.0": VERSION.fullmatch(version),
        f"{TOKEN}: not set; export a token that may write to {repo}": dry or token,
        "params.yaml, publish.contact: empty; write an address for removal requests": dry
        or params.contact,
    }
    for message, value in needed.items():
        if not value:
            raise UserError(message)
    warn_unmatched()
    made = release(locate(named), params.acknowledged, params.licences)
    made = replace(made, files={**made.files, **_addressed(made, repo, version)})
    try:
        remote = hub.look(repo, made.kind, token)
    except hub.Unreachable as error:
        if not dry:
            raise
        print(f"warning: {error}; compared with an empty repository")
        remote = None
    for line in _plan(made, remote or hub.Remote(), repo, version):
        print(line)
    if remote and version in remote.tags:
        raise UserError(f"{repo}: version {version} is already published; give a higher one")
    if not dry:
        assert remote
        commit = hub.send(made, remote, repo, version, str(token))
        print(f"published: {repo} at {version}, commit {commit}")
        return
    if remote:
        hub.validate(made, repo)
        print("card: the Hub's validator accepts it")
    print("dry run: nothing was sent")


def _addressed(made: Release, repo: str, version: str) -> dict[str, bytes]:
    """Return a dataset's card and the files next to it, with addresses in the repository."""
    if made.kind == "model":
        return {}
    folder, files = made.folder, card.render(made.folder)
    pattern = re.escape(folder.as_posix())
    if len(folder.parts) > 3:  # the example on the page may be for another model
        pattern = re.escape(folder.parent.as_posix()) + '/[^"]+'
    shown = re.sub(rf'load_dataset\("{pattern}"', f'load_dataset("{repo}"', files[CARD].decode())
    address = os.environ.get(HUB) or "https://huggingface.co"
    described = json.loads(files[croissant.FILE])
    described = croissant.published(described, address, repo, version)
    return files | {CARD: shown.encode(), croissant.FILE: described.encode()}


def _plan(made: Release, remote: hub.Remote, repo: str, version: str) -> Iterator[str]:
    """Yield the lines of the plan: target, access, file sizes, and changes in the card."""
    private, gated = hub.settings(made, remote)
    yield f"{made.folder} -> {made.kind} {repo}, version {version}"
    yield f"on the Hub: {', '.join(remote.tags) if remote.sha else 'no such repository'}"
    yield f"private: {'yes' if private else 'no'}; gated: {gated or 'no'} ({made.why})"
    sizes = {
        path: len(body) if isinstance(body, bytes) else body.stat().st_size
        for path, body in made.files.items()
    }
    yield f"files: {len(sizes)}, {sum(sizes.values()):,} bytes"
    for path, size in sorted(sizes.items()):
        yield f"  {size:>15,}  {path}"
    for path in sorted(remote.files - set(sizes)):
        yield f"  {'removed':>15}  {path}"
    names = (f"{repo}/{CARD}", f"{made.folder}/{CARD}")
    before, after = remote.card.splitlines(), made.card.splitlines()
    yield from difflib.unified_diff(before, after, *names, lineterm="")
