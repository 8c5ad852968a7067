"""Politicians from Wikidata, or from any SPARQL 1.1 endpoint with the same data model.

Ids are fetched first, by ranges of birth dates that are split if a response is incomplete; then
facts, birth dates with precision, and labels, in batches of ids. The queries use no label service,
engine hints or OFFSET, so that they run on the Wikidata Query Service, QLever and Oxigraph.

A snapshot holds the responses byte for byte (gzip). The only derived file is ``ids.txt.gz``, the
sorted list of ids, which does not depend on how the ranges were split.
"""

from __future__ import annotations

import gzip
import shutil
from collections.abc import Sequence
from datetime import date
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Annotated

from pydantic import Field

from plumbline.builders.core.errors import Bar, UserError
from plumbline.builders.core.params import Params as Section
from plumbline.builders.core.snapshot import write_gzip
from plumbline.builders.datasets.politicians.build import FILES, READERS
from plumbline.builders.fetch import sparql
from plumbline.builders.fetch.files import Fetch, joined, licences
from plumbline.builders.fetch.http import ADDRESS, Politeness
from plumbline.builders.readers.table import entity, item, label_codes

OCCUPATIONS = "SELECT DISTINCT ?item WHERE { ?item wdt:P279* wd:%(occupation)s } ORDER BY ?item"
PEOPLE = (
    "SELECT DISTINCT ?item WHERE { VALUES ?occupation { %(occupations)s } "
    "?item wdt:P106 ?occupation ; wdt:P31 wd:Q5 . %(which)s } ORDER BY ?item"
)
# an unknown date of birth is a blank node, not a literal
UNDATED = "FILTER NOT EXISTS { ?item wdt:P569 ?birth FILTER(ISLITERAL(?birth)) }"
BATCHES = {
    "facts": (
        "SELECT ?item ?property ?value WHERE { VALUES ?item { %(items)s } "
        "VALUES ?property { wdt:P21 wdt:P27 wdt:P569 wikibase:sitelinks } "
        "?item ?property ?value } ORDER BY ?item ?property ?value"
    ),
    "dates": (
        "SELECT ?item ?value ?precision WHERE { VALUES ?item { %(items)s } "
        "?item p:P569 ?statement . ?statement a wikibase:BestRank ; psv:P569 ?node . "
        "?node wikibase:timeValue ?value ; wikibase:timePrecision ?precision } "
        "ORDER BY ?item ?value ?precision"
    ),
    "labels": (
        "SELECT ?item ?label WHERE { VALUES ?item { %(items)s } ?item rdfs:label ?label "
        "FILTER(LANG(?label) IN (%(languages)s)) } ORDER BY ?item LANG(?label) ?label"
    ),
}
COUNTRIES = (
    "SELECT ?item ?iso WHERE { VALUES ?item { %(items)s } ?item wdt:P297 ?iso } ORDER BY ?item ?iso"
)


FEW, LOST = 10, 0.01  # maximum number, or share, of people who may lack facts or dates


class Brought(Section):
    """A table provided by the user, at an address or a path in the checkout."""

    file: str = Field(min_length=1, description="address or path; see the page of the dataset")
    licence: str = Field(min_length=1, description="licence as its authors state it")
    citation: str = Field(min_length=1, description="reference to cite")


class Params(Section):
    """Endpoint and parameters of the queries."""

    endpoint: str = Field(pattern=ADDRESS, description="address of the SPARQL endpoint")
    occupation: str = Field("Q82955", pattern=r"^Q\d+$", description="item, including subclasses")
    languages: list[Annotated[str, Field(pattern="^[A-Za-z0-9-]+$")]] = Field(
        min_length=1, description="languages of the labels"
    )
    born_from: date = Field(date(1900, 1, 1), description="earliest date of birth")
    born_to: date = Field(date(2000, 12, 31), lt=date.max, description="latest date of birth")
    undated: bool = Field(False, description="whether to fetch people without a birth date too")
    range_days: int = Field(
        366, ge=1, description="range of birth dates per query, in days, before splitting"
    )
    batch_size: int = Field(400, ge=1, description="number of people per query")
    mentions: Brought | None = Field(
        None,
        description="table with the columns language, qid and mentions, the number of mentions "
        "of a person in the language's Wikipedia, used as popularity in place of sitelinks",
    )
    names: Brought | None = Field(
        None,
        description="people to select, such as those published by the paper's authors: a table "
        "with the columns language, name and gender, or JSON; either may be zipped",
    )
    published: Brought | None = Field(
        None,
        description="names that the paper's authors published, in a format of `names`, for a "
        "separate config (datasets.politicians.published); they do not select people",
    )


def fetch(params: Params, politeness: Politeness, into: Path) -> None:
    """Fetch a complete snapshot into a folder named after its date.

    A fetch is resumable: if it is killed, the same call continues and produces the same bytes.
    """
    politeness.user_agent()  # requires a contact before any request
    brought = {kind: file for kind in READERS if (file := getattr(params, kind))}
    declared = {kind: file.model_dump(mode="json") for kind, file in brought.items()}
    fetch = Fetch(
        "wikidata",
        params,
        politeness,
        into,
        "docs/datasets/politicians.md",
        exclude=frozenset(READERS),
        begun="request.json",
        **declared,
    )
    for kind, file in brought.items():
        fetch.read({FILES[kind]: file.file}, READERS[kind])
    with sparql.connected(params.endpoint, fetch.politeness, into) as client:
        counts = _ask(params, client)
    shutil.rmtree(into / "ids", ignore_errors=True)
    queries = {"people": PEOPLE, **BATCHES}
    licence, citation = sparql.WIKIDATA.licence, sparql.WIKIDATA.citation
    if brought:
        licence = "; ".join([licence, licences(brought.items())])
        citation = "; ".join([citation, joined(f"{k}: {f.citation}" for k, f in brought.items())])
    fetch.close(params.endpoint, licence, citation, counts, queries=queries)


def _ask(params: Params, client: sparql.Endpoint) -> dict[str, int]:
    """Save all responses; return the numbers of people and occupations."""
    client.save("occupations", OCCUPATIONS % {"occupation": params.occupation})
    occupations = client.items("occupations")
    if params.occupation not in occupations:
        client.forget("occupations")
        raise UserError(
            f"{params.endpoint}: the response on {params.occupation} and its subclasses lacks "
            f"{params.occupation} itself; run the same command later, or name another endpoint "
            "under sources.wikidata"
        )
    people = _people(params, client, occupations)
    codes = dict.fromkeys(chain(*map(label_codes, params.languages), ["mul"]))
    languages = ", ".join(f'"{code}"' for code in codes)

    def query(template: str, batch: sparql.Batch) -> str:
        return template % {"items": sparql.values(batch.ids), "languages": languages}

    for kind, template in BATCHES.items():
        for batch in Bar(sparql.batches(people, params.batch_size), desc=kind, unit="batch"):
            client.gather(batch, kind, partial(query, template))
    _compare(params, client, people)
    citizenships = {
        qid
        for row in client.rows("facts")
        if row["property"]["value"].endswith("/P27") and (qid := entity(row["value"]))
    }
    countries = sorted(citizenships, key=lambda qid: int(qid[1:]))
    for batch in sparql.batches(countries, params.batch_size):
        client.gather(batch, "countries", partial(query, COUNTRIES))
    return {"people": len(people), "occupations": len(occupations)}


def _compare(params: Params, client: sparql.Endpoint, people: Sequence[str]) -> None:
    """Check facts, dates and labels against the people and each other; remove incomplete parts.

    Required are facts for each person, except a few whose items were removed meanwhile; a precision
    for each known date of birth, unless the endpoint has none; and at least one label.
    """
    facts, dated = set(), set()
    for row in client.rows("facts"):
        facts.add(item(row))
        if row["property"]["value"].endswith("/P569") and row["value"]["type"] != "bnode":
            dated.add(item(row))
    dates, labels = ({item(row) for row in client.rows(kind)} for kind in ("dates", "labels"))
    counted = {
        "facts": (len(facts), len(people)),
        "dates": (len(dates) or len(dated), len(dated)),
        "labels": (len(people) * bool(labels), len(people)),
    }
    short = {k: (n, size) for k, (n, size) in counted.items() if size - n > max(FEW, size * LOST)}
    for kind in short:
        client.forget(kind)
    if short:
        missing = ", ".join(f"{kind} of {n:,} of {m:,} people" for kind, (n, m) in short.items())
        raise UserError(
            f"{params.endpoint}: returned only {missing}; run the same command later, "
            "which requests the rest again, or name another endpoint under sources.wikidata"
        )


def _people(params: Params, client: sparql.Endpoint, occupations: Sequence[str]) -> list[str]:
    """Return the ids of all people, from ``ids.txt.gz`` if it exists."""
    listed = client.into / "ids.txt.gz"
    if not listed.exists():
        dated = sparql.ranges(params.born_from, params.born_to, params.range_days)
        fixed = {"occupations": sparql.values(occupations)}
        if params.undated:
            client.save("ids/undated", PEOPLE % (fixed | {"which": UNDATED}))
        for part in Bar(dated, desc="ids", unit="range"):
            client.gather(part, "ids", lambda p: PEOPLE % (fixed | {"which": p.which()}))
        people = client.items("ids")
        if not people:
            client.forget("ids")
            raise UserError(
                f"{params.endpoint}: no people in {params.occupation} born {params.born_from} to "
                f"{params.born_to}; check sources.wikidata in "
                "builders/datasets/politicians/sources.yaml"
            )
        write_gzip(listed, "".join(f"{qid}\n" for qid in people).encode())
    return gzip.decompress(listed.read_bytes()).decode().split()
