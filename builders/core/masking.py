"""Secrets: the token for the Hub and the keys of model servers, which no message or file shows.

They are registered where they are read. Others are unknown here, so that params may not hold any.
"""

from __future__ import annotations

import os
import re
from urllib.parse import urlsplit

HUB = "HF_ENDPOINT"
SAID = "[secret]"
SHORTEST = 8  # characters; the shorter keys of local servers are words
IN_PARAMS = re.compile(
    r"(?i)://[^\s/@?#]+@"  # a password in an address, a signature or token behind it, a token
    r"|[?&;](?:[\w-]*token|api[_-]?key|key|auth|password|passwd|pwd|secret|sig|[\w-]*signature)=[^&{]"
    r"|\b(?:hf_|sk-|gh[opusr]_|github_pat_|glpat-)[\w-]{16,}"
)
kept: set[str] = set()


def keep(secret: str | None) -> None:
    """Register a secret, to be masked from then on."""
    if secret and len(secret) >= SHORTEST:
        kept.add(secret)


def mask(text: str, own: str = "") -> str:
    """Return a text without the registered secrets, and without that of the caller."""
    for secret in sorted({*kept, own} - {""}, key=len, reverse=True):
        text = text.replace(secret, SAID)
    return text


def holds_secret(text: str) -> bool:
    """Return whether a value of params looks like a secret.

    Examples
    --------
    >>> holds_secret("https://me:word@example.org/a"), holds_secret("https://example.org/a?x=1")
    (True, False)
    """
    return bool(IN_PARAMS.search(text))


def in_the_open(address: str) -> bool:
    """Return whether others can read what is sent to an address: http, but to this machine."""
    parts = urlsplit(address)
    return parts.scheme != "https" and parts.hostname not in ("localhost", "127.0.0.1", "::1")


def wrong_hub(token: str | None) -> str:
    """Register the token for the Hub, and return what is wrong with the Hub's address, or ""."""
    keep(token)
    address = os.environ.get(HUB) or ""
    if holds_secret(address):
        return f"{HUB}: holds a password or a token; name the bare address"
    if address and token and in_the_open(address):
        return (
            f"{HUB}: {address} would send your token for the Hub for anybody on the way to read; "
            "use https, or a tunnel that ends on 127.0.0.1"
        )
    return ""
