"""Dataset ``emotions``: words and the emotions that people associate with them (NRC EmoLex).

Mohammad and Turney (2013): eight basic emotions after Plutchik, and positive and negative. The
authors forbid that the lexicon is passed on: what is published of this dataset is its recipe.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from typing import NamedTuple

from pydantic import Field

from plumbline.builders.core.errors import UserError
from plumbline.builders.core.params import SnapshotParams
from plumbline.builders.core.parquet import Reject, Row
from plumbline.builders.core.schema import Column, Schema
from plumbline.builders.core.snapshot import Snapshot
from plumbline.builders.readers.declared import read
from plumbline.builders.readers.table import lines

EMOTIONS = ("anger", "anticipation", "disgust", "fear", "joy", "sadness", "surprise", "trust")
SENTIMENTS = ("positive", "negative")
AFFECTS = EMOTIONS + SENTIMENTS
FILE = "emolex.txt"
ENGLISH = "English Word"  # first column of the translated files
UNTRANSLATED = ("", "NO TRANSLATION")

COLUMNS = (
    Column("word", "string", "the word, NFC, else as the source has it", prose="word"),
    Column(
        "english",
        "string",
        "the English word that was judged; where `word` is its translation, several may share "
        "one translation",
        prose="word",
    ),
    *(
        Column(name, "bool", f"whether people associate the English word with {name}")
        for name in EMOTIONS
    ),
    *(Column(name, "bool", f"whether people call it {name}") for name in SENTIMENTS),
)
SCHEMA = Schema(COLUMNS, key=("word", "english"))
COUNTS = ("positive negative",)  # of the card


class Params(SnapshotParams):
    """The snapshot to build from, and its languages."""

    languages: list[str] = Field(min_length=1, description="one config for each")


class Entry(NamedTuple):
    """A word, what was judged, and whether each of :data:`AFFECTS` goes with it."""

    word: str
    english: str
    affects: tuple[bool, ...]


def build(snapshot: Snapshot, params: Params) -> Iterator[Row | Reject]:
    """Yield one row per word and English word, sorted; rejects are words without translation."""
    for language in params.languages:
        name = f"{language}/{FILE}"
        if name not in snapshot.names(""):
            raise UserError(
                f"{snapshot.folder}: no lexicon for {language!r}; add one under "
                "sources.emotions.files and fetch, or take it out of datasets.emotions.languages"
            )
        found: dict[tuple[str, str], tuple[bool, ...]] = {}
        for entry in read(snapshot, name, lexicon, "fetch it again"):
            word, english = (unicodedata.normalize("NFC", w) for w in (entry.word, entry.english))
            if word in UNTRANSLATED or (word, english) in found:
                reason = "no translation" if word in UNTRANSLATED else "a second time"
                yield Reject(language, english, reason)
            else:
                found[word, english] = entry.affects
        for (word, english), affects in sorted(found.items()):
            flags = dict(zip(AFFECTS, affects, strict=True))
            yield Row(language, {"word": word, "english": english} | flags)


def lexicon(body: bytes) -> Iterator[Entry]:
    """Yield the words of a file in one of the two layouts of the lexicon.

    English has a line ``word, affect, 0 or 1`` for each of the ten affects of a word; a
    translation has a line a word: the English word, ten columns of 0 and 1, the translation.
    """
    numbered = enumerate(lines(body, whole=True), start=1)
    rows = [(number, line.split("\t")) for number, line in numbered if line.strip()]
    if not rows:
        raise ValueError("no word in it")
    yield from _translated(rows) if rows[0][1][0].strip() == ENGLISH else _judged(rows)


def _judged(lines: list[tuple[int, list[str]]]) -> Iterator[Entry]:
    """Gather the ten lines of each English word."""
    words: dict[str, dict[str, bool]] = {}
    for number, fields in lines:
        if len(fields) != 3:
            raise ValueError(f"line {number} has {len(fields)} columns, not three")
        word, affect, flag = fields
        if affect not in AFFECTS or affect in words.setdefault(word, {}):
            raise ValueError(f"line {number}: {affect!r} is no affect, or there a second time")
        words[word][affect] = _flag(flag, number)
    for word, affects in words.items():
        if lacking := [name for name in AFFECTS if name not in affects]:
            raise ValueError(f"{word!r} has no line for {', '.join(lacking)}")
        yield Entry(word, word, tuple(affects[name] for name in AFFECTS))


def _translated(lines: list[tuple[int, list[str]]]) -> Iterator[Entry]:
    """Read one line a word, columns by their names."""
    head = [name.strip() for name in lines[0][1]]
    if len(head) != len(AFFECTS) + 2 or set(head[1:-1]) != set(AFFECTS):
        raise ValueError("its columns are not the English word, ten affects and one translation")
    at = [head.index(name) for name in AFFECTS]
    for number, fields in lines[1:]:
        if len(fields) != len(head):
            raise ValueError(f"line {number} has {len(fields)} columns, not {len(head)}")
        flags = tuple(_flag(fields[i], number) for i in at)
        yield Entry(fields[-1].strip(), fields[0].strip(), flags)


def _flag(text: str, number: int) -> bool:
    if text not in ("0", "1"):
        raise ValueError(f"line {number}: {text!r} is neither 0 nor 1")
    return text == "1"
