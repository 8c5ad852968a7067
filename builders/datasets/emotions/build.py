"""Dataset ``emotions``: words and the emotions that people associate with them (NRC EmoLex).

Mohammad and Turney (2013) rate ten affects: Plutchik's eight basic emotions, and two sentiments.
The authors forbid redistribution of the lexicon, so only the recipe of this dataset is published.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator

from plumbline.builders.core.params import LanguageParams as Params
from plumbline.builders.core.parquet import Reject, Row
from plumbline.builders.core.schema import Column, Schema
from plumbline.builders.core.snapshot import Snapshot
from plumbline.builders.readers.declared import read
from plumbline.builders.readers.table import decoded, lines

EMOTIONS = ("anger", "anticipation", "disgust", "fear", "joy", "sadness", "surprise", "trust")
SENTIMENTS = ("positive", "negative")
AFFECTS = EMOTIONS + SENTIMENTS
FILE = "emolex.txt"
ENGLISH = "English Word"  # header of the first column in translated files
UNTRANSLATED = ("", "NO TRANSLATION")

COLUMNS = (
    Column("word", "string", "the word as in the source, normalised to NFC", prose="word"),
    Column(
        "english",
        "string",
        "the rated English word; several of them may share one translation in `word`",
        prose="word",
    ),
    *(
        Column(name, "bool", f"whether people associate the English word with {name}")
        for name in EMOTIONS
    ),
    *(Column(name, "bool", f"whether the English word is rated as {name}") for name in SENTIMENTS),
)
SCHEMA = Schema(COLUMNS, key=("word", "english"))
COUNTS = ("positive negative",)  # columns tabulated in the card


def build(snapshot: Snapshot, params: Params) -> Iterator[Row | Reject]:
    """Yield one row per word and English word, sorted; words without a translation are rejected."""
    advice = "add it under sources.emotions.files, or fetch it again"
    for language in params.languages:
        judged: dict[tuple[str, str], dict[str, bool]] = {}
        for entry in read(snapshot, f"{language}/{FILE}", lexicon, advice):
            word, english = (unicodedata.normalize("NFC", text) for text in entry[:2])
            if word in UNTRANSLATED or (word, english) in judged:
                reason = "no translation" if word in UNTRANSLATED else "a second time"
                yield Reject(language, english, reason)
            else:
                judged[word, english] = entry[2]
        for (word, english), affects in sorted(judged.items()):
            yield Row(language, {"word": word, "english": english} | affects)


def lexicon(body: bytes) -> Iterator[tuple[str, str, dict[str, bool]]]:
    """Yield the words in a file that has either of the two layouts of the lexicon.

    The English file has a line ``word, affect, 0 or 1`` for each of the ten affects of a word; a
    translated file has one line per word: the English word, ten columns of 0 and 1, and the
    translation.

    Yields
    ------
    tuple
        The word, the rated English word, and whether it is associated with each of
        :data:`AFFECTS`.
    """
    numbered = enumerate(lines(decoded(body, complete=True)), start=1)
    rows = [(number, line.split("\t")) for number, line in numbered if line.strip()]
    if not rows:
        raise ValueError("the file has no words")
    head = [name.strip() for name in rows[0][1]]
    translated = head[0] == ENGLISH
    columns = head[1:-1] if translated else ["affect"]
    if translated and sorted(columns) != sorted(AFFECTS):
        raise ValueError("columns must be the English word, ten affects and a translation")
    words: dict[tuple[str, str, int], dict[str, bool]] = {}
    for number, fields in rows[translated:]:
        if len(fields) != len(columns) + 2:
            raise ValueError(f"line {number} has {len(fields)} columns, not {len(columns) + 2}")
        if translated:  # a word may occur on several lines
            affects_of_word = words[fields[-1].strip(), fields[0].strip(), number] = {}
            judged = dict(zip(columns, fields[1:-1], strict=True))
        else:
            affects_of_word = words.setdefault((fields[0], fields[0], 0), {})
            judged = {fields[1]: fields[2]}
        for affect, flag in judged.items():
            if affect not in AFFECTS or affect in affects_of_word or flag not in ("0", "1"):
                raise ValueError(f"line {number}: {affect!r} is unknown, repeated, or not 0 or 1")
            affects_of_word[affect] = flag == "1"
    for (word, english, _), affects in words.items():
        if missing := [name for name in AFFECTS if name not in affects]:
            raise ValueError(f"{word!r} has no line for {', '.join(missing)}")
        yield word, english, {name: affects[name] for name in AFFECTS}
