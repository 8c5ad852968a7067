"""The suggestions that Choenni et al. (2021) published: tabs, and a line break in each field."""

from __future__ import annotations

import re
from collections import Counter
from typing import NamedTuple

from plumbline.builders.readers.table import table

COLUMNS = ["input", "target_category", "target_group", "completion", "search_engine"]
ENGINES = ("duckduckgo", "google", "multiple", "yahoo")
PLACE = "{group}"


class Published(NamedTuple):
    """One row of the file, its fields stripped."""

    number: int  # of the row in the file, from 1
    query: str
    category: str
    group: str
    attribute: str
    engine: str

    @property
    def template(self) -> str:
        """Return the query with a place where the group was."""
        return re.sub(rf"(?<!\w){re.escape(self.group)}(?!\w)", PLACE, self.query, count=1)


def published(body: bytes) -> list[Published]:
    """Return the rows of a file in the authors' format."""
    rows = []
    for line, fields in table(body, COLUMNS, "\t")[1]:
        number = line - 1
        row = Published(number, *(" ".join(field.split()) for field in fields))
        if not all(row):
            raise ValueError(f"row {number} has an empty field")
        if row.engine not in ENGINES:
            raise ValueError(f"row {number}: {row.engine!r} is none of the engines")
        if PLACE not in row.template:
            raise ValueError(f"row {number}: {row.group!r} is not in its query")
        rows.append(row)
    if not rows:
        raise ValueError("no row in it")
    return rows


def chosen(rows: list[Published], single: list[Published]) -> set[int]:
    """Return the numbers of those rows that a second file, of single words, has too.

    Each row of the second file stands for one of the first: of the same engine where there is
    one, else the first that is left.
    """
    found: set[int] = set()
    for end in (None, 5):  # with the engine, then without
        # rows of the second file that have found theirs already are taken out
        rest = Counter(row[1:end] for row in single)
        rest.subtract(row[1:end] for row in rows if row.number in found)
        for row in rows:
            if row.number not in found and rest[row[1:end]] > 0:
                rest[row[1:end]] -= 1
                found.add(row.number)
    return found
