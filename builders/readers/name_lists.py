"""Readers for lists of names by country, in the formats used by openly available lists."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from functools import cache
from typing import Any, Literal, NamedTuple

from pydantic import Field, model_validator

from plumbline.builders.core.params import Name
from plumbline.builders.core.params import Params as Section
from plumbline.builders.readers.declared import FORMAT
from plumbline.builders.readers.spelling import MISSING, straight, whole
from plumbline.builders.readers.table import decoded, parsed, records

Kind = Literal["male", "female", "last"]
KINDS: tuple[Kind, ...] = ("male", "female", "last")
BEARERS = ("any", "male", "female")
NOWHERE = "zz"  # CLDR's code for an unknown region; used for names of no particular country
OTHER_NAMES = {"czech republic": "cz", "turkey": "tr", "macedonia": "mk"}


class List(Section):
    """The address and the format of one list of names."""

    name: Name = Field(description="name of the list")
    address: str = Field(min_length=1, description="path in the checkout, or http address")
    format: Literal["table", "nested", "by-kind", "flat"] = Field(
        "table",
        validation_alias=FORMAT,
        description="table: CSV with a header; nested: JSON of names by country and gender; "
        "by-kind: JSON of names by kind and country; flat: JSON of names by kind",
    )
    columns: dict[Literal["country", "kind", "rank", "name", "native", "count", "bearer"], str] = (
        Field(
            {"country": "country", "kind": "kind", "rank": "rank", "name": "name"},
            description="for tables: name of the column for each field",
        )
    )
    kinds: dict[str, Kind] = Field(
        {"male": "male", "female": "female", "last": "last"},
        description="kind for each value in the column `kind`, or each key of by-kind and flat "
        "JSON; rows with other values are rejected",
    )
    kind: Kind | None = Field(None, description="kind of all names, if the file has no kinds")
    country: str | None = Field(
        None, pattern="^[a-z]{2}$", description="country of all names, if the file has no countries"
    )
    countries: dict[str, str] = Field(
        default_factory=dict,
        description="code for each country whose name in the file is not in CLDR",
    )
    licence: str = Field(min_length=1, description="licence as its authors state it")
    citation: str = Field(min_length=1, description="reference to cite")

    @model_validator(mode="after")
    def _told(self) -> List:
        if self.format == "flat" and not self.country:
            raise ValueError(f"{self.name}: a flat list needs a country ({NOWHERE}: none)")
        if self.format == "table":
            columns = {"kind": self.kind, "country": self.country} | self.columns
            if absent := [k for k in ("name", "rank", "kind", "country") if not columns.get(k)]:
                raise ValueError(f"{self.name}: columns lack {', '.join(absent)}")
        return self

    def path(self) -> str:
        """Return the path of the list's file in the snapshot."""
        return f"lists/{self.name}.{'csv' if self.format == 'table' else 'json'}"


class Listed(NamedTuple):
    """One entry of a list; ``country`` is empty if it is unknown."""

    country: str
    kind: Kind | None  # None if the list does not declare it; the entry has no name then
    bearer: str
    rank: int
    name: str  # in Latin letters; may be empty
    native: str  # native spelling; may be empty
    number: int | None  # number of people with the name
    position: str


def entries(entry: List, body: bytes) -> list[Listed]:
    """Return the entries of a list, in order."""
    reader = {"table": _table, "nested": _nested, "by-kind": _by_kind, "flat": _by_kind}
    listed = list(reader[entry.format](entry, decoded(body)))
    if not any(item.kind for item in listed):
        raise ValueError("the file has no names")
    return listed


def _tree(text: str) -> dict[str, Any]:
    tree = parsed(text, unique=True)
    if not isinstance(tree, dict) or not tree:
        raise ValueError("JSON, but not a list of names by key")
    return tree


def _by_kind(entry: List, text: str) -> Iterator[Listed]:
    tree = _tree(text)
    for key, kind in entry.kinds.items():
        flat = entry.format == "flat"
        by_country: Any = {entry.country: tree.get(key, [])} if flat else tree.get(key, {})
        if not isinstance(by_country, dict):
            raise ValueError(f"{key}: expected lists by country")  # noqa: TRY004
        for country, names in by_country.items():
            code = country if flat else _code(entry, country)
            yield from _ranked(names, code, kind, "any", f"{key}/{country}")


def _nested(entry: List, text: str) -> Iterator[Listed]:
    for country, by_gender in _tree(text).items():
        code = _code(entry, country)
        if not isinstance(by_gender, dict):
            raise ValueError(f"{country}: expected lists by gender")  # noqa: TRY004
        for gender in ("male", "female"):
            kind = entry.kind or entry.kinds[gender]
            bearer = gender if kind == "last" else "any"
            position = f"{country}/{gender}"
            yield from _ranked(by_gender.get(gender, []), code, kind, bearer, position)


def _table(entry: List, text: str) -> Iterator[Listed]:
    for line, row in records(text, entry.columns, multiline=False):
        position, cells = f"line {line}", {key: value.strip() for key, value in row.items()}
        kind = entry.kind or entry.kinds.get(cells["kind"])
        if kind is None:
            yield Listed("", None, "any", 0, "", "", None, position)
            continue
        rank, count = whole(cells["rank"]), cells.get("count", "")
        number = whole(count)
        if rank is None or (number is None and count.lower() not in MISSING):
            wrong = f"rank {cells['rank']!r}" if rank is None else f"count {count!r}"
            raise ValueError(f"{position}: {wrong} is not a whole number")
        country = entry.country or _code(entry, cells["country"])
        bearer = cells.get("bearer") or "any"
        if bearer not in BEARERS:
            raise ValueError(f"{position}: {bearer!r} is none of {', '.join(BEARERS)}")
        yield Listed(
            country,
            kind,
            bearer,
            rank,
            normal(cells["name"]),
            normal(cells.get("native", "")),
            number or None,
            position,
        )


def _ranked(names: Any, country: str, kind: Kind, bearer: str, position: str) -> Iterator[Listed]:
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ValueError(f"{position}: expected a list of names")
    for rank, name in enumerate(names, start=1):
        yield Listed(country, kind, bearer, rank, normal(name), "", None, f"{position}/{rank}")


def normal(name: str) -> str:
    """Return a name in NFC, with single spaces and one kind of apostrophe.

    Examples
    --------
    >>> normal(" O’Brien ")
    "O'Brien"
    """
    return " ".join(unicodedata.normalize("NFC", straight(name)).split())


def _code(entry: List, country: str) -> str:
    """Return the code of a country from its code or English name, or ""."""
    if country in entry.countries:
        return entry.countries[country]
    name = country.replace("_", " ").removeprefix("the ").replace("&", "and").casefold()
    if len(country) == 2 and country.casefold() in codes().values():
        return country.casefold()
    return codes().get(name, "")


@cache
def codes() -> dict[str, str]:
    """Return the code of every country (ISO 3166, lower case) by its English name (CLDR)."""
    from babel import Locale

    by_name = {
        name.replace("&", "and").casefold(): code.lower()
        for code, name in Locale("en").territories.items()
        if len(code) == 2 and code.isalpha() and code != NOWHERE.upper()
    }
    return by_name | OTHER_NAMES


@cache
def places() -> frozenset[str]:
    """Return the English names of countries, continents and regions (CLDR) in lower case."""
    from babel import Locale

    return frozenset(name.casefold() for name in Locale("en").territories.values())
