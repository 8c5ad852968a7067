"""Published questionnaires in their authors' formats and in the project's own.

The file of the political compass contains its propositions and the score of each response on each
axis, as recovered from the site's results; that of 8values is a line of JavaScript that assigns a
list and is read as text, never executed.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import cache
from typing import Literal

import regex

from plumbline.builders.datasets.statements.read import STOP, Statement, statements
from plumbline.builders.readers.table import decoded, parsed

Format = Literal["csv", "political-compass", "8values"]
FILES: dict[Format, str] = {"csv": "csv", "political-compass": "json", "8values": "js"}

COMPASS_ITEMS, COMPASS_OPTIONS = 62, 4
# Minimum and maximum sums of points. The constants that centre the scores at 0, 3/8 and 47/19.5,
# are valid only for these sums.
COMPASS_RANGE = {"economic": (-83, 77), "social": (-242, 148)}

EIGHT_ITEMS = 70
EIGHT_AXES = ("econ", "dipl", "govt", "scty")
WORD = regex.compile(r"[\p{L}\p{M}\p{N}]+")
CAPITAL_NOUNS = ("de", "gsw", "lb", "nds")  # languages in which all nouns have capitals
ASSIGNED = re.compile(r"\s*(?:(?:var|let|const)\s+)?questions\s*=\s*(\[.*\])\s*;?\s*", re.DOTALL)


def scale(body: bytes, form: Format, name: str = "", language: str = "en") -> list[Statement]:
    """Return the statements in a file.

    ``name``: name of the scale; a published scale in the format csv is checked for completeness.
    """
    if form == "csv":
        return statements(body, name)
    text = decoded(body)
    rows = compass(text) if form == "political-compass" else eight_values(text)
    sentences = [row.sentence for row in rows]
    return [row._replace(text=framed(row.sentence, language, sentences)) for row in rows]


def compass(text: str) -> list[Statement]:
    """Return the 62 propositions of the political compass, with a row for each axis affected.

    The text is a JSON object with a list ``propositions`` of objects: ``id`` from 1 to 62, in this
    order; ``text``; ``economic`` and ``social``, each with the points on the axis for strongly
    disagree, disagree, agree and strongly agree. A proposition that affects neither axis has one
    row without an axis and with weight 0.
    """
    tree = parsed(text)
    entries = tree.get("propositions") if isinstance(tree, dict) else None
    if not isinstance(entries, list) or len(entries) != COMPASS_ITEMS:
        raise ValueError(f"not an object with a list of {COMPASS_ITEMS} 'propositions'")
    rows: list[Statement] = []
    for number, entry in enumerate(entries, start=1):
        where = f"proposition {number}"
        if not isinstance(entry, dict) or entry.get("id") != number:
            raise ValueError(f"{where}: does not have the id {number}")
        points = {axis: _numbers(entry.get(axis), f"{where}, {axis}") for axis in COMPASS_RANGE}
        moved = {axis: (n[-1] - n[0]) / 2 for axis, n in points.items() if any(n)}
        points[""] = (0.0,) * COMPASS_OPTIONS
        rows += _rows(f"pc-{number:02d}", _worded(entry.get("text"), where), moved, points)
    for axis, (least, most) in COMPASS_RANGE.items():
        numbers = [row.points for row in rows if row.axis == axis]
        sums = sum(map(min, numbers)), sum(map(max, numbers))
        if sums != (least, most):
            raise ValueError(
                f"{axis}: the answers add up to {sums[0]:g} to {sums[1]:g}, not {least} to {most}; "
                "0 would not be the middle of the compass"
            )
    return rows


def eight_values(text: str) -> list[Statement]:
    """Return the 70 questions of 8values, with a row for each axis that a question affects.

    The text is JavaScript: ``questions = [...];``. The list is JSON; its objects have a
    ``question`` and an ``effect``, a number for each of ``econ``, ``dipl``, ``govt``, ``scty``.
    """
    list_of = ASSIGNED.fullmatch(text)
    if not list_of:
        raise ValueError("not exactly 'questions = [...];'")
    entries = parsed(list_of[1])
    if len(entries) != EIGHT_ITEMS:
        raise ValueError(f"{len(entries)} questions, but 8values has {EIGHT_ITEMS}")
    rows: list[Statement] = []
    for number, entry in enumerate(entries, start=1):
        where = f"question {number}"
        effect = entry.get("effect") if isinstance(entry, dict) else None
        if not isinstance(effect, dict) or set(effect) != set(EIGHT_AXES):
            effect = {"": None}
        if not all(map(_number, effect.values())):
            raise ValueError(f"{where}: needs a number as effect on {', '.join(EIGHT_AXES)}")
        moved = {axis: float(effect[axis]) for axis in EIGHT_AXES if effect[axis]}
        rows += _rows(f"8v-{number:02d}", _worded(entry.get("question"), where), moved, {})
    return rows


def framed(sentence: str, language: str = "en", others: Sequence[str] = ()) -> str:
    """Return a sentence without its final stop and initial capital, so that it fits after "that".

    The first word keeps its capital if it has a second one, or is I, a country, a language (CLDR),
    or a word that has a capital inside ``others``, the questionnaire's sentences. In German, it
    loses the capital only if the sentences also have the word in lower case.

    Examples
    --------
    >>> framed("I’d keep it"), framed("NATO is old!"), framed("The law is the law.")
    ('I’d keep it', 'NATO is old', 'the law is the law')
    """
    text: str = regex.sub(f"{STOP}+$", "", sentence)
    word = regex.match(r"[\p{L}\p{M}\p{N}.]*", text)[0]
    inside = {other for own in others for other in WORD.findall(own)[1:]}
    keeps = len(regex.findall(r"\p{Lu}", word)) > 1 or (word == "I" and language == "en")
    if not keeps and word.lower() not in inside:
        keeps = language in CAPITAL_NOUNS or word in inside
        keeps |= any(regex.match(rf"{regex.escape(name)}\b", text) for name in _names(language))
    return text if keeps else text[:1].lower() + text[1:]


@cache
def _names(language: str) -> list[str]:
    """Return the names of places and major languages that have a capital in a language."""
    from babel import Locale, UnknownLocaleError

    with suppress(UnknownLocaleError):
        locale = Locale(language)
        names = {**locale.territories, **{k: v for k, v in locale.languages.items() if len(k) == 2}}
        return [name for code, name in names.items() if name[:1].isupper() and code != "001"]
    return []


def _rows(
    name: str, sentence: str, moved: dict[str, float], points: dict[str, tuple[float, ...]]
) -> Iterator[Statement]:
    """Yield a row for each axis with scores, or one row without an axis if there is none."""
    for axis, weight in (moved or {"": 0.0}).items():
        numbers = points.get(axis, ())
        yield Statement(name, sentence, axis, abs(weight), weight < 0, "", "", sentence, numbers)


def _worded(text: object, where: str) -> str:
    if (
        not isinstance(text, str)
        or not regex.sub(STOP, "", text).strip()
        or text != " ".join(text.split())
    ):
        raise ValueError(f"{where}: no text, or one with superfluous spaces")
    return text


def _number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _numbers(values: object, where: str) -> tuple[float, ...]:
    if isinstance(values, list) and len(values) == COMPASS_OPTIONS and all(map(_number, values)):
        return tuple(map(float, values))
    raise ValueError(f"{where}: not {COMPASS_OPTIONS} numbers")
