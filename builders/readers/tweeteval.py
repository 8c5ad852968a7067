"""Texts with a class each, in TweetEval's layout; and how texts of the web are made normal."""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Iterator

from plumbline.builders.readers.table import lines

ESCAPES = re.compile(r"(?:\\u[0-9a-fA-F]{4})+")


def tweeteval(
    texts: bytes, labels: bytes, mapping: bytes, *, whole: bool = False
) -> Iterator[tuple[str, str]]:
    """Yield texts, as they are, with the names of their labels.

    ``texts``, ``labels``: a text a line, and the number of its label in the same line.
    ``mapping``: number, tab and name in each line.
    ``whole``: whether the files must end with a line break.
    """
    bodies = {"mapping": mapping, "texts": texts, "labels": labels}
    parts = {}
    for name, body in bodies.items():
        try:
            parts[name] = lines(body, whole=whole)
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from error
    names = {}
    for number, line in enumerate(parts["mapping"], start=1):
        key, tab, name = line.partition("\t")
        if not tab or not key.strip().isdecimal() or not name.strip():
            raise ValueError(f"mapping, line {number}: not a number, a tab and a name")
        names[key.strip()] = name.strip()
    if len(parts["texts"]) != len(parts["labels"]):
        raise ValueError(f"{len(parts['texts'])} texts, but {len(parts['labels'])} labels")
    pairs = zip(parts["texts"], parts["labels"], strict=True)
    for number, (text, key) in enumerate(pairs, start=1):
        if key.strip() not in names:
            raise ValueError(f"labels, line {number}: {key!r} is not in the mapping")
        yield text, names[key.strip()]


def normal(text: str) -> str:
    r"""Undo the escapes of web exports; NFC, single spaces.

    Examples
    --------
    >>> normal("Fish &amp; chips\\u002c  it\\u2019s fine ")
    'Fish & chips, it’s fine'
    """
    text = html.unescape(ESCAPES.sub(_characters, text))
    return " ".join(unicodedata.normalize("NFC", text).split())


def _characters(match: re.Match[str]) -> str:
    """Resolve a run of escapes as one, since a pair of surrogates is one character."""
    units = bytes.fromhex(match[0].replace("\\u", ""))
    return units.decode("utf-16-be", "replace")
