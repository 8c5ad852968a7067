"""Lookup in the dataset ``names``: kind and gender of a name, and the names of a country."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from plumbline.builders.core.errors import UserError
from plumbline.builders.core.parquet import configs
from plumbline.builders.readers.name_lists import BEARERS, KINDS, NOWHERE
from plumbline.builders.readers.spelling import straight

COLUMNS = ["name", "kind", "rank", "bearer", "flags"]
STROKES = str.maketrans("øØłŁđĐ’", "oOlLdD'")  # not decomposed by Unicode


@dataclass(frozen=True)
class Gazetteer:
    """Usable names from all countries and, separately, names that are flagged as words.

    Attributes
    ----------
    men, women, last
        Names of all countries, in their own spelling.
    genders
        Gender by folded first name: ``male``, ``female``, or ``unknown`` if equally many countries
        list it for men and for women.
    words
        Folded first names that are mostly used as words.
    by_country
        Names by country and kind, sorted by rank; ``last:male``, ``last:female``: forms by gender.
    """

    men: frozenset[str]
    women: frozenset[str]
    last: frozenset[str]
    genders: Mapping[str, str]
    surnames: frozenset[str]
    words: frozenset[str]
    by_country: Mapping[str, Mapping[str, tuple[str, ...]]]

    def gender(self, first: str) -> str:
        """Return the gender of a folded first name, or "" if it is unlisted.

        An unlisted double name has the gender of its parts, which is unknown if they differ.
        """
        parts = {self.genders.get(part, "") for part in first.split("-")}
        double = "" if "" in parts else "unknown" if len(parts) > 1 else parts.pop()
        return self.genders.get(first, double)

    def countries(self, names_min: int) -> list[str]:
        """Return the countries with at least ``names_min`` usable names of each kind."""
        return [
            country
            for country, names in sorted(self.by_country.items())
            if country != NOWHERE and min(len(names[kind]) for kind in KINDS) >= names_min
        ]

    def common(self) -> frozenset[str]:
        """Return the folded first names that occur in the lists of any country."""
        lists = [names for country, names in self.by_country.items() if country != NOWHERE]
        return frozenset(fold(n) for names in lists for k in ("male", "female") for n in names[k])

    def pool(self, country: str, kind: str, gender: str) -> tuple[str, ...]:
        """Return the names of one kind in a country, with last names in the form for the gender."""
        names = self.by_country[country]
        return names[f"last:{gender}" if kind == "last" and gender != "unknown" else kind]


def load(folder: Path) -> Gazetteer:
    """Read the dataset ``names`` from its folder."""
    usable: list[tuple[str, str]] = []  # (kind, name) of the usable names in all countries
    words: set[str] = set()
    by_country: dict[str, dict[str, tuple[str, ...]]] = {}
    for country in configs(folder):
        frame = pl.read_parquet(folder / f"{country}.parquet", columns=COLUMNS)
        rows = frame.sort("kind", "rank", maintain_order=True).to_dicts()
        named = [(KINDS[r["kind"]], r["name"], BEARERS[r["bearer"]], r["flags"]) for r in rows]
        words |= {fold(name) for k, name, _, flags in named if flags == ["word"] and k != "last"}
        allowed = {"script"} if country == NOWHERE else set()  # these names are never inserted
        good = [(k, n, bearer) for k, n, bearer, flags in named if allowed.issuperset(flags)]
        usable += [(kind, name) for kind, name, _ in good]
        by_country[country] = {kind: tuple(n for k, n, _ in good if k == kind) for kind in KINDS}
        for gender in ("male", "female"):
            borne = (n for k, n, bearer in good if k == "last" and bearer in ("any", gender))
            by_country[country][f"last:{gender}"] = tuple(borne)
    spelled = {kind: frozenset(name for k, name in usable if k == kind) for kind in KINDS}
    votes = Counter((fold(name), kind) for kind, name in usable if kind != "last")
    margins = {name: votes[name, "male"] - votes[name, "female"] for name, _ in votes}
    return Gazetteer(
        spelled["male"],
        spelled["female"],
        spelled["last"],
        {n: "unknown" if not m else "male" if m > 0 else "female" for n, m in margins.items()},
        frozenset(fold(name) for name in spelled["last"]),
        frozenset(words),
        by_country,
    )


def listed(folder: Path, source: str) -> tuple[frozenset[str], frozenset[str]]:
    """Return all first names and all last names of one list in the dataset ``names``.

    Names that are flagged, for example as words, are included. Raises UserError if no name comes
    from this list.
    """
    columns = ["kind", "name", "sources"]
    files = [folder / f"{country}.parquet" for country in configs(folder)]
    rows = pl.concat(pl.read_parquet(file, columns=columns) for file in files)
    rows = rows.filter(pl.col("sources").list.contains(source))
    if rows.is_empty():
        raise UserError(
            f"{folder}: contains no names of the list {source!r}; declare it under "
            "sources.names.lists, or fix derived.counterfactuals.eligible"
        )
    last = pl.col("kind") == KINDS.index("last")
    firsts, lasts = (frozenset(rows.filter(mask)["name"]) for mask in (~last, last))
    return firsts, lasts


def plain(name: str) -> str:
    """Return a name without diacritics and typographic apostrophes.

    Examples
    --------
    >>> plain("José"), plain("Søren O’Brien")
    ('Jose', "Soren O'Brien")
    """
    letters = unicodedata.normalize("NFD", name).translate(STROKES)
    bare = "".join(c for c in letters if not unicodedata.combining(c))
    return unicodedata.normalize("NFC", bare)


def fold(name: str) -> str:
    """Return the lookup form of a name: lower case, no diacritics, no typographic apostrophes."""
    return straight(plain(name).casefold())
