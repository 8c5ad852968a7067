"""Files of survey answers: one line per respondent, one column per item."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from typing import NamedTuple

from plumbline.builders.core.private import pseudonym
from plumbline.builders.readers.table import table

SIMULATED = "simulated"
FIRST = ["respondent", "gender", "infected"]
GENDERS = ("female", "male", "unstated")
INFECTED = ("no", "yes", "unknown")
LOWEST, HIGHEST = 1, 5


class Respondent(NamedTuple):
    """One respondent."""

    name: str
    gender: str
    infected: str
    answers: Mapping[str, int | None]  # from 1 to 5, keyed by item; None if missing


def respondents(body: bytes, *, simulated: bool = False) -> list[Respondent]:
    """Return the respondents in a CSV file with the columns :data:`FIRST` and one for each item.

    Error messages never contain a cell's content. The names of simulated respondents begin with a
    fixed prefix; the names of others are not stored.
    """
    head, rows = table(body, FIRST, more=True)
    items = head[len(FIRST) :]
    if not items or len(set(items)) < len(items) or "" in items:
        raise ValueError("line 1: no items, or an item without a unique name")
    people: dict[str, Respondent] = {}
    for number, (name, gender, infected, *values) in rows:
        if gender not in GENDERS or infected not in INFECTED:
            allowed = f"{', '.join(GENDERS)}; {', '.join(INFECTED)}"
            raise ValueError(f"line {number}: gender or infected is none of {allowed}")
        for item, value in zip(items, values, strict=True):
            if value not in ("", *map(str, range(LOWEST, HIGHEST + 1))):
                raise ValueError(f"line {number}: the answer to {item} is not from 1 to 5")
        if not name or name in people:
            raise ValueError(f"line {number}: a respondent has no name or is repeated")
        if simulated and not name.startswith(SIMULATED):
            raise ValueError(f"line {number}: a simulated name must begin with {SIMULATED}-")
        answers = [int(value) if value else None for value in values]
        people[name] = Respondent(name, gender, infected, dict(zip(items, answers, strict=True)))
    if not people:
        raise ValueError("the file has no respondents")
    return list(people.values())


def unnamed(body: bytes) -> bytes:
    """Return a file of answers in which pseudonyms replace the names, sorted by pseudonym."""
    head, rows = table(body, FIRST, more=True)
    written = io.StringIO()
    lines = sorted([pseudonym(name), *values] for _, (name, *values) in rows)
    csv.writer(written, lineterminator="\n").writerows([head, *lines])
    return written.getvalue().encode()
