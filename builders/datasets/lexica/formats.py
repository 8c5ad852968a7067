"""Sentiment lexica: declaration of a view (one lexicon), and a reader for each file format.

A reader converts a view's files to entries; for a line without an entry, it yields the reason.
Python source is parsed, never executed.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Iterator
from itertools import islice, zip_longest
from typing import Any, Literal, NamedTuple
from urllib.parse import urldefrag, urlsplit

from pydantic import Field, model_validator

from plumbline.builders.core.params import Name
from plumbline.builders.readers.archives import unpacked
from plumbline.builders.readers.declared import Terms
from plumbline.builders.readers.spelling import decimal, lowered, straight
from plumbline.builders.readers.table import decoded, lines, literal, table_rows

AXES: tuple[Literal["positive", "negative", "neutral"], ...] = ("positive", "negative", "neutral")
# A comment in a word list: semicolons before a space or a word; emoticons such as ;) are entries.
COMMENT = re.compile(r";+(\s|$|[^\W\d_]{3})")
RATERS = 10  # VADER has ten raters, who gave integers from -4 to 4
POS = {
    **dict.fromkeys(("adj", "a", "s"), "ADJ"),
    **dict.fromkeys(("verb", "v"), "VERB"),
    **dict.fromkeys(("noun", "n"), "NOUN"),
    **dict.fromkeys(("adverb", "adv", "r"), "ADV"),
}


class View(Terms):
    """One lexicon: files, format, scale and terms of use."""

    name: Name = Field(description="name of the view")
    files: dict[str, str] = Field(
        min_length=1,
        description="address of each file, or its path in the checkout; ADDRESS#MEMBER if in an "
        "archive. The keys are names of your choice; for plain word lists, they are the labels",
    )
    format: Literal["table", "list", "vader", "mpqa", "emolex", "senticnet", "sentiwordnet"] = (
        Field(description="format of the files")
    )
    scale: Literal["binary", "classes", "counts", "continuous", "pairs"] = Field(
        description="binary (Bernoulli), classes or counts (Multinomial), continuous (Normal), or "
        "pairs (positive, negative; two Normals)"
    )
    labels: dict[str, float] = Field(
        default_factory=dict,
        description="for binary and classes: each label in the files, and its value from -1 "
        "(negative) to 1 (positive)",
    )
    low: float = Field(-1, description="for continuous: the most negative value")
    high: float = Field(1, description="for continuous: the most positive value")
    encoding: str = Field(
        "utf-8", description="encoding of the files; a byte order mark is dropped"
    )
    delimiter: str = Field("\t", min_length=1, max_length=1, description="for tables")
    header: bool = Field(False, description="for tables: whether the first line names the columns")
    word: int = Field(0, ge=0, description="for tables: column of the word, counted from 0")
    value: list[int] = Field([1], description="for tables: column of the value; two for pairs")
    pos: int | None = Field(None, ge=0, description="for tables: column of the part of speech")

    @model_validator(mode="after")
    def _whole(self) -> View:
        if self.scale == "binary" and sorted(self.labels.values()) != [-1, 1]:
            raise ValueError(f"{self.name}: a binary view needs labels for -1 and 1")
        if self.scale == "classes" and len(self.labels) < 2:
            raise ValueError(f"{self.name}: a view of classes needs two labels or more")
        if self.low >= self.high:
            raise ValueError(f"{self.name}: low must be below high")
        if self.format == "table" and len(self.value) != 1 + (self.scale == "pairs"):
            raise ValueError(f"{self.name}: needs one column for the value, or two for pairs")
        return self

    def paths(self, language: str) -> dict[str, str]:
        """Return the snapshot path of each address, given without the member of an archive."""
        plain = sorted({urldefrag(a).url for a in self.files.values()})
        names = (urlsplit(a).path.rstrip("/").rpartition("/")[2] or "file" for a in plain)
        return {a: f"{language}/{self.name}/{name}" for a, name in zip(plain, names, strict=True)}


class Entry(NamedTuple):
    """A word, its value in a view (a label or numbers), and its part of speech, if any."""

    word: str
    value: str | tuple[float, ...]
    pos: str | None = None


# Line; then word, value and part of speech, or the reason why the line has no entry.
Found = Iterator[tuple[int, str, Any, str] | tuple[int, str]]


def entries(
    view: View, files: dict[str, bytes], language: str = ""
) -> Iterator[tuple[str, Entry | str]]:
    """Read a view's files.

    ``files``: contents of the files, keyed by address without the member of an archive.
    ``language``: language of the words, which determines their lower case.

    Yields
    ------
    tuple
        The position of a line, and its entry, or the reason why it has none. Words are in NFC and
        lower case, with spaces for underscores and straight apostrophes. Labels are those that the
        view declares; numbers are finite and, for
        continuous views, scaled linearly to -1 to 1; counts are those of VADER's nine ratings;
        pairs are (positive, negative), each from 0 to 1.
    """
    for key, address in sorted(view.files.items()):
        plain, member = urldefrag(address)
        body = unpacked(files[plain], member, ending=True) if member else files[plain]
        for line, *entry in READERS[view.format](view, decoded(body, view.encoding), key):
            checked = _checked(view, language, *entry) if len(entry) > 1 else str(entry[0])
            yield f"{key}, line {line}", checked


def read(view: View, address: str, body: bytes) -> list[Entry]:
    """Return the entries in one of a view's files; raise ValueError if it has none."""
    part = {k: a for k, a in view.files.items() if urldefrag(a).url == address}
    alone = view.model_copy(update={"files": part})
    accepted = [e for _, e in entries(alone, {address: body}) if isinstance(e, Entry)]
    if not accepted:
        raise ValueError(f"the file has no entry that can be read as {view.format}")
    return accepted


def normal(word: str, language: str = "") -> str:
    """Normalise a word for matching: NFC, lower case, single spaces, straight apostrophes."""
    text = unicodedata.normalize("NFC", word.replace("_", " ").replace("\ufeff", ""))
    return " ".join(lowered(straight(text), language).split())


def _checked(view: View, language: str, word: str, value: Any, pos: str) -> Entry | str:
    word = normal(word, language)
    if not word:
        return "no word"
    if view.scale in ("binary", "classes"):
        if value not in view.labels:
            return "label that the view does not declare"
    else:
        value = _numbers(value)
        if value is None:
            return "not a number"
        if view.scale == "continuous":
            value = tuple(round(2 * (x - view.low) / (view.high - view.low) - 1, 9) for x in value)
        low, high = {"continuous": (-1, 1), "pairs": (0, 1), "counts": (0, math.inf)}[view.scale]
        if not all(low <= x <= high for x in value):
            return "out of range"
    return Entry(word, value, POS.get(pos.lower()))


def _numbers(value: Any) -> tuple[float, ...] | None:
    values = value if isinstance(value, tuple | list) else (value,)
    numbers = tuple(number for x in values if (number := decimal(str(x))) is not None)
    return numbers if len(numbers) == len(values) else None


def _lines(text: str) -> Iterator[tuple[int, str]]:
    return ((n, line) for n, line in enumerate(lines(text), start=1) if line.strip())


def _table(view: View, text: str, _key: str) -> Found:
    """Read delimited columns; quotes may enclose cells unless the delimiter is a tab."""
    rows = table_rows(text, view.delimiter, quoted=view.delimiter != "\t")
    needed = [view.word, *view.value, *([] if view.pos is None else [view.pos])]
    for line, row in islice(rows, int(view.header), None):
        if len(row) <= max(needed):
            yield line, "too few columns"
            continue
        if any("\n" in row[i] for i in needed):
            raise ValueError(f"line {line}: a quote is not closed in its line")
        cells = [row[i].strip() for i in view.value]
        pos = "" if view.pos is None else row[view.pos].strip()
        yield line, row[view.word], cells[0] if len(cells) == 1 else tuple(cells), pos


def _list(_view: View, text: str, key: str) -> Found:
    """Read one word per line, labelled with its file's key; see :data:`COMMENT`."""
    for number, line in _lines(text):
        if not COMMENT.match(line):
            yield number, line, key, ""


def _vader(_view: View, text: str, _key: str) -> Found:
    """Read a word, its mean, SD and ten ratings, which become counts of the values -4 to 4."""
    for number, line in _lines(text):
        cells = line.split("\t")
        ratings = re.findall(r"-?\d+", cells[3]) if len(cells) == 4 else []
        counts = tuple(list(map(int, ratings)).count(rating) for rating in range(-4, 5))
        sound = len(ratings) == sum(counts) == RATERS
        wrong = number, "not ten ratings from -4 to 4"
        yield (number, cells[0], counts, "") if sound else wrong


def _mpqa(_view: View, text: str, _key: str) -> Found:
    """Read clues written as ``key=value`` pairs."""
    for number, line in _lines(text):
        fields = dict(part.split("=", 1) for part in line.split() if "=" in part)
        if {"word1", "priorpolarity"} <= set(fields):
            yield number, fields["word1"], fields["priorpolarity"], fields.get("pos1", "")
        else:
            yield number, "no word1 or priorpolarity"


def _emolex(_view: View, text: str, _key: str) -> Found:
    """Read a word, an emotion, and 0 or 1; lines for positive and negative form pairs."""
    signs: defaultdict[tuple[str, str], list[tuple[int, str]]] = defaultdict(list)
    for number, line in _lines(text):
        cells = [cell.strip() for cell in line.split("\t")]
        if len(cells) != 3 or cells[2] not in ("0", "1"):
            yield number, "not word, emotion and 0 or 1"
        elif cells[1] in ("positive", "negative"):
            signs[cells[0], cells[1]].append((number, cells[2]))
        else:
            yield number, "emotion other than positive and negative"
    for word in dict.fromkeys(word for word, _ in signs):
        for up, down in zip_longest(signs[word, "positive"], signs[word, "negative"]):
            if up and down:
                yield max(up[0], down[0]), word, (up[1], down[1]), ""
            else:
                yield (up or down)[0], "only one of positive and negative"


def _senticnet(_view: View, text: str, _key: str) -> Found:
    """Read Python source: ``senticnet["word"] = [four sentics, two tags, polarity, five words]``.

    Some releases have a label (``"positive"``) before the polarity.
    """
    for number, line in _lines(text):
        name, _, assigned = line.partition("[")
        if line.lstrip().startswith("#") or re.fullmatch(r"\s*\w+\s*=\s*\{\s*\}\s*", line):
            continue
        key, _, value = assigned.partition("] = ")
        try:
            word, items = literal(key), literal(value)
        except ValueError:
            yield number, "not an assignment of a list"
            continue
        after = items[6:8] if isinstance(items, list) else []
        labelled = len(after) > 1 and after[0] in AXES
        if isinstance(word, str) and after and name.strip().isidentifier():
            yield number, word, (after[labelled],), ""
        else:
            yield number, "no polarity in the list"


def _sentiwordnet(_view: View, text: str, _key: str) -> Found:
    """Read part of speech, id, positive and negative score, and words separated by commas."""
    for number, line in (pair for pair in _lines(text) if pair[1][0] != "#"):
        cells = line.split()
        if len(cells) != 5 or _numbers(cells[2:4]) is None:
            yield number, "not five columns"
            continue
        words, value = filter(None, cells[4].split(",")), tuple(cells[2:4])
        yield from ((number, word, value, cells[0]) for word in words)


READERS: dict[str, Callable[[View, str, str], Found]] = {
    "table": _table,
    "list": _list,
    "vader": _vader,
    "mpqa": _mpqa,
    "emolex": _emolex,
    "senticnet": _senticnet,
    "sentiwordnet": _sentiwordnet,
}
