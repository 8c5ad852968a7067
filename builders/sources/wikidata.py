"""Politicians from Wikidata, or from any SPARQL 1.1 endpoint that holds the same shapes.

Ids come first, by ranges of birth dates that split themselves when an answer does not come whole;
then facts, birth dates with their precision, and labels, in batches of ids. No label service, no
engine hints, no OFFSET: the queries run alike on the Wikidata Query Service, QLever and Oxigraph.

A snapshot holds the answers byte for byte (gzip), and ``ids.txt.gz``, the sorted list of ids: the
one file that is made here, so that it is the same however the ranges had to be split.
"""

from __future__ import annotations

import gzip
import json
import shutil
import time
import zlib
from contextlib import closing
from dataclasses import dataclass
from datetime import date, timedelta
from functools import partial
from http.client import HTTPException
from typing import TYPE_CHECKING, Any, Protocol, cast
from urllib.error import HTTPError, URLError

from pydantic import Field, field_validator
from SPARQLWrapper import JSON, POST, SPARQLWrapper
from SPARQLWrapper.SPARQLExceptions import EndPointInternalError, SPARQLWrapperException
from tqdm import tqdm

from builders.lib.http import ADDRESS, Busy, Politeness, Slow, patiently, refuse
from builders.lib.params import Params as Section
from builders.lib.problem import Problem
from builders.lib.snapshot import resume, same_request, write_gzip, write_manifest
from builders.lib.sparql import bindings, by_item, entity

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

LICENCE = "CC0-1.0"
CITATION = "Wikidata contributors, Wikidata (https://www.wikidata.org)"
ITEM = "<http://www.wikidata.org/entity/{}>"
PREFIXES = """\
PREFIX wd: <http://www.wikidata.org/entity/>
PREFIX wdt: <http://www.wikidata.org/prop/direct/>
PREFIX p: <http://www.wikidata.org/prop/>
PREFIX psv: <http://www.wikidata.org/prop/statement/value/>
PREFIX wikibase: <http://wikiba.se/ontology#>
PREFIX rdfs: <http://www.w3.org/2000/01/rdf-schema#>
PREFIX xsd: <http://www.w3.org/2001/XMLSchema#>
"""
OCCUPATIONS = "SELECT DISTINCT ?item WHERE { ?item wdt:P279* wd:%(occupation)s } ORDER BY ?item"
PEOPLE = (
    "SELECT DISTINCT ?item WHERE { VALUES ?occupation { %(occupations)s } "
    "?item wdt:P106 ?occupation ; wdt:P31 wd:Q5 . %(which)s } ORDER BY ?item"
)
BORN = (
    "?item wdt:P569 ?birth . "
    'FILTER(?birth >= "%sT00:00:00Z"^^xsd:dateTime && ?birth < "%sT00:00:00Z"^^xsd:dateTime)'
)
UNDATED = (  # an unknown date of birth is a node, not a literal
    "FILTER NOT EXISTS { ?item wdt:P569 ?birth FILTER(ISLITERAL(?birth)) } "
    'FILTER(STRENDS(STR(?item), "%s"))'
)
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


class Params(Section):
    """What to ask for, and of whom."""

    endpoint: str = Field(pattern=ADDRESS, description="address of the SPARQL endpoint")
    occupation: str = Field("Q82955", pattern=r"^Q\d+$", description="with all its subclasses")
    languages: list[str] = Field(min_length=1, description="languages of the labels")
    born_from: date = Field(description="first day of birth asked for")
    born_to: date = Field(lt=date.max, description="last day of birth asked for")
    undated: bool = Field(False, description="also people without any date of birth")
    range_days: int = Field(366, ge=1, description="days of birth in one query, before splitting")
    batch_size: int = Field(400, ge=1, description="people in one query")

    @field_validator("languages")
    @classmethod
    def _codes(cls, value: list[str]) -> list[str]:
        wrong = [v for v in value if not v.replace("-", "").isalnum()]
        if wrong:
            raise ValueError(f"not language codes: {wrong}")
        return value


def fetch(params: Params, politeness: Politeness, into: Path) -> None:
    """Fetch a whole snapshot into a folder whose name is its date.

    Resumable: killed anywhere, the same call continues and ends with the same bytes.

    Raises
    ------
    Problem
        If the endpoint is wrong or stays out of reach, or the folder holds a fetch that was begun
        with other parameters.
    """
    resume(into)
    request = params.model_dump(mode="json")
    same_request(into / "request.json", request)
    client = _Client(params.endpoint, politeness, into)

    client.save("occupations", OCCUPATIONS % {"occupation": params.occupation})
    occupations = client.items("occupations")
    people = _people(params, client, occupations)
    if not people:
        raise Problem(
            f"{params.endpoint}: no {params.occupation} born {params.born_from} to "
            f"{params.born_to}; check sources.wikidata in params.yaml"
        )
    batches = _batches(people, params.batch_size)
    languages = ", ".join(f'"{code}"' for code in [*params.languages, "mul"])
    for kind, template in BATCHES.items():
        for batch in tqdm(batches, desc=kind, unit="batch", disable=None):
            client.gather(batch, kind, partial(_batch_query, template, languages))
    for batch in _batches(_countries(into), params.batch_size):
        client.gather(batch, "countries", partial(_batch_query, COUNTRIES, languages))
    shutil.rmtree(into / "ids", ignore_errors=True)
    write_manifest(
        into,
        {
            "source": "wikidata",
            "address": params.endpoint,
            "retrieved": into.name,
            "licence": LICENCE,
            "citation": CITATION,
            "request": request | {"queries": {"people": PEOPLE, **BATCHES}},
            "counts": {"people": len(people), "occupations": len(occupations)},
        },
    )


class _Part(Protocol):
    """Something that is asked for in one query, and can be halved."""

    @property
    def name(self) -> str: ...

    def halves(self) -> Sequence[Any]: ...


@dataclass(frozen=True)
class _Born:
    """A range of birth dates, the end excluded."""

    start: date
    end: date

    @property
    def name(self) -> str:
        return f"{self.start}_{self.end}"

    def halves(self) -> list[_Born]:
        days = (self.end - self.start).days
        if days < 2:
            return []
        middle = self.start + timedelta(days=days // 2)
        return [_Born(self.start, middle), _Born(middle, self.end)]

    def which(self) -> str:
        return BORN % (self.start, self.end)


@dataclass(frozen=True)
class _Undated:
    """People without a birth date whose id ends in these digits; after ``Q``, is just these."""

    digits: str

    @property
    def name(self) -> str:
        return f"undated{self.digits}"

    def halves(self) -> list[_Undated]:
        if len(self.digits) == 4 or self.digits.startswith("Q"):
            return []
        whole = [_Undated(f"Q{self.digits}")] if self.digits else []
        return [*whole, *(_Undated(f"{d}{self.digits}") for d in range(10))]

    def which(self) -> str:
        return UNDATED % self.digits


@dataclass(frozen=True)
class _Batch:
    """Some ids, asked for in one query."""

    name: str
    ids: Sequence[str]

    def halves(self) -> list[_Batch]:
        half = len(self.ids) // 2
        if not half:
            return []
        return [_Batch(self.name + "a", self.ids[:half]), _Batch(self.name + "b", self.ids[half:])]


@dataclass(frozen=True)
class _Client:
    """One endpoint, asked one query at a time; every answer is saved as it came."""

    endpoint: str
    politeness: Politeness
    into: Path

    def gather(self, part: _Part, folder: str, query: Callable[[Any], str]) -> None:
        """Save the answer for a part, or for its halves where the whole is too slow."""
        halves = part.halves()
        if not any(self._path(f"{folder}/{half.name}").exists() for half in halves):
            try:
                self.save(f"{folder}/{part.name}", query(part), slow_attempts=2 if halves else None)
            except Slow:
                pass
            else:
                return
        for half in halves:
            self.gather(half, folder, query)

    def save(self, name: str, query: str, slow_attempts: int | None = None) -> None:
        """Save one answer, unless it is there already."""
        if self._path(name).exists():
            return
        what = f"{self.endpoint} ({name})"
        body = patiently(lambda: self._ask(query), what, self.politeness, slow_attempts)
        write_gzip(self._path(name), body)

    def items(self, prefix: str) -> list[str]:
        """Return the sorted, distinct ids in the saved answers."""
        found: set[str] = set()
        for path in [*self.into.glob(f"{prefix}.json.gz"), *self.into.glob(f"{prefix}/*.json.gz")]:
            rows = bindings(gzip.decompress(path.read_bytes()))
            found.update(qid for row in rows if (qid := entity(row["item"])))
        return sorted(found, key=lambda qid: int(qid[1:]))

    def _path(self, name: str) -> Path:
        return self.into / f"{name}.json.gz"

    def _ask(self, query: str) -> bytes:
        limit = self.politeness.timeout_s
        try:
            body = self._receive(query)
        except HTTPError as error:
            refuse(error.code, error.headers.get("Retry-After"), self.endpoint)
            raise Busy(f"HTTP {error.code}") from error
        except EndPointInternalError as error:
            if "timeout" in str(error).lower():
                raise Slow("HTTP 500, the query timed out") from error
            raise Busy("HTTP 500") from error
        except SPARQLWrapperException as error:
            said = " ".join(str(error).split())[:200]
            raise Problem(
                f"{self.endpoint}: refused the query ({said}); is sources.wikidata.endpoint the "
                "address of a SPARQL 1.1 endpoint?"
            ) from error
        except TimeoutError as error:
            raise Slow(f"no answer within {limit:g} s") from error
        except URLError as error:
            if isinstance(error.reason, TimeoutError):
                raise Slow(f"no answer within {limit:g} s") from error
            raise Busy(f"the connection failed ({error.reason})") from error
        except (HTTPException, EOFError, OSError, zlib.error) as error:
            raise Busy(f"the connection was cut ({type(error).__name__})") from error
        _whole(body)
        return body

    def _receive(self, query: str) -> bytes:
        """Return the body of one answer; SPARQLWrapper knows no limit for the whole of it."""
        wrapper = SPARQLWrapper(self.endpoint, agent=self.politeness.user_agent())
        wrapper.setMethod(POST)
        wrapper.setReturnFormat(JSON)
        wrapper.setOnlyConneg(True)
        wrapper.setTimeout(max(1, int(self.politeness.timeout_s)))
        wrapper.addCustomHttpHeader("Accept-Encoding", "gzip")
        wrapper.setQuery(PREFIXES + query)
        start = time.monotonic()
        body = bytearray()
        with closing(cast("Any", wrapper.query().response)) as answer:
            size = answer.length
            while len(body) != size and (part := answer.read1(1 << 16)):
                body += part
                if time.monotonic() - start > self.politeness.timeout_s:
                    raise Slow(f"no whole answer within {self.politeness.timeout_s:g} s")
        if size is not None and len(body) < size:
            raise Busy(f"the connection was cut after {len(body)} of {size} bytes")
        zipped = answer.headers.get("Content-Encoding") == "gzip"
        return gzip.decompress(body) if zipped else bytes(body)


def _whole(body: bytes) -> None:
    """Refuse a body that is not one whole result, whatever its status was."""
    try:
        bindings(body)
    except ValueError as error:
        if body.lstrip()[:1] == b"<":
            raise Busy(
                "answered a web page instead of results; is the endpoint's address right?"
            ) from error
        if body.lstrip()[:1] != b"{":
            raise Busy("answered something that is not JSON") from error
        if not isinstance(error, json.JSONDecodeError | UnicodeDecodeError):
            raise Busy("answered JSON, but no query results") from error
        raise Slow("the answer stops in the middle") from error


def _people(params: Params, client: _Client, occupations: Sequence[str]) -> list[str]:
    """Return the ids of all people asked for, from ``ids.txt.gz`` where it is there already."""
    listed = client.into / "ids.txt.gz"
    if not listed.exists():
        end = params.born_to + timedelta(days=1)
        parts: list[_Born | _Undated] = []
        start = params.born_from
        while start < end:
            stop = start + timedelta(days=min(params.range_days, (end - start).days))
            parts.append(_Born(start, stop))
            start = stop
        if params.undated:
            parts.append(_Undated(""))
        known = {"occupations": _values(occupations)}
        for part in tqdm(parts, desc="ids", unit="range", disable=None):
            client.gather(part, "ids", lambda p: PEOPLE % (known | {"which": p.which()}))
        write_gzip(listed, "".join(f"{qid}\n" for qid in client.items("ids")).encode())
    return gzip.decompress(listed.read_bytes()).decode().split()


def _batches(ids: Sequence[str], size: int) -> list[_Batch]:
    return [_Batch(f"{i // size:05d}", ids[i : i + size]) for i in range(0, len(ids), size)]


def _batch_query(template: str, languages: str, batch: _Batch) -> str:
    return template % {"items": _values(batch.ids), "languages": languages}


def _countries(into: Path) -> list[str]:
    found: set[str] = set()
    for path in sorted((into / "facts").glob("*.json.gz")):
        for _, rows in by_item(bindings(gzip.decompress(path.read_bytes()))):
            for row in rows:
                if row["property"]["value"].endswith("/P27") and (qid := entity(row["value"])):
                    found.add(qid)
    return sorted(found, key=lambda qid: int(qid[1:]))


def _values(ids: Iterable[str]) -> str:
    return " ".join(ITEM.format(qid) for qid in ids)
