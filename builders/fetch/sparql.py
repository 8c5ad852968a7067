"""One SPARQL endpoint, queried one request at a time: whole answers, saved as they came.

A question that is too large for the endpoint is halved: a range of birth dates, a batch of ids.
"""

from __future__ import annotations

import gzip
import json
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import date, timedelta
from http.client import HTTPException
from pathlib import Path
from typing import Any, NamedTuple, Protocol, cast
from urllib.error import HTTPError, URLError

from SPARQLWrapper import JSON, POST, SPARQLWrapper
from SPARQLWrapper.SPARQLExceptions import EndPointInternalError, SPARQLWrapperException

from plumbline.builders.core.errors import UserError
from plumbline.builders.core.snapshot import write_gzip
from plumbline.builders.fetch import mirror
from plumbline.builders.fetch.http import PIECE, Busy, Politeness, Slow, decoded, judge, patiently
from plumbline.builders.readers.sparql_json import bindings, entity

ITEM = "<http://www.wikidata.org/entity/{}>"
HINT = "is sources.wikidata.endpoint the address of a SPARQL 1.1 endpoint?"
PREFIXES = """\
PREFIX wd: <http://www.wikidata.org/entity/>
PREFIX wdt: <http://www.wikidata.org/prop/direct/>
PREFIX p: <http://www.wikidata.org/prop/>
PREFIX psv: <http://www.wikidata.org/prop/statement/value/>
PREFIX wikibase: <http://wikiba.se/ontology#>
PREFIX rdfs: <http://www.w3.org/2000/01/rdf-schema#>
PREFIX xsd: <http://www.w3.org/2001/XMLSchema#>
"""
BORN = (
    "?item wdt:P569 ?birth . "
    'FILTER(?birth >= "%sT00:00:00Z"^^xsd:dateTime && ?birth < "%sT00:00:00Z"^^xsd:dateTime)'
)


class Terms(NamedTuple):
    """On what terms answers may be used, and what to cite."""

    licence: str
    citation: str


WIKIDATA = Terms("CC0-1.0", "Wikidata contributors, Wikidata (https://www.wikidata.org)")


class Part(Protocol):
    """Something that one query asks for, and can be halved."""

    @property
    def name(self) -> str:
        """Its file."""

    def halves(self) -> Sequence[Any]:
        """Return its halves, or nothing where it cannot be halved."""


@dataclass(frozen=True)
class Born:
    """A range of birth dates, the end excluded."""

    start: date
    end: date

    @property
    def name(self) -> str:
        """Its file."""
        return f"{self.start}_{self.end}"

    def halves(self) -> list[Born]:
        """Return the earlier and the later half."""
        days = (self.end - self.start).days
        if days < 2:
            return []
        middle = self.start + timedelta(days=days // 2)
        return [Born(self.start, middle), Born(middle, self.end)]

    def which(self) -> str:
        """Return the condition on ``?item``."""
        return BORN % (self.start, self.end)


@dataclass(frozen=True)
class Batch:
    """Some ids of one query."""

    name: str
    ids: Sequence[str]

    def halves(self) -> list[Batch]:
        """Return the first and the second half."""
        half = len(self.ids) // 2
        if not half:
            return []
        return [Batch(self.name + "a", self.ids[:half]), Batch(self.name + "b", self.ids[half:])]


@dataclass(frozen=True)
class Endpoint:
    """One endpoint, queried one request at a time; every answer is saved as it came."""

    endpoint: str
    politeness: Politeness
    into: Path

    def gather(self, part: Part, folder: str, query: Callable[[Any], str]) -> None:
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
        """Return one answer, if it is one whole result, whatever its status."""
        limit = self.politeness.timeout_s
        try:
            body = self._receive(query)
        except HTTPError as error:
            after = error.headers.get("Retry-After")
            begins = b""
            with suppress(OSError, HTTPException):  # the status tells enough
                begins = error.read(PIECE)
            judge(error.code, after, self.endpoint, begins, HINT)
            raise
        except EndPointInternalError as error:
            judge(500, None, self.endpoint, str(error).encode())
            raise
        except SPARQLWrapperException as error:
            said = " ".join(str(error).split())[:200]
            raise UserError(f"{self.endpoint}: refused the query ({said}); {HINT}") from error
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
            while len(body) != size and (part := answer.read1(PIECE)):
                body += part
                if time.monotonic() - start > self.politeness.timeout_s:
                    raise Slow(f"no whole answer within {self.politeness.timeout_s:g} s")
        if size is not None and len(body) < size:
            raise Busy(f"the connection was cut after {len(body)} of {size} bytes")
        return decoded(bytes(body), answer.headers.get("Content-Encoding"), self.endpoint)


@contextmanager
def connected(endpoint: str, politeness: Politeness, into: Path) -> Iterator[Endpoint]:
    """Yield an endpoint, or in its place one over the triples of the mirror that is read."""
    folder = mirror.of(politeness)
    if folder is None:
        yield Endpoint(endpoint, politeness, into)
        return
    with mirror.answering(folder, endpoint) as address:
        yield Endpoint(address, politeness, into)


def _whole(body: bytes) -> None:
    """Refuse a body that is not one whole result, whatever its status was."""
    try:
        bindings(body)
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        begins = body.lstrip()[:1]
        if begins == b"{":
            raise Slow("the answer stops in the middle") from error
        page = "a web page instead of results; is the endpoint's address right?"
        what = page if begins == b"<" else "something that is not JSON"
        raise Busy(f"answered {what}") from error
    except ValueError as error:
        raise Busy("answered JSON, but no query results") from error


def ranges(first: date, last: date, days: int) -> list[Born]:
    """Cut the days from the first to the last, both included, into ranges of so many days."""
    end = last + timedelta(days=1)
    found = []
    while first < end:
        stop = first + timedelta(days=min(days, (end - first).days))
        found.append(Born(first, stop))
        first = stop
    return found


def batches(ids: Sequence[str], size: int) -> list[Batch]:
    """Cut ids into batches of a size."""
    return [Batch(f"{i // size:05d}", ids[i : i + size]) for i in range(0, len(ids), size)]


def values(ids: Iterable[str]) -> str:
    """Return ids as what stands behind VALUES in a query."""
    return " ".join(ITEM.format(qid) for qid in ids)
