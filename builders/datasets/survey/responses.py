"""Files of a survey's answers: a line a respondent, a column an item."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

FIRST = ["respondent", "gender", "infected"]
GENDERS = ("female", "male", "unstated")
INFECTED = ("no", "yes", "unknown")
LOWEST, HIGHEST = 1, 5


class Respondent(NamedTuple):
    """One respondent."""

    name: str
    gender: str
    infected: str
    answers: Mapping[str, int | None]  # by item, 1 to 5; None where there is none


def respondents(body: bytes) -> list[Respondent]:
    """Return the respondents of a CSV file: :data:`FIRST`, then a column for each item.

    Raises
    ------
    ValueError
        With what is wrong and where.
    """
    try:
        text = body.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError("not UTF-8") from error
    if not text.endswith("\n"):
        raise ValueError("cut short: no line break at its end")
    lines = list(csv.reader(io.StringIO(text, newline="")))
    items = lines[0][len(FIRST) :] if lines else []
    if not lines or lines[0][: len(FIRST)] != FIRST or not items:
        raise ValueError(f"line 1: not the columns {', '.join(FIRST)} and then items")
    if len(set(items)) < len(items) or "" in items:
        raise ValueError("line 1: an item has no name, or one that another has")
    found: dict[str, Respondent] = {}
    for number, fields in enumerate(lines[1:], start=2):
        person = _respondent(fields, items, number)
        if not person.name or person.name in found:
            raise ValueError(f"line {number}: a respondent has no name, or a second line")
        found[person.name] = person
    if not found:
        raise ValueError("no respondent in it")
    return list(found.values())


def _respondent(fields: list[str], items: list[str], number: int) -> Respondent:
    """Return what one line says."""
    if len(fields) != len(FIRST) + len(items):
        raise ValueError(f"line {number} has {len(fields)} columns, not {len(FIRST) + len(items)}")
    name, gender, infected = fields[: len(FIRST)]
    for value, known in ((gender, GENDERS), (infected, INFECTED)):
        if value not in known:
            raise ValueError(f"line {number}: {value!r} is none of {', '.join(known)}")
    answers = {}
    for item, value in zip(items, fields[len(FIRST) :], strict=True):
        if value not in ("", *map(str, range(LOWEST, HIGHEST + 1))):
            raise ValueError(f"line {number}: answer {value!r} to {item} is not 1 to 5")
        answers[item] = int(value) if value else None
    return Respondent(name, gender, infected, answers)
