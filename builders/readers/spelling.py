"""Numbers, apostrophes and capitals as people write them."""

from __future__ import annotations

import re

MISSING = ("", "-", "na", "n/a", "nan", "none", "null")  # spellings of a missing value
FLOAT = re.compile(r"-?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,2})?")
SPACE = re.compile(r"(?<=\d)[ \u00a0\u2009\u202f'’](?=\d{3}(?!\d))")  # separates thousands
# Numbers with commas and points: pattern, separator of thousands, and decimal separator.
WRITTEN = (
    (re.compile(r"-?\d{1,3}(,\d{2,3})*,\d{3}\.\d+|-?\d{1,3}(,\d{2,3})+,\d{3}"), ",", "."),
    (re.compile(r"-?\d{1,3}(\.\d{3})+,\d+|-?\d{1,3}(\.\d{3}){2,}"), ".", ","),
    (re.compile(r"(?!-?[1-9]\d{0,2},\d{3}$)-?\d+,\d+"), "", ","),
)
POINT = re.compile(r"\d{1,3}\.\d{3}")  # may separate thousands of a whole number
APOSTROPHE = re.compile(r"[’ʼ＇]|(?<=\w)[‘ʻ`´](?=\w)")
DOTTED = ("az", "crh", "gag", "tr")  # languages in which I and ı, and İ and i, are pairs


def decimal(text: str) -> float | None:
    """Return a number with a decimal point or comma, or None for other and ambiguous texts (1,234).

    Examples
    --------
    >>> [decimal(text) for text in ("-1.5", "−1,5", "1,234.5", "1.234,5", "1 234")]
    [-1.5, -1.5, 1234.5, 1234.5, 1234.0]
    """
    plain = SPACE.sub("", text.strip().replace("−", "-").removeprefix("+"))
    for pattern, thousands, point in WRITTEN:
        if pattern.fullmatch(plain):
            plain = (plain.replace(thousands, "") if thousands else plain).replace(point, ".")
            break
    return float(plain) if FLOAT.fullmatch(plain) else None


def whole(text: str) -> int | None:
    """Return an integer from 0 (1,234 is 1234), or None for other and ambiguous texts (1.234)."""
    plain = re.sub(r"^([1-9]\d{0,2}),(\d{3})$", r"\1\2", text.strip())
    value = decimal(plain)
    if value is None or value < 0 or value != int(value) or POINT.fullmatch(plain):
        return None
    return int(value)


def straight(text: str) -> str:
    """Return a text in which typographic apostrophes are straight, for lookups."""
    return APOSTROPHE.sub("'", text)


def lowered(text: str, language: str = "") -> str:
    """Return a text in lower case by the rules of its language; ``İ`` is ``i`` in all of them."""
    text = text.replace("I\u0307", "i").replace("İ", "i")
    return (text.replace("I", "ı") if language.partition("-")[0] in DOTTED else text).lower()
