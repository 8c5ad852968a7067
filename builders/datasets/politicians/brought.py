"""Files that a user may bring beside Wikidata: mentions of people, and the names to keep."""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING

from pydantic import Field

from plumbline.builders.core.params import Params
from plumbline.builders.readers.table import table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from plumbline.builders.core.snapshot import Snapshot

MENTIONS, NAMES = "mentions", "names"  # as declared, and of the snapshot's files


class Brought(Params):
    """A table of the user's, at an address or a place in the checkout."""

    file: str = Field(min_length=1, description="CSV file with a head")
    licence: str = Field(min_length=1, description="as its authors state it")
    citation: str = Field(min_length=1, description="what to cite")


def path_of(kind: str) -> str:
    """Return where a snapshot has it."""
    return f"{kind}.csv"


def mentions(body: bytes) -> Iterator[tuple[tuple[str, str], int]]:
    """Yield language and item of a person, and how often its Wikipedia mentions them.

    Raises
    ------
    ValueError
        With what is wrong and where.
    """
    _, rows = table(body, ("language", "qid", "mentions"))
    seen = set()
    for line, (language, qid, number) in rows:
        if not number.isdecimal() or int(number) >= 2**31:
            raise ValueError(f"line {line}: {number!r} is no number of mentions")
        if (language, qid) in seen:
            raise ValueError(f"line {line}: {qid} is there again for {language}")
        seen.add((language, qid))
        yield (language, qid), int(number)


def names(body: bytes) -> Iterator[tuple[str, str, str]]:
    """Yield language, name and gender of each person.

    Raises
    ------
    ValueError
        With what is wrong and where.
    """
    _, rows = table(body, ("language", "name", "gender"))
    for line, (language, name, gender) in rows:
        if gender not in {"male", "female", "non-binary"}:
            raise ValueError(f"line {line}: gender {gender!r} is not male, female or non-binary")
        yield language, normal(name), gender


READERS = {MENTIONS: mentions, NAMES: names}


def normal(name: str) -> str:
    """Return a name in NFC, with single spaces."""
    return " ".join(unicodedata.normalize("NFC", name).split())


def brought_to(
    snapshot: Snapshot,
) -> tuple[dict[tuple[str, str], int] | None, set[tuple[str, str, str]] | None]:
    """Return mentions and names of a snapshot, each None where it has none."""
    own = snapshot.manifest["request"]
    counted = dict(mentions(snapshot.read(path_of(MENTIONS)))) if MENTIONS in own else None
    listed = set(names(snapshot.read(path_of(NAMES)))) if NAMES in own else None
    return counted, listed
