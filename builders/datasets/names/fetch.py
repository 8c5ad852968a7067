"""Names by country, from open lists and from counts on Wikidata or a compatible endpoint.

On Wikidata, a name is an item; the citizens of a country are counted by given name and gender, and
by family name, in ranges of birth dates that are split if a response is incomplete. The endpoint
computes the counts: no people are fetched.
"""

from __future__ import annotations

from datetime import date
from functools import partial
from itertools import product
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, model_validator

from plumbline.builders.core.errors import Bar, UserError
from plumbline.builders.core.params import Params as Section
from plumbline.builders.datasets.names.build import FOLDER
from plumbline.builders.fetch import sparql
from plumbline.builders.fetch.files import Fetch, citations, licences
from plumbline.builders.fetch.http import ADDRESS, Politeness
from plumbline.builders.readers.name_lists import List, entries
from plumbline.builders.readers.table import entity, label_codes

GIVEN = (
    "SELECT ?name ?gender (COUNT(DISTINCT ?item) AS ?number) WHERE { ?item wdt:P27 wd:%(country)s ;"
    " wdt:P31 wd:Q5 ; wdt:P735 ?name ; wdt:P21 ?gender . %(born)s } "
    "GROUP BY ?name ?gender ORDER BY ?name ?gender"
)
FAMILY = (
    "SELECT ?name (COUNT(DISTINCT ?item) AS ?number) WHERE { ?item wdt:P27 wd:%(country)s ;"
    " wdt:P31 wd:Q5 ; wdt:P734 ?name . %(born)s } GROUP BY ?name ORDER BY ?name"
)
QUERIES = {"given": GIVEN, "family": FAMILY}
LABELS = (
    "SELECT ?item ?label WHERE { VALUES ?item { %(items)s } ?item rdfs:label ?label "
    "FILTER(LANG(?label) IN (%(languages)s)) } ORDER BY ?item LANG(?label) ?label"
)


class Counts(Section):
    """The endpoint, and the people whose names are counted."""

    endpoint: str = Field(pattern=ADDRESS, description="address of the SPARQL endpoint")
    countries: dict[
        Annotated[str, Field(pattern="^[a-z]{2}$")], Annotated[str, Field(pattern=r"^Q\d+$")]
    ] = Field(min_length=1, description="Wikidata item of each country, by ISO 3166 code")
    language: str = Field("en", pattern="^[A-Za-z-]+$", description="language of the names' labels")
    born_from: date = Field(date(1940, 1, 1), description="earliest date of birth")
    born_to: date = Field(date(2010, 12, 31), lt=date.max, description="latest date of birth")
    range_days: int = Field(
        3660, ge=1, description="range of birth dates per query, in days, before splitting"
    )
    batch_size: int = Field(400, ge=1, description="number of names in one query for labels")


class Params(Section):
    """Lists, and parameters of the counts."""

    lists: list[List] = Field(default_factory=list, description="open lists, the best one first")
    wikidata: Counts | None = Field(None, description="counts of people; null if not used")

    @model_validator(mode="after")
    def _named_once(self) -> Params:
        names = [entry.name for entry in self.lists]
        if len(set(names)) < len(names) or FOLDER in names:
            raise ValueError("every list needs a unique name")
        if not names and self.wikidata is None:
            raise ValueError("name a list, or countries under wikidata")
        return self


def fetch(params: Params, politeness: Politeness, into: Path) -> None:
    """Download or copy the lists, and fetch counts; refuse lists in other formats."""
    fetch = Fetch("names", params, politeness, into)
    counts = {}
    for entry in Bar(params.lists, desc="lists", unit="list"):
        reader = partial(entries, entry)
        counts[entry.name] = fetch.read({entry.path(): entry.address}, reader)
    addresses = [entry.address for entry in params.lists]
    named: list[tuple[str, Any]] = [(entry.name, entry) for entry in params.lists]
    queries = {}
    if params.wikidata:
        with sparql.connected(params.wikidata.endpoint, fetch.politeness, into) as client:
            counts[FOLDER] = _count(params.wikidata, client)
        addresses.append(params.wikidata.endpoint)
        named.append((FOLDER, sparql.WIKIDATA))
        queries = {"queries": QUERIES}
    fetch.close("; ".join(addresses), licences(named), citations(named), counts, **queries)


def _count(params: Counts, client: sparql.Endpoint) -> int:
    """Fetch the counts of every country, then the labels; return the number of names."""
    parts = sparql.ranges(params.born_from, params.born_to, params.range_days)
    for code, item in Bar(sorted(params.countries.items()), desc="countries"):
        for subject, query in QUERIES.items():
            for part in parts:
                ask = partial(_counting, query, item)
                client.gather(part, f"{FOLDER}/counts/{code}/{subject}", ask)
    names = {
        qid
        for code, subject in product(params.countries, QUERIES)
        for row in client.rows(f"{FOLDER}/counts/{code}/{subject}")
        if (qid := entity(row.get("name", {})))
    }
    if not names:
        client.forget(f"{FOLDER}/counts")
        raise UserError(
            f"{params.endpoint}: no names for {', '.join(sorted(params.countries))}; "
            "check sources.names.wikidata in builders/datasets/names/sources.yaml"
        )
    for batch in sparql.batches(sorted(names, key=lambda qid: int(qid[1:])), params.batch_size):
        client.gather(batch, f"{FOLDER}/labels", partial(_labels, params.language))
    return len(names)


def _counting(query: str, country: str, part: sparql.Born) -> str:
    return query % {"country": country, "born": part.which()}


def _labels(language: str, batch: sparql.Batch) -> str:
    codes = ", ".join(f'"{code}"' for code in (*label_codes(language), "mul"))
    return LABELS % {"items": sparql.values(batch.ids), "languages": codes}
