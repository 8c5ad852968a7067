"""Dataset ``names``: ranked common first and last names by country.

As in Barriere and Cifuentes (2024), this gazetteer represents countries by names and helps to find
the names of people in texts.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import partial
from itertools import chain
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from pydantic import Field

from plumbline.builders.core.errors import reading
from plumbline.builders.core.params import SnapshotParams
from plumbline.builders.core.parquet import EVERY, Reject, Row
from plumbline.builders.core.schema import Column, Schema
from plumbline.builders.core.snapshot import Snapshot
from plumbline.builders.readers import name_lists
from plumbline.builders.readers.declared import declared, read
from plumbline.builders.readers.gazetteer import fold
from plumbline.builders.readers.name_lists import BEARERS, KINDS, NOWHERE
from plumbline.builders.readers.table import bindings, entity, label_codes

if TYPE_CHECKING:
    _Item = Reject | tuple[str, str, str, "_Known"]

FOLDER = "wikidata"  # folder in the snapshot, and name of Wikidata among the lists
AGAIN = "fetch it again"
PEOPLE_MIN = 3  # minimum number of people who bear a counted name
GENDERS = {  # Wikidata's items for a person's sex or gender
    "Q6581097": "male",
    "Q2449503": "male",  # trans man
    "Q6581072": "female",
    "Q1052281": "female",  # trans woman
}
FLAGS = ("word", "place", "short", "letters", "script")
UNSPELLED = "no spelling in Latin letters"
LETTERS = re.compile(r"[^\W\d_](?:[^\W\d_]|[ '.·\-\u0300-\u036f])*")

COLUMNS = (
    Column("name", "string", "the name; see Spelling", prose="name"),
    Column("kind", "label", "first name of men, first name of women, or last name", labels=KINDS),
    Column("rank", "int32", "rank within country and kind; 1 is the most frequent", minimum=1),
    Column("count", "int64", "number of people with this name; null if unknown", True, minimum=1),
    Column("bearer", "label", "gender for which a last name is used, or `any`", labels=BEARERS),
    Column("sources", "strings", "lists that contain the name, in the order of the params"),
    Column("flags", "strings", "reasons for not using the name; empty if it is usable"),
)
SCHEMA = Schema(COLUMNS, key=("kind", "name"))
COUNTS = ("kind", "flags")  # columns tabulated in the card


class Params(SnapshotParams):
    """The snapshot, the countries, and the words that are not names."""

    countries: list[str] = Field(
        default_factory=list,
        description="ISO 3166 codes, one config for each; if empty, all that have enough names",
    )
    usable_min: int = Field(5, ge=1, description="minimum number of usable names of each kind")
    words: list[str] = Field(
        default_factory=list, description="words that are mostly not names, flagged `word`"
    )

    def required_configs(self) -> list[str]:
        """Return the countries in the params."""
        return self.countries


class _Known(NamedTuple):
    """One list's entry for a name."""

    source: str
    bearer: str
    rank: int
    number: int | None


def build(snapshot: Snapshot, params: Params) -> Iterator[Row | Reject]:
    """Yield one row per country, kind and name, sorted by kind and rank.

    A name's rank is its best rank in any list; ties are broken by the number of lists, then the
    count, then the spelling. Its count is that of the first list that states one.
    """
    listed: dict[str, dict[tuple[str, str], list[_Known]]] = defaultdict(lambda: defaultdict(list))
    lists = declared(snapshot, name_lists.List, "lists")
    for item in chain(_listed(snapshot, lists), _counted(snapshot)):
        if isinstance(item, Reject):
            yield item
        else:
            country, kind, name, listing = item
            listed[country][kind, name].append(listing)
    countries = params.countries or sorted(listed)
    for country in sorted(listed.keys() - set(countries)):
        yield Reject(EVERY, country, "of a country that is not used", number=len(listed[country]))
    order = {name: index for index, name in enumerate([*(entry.name for entry in lists), FOLDER])}
    for country in sorted(set(countries) & listed.keys()):
        rows = list(_ranked(listed[country], order, params))
        usable = [sum(r["kind"] == k and not r["flags"] for r in rows) for k in range(len(KINDS))]
        if not params.countries and country != NOWHERE and min(usable) < params.usable_min:
            reason = "of a country with too few names of a kind"
            yield Reject(EVERY, country, reason, number=len(rows))
        else:
            yield from (Row(country, row) for row in rows)


def _listed(snapshot: Snapshot, lists: list[name_lists.List]) -> Iterator[_Item]:
    """Yield the country, kind, name and entry of each name in all lists."""
    advice = "fix the list or its declaration under sources.names.lists, and fetch again"
    for entry in lists:
        for item in read(snapshot, entry.path(), partial(name_lists.entries, entry), advice):
            if item.country and item.kind and item.name:
                listing = _Known(entry.name, item.bearer, item.rank, item.number)
                yield item.country, item.kind, item.name, listing
                if flags(item.native, set()) == ["script"]:  # to be found in texts, not inserted
                    yield NOWHERE, item.kind, item.native, listing
            else:
                reason = UNSPELLED if item.country else "of no country that is known"
                reason = reason if item.kind else "of a kind that the list does not declare"
                yield Reject(EVERY, f"{entry.name}/{item.position}", reason)


def _labels(snapshot: Snapshot) -> dict[str, str]:
    """Return the label of each item, in the requested language, a variant of it, or `mul`."""
    ranked: dict[str, tuple[int, str]] = {}
    for path in snapshot.names(f"{FOLDER}/labels/"):
        codes = [*label_codes(snapshot.manifest["request"]["wikidata"]["language"]), "mul"]
        for row in read(snapshot, path, bindings, AGAIN):
            qid, label = entity(row["item"]), row["label"]
            if qid and (code := label.get("xml:lang", "").lower()) in codes:
                entry = codes.index(code), name_lists.normal(label["value"])
                ranked[qid] = min(entry, ranked.get(qid, entry), key=itemgetter(0))
    return {qid: label for qid, (_, label) in ranked.items()}


def _counted(snapshot: Snapshot) -> Iterator[_Item]:
    """Yield the country, kind, name and entry of each name that is counted on Wikidata.

    Items with the same label are treated as one name. People whose gender is not in
    :data:`GENDERS` are not counted for first names.
    """
    labels = _labels(snapshot)
    numbers: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for path in snapshot.names(f"{FOLDER}/counts/"):
        country, part = path.split("/")[2:4]
        for row in read(snapshot, path, bindings, AGAIN):
            gender = GENDERS.get(entity(row.get("gender", {})) or "")
            kind = gender if part == "given" else "last"
            if (qid := entity(row["name"])) and kind:
                with reading(snapshot.folder / path, AGAIN):
                    numbers[country, kind][labels.get(qid, "")] += int(row["number"]["value"])
    for (country, kind), names in sorted(numbers.items()):
        ordered = sorted(names.items(), key=lambda item: (-item[1], item[0]))
        for rank, (name, number) in enumerate(ordered, start=1):
            if number < PEOPLE_MIN:
                key = f"{country}/{kind}/{name}"
                yield Reject(EVERY, key, "of fewer people than the floor")
            elif not name:
                yield Reject(EVERY, f"{country}/{kind}", "no label")
            else:
                yield country, kind, name, _Known(FOLDER, "any", rank, number)


def _ranked(
    names: dict[tuple[str, str], list[_Known]], order: dict[str, int], params: Params
) -> Iterator[dict[str, Any]]:
    words = {fold(word) for word in params.words}
    for code, kind in enumerate(KINDS):
        rows: list[dict[str, Any]] = []
        for name, entries in ((n, e) for (k, n), e in names.items() if k == kind):
            entries.sort(key=lambda k: order[k.source])
            count = next((k.number for k in entries if k.number), None)
            sources = list(dict.fromkeys(k.source for k in entries))
            bearers = {k.bearer for k in entries}  # a single gender, unless lists disagree
            row = {
                "name": name,
                "kind": code,
                "rank": min(k.rank for k in entries),
                "count": count,
                "bearer": BEARERS.index(bearers.pop() if len(bearers) == 1 else "any"),
                "sources": sources,
                "flags": flags(name, words),
            }
            rows.append(row)
        rows.sort(key=lambda r: (r["rank"], -len(r["sources"]), -(r["count"] or 0), r["name"]))
        yield from (row | {"rank": rank} for rank, row in enumerate(rows, start=1))


def flags(name: str, words: set[str]) -> list[str]:
    """Return the reasons for excluding a name, in the order of :data:`FLAGS`.

    Examples
    --------
    >>> flags("Go", {"go"})
    ['word']
    >>> flags("J.", set())
    ['short']
    >>> flags("Иван", set())
    ['script']
    """
    letters = [c for c in name if c.isalpha()]
    latin = all("LATIN" in unicodedata.name(c, "") for c in letters)
    wrong = {
        "word": fold(name) in words,
        "place": fold(name) in name_lists.places(),
        "short": len(letters) < 2,
        "letters": LETTERS.fullmatch(name) is None,
        "script": not latin,
    }
    return [flag for flag in FLAGS if wrong[flag]]
