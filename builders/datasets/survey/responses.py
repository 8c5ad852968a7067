"""Files of survey answers: one line per respondent, one column per item, perhaps one of weights."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import NamedTuple

from plumbline.builders.core.private import pseudonym
from plumbline.builders.readers.table import table

SIMULATED = "simulated"
FIRST = ["respondent", "gender", "infected"]
GENDERS = ("female", "male", "unstated")
INFECTED = ("no", "yes", "unknown")
LOWEST, HIGHEST = 1, 5
NUMBER = re.compile(r"\d{1,9}(\.\d+)?")


class Respondent(NamedTuple):
    """One respondent."""

    name: str
    gender: str
    infected: str
    answers: Mapping[str, int | None]  # from 1 to 5, keyed by item; None if missing
    weight: float = 1.0


def respondents(
    body: bytes, items: Sequence[str] = (), weight: str = "", *, simulated: bool = False
) -> list[Respondent]:
    """Return the respondents in a CSV file with the columns :data:`FIRST` and one for each item.

    Error messages never contain a cell's content. The names of simulated respondents begin with a
    fixed prefix; the names of others are not stored.

    ``items``: patterns of the names of the items' columns, such as ``i*``; in a simulated survey,
    all columns are items by default.
    ``weight``: name of the column of the respondents' weights, or "".
    """
    head, rows = table(body, FIRST, more=True)
    columns = _items(head, items or (["*"] if simulated else []), weight)
    people: dict[str, Respondent] = {}
    for number, fields in rows:
        cells = dict(zip(head, fields, strict=True))
        name, gender, infected = (cells[column] for column in FIRST)
        load = cells[weight] if weight else "1"
        if not NUMBER.fullmatch(load) or not float(load):
            raise ValueError(f"line {number}: the weight is not a number above 0, such as 1.25")
        if gender not in GENDERS or infected not in INFECTED:
            allowed = f"{', '.join(GENDERS)}; {', '.join(INFECTED)}"
            raise ValueError(f"line {number}: gender or infected is none of {allowed}")
        for item in columns:
            if cells[item] not in ("", *map(str, range(LOWEST, HIGHEST + 1))):
                raise ValueError(f"line {number}: the answer to {item} is not from 1 to 5")
        if not name or name in people:
            raise ValueError(f"line {number}: a respondent has no name or is repeated")
        if simulated and not name.startswith(SIMULATED):
            raise ValueError(f"line {number}: a simulated name must begin with {SIMULATED}-")
        answers = {item: int(cells[item]) if cells[item] else None for item in columns}
        people[name] = Respondent(name, gender, infected, answers, float(load))
    if not people:
        raise ValueError("the file has no respondents")
    return list(people.values())


def _items(head: list[str], patterns: Sequence[str], weight: str) -> list[str]:
    """Return the columns of the items, which must be those that are declared."""
    columns = [name for name in head[len(FIRST) :] if name != weight]
    if not columns or len(set(head)) < len(head) or "" in head or (weight and weight not in head):
        raise ValueError(
            "line 1: no items, a column without a unique name, or no column of weights"
        )
    matched = {(n, pattern) for n in columns for pattern in patterns if fnmatchcase(n, pattern)}
    if strange := [n for n in columns if n not in {n for n, _ in matched}]:
        raise ValueError(f"line 1: the column {strange[0]!r} is not declared as an item")
    if lost := set(patterns) - {pattern for _, pattern in matched}:
        raise ValueError(f"line 1: no column is the declared item {min(lost)!r}")
    return columns


def unnamed(body: bytes) -> bytes:
    """Return a file of answers in which pseudonyms replace the names, sorted by pseudonym."""
    head, rows = table(body, FIRST, more=True)
    written = io.StringIO()
    lines = sorted([pseudonym(name), *values] for _, (name, *values) in rows)
    csv.writer(written, lineterminator="\n").writerows([head, *lines])
    return written.getvalue().encode()
