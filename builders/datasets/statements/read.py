"""Files of statements to agree or disagree with, and their scoring."""

from __future__ import annotations

import unicodedata
from typing import NamedTuple

import regex

from plumbline.builders.readers.spelling import decimal
from plumbline.builders.readers.table import table

COLUMNS = ["id", "text", "axis", "weight", "reversed", "polarity", "opposite"]
POLARITIES = ("likely", "unlikely")
VALUES = ("anti-authoritarianism", "cultural liberalism", "economic equity", "tribalism")
ITEMS = {"PI34": 34}  # number of statements in each published scale
STOP = r"[\p{Sentence_Terminal}…]"  # a sign that ends a sentence, in any script
FULL_STOPS = {"ARMENIAN": "։", "ETHIOPIC": "።", "KHMER": "។", "MYANMAR": "။"}
FULL_STOPS |= {  # by the script's first word in Unicode names of letters; elsewhere a period
    **dict.fromkeys(("DEVANAGARI", "BENGALI", "GURMUKHI", "ORIYA"), "।"),
    **dict.fromkeys(("CJK", "HIRAGANA", "KATAKANA"), "。"),
    **dict.fromkeys(("THAI", "LAO"), ""),
}


class Statement(NamedTuple):
    """One statement on one axis."""

    id: str
    text: str
    axis: str  # "" for statements about no measured axis
    weight: float
    reversed: bool
    polarity: str  # "" if the statement is not on a calibration scale
    opposite: str  # id of the opposite statement, or ""
    sentence: str  # the text as a separate sentence
    points: tuple[float, ...] = ()  # points of the four answers; empty for linear scales


def statements(body: bytes, scale: str = "") -> list[Statement]:
    """Return the statements in a CSV file with the columns :data:`COLUMNS`.

    A statement that affects several axes has one line for each axis.

    ``scale``: name of the scale; a scale in :data:`ITEMS` must have all of its statements, and its
    axes must be in :data:`VALUES`.
    """
    entries: dict[tuple[str, str], Statement] = {}
    worded: dict[str, str] = {}
    for number, fields in table(body, COLUMNS)[1]:
        entry = _entry(fields, number)
        if (entry.id, entry.axis) in entries:
            raise ValueError(f"line {number}: {entry.id!r} is repeated on {entry.axis!r}")
        if worded.setdefault(entry.id, entry.text) != entry.text:
            raise ValueError(f"line {number}: {entry.id!r} has a different text than before")
        entries[entry.id, entry.axis] = entry
    if not entries:
        raise ValueError("the file has no statements")
    if lost := sorted({e.opposite for e in entries.values()} - set(worded) - {""}):
        raise ValueError(f"opposite: unknown statement {lost[0]!r}")
    axes = {axis for _, axis in entries}
    if len(worded) != ITEMS.get(scale, len(worded)):
        raise ValueError(f"{len(worded)} statements, but {scale} has {ITEMS[scale]}")
    if scale in ITEMS and (strange := sorted(axes - set(VALUES))):
        raise ValueError(f"axis {strange[0]!r} is not one of {scale}: {', '.join(VALUES)}")
    return list(entries.values())


def _entry(fields: list[str], number: int) -> Statement:
    name, text, axis, weight, turned, polarity, opposite = fields
    if any(field != " ".join(field.split()) for field in fields) or not (name and text):
        raise ValueError(f"line {number}: id or text is empty, or a field has superfluous spaces")
    if regex.search(rf"{STOP}$|\{{|<mask>", text):
        raise ValueError(f"line {number}: {text!r} must have no final stop, brace or mask")
    fits = turned in ("yes", "no") and polarity in ("", *POLARITIES)
    if not fits or bool(axis) == bool(polarity):
        raise ValueError(
            f"line {number}: reversed must be yes or no, and there must be an axis, or a polarity "
            f"({' or '.join(POLARITIES)})"
        )
    value = decimal(weight)
    if not value:
        raise ValueError(f"line {number}: weight {weight!r} is 0 or not a finite number")
    sentence = f"{text[0].upper()}{text[1:]}{full_stop(text)}"
    return Statement(name, text, axis, value, turned == "yes", polarity, opposite, sentence)


def full_stop(text: str) -> str:
    """Return the full stop of a text's script, or "" if the script has none."""
    scripts = (unicodedata.name(letter, "").split(" ")[0] for letter in text)
    return next((FULL_STOPS[script] for script in scripts if script in FULL_STOPS), ".")
