"""The dataset ``names`` as it is looked up: whose name a word is, and which names a country has."""

from __future__ import annotations

import unicodedata
from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from plumbline.builders.core.parquet import configs, stream
from plumbline.builders.readers.name_lists import BEARERS, KINDS, NOWHERE

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

COLUMNS = ["name", "kind", "rank", "bearer", "flags"]


@dataclass(frozen=True)
class Gazetteer:
    """Usable names of all countries, and those flagged as words apart.

    Attributes
    ----------
    men, women, last
        Names as they are spelled, of every country.
    genders
        By folded first name: ``male``, ``female``, or ``unknown`` where as many countries have it
        for men as for women.
    words
        First names, folded, that are more often words.
    by_country
        For each country and kind the names by rank; for ``last:male`` and ``last:female`` too, the
        forms that a man or a woman bears.
    """

    men: frozenset[str]
    women: frozenset[str]
    last: frozenset[str]
    genders: Mapping[str, str]
    surnames: frozenset[str]
    words: frozenset[str]
    by_country: Mapping[str, Mapping[str, tuple[str, ...]]]

    def countries(self, names_min: int) -> list[str]:
        """Return the countries that have so many usable names of each kind."""
        return [
            country
            for country, names in sorted(self.by_country.items())
            if country != NOWHERE and min(len(names[kind]) for kind in KINDS) >= names_min
        ]

    def pool(self, country: str, kind: str, gender: str, top_k: int | None) -> tuple[str, ...]:
        """Return the names of a country and kind, last names in the gender's form."""
        names = self.by_country[country]
        found = names[f"last:{gender}" if kind == "last" and gender != "unknown" else kind]
        return found[:top_k]


def load(folder: Path) -> Gazetteer:
    """Read the dataset ``names`` from its folder."""
    spelled: dict[str, set[str]] = defaultdict(set)
    votes: dict[str, Counter[str]] = defaultdict(Counter)
    words: set[str] = set()
    by_country = {}
    for country in configs(folder):
        rows = list(stream(folder / f"{country}.parquet", COLUMNS))
        rows.sort(key=lambda row: (row["kind"], row["rank"]))
        names: dict[str, list[str]] = defaultdict(list)
        for row in rows:
            kind, name = KINDS[row["kind"]], row["name"]
            if row["flags"]:
                if row["flags"] == ["word"] and kind != "last":
                    words.add(fold(name))
                continue
            spelled[kind].add(name)
            names[kind].append(name)
            if kind == "last":
                bearer = BEARERS[row["bearer"]]
                for gender in ("male", "female") if bearer == "any" else (bearer,):
                    names[f"last:{gender}"].append(name)
            else:
                votes[fold(name)][kind] += 1
        by_country[country] = {
            key: tuple(names[key]) for key in (*KINDS, "last:male", "last:female")
        }
    return Gazetteer(
        frozenset(spelled["male"]),
        frozenset(spelled["female"]),
        frozenset(spelled["last"]),
        {name: _majority(found) for name, found in votes.items()},
        frozenset(fold(name) for name in spelled["last"]),
        frozenset(words),
        by_country,
    )


def _majority(votes: Counter[str]) -> str:
    if votes["male"] == votes["female"]:
        return "unknown"
    return "male" if votes["male"] > votes["female"] else "female"


def plain(name: str) -> str:
    """Return a name without the marks on its letters.

    Examples
    --------
    >>> plain("José")
    'Jose'
    """
    letters = unicodedata.normalize("NFD", name)
    bare = "".join(c for c in letters if not unicodedata.combining(c))
    return unicodedata.normalize("NFC", bare)


def fold(name: str) -> str:
    """Return what a name is looked up by: without marks, case and kind of apostrophe."""
    return plain(name).casefold().replace("’", "'")
