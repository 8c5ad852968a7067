"""Dataset ``politicians``: names and genders of politicians, one config per language.

Stańczak et al. (2023), Quantifying gender bias towards politicians in cross-lingual language
models, PLoS ONE 18(11), section 3 and Tables 1 and 10.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from datetime import date
from typing import TYPE_CHECKING, Any, NamedTuple

from pydantic import Field, model_validator

from plumbline.builders.core.describe import frames, page, table
from plumbline.builders.core.errors import UserError
from plumbline.builders.core.params import SnapshotParams
from plumbline.builders.core.parquet import EVERY, Reject, Row
from plumbline.builders.core.schema import Column, Schema
from plumbline.builders.readers.sparql_json import Binding, bindings, by_item, entity

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from plumbline.builders.core.snapshot import Snapshot

GENDERS = ("male", "female", "non-binary")
GENDER_OF = {
    "Q6581097": "male",  # male
    "Q6581072": "female",  # female
    "Q15145779": "female",  # cisgender female
    "Q18116794": "non-binary",  # genderfluid
    "Q12964198": "non-binary",  # genderqueer
    "Q48270": "non-binary",  # non-binary
    "Q48279": "non-binary",  # third gender
    "Q27679684": "non-binary",  # transfeminine
    "Q1052281": "non-binary",  # transgender female
    "Q2449503": "non-binary",  # transgender male
}
ORGANISMS = {"Q43445", "Q44148"}  # female and male organism: left out, as in the paper
PRECISIONS = {"11": "day", "10": "month", "9": "year"}
COARSE = "coarser than a year"
UNSTATED = "unstated"
DATE = re.compile(r"^\+?(\d{4})-(\d\d)-(\d\d)T")

SOURCE = "wikidata"
SCHEMA = Schema(
    columns=(
        Column("qid", "string", "Wikidata item of the person", pattern=r"^Q[1-9]\d*$"),
        Column("name", "string", "label of the person in the config's language, NFC", role="label"),
        Column("name_language", "string", "language of the label used: the config's, or `mul`"),
        Column("name_fallback", "bool", "whether the label had to be taken from `mul`"),
        Column("gender", "label", "the paper's grouping of P21", labels=GENDERS, role="tracked"),
        Column("gender_qids", "strings", "all values of P21 (sex or gender), as stated"),
        Column(
            "birth_date",
            "date32",
            "date of birth (P569); read it with its precision",
            role="tracked",
        ),
        Column(
            "birth_precision",
            "label",
            "how exact the source's date is; `unstated` where it does not say",
            labels=("day", "month", "year", COARSE, UNSTATED),
        ),
        Column("birth_year", "int32", "year of birth", role="tracked"),
        Column(
            "countries",
            "strings",
            "citizenships (P27) as ISO 3166-1 alpha-2 codes (P297)",
            role="tracked",
        ),
        Column("country_qids", "strings", "all citizenships (P27), also those without a code"),
        Column(
            "native",
            "bool",
            "whether the config's language is official, by law or in fact, in a country of the "
            "person (CLDR); null where no citizenship has a code that CLDR knows",
            nullable=True,
        ),
        Column(
            "popularity",
            "int32",
            "number of sitelinks of the item, i.e. of Wikimedia pages about the person",
            nullable=True,
            minimum=0,
        ),
    ),
    key=("qid",),
    unit=("person", "people"),
    across=True,
)


class Params(SnapshotParams):
    """The snapshot to build from, and who belongs in."""

    languages: list[str] = Field(min_length=1, description="one config for each")
    born_from: date = Field(date(1900, 1, 1), description="first day of birth")
    born_to: date = Field(date(2000, 12, 31), description="last day of birth")

    @model_validator(mode="after")
    def _in_order(self) -> Params:
        if self.born_from > self.born_to:
            raise ValueError("born_from is after born_to")
        return self


class Person(NamedTuple):
    """What is the same in all languages."""

    qid: str
    gender: str
    gender_qids: list[str]
    birth_date: date
    birth_precision: str
    countries: list[str]
    country_qids: list[str]
    popularity: int | None


def build(snapshot: Snapshot, params: Params) -> Iterator[Row | Reject]:
    """Yield a row per person and language, sorted by item number, or a reject with its reason.

    A person-level reject (config ``*``) stands for that person in every language.
    """
    request = snapshot.manifest["request"]
    if missing := sorted(set(params.languages) - set(request["languages"])):
        raise UserError(
            f"{snapshot.folder}: fetched without labels in {', '.join(missing)}; add them under "
            "sources.wikidata.languages and fetch again, or take them out of "
            "datasets.politicians.languages"
        )
    ids = snapshot.read("ids.txt.gz").decode().split()
    size = request["batch_size"]
    iso = _iso_codes(snapshot)
    official = {code: _official(code) for code in sorted({c for cs in iso.values() for c in cs})}
    known = {code for code in official if official[code] is not None}
    for start in range(0, len(ids), size):
        batch = f"{start // size:05d}"
        facts = _batch(snapshot, f"facts/{batch}")
        dates = _batch(snapshot, f"dates/{batch}")
        labels = _batch(snapshot, f"labels/{batch}")
        for qid in ids[start : start + size]:
            person = _person(qid, facts.get(qid, []), dates.get(qid, []), iso, params)
            if isinstance(person, Reject):
                yield person
                continue
            names = _names(labels.get(qid, []))
            codes = [c for c in person.countries if c in known]
            for language in params.languages:
                native = any(language in (official[c] or ()) for c in codes) if codes else None
                yield _row(person, language, names, native)


def gender_of(qids: list[str]) -> tuple[str | None, str]:
    """Group the values of P21 as the paper does.

    One group: that group. A value of the non-binary group beside a binary one: non-binary, the
    more specific statement. Male beside female: no group. Values for organisms are left out.

    Returns
    -------
    tuple
        The group, or None and the reason for rejecting the person.
    """
    unlisted = [q for q in qids if q not in GENDER_OF and q not in ORGANISMS]
    if unlisted:
        return None, f"gender in neither list: {', '.join(unlisted)}"
    groups = {GENDER_OF[q] for q in qids if q in GENDER_OF}
    if not groups:
        return None, "gender of an organism" if qids else "gender unknown"
    if "non-binary" in groups:
        return "non-binary", ""
    if len(groups) > 1:
        return None, "male and female stated at once"
    return groups.pop(), ""


def describe(folder: Path) -> str:
    """Return the counts of the paper's Tables 1 and 10, computed from the written rows."""
    import polars as pl

    rows, each = [], []
    for config, frame in frames(folder):
        by = Counter(frame["gender"].to_list())
        genders = [by[i] for i in range(len(GENDERS))]
        sums = [frame[name].sum() for name in ("name_fallback", "native")]
        rows.append((config, *genders, len(frame), *sums))
        each.append(frame.select("qid", "gender", "gender_qids"))
    people = pl.concat(each).unique("qid")
    values = Counter(
        (qid, GENDERS[row["gender"]])
        for row in people.iter_rows(named=True)
        for qid in row["gender_qids"]
    )
    columns = " | ".join(f":{gender}" for gender in GENDERS)
    head = f"language | {columns} | :all | :names from `mul` | :native"
    title = "Politicians by language and gender (the shape of the paper's Table 1)"
    stated = [(*key, number) for key, number in sorted(values.items())]
    said = f"{sum(len(q) > 1 for q in people['gender_qids']):,} people have several values of P21."
    shape = "People by stated value of P21 (the shape of the paper's Table 10)"
    by_value = table("P21 | group | :people", stated, shape)
    return page(table(head, rows, title), by_value, [said])


def _person(
    qid: str,
    facts: list[Binding],
    dates: list[Binding],
    iso: dict[str, list[str]],
    params: Params,
) -> Person | Reject:
    values: dict[str, list[dict[str, str]]] = {}
    for row in facts:
        values.setdefault(row["property"]["value"].rsplit("/", 1)[-1], []).append(row["value"])
    genders = _entities(values.get("P21", []))
    gender, reason = gender_of(genders)
    if gender is None:
        return Reject(EVERY, qid, reason)
    born, precision, reason = _birth(values.get("P569", []), dates)
    if born is None:
        return Reject(EVERY, qid, reason)
    if not params.born_from <= born <= params.born_to:
        return Reject(EVERY, qid, "born outside the range", str(born))
    countries = _entities(values.get("P27", []))
    links = [int(v["value"]) for v in values.get("ontology#sitelinks", [])]
    return Person(
        qid,
        gender,
        genders,
        born,
        precision,
        sorted({code for c in countries for code in iso.get(c, [])}),
        countries,
        max(links, default=None),
    )


def _birth(values: list[dict[str, str]], dates: list[Binding]) -> tuple[date | None, str, str]:
    """Return date, precision and, without a date, the reason.

    Of several dates the most exact one counts, of equally exact ones the earliest.
    """
    if not values:
        return None, "", "no date of birth"
    ranks = [*PRECISIONS.values(), COARSE, UNSTATED]
    stated = {row["value"]["value"]: row["precision"]["value"] for row in dates}
    found = []
    for value in values:
        match = DATE.match(value["value"])
        if not match:
            continue
        year, month, day = (int(part) for part in match.groups())
        try:
            born = date(year, max(month, 1), max(day, 1))
        except ValueError:
            continue
        code = stated.get(value["value"])
        precision = UNSTATED if code is None else PRECISIONS.get(code, COARSE)
        found.append((ranks.index(precision), born, precision))
    if not found:
        return None, "", "date of birth is not a date"
    _, born, precision = min(found)
    return born, precision, ""


def _row(person: Person, language: str, names: dict[str, str], native: bool | None) -> Row | Reject:
    used = language if language in names else "mul"
    raw = names.get(used)
    if raw is None:
        return Reject(language, person.qid, "no label")
    name = " ".join(unicodedata.normalize("NFC", raw).split())
    if not any(unicodedata.category(c).startswith("L") for c in name):
        return Reject(language, person.qid, "label without a letter", raw)
    values: dict[str, Any] = person._asdict() | {
        "name": name,
        "name_language": used,
        "name_fallback": used != language,
        "gender": SCHEMA["gender"].code(person.gender),
        "birth_precision": SCHEMA["birth_precision"].code(person.birth_precision),
        "birth_year": person.birth_date.year,
        "native": native,
    }
    return Row(language, values)


def _names(labels: list[Binding]) -> dict[str, str]:
    names: dict[str, str] = {}
    for row in labels:
        names.setdefault(row["label"]["xml:lang"], row["label"]["value"])
    return names


def _entities(values: list[dict[str, str]]) -> list[str]:
    found = {qid for v in values if (qid := entity(v))}
    return sorted(found, key=lambda qid: int(qid[1:]))


def _batch(snapshot: Snapshot, prefix: str) -> dict[str, list[Binding]]:
    """Return the rows of one batch by item; a batch that was split has several files."""
    rows = [row for name in snapshot.names(prefix) for row in bindings(snapshot.read(name))]
    return dict(by_item(rows))


def _iso_codes(snapshot: Snapshot) -> dict[str, list[str]]:
    codes: dict[str, list[str]] = {}
    for name in snapshot.names("countries/"):
        for qid, rows in by_item(bindings(snapshot.read(name))):
            codes[qid] = sorted({row["iso"]["value"].upper() for row in rows})
    return codes


def _official(code: str) -> frozenset[str] | None:
    """Return the base codes of a country's official languages, None if CLDR lacks the country."""
    from babel import Locale
    from babel.languages import get_official_languages

    if code not in Locale("en").territories:
        return None
    spoken = get_official_languages(code, regional=False, de_facto=True)
    return frozenset(language.split("_")[0] for language in spoken)
