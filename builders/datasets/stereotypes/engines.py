"""Readers for search engines' suggestions, one for each format.

Content other than the expected JSON (captcha, consent page, truncated response) raises a
``ValueError``, which a client treats as throttling.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NamedTuple

from plumbline.builders.readers.table import parsed

CHARSET = re.compile(r"charset\s*=\s*\"?([\w.:-]+)", re.IGNORECASE)
GUARD = ")]}'"  # prefix of Google's JSON that prevents loading it as a script
QUERY = "QUERY"  # Chrome's type for suggestions that are searches, not addresses or sums


class Suggestion(NamedTuple):
    """One suggestion, its rank in the response (from 1), and the engine's type."""

    text: str
    rank: int
    kind: str = QUERY


def encoding(body: bytes, content_type: str) -> str:
    """Return an encoding in which a body can be stored as text and restored byte for byte.

    It is UTF-8 if the bytes are valid UTF-8, whatever is declared, since Latin-1 text rarely is by
    chance; else the declared encoding, if it restores the bytes; else Latin-1, which Google sends
    unless UTF-8 is requested (``oe``).
    """
    declared = CHARSET.search(content_type)
    for name in ("utf-8", declared[1].lower() if declared else "latin-1", "latin-1"):
        try:
            if body.decode(name).encode(name) == body:
                return name
        except (LookupError, ValueError):
            continue
    raise AssertionError("Latin-1 decodes any bytes")


def read(form: str, text: str, query: str | None = None) -> list[Suggestion]:
    """Return the suggestions in an answer that has one of the :data:`FORMATS`.

    ``query``: the query sent; an answer that repeats another query raises a ``ValueError``.
    Answers in DuckDuckGo's format ``phrases`` do not repeat the query.
    """
    text = text.removeprefix("\ufeff").lstrip()
    if text[:1] == "<":
        raise ValueError("a web page, perhaps a captcha")
    try:
        tree = parsed(text.removeprefix(GUARD))
    except ValueError as error:
        raise ValueError("incomplete JSON") from error
    try:
        suggestions = FORMATS[form](tree)
    except (KeyError, IndexError, TypeError) as error:
        raise ValueError(f"JSON, but not an answer in the format {form}") from error
    if not all(isinstance(suggestion.text, str) for suggestion in suggestions):
        raise ValueError(f"JSON, but not an answer in the format {form}")
    echo = _echo(form, tree)
    if query is not None and echo is not None and _plain(echo) != _plain(query):
        raise ValueError(f"the answer belongs to another query, {echo!r}")
    return suggestions


def _echo(form: str, tree: Any) -> str | None:
    """Return the query that a response repeats, if any."""
    echo = tree["gossip"].get("qry") if form == "gossip" else tree[0] if form != "phrases" else None
    return echo if isinstance(echo, str) else None


def _plain(query: str) -> str:
    return " ".join(query.lower().split())


def _ranked(texts: Any, key: str = "") -> list[Suggestion]:
    if not isinstance(texts, list):
        raise TypeError("not a list")
    return [Suggestion(t[key] if key else t, rank) for rank, t in enumerate(texts, start=1)]


def _list(tree: Any) -> list[Suggestion]:
    """Read ``["query", ["suggestion", ...], ...]``."""
    if not isinstance(tree[0], str):
        raise TypeError("not a query")
    return _ranked(tree[1])


def _chrome(tree: Any) -> list[Suggestion]:
    """Read a list and the object with its metadata that follows it."""
    plain = _list(tree)
    about = next((part for part in tree[2:] if isinstance(part, dict)), {})
    kinds = about.get("google:suggesttype") or [QUERY] * len(plain)
    if len(plain) != len(kinds):
        raise TypeError("metadata of other suggestions")
    return [suggestion._replace(kind=kind) for suggestion, kind in zip(plain, kinds, strict=True)]


FORMATS: dict[str, Callable[[Any], list[Suggestion]]] = {
    "firefox": _list,  # Google, client=firefox
    "chrome": _chrome,  # Google, client=chrome
    "gossip": lambda tree: _ranked(tree["gossip"]["results"], "key"),  # Yahoo
    "phrases": lambda tree: _ranked(tree, "phrase"),  # DuckDuckGo
    "list": _list,  # DuckDuckGo, type=list
}
