"""Secrets: what no message, log line or manifest shows, and what no address or params may hold.

Known are the values of environment variables named for a secret, tokens that lie where the clients
of the Hub and DVC look for them, and what :func:`keep` was told. All else is known by its shape.
"""

from __future__ import annotations

import base64
import ipaddress
import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from functools import lru_cache
from pathlib import Path
from typing import Any, TextIO
from urllib.parse import quote, urlsplit

HUB = "HF_ENDPOINT"
SAID = "[secret]"
SHORTEST = 8  # characters of a value; anything shorter, as local servers have it, is no secret
PIECE, WHOLE = 8, 16  # of values of so many characters pieces are taken out too
VARIABLE = re.compile(
    r"(?i)(^|_)(token|secret|password|passwd|pass|key|apikey|credentials?|auth)(_|\d|$)"
)
SHAPED = (
    r"\b(?:hf_[A-Za-z0-9]{16,}|sk-[\w-]{16,}|gh[opusr]_\w{20,}|github_pat_\w{20,}|glpat-[\w-]{16,}"
    r"|xox[abeprs]-[\w-]{10,}|A[KS]IA[0-9A-Z]{16}|AIza[\w-]{30,}|eyJ[\w-]{10,}\.[\w-]{10,}\.[\w-]*)"
)
QUERY = (
    r"(?i:([?&;](?:access[_-]?token|api[_-]?key|key|token|auth|password|passwd|pwd|secret|sig"
    r"|signature|awsaccesskeyid|x-(?:amz|goog)-(?:signature|credential|security-token))=))"
)
USER = r"(?i:\b([a-z][a-z0-9+.-]*://))[^/\s@?#'\"<>]+@"
HEADER = (
    r"(?i:\b((?:proxy-)?authorization|x-api-key|(?:set-)?cookie)(\W{1,6}))(?:\w+ +)?[^\s'\",;]+"
)
SHAPES = (
    (re.compile(USER), rf"\1{SAID}@"),
    (re.compile(QUERY + r"[^&;,\s#'\"<>]+"), rf"\1{SAID}"),
    (re.compile(HEADER), rf"\1\2{SAID}"),
    (re.compile(r"(?i:\b(bearer +))[\w.~+/=-]{8,}"), rf"\1{SAID}"),
    (re.compile(SHAPED), SAID),
)
IN_FILES = re.compile(r"(?im)^\s*\w*(?:token|password|secret|key|key_id|sas)\w*\s*=\s*(\S+)\s*$")
kept: set[str] = set()


def keep(secret: str) -> None:
    """Remember a secret, to be masked from then on."""
    kept.add(secret)


def mask(text: str, own: str = "") -> str:
    """Return a text without secrets, and without one that the caller has, however short it is.

    Examples
    --------
    >>> mask("https://me:word@example.org/a?x=1&token=abc, Bearer 0123456789")
    'https://[secret]@example.org/a?x=1&token=[secret], Bearer [secret]'
    """
    for secret, pieces in _forms(own, frozenset(kept.union(_known()))):
        if any(piece in text for piece in pieces):
            text = text.replace(secret, SAID)
            for piece in pieces:
                text = text.replace(piece, SAID)
            text = re.sub(rf"(?:{re.escape(SAID)})+", SAID, text)
    for shape, instead in SHAPES:
        text = shape.sub(instead, text)
    return text


@lru_cache(maxsize=8)
def _forms(own: str, known: frozenset[str]) -> list[tuple[str, list[str]]]:
    """Return each way in which a secret may be written, longest first, with its pieces."""
    found = {}
    for secret in {value for value in known if len(value) >= SHORTEST} | ({own} - {""}):
        plain = secret.encode("utf-8", "replace")
        coded = base64.b64encode(plain).decode().rstrip("=") if len(plain) >= SHORTEST else secret
        for form in {secret, json.dumps(secret)[1:-1], quote(secret, safe=""), coded}:
            long = len(form) >= WHOLE and re.search(r"\d", form)
            starts = range(len(form) - PIECE + 1) if long else ()
            found[form] = [form[at : at + PIECE] for at in starts] or [form]
    return sorted(found.items(), key=lambda pair: (-len(pair[0]), pair[0]))


def _known() -> Iterator[str]:
    for name, value in ((name, value.strip()) for name, value in os.environ.items()):
        if VARIABLE.search(name) and not re.search(r"\s|^[~./]", value):
            yield value
    home = Path(os.environ.get("HF_HOME") or "~/.cache/huggingface").expanduser()
    token = Path(os.environ.get("HF_TOKEN_PATH") or home / "token")
    yield from _in_file(token, token.name)
    yield from _in_file(Path(".dvc/config.local").absolute(), "")


@lru_cache(maxsize=8)
def _in_file(path: Path, whole: str) -> tuple[str, ...]:
    try:
        text = path.read_text("utf-8")
    except (OSError, ValueError):
        return ()
    return (text.strip(),) if whole else tuple(IN_FILES.findall(text))


def holds_secret(text: str) -> bool:
    """Tell whether a text has a user's name, a password, a signature or a token in it."""
    return any(re.search(shape, text) for shape in (USER, QUERY + r"[^&;\s{]", SHAPED))


def in_the_open(address: str) -> bool:
    """Tell whether what is sent to an address can be read on the way: http, but to this machine."""
    parts = urlsplit(address)
    return parts.scheme != "https" and not is_loopback(parts.hostname or "")


def is_loopback(host: str) -> bool:
    """Tell whether a host is this machine."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def wrong_hub(token: str | None) -> str:
    """Return what is wrong with the address of the Hub that the environment names, or nothing."""
    address = os.environ.get(HUB) or ""
    if holds_secret(address):
        return f"{HUB}: holds a password or a token; name the bare address"
    if address and token and in_the_open(address):
        return (
            f"{HUB}: {address} would send your token for the Hub for anybody on the way to read; "
            "use https, or a tunnel that ends on 127.0.0.1"
        )
    return ""


class _Masked:
    """A stream that masks what is written to it."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        self._stream.write(mask(text))
        return len(text)

    def writelines(self, lines: list[str]) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextmanager
def masked_streams() -> Iterator[None]:
    """Mask all that is written to standard output and standard error."""
    import sys

    with redirect_stdout(_Masked(sys.stdout)), redirect_stderr(_Masked(sys.stderr)):
        yield


@contextmanager
def masked_work() -> Iterator[None]:
    """Mask what a process that works for another prints, and what it raises.

    There may be secrets of its own, as in variables of its node.
    """
    try:
        with masked_streams():
            yield
    except Exception as error:
        at: BaseException | None = error
        while at is not None:
            at.args = tuple(mask(said) if isinstance(said, str) else said for said in at.args)
            at = at.__cause__ or at.__context__
        raise
