"""Reading Universal Dependencies treebanks in CoNLL-U, strictly."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from conllu.exceptions import ParseException
from conllu.parser import DEFAULT_FIELDS, parse_sentences, parse_token_and_metadata

if TYPE_CHECKING:
    from conllu.models import TokenList


class Word(NamedTuple):
    """One syntactic word: ranges and empty nodes are left out."""

    form: str
    lemma: str
    upos: str


def words(body: bytes) -> Iterator[Word]:
    """Yield the words of a treebank."""
    if body[:256].lstrip()[:1] == b"<":
        raise ValueError("a web page, not CoNLL-U")
    if not body.endswith(b"\n\n"):
        raise ValueError("cut short: CoNLL-U ends with a blank line")
    number = 0
    fields = [*DEFAULT_FIELDS, "more"]
    try:
        texts = parse_sentences(_lines(body))  # type: ignore[arg-type] # lines are all it asks for
        found = (parse_token_and_metadata(text, fields=fields) for text in texts)
        for number, sentence in enumerate(found, start=1):
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


def _lines(body: bytes) -> Iterator[str]:
    """Yield the lines of a treebank."""
    for number, line in enumerate(io.BytesIO(body), start=1):
        if b"\0" in line:
            raise ValueError(f"line {number}: a NUL character")
        yield line.decode()


def _wrong(sentence: TokenList) -> str | None:
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
