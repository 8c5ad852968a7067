"""Publishing a folder on the Hugging Face Hub: a plan to read, then one commit and a tag."""

from __future__ import annotations

import difflib
import json
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import replace

from plumbline.builders.core.errors import UserError
from plumbline.builders.core.front_matter import CARD
from plumbline.builders.core.masking import HUB
from plumbline.builders.core.private import warn_unmatched
from plumbline.builders.release import card, croissant, hub
from plumbline.builders.release.hub import Remote
from plumbline.builders.release.params import publishing
from plumbline.builders.release.terms import Release, locate, release

TOKEN = "HF_TOKEN"  # noqa: S105 - the variable's name
REPO = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")
VERSION = re.compile(r"\d+\.\d+\.\d+")


def publish(
    named: str, repo: str, version: str, *, dry: bool, say: Callable[[str], None] = print
) -> None:
    """Publish a folder, or say what would be published.

    ``named``: a dataset's name, or a folder of outputs, tables or a checkpoint.
    ``repo``: ``OWNER/NAME`` on the Hub that ``HF_ENDPOINT`` names.
    ``version``: of three numbers; it becomes a tag, and a tag is never moved.

    Raises UserError if it may not be published, the version is there already, there is no token, or
    the Hub refuses or does not answer.
    """
    if not REPO.fullmatch(repo):
        raise UserError(f"--repo {repo}: not a repository; write it as OWNER/NAME")
    if not VERSION.fullmatch(version):
        raise UserError(f"--version {version}: not a version; write three numbers, as 1.2.0")
    token, params = os.environ.get(TOKEN) or None, publishing()
    warn_unmatched()
    made = release(locate(named), params.acknowledged, params.licences)
    made = replace(made, files={**made.files, **_addressed(made, repo, version)})
    if lacking := "" if dry else _lacking(token, repo, params.contact):
        raise UserError(lacking)
    try:
        remote = hub.look(repo, made.kind, token)
    except hub.Unreachable as error:
        if not dry:
            raise
        say(f"warning: {error}")
        remote = hub.Remote(reached=False)
    for line in lines(made, remote, repo, version):
        say(line)
    if version in remote.tags:
        raise UserError(
            f"{repo}: version {version} is published, and a version never changes; give a higher "
            "one"
        )
    if not dry:
        commit = hub.send(made, remote, repo, version, str(token))
        say(f"published: {repo} at {version}, commit {commit}")
        return
    if remote.reached:
        hub.validate(made, repo)
        say("card: the Hub's validator accepts it")
    say("dry run: nothing was sent")


def _lacking(token: str | None, repo: str, contact: str) -> str:
    """Return what is not there without which nothing is published, and what to do, or nothing."""
    if token is None:
        return f"{TOKEN}: not set; a token that may write to {repo} is taken from there only"
    if not contact:
        return (
            "params.yaml, publish.contact: empty; write where somebody can ask to be taken out of "
            "what is published, it stands on the card"
        )
    return ""


def _addressed(made: Release, repo: str, version: str) -> dict[str, bytes]:
    """Return the card of a dataset, which names the repository at a version's tag, and the rest."""
    if made.kind == "model":
        return {}
    folder, files = made.folder, card.render(made.folder)
    pattern = re.escape(folder.as_posix())
    if len(folder.parts) > 3:  # of a model: the page's example may name another one
        pattern = re.escape(folder.parent.as_posix()) + '/[^"]+'
    shown = re.sub(rf'load_dataset\("{pattern}"', f'load_dataset("{repo}"', files[CARD].decode())
    described = json.loads(files[croissant.FILE])
    address = os.environ.get(HUB) or "https://huggingface.co"
    described = croissant.published(described, address, repo, version)
    return files | {CARD: shown.encode(), croissant.FILE: described.encode()}


def lines(made: Release, remote: Remote, repo: str, version: str) -> Iterator[str]:
    """Yield the plan: where to, how open, every file with its size, what changes in the card."""
    private, gated = hub.settings(made, remote)
    there = f"commit {remote.sha}, versions {', '.join(remote.tags) or 'none'}"
    there = there if remote.sha else "no such repository, or none that you may see"
    there = there if remote.reached else "not reached; what follows is compared with nothing"
    yield f"{made.folder} -> {made.kind} {repo}, version {version}"
    yield f"on the Hub: {there}"
    yield f"private: {'yes' if private else 'no'}; gated: {gated or 'no'}"
    for sentence in made.why:
        yield f"  {sentence}"
    if (private, gated) != (made.private, made.gated):
        yield "  the repository is less open than that, and this command opens none"
    stated = re.search(r"^Version (\S+); sha256", made.card, re.MULTILINE)
    if stated and stated[1] != version:
        yield f"note: the card says version {stated[1]}, as params.yaml does; the tag is {version}"
    sizes = {
        path: len(what) if isinstance(what, bytes) else what.stat().st_size
        for path, what in made.files.items()
    }
    yield f"files: {len(sizes)}, {sum(sizes.values()):,} bytes"
    for path, change in hub.changes(made, remote).items():
        size = f"{sizes[path]:,}" if path in sizes else "-"
        yield f"  {change:<8} {size:>15}  {path}"
    yield f"card: {'as on the Hub' if made.card == remote.card else 'changes'}"
    names = (f"{repo}/{CARD}", f"{made.folder}/{CARD}")
    before, after = remote.card.splitlines(), made.card.splitlines()
    yield from difflib.unified_diff(before, after, *names, lineterm="")
