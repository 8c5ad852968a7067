"""The key of a server: where it is read, where it may go, and how it stays out of messages."""

from __future__ import annotations

import ipaddress
import json
import os
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from plumbline.builders.core.errors import Problem

if TYPE_CHECKING:
    from plumbline.probes.models.params import Endpoint

SECRET = 8  # characters; anything shorter, as local servers have it, is no secret


def read(endpoint: Endpoint) -> str:
    """Return the key, or nothing where the endpoint names none.

    Raises
    ------
    Problem
        If the variable is not set, or the address would send the key for others to read.
    """
    try:
        parts = urlsplit(endpoint.url)
        host, _ = parts.hostname or "", parts.port
    except ValueError:
        host = ""
    if not host:
        raise Problem(f"endpoint.url: {endpoint.url} is no address of a server")
    if parts.username or parts.password or parts.query or parts.fragment:
        raise Problem(
            "endpoint.url: has more to it than an address; a key belongs into the environment "
            "variable that endpoint.key names, not into params.yaml"
        )
    if endpoint.key is None:
        return ""
    if parts.scheme != "https" and not _loopback(host):
        raise Problem(
            f"endpoint.url: http://{host} would send the key in {endpoint.key} for "
            "anybody on the way to read; use https, or a tunnel that ends on 127.0.0.1"
        )
    key = os.environ.get(endpoint.key, "").strip()
    if not key:
        raise Problem(
            f"{endpoint.key}: not set; endpoint.key names this environment variable, put the key "
            "for the server into it"
        )
    if not (key.isascii() and key.isprintable() and " " not in key):
        raise Problem(f"{endpoint.key}: what stands in it cannot be a key; no spaces, only ASCII")
    return key


def _loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _written(key: str) -> str:
    """Return a key as it stands in JSON."""
    return json.dumps(key)[1:-1]


def without(text: str, key: str) -> str:
    """Take a key out of a text, and any piece of it that is long enough to tell."""
    for secret in dict.fromkeys((key, _written(key))) if key else ():
        text = text.replace(secret, "[key]")
    for start in range(len(key) - SECRET + 1):
        text = text.replace(key[start : start + SECRET], "[key]")
    return text


def stands_in(answer: object, key: str) -> bool:
    """Tell whether a key stands in an answer read from JSON."""
    return len(key) >= SECRET and _written(key) in json.dumps(answer)
