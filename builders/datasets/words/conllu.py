"""Reading Universal Dependencies treebanks in CoNLL-U, strictly."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import NamedTuple

import conllu
from conllu.exceptions import ParseException
from conllu.parser import DEFAULT_FIELDS


class Word(NamedTuple):
    """One syntactic word: ranges and empty nodes are left out."""

    form: str
    lemma: str
    upos: str


def words(body: bytes) -> Iterator[Word]:
    """Yield the words of a treebank."""
    text = body.decode("utf-8")
    if text.lstrip()[:1] == "<":
        raise ValueError("a web page, not CoNLL-U")
    if not text.endswith("\n\n"):
        raise ValueError("cut short: CoNLL-U ends with a blank line")
    number = 0
    sentences = conllu.parse_incr(io.StringIO(text), fields=[*DEFAULT_FIELDS, "more"])
    try:
        for number, sentence in enumerate(sentences, start=1):
            if wrong := _wrong(sentence):
                raise ValueError(f"not CoNLL-U in sentence {number}: {wrong}")
            for token in sentence:
                if isinstance(token["id"], int):
                    yield Word(token["form"], token["lemma"] or "_", token["upos"] or "_")
    except ParseException as error:
        said = " ".join(str(error).split())
        raise ValueError(f"not CoNLL-U in sentence {number + 1} ({said})") from error
    if not number:
        raise ValueError("no sentence in it")


def _wrong(sentence: conllu.TokenList) -> str | None:
    """Return what conllu lets pass though it is no CoNLL-U: columns, and ids that skip."""
    position = 0
    for token in sentence:
        if len(token) != len(DEFAULT_FIELDS):
            found = "more" if "more" in token else len(token)
            return f"a token has {found} columns, not ten"
        if not isinstance(token["id"], tuple):  # a range or an empty node
            position += 1
            if token["id"] != position:
                return f"id {token['id'] or '_'} where {position} belongs"
    return None if position else "no word in it"
