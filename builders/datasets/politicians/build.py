"""Dataset ``politicians``: names and genders of politicians, one config per language.

Stańczak et al. (2023), Quantifying gender bias towards politicians in cross-lingual language
models, PLoS ONE 18(11), section 3 and Tables 1 and 10.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from datetime import date
from typing import Any

from pydantic import Field, model_validator

from plumbline.builders.core.errors import UserError, reading
from plumbline.builders.core.params import LanguageParams
from plumbline.builders.core.parquet import Reject, Row
from plumbline.builders.core.schema import Column, Schema
from plumbline.builders.core.snapshot import Snapshot
from plumbline.builders.datasets.politicians.person import (
    GENDER_OF,
    GENDERS,
    PRECISIONS,
    official_languages,
    person,
)
from plumbline.builders.readers.archives import unpacked
from plumbline.builders.readers.declared import read
from plumbline.builders.readers.nested_names import Entry, entries, normal
from plumbline.builders.readers.table import Binding, bindings, decoded, item, label_codes
from plumbline.builders.readers.table import table as csv_table

SOURCE = "wikidata"
AGAIN = "fetch it again"
VARIABLES = {  # besides the item, in the rows of each kind of file
    "countries": {"iso"},
    "facts": {"property", "value"},
    "dates": {"value", "precision"},
    "labels": {"label"},
}
FILES = {
    "mentions": "mentions.csv",
    "names": "names",
    "published": "published",
}  # names, in a snapshot, of the files that a user provides
COLUMNS = (
    Column("qid", "string", "Wikidata item of the person", pattern=r"^Q[1-9]\d*$"),
    Column(
        "name",
        "string",
        "label of the person in the config's language, NFC",
        role="label",
        prose="name",
    ),
    Column(
        "name_language",
        "string",
        "language of this label: that of the config, a variant of it (`zh-hans`), or `mul`",
    ),
    Column("name_fallback", "bool", "whether the label is the one for all languages, `mul`"),
    Column("gender", "label", "sex or gender (P21), grouped as in the paper", labels=GENDERS),
    Column("gender_qids", "strings", "all values of P21 (sex or gender), as stated"),
    Column("birth_date", "date32", "date of birth (P569), to be used with its precision"),
    Column(
        "birth_precision",
        "label",
        "precision of the date; `unstated` if the source does not state it",
        labels=PRECISIONS,
    ),
    Column("birth_year", "int32", "year of birth"),
    Column("countries", "strings", "citizenships (P27) as ISO 3166-1 alpha-2 codes (P297)"),
    Column("country_qids", "strings", "all citizenships (P27), including those without a code"),
    Column(
        "native",
        "bool",
        "whether the config's language is official, by law or in fact, in a country of which the "
        "person is a citizen (CLDR); null if CLDR lacks all of these countries",
        nullable=True,
    ),
    Column(
        "popularity",
        "int32",
        "number of sitelinks of the item, i.e. of Wikimedia pages about the person",
        nullable=True,
        minimum=0,
    ),
)
PUBLISHED = "published"  # the config of the names that the paper's authors released
RELEASED = Schema(
    (
        Column("name_language", "string", "language of the name in the authors' file"),
        Column("name", "string", "name, NFC, with single spaces", role="label", prose="name"),
        Column("gender", "label", "gender, grouped as in the paper", labels=GENDERS),
        Column("gender_stated", "string", "the file's word or Wikidata item for the gender"),
        Column("entries", "int64", "number of occurrences in the file", minimum=1),
    ),
    key=("name_language", "name", "gender_stated"),
)
SCHEMA = Schema(COLUMNS, key=("qid",), others=((PUBLISHED, RELEASED),))
COUNTS = ("gender", "name_language gender", "gender_qids gender")  # columns tabulated in the card


class Params(LanguageParams):
    """The snapshot, and the selection of people."""

    born_from: date = Field(date(1900, 1, 1), description="earliest date of birth")
    born_to: date = Field(date(2000, 12, 31), description="latest date of birth")
    fallback: bool = Field(
        True,
        description="whether to replace a missing label with the one for all languages, `mul`; the "
        "paper uses names as written in the language",
    )
    published: bool = Field(
        False,
        description="whether to also build the config `published`: the names that the paper's "
        "authors released, from the file in sources.wikidata.published",
    )

    @model_validator(mode="after")
    def _in_order(self) -> Params:
        if self.born_from > self.born_to:
            raise ValueError("born_from is after born_to")
        return self


def build(snapshot: Snapshot, params: Params) -> Iterator[Row | Reject]:
    """Yield a row per person and language, sorted by item number, or a reject with its reason.

    A person-level reject (config ``*``) applies to that person in every language. If the snapshot
    has a file of names, only people whose name and gender it lists for the language are retained;
    if it has mentions, popularity is their number in the language's Wikipedia. Published names form
    a separate config, independent of the others.
    """
    request = snapshot.manifest["request"]
    if params.published:
        yield from _released(snapshot)
    brought = {
        kind: list(read(snapshot, FILES[kind], READERS[kind], AGAIN))
        for kind in ("mentions", "names")
        if kind in request
    }
    counted = dict(brought["mentions"]) if "mentions" in brought else None
    listed = {entry[:3] for entry in brought["names"]} if "names" in brought else None
    if missing := sorted(set(params.languages) - set(request["languages"])):
        raise UserError(
            f"{snapshot.folder}: fetched without labels in {', '.join(missing)}; add them under "
            "sources.wikidata.languages and fetch again, or remove them from "
            "datasets.politicians.languages"
        )
    with reading(snapshot.folder / "ids.txt.gz", AGAIN):
        ids = snapshot.read("ids.txt.gz").decode().split()
    iso = {
        qid: sorted({row["iso"]["value"].upper() for row in rows})
        for qid, rows in _answers(snapshot, "countries/").items()
    }
    for number, start in enumerate(range(0, len(ids), request["batch_size"])):
        kinds = (f"{kind}/{number:05d}" for kind in ("facts", "dates", "labels"))
        facts, dates, labels = (_answers(snapshot, prefix) for prefix in kinds)
        for qid in ids[start : start + request["batch_size"]]:
            born = params.born_from, params.born_to
            facts_of_person = person(qid, facts.get(qid, []), dates.get(qid, []), born)
            if isinstance(facts_of_person, Reject):
                yield facts_of_person
                continue
            countries = facts_of_person["country_qids"]
            codes = sorted({code for country in countries for code in iso.get(country, [])})
            spoken = [known for code in codes if (known := official_languages(code)) is not None]
            for language in params.languages:
                native = any(language in languages for languages in spoken) if spoken else None
                values = facts_of_person | {"countries": codes, "native": native}
                values["gender"] = GENDERS.index(facts_of_person["gender"])
                row = _row(values, language, labels.get(qid, []), fallback=params.fallback)
                if isinstance(row, Row):
                    if counted is not None:
                        row.values["popularity"] = counted.get((language, qid))
                    named = language, row.values["name"], facts_of_person["gender"]
                    if listed is not None and named not in listed:
                        row = Reject(language, qid, "name and gender not among those to keep")
                yield row


def mentions(body: bytes) -> Iterator[tuple[tuple[str, str], int]]:
    """Yield language, a person's item, and the number of mentions in the language's Wikipedia.

    Raises ValueError, naming the position and the problem.
    """
    seen = set()
    for line, (language, qid, number) in csv_table(body, ("language", "qid", "mentions"))[1]:
        if not number.isdecimal() or int(number) >= 2**31:
            raise ValueError(f"line {line}: {number!r} is not a number of mentions")
        if (language, qid) in seen:
            raise ValueError(f"line {line}: {qid} repeated for {language}")
        seen.add((language, qid))
        yield (language, qid), int(number)


def names(body: bytes) -> Iterator[Entry]:
    """Yield language, name, gender and its original word for each entry in a table or in JSON.

    Either may be the only file in a zip archive. Raises ValueError, naming position and problem.
    """
    if body[:2] == b"PK":
        body = unpacked(body, ".json", ending=True)
    text = decoded(body).strip()
    if text[:1] in ("{", "["):
        yield from entries(text, GENDER_OF)
        return
    for line, (language, name, gender) in csv_table(body, ("language", "name", "gender"))[1]:
        if gender not in GENDERS:
            raise ValueError(f"line {line}: gender {gender!r} is not {', '.join(GENDERS)}")
        yield language, normal(name), gender, gender


READERS: dict[str, Callable[[bytes], Iterator[Any]]] = {
    "mentions": mentions,
    "names": names,
    PUBLISHED: names,
}


def _released(snapshot: Snapshot) -> Iterator[Row | Reject]:
    """Yield a row for each name in the authors' file, sorted."""
    advice = "name their file under sources.wikidata.published and fetch again"
    counts = Counter(read(snapshot, FILES[PUBLISHED], names, advice))
    for (language, name, gender, stated), number in sorted(counts.items()):
        if any(map(str.isalpha, name)):
            values = (language, name, GENDERS.index(gender), stated, number)
            row = dict(zip((c.name for c in RELEASED.columns), values, strict=True))
            yield Row(PUBLISHED, row)
        else:
            yield Reject(PUBLISHED, language, "label without a letter", name, number)


def _answers(snapshot: Snapshot, prefix: str) -> dict[str, list[Binding]]:
    """Return the rows of all files with a prefix, keyed by item; a batch may have several files."""
    needed = VARIABLES[prefix.partition("/")[0]]
    by_item: defaultdict[str, list[Binding]] = defaultdict(list)
    for name in snapshot.names(prefix):
        with reading(snapshot.folder / name, AGAIN):
            for row in bindings(snapshot.read(name)):
                if not needed <= row.keys():
                    raise ValueError(f"a row without {', '.join(sorted(needed - row.keys()))}")
                by_item[item(row)].append(row)
    return by_item


def _row(
    person: dict[str, Any], language: str, labels: list[Binding], *, fallback: bool
) -> Row | Reject:
    labelled = {
        row["label"].get("xml:lang", "").lower(): row["label"]["value"] for row in reversed(labels)
    }
    codes = [*label_codes(language), *(["mul"] if fallback else [])]
    if (used := next((code for code in codes if code in labelled), None)) is None:
        return Reject(language, person["qid"], "no label")
    name = normal(labelled[used])
    if not any(map(str.isalpha, name)):
        return Reject(language, person["qid"], "label without a letter", labelled[used])
    label = {"name": name, "name_language": used, "name_fallback": used == "mul"}
    return Row(language, person | label)
