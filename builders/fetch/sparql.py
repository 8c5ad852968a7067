"""SPARQL client that sends one request at a time and saves complete responses unchanged.

If a query is too large for the endpoint, its range of birth dates or its batch of ids is halved.
Instead of an endpoint, a mirror contains triples in a folder ``DIR/HOST/PATH``, which a local
engine serves.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import date, timedelta
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from plumbline.builders.core.errors import UserError
from plumbline.builders.core.snapshot import whole, write_gzip
from plumbline.builders.fetch.http import (
    PAGE,
    Busy,
    Politeness,
    Slow,
    host,
    mirror_of,
    patiently,
    receive,
)
from plumbline.builders.readers.declared import Terms
from plumbline.builders.readers.table import Binding, bindings, item, web_page

TRIPLES = (".nt", ".ttl", ".nt.gz", ".ttl.gz")
ITEM = "<http://www.wikidata.org/entity/{}>"
HINT = "sources.wikidata.endpoint must be the address of a SPARQL 1.1 endpoint"
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
DAY = timedelta(days=1)
COUNT = "SELECT (COUNT(*) AS ?count) WHERE { { %s } }"


WIKIDATA = Terms(
    licence="CC0-1.0",
    redistribute=True,
    citation="Wikidata contributors, Wikidata (https://www.wikidata.org)",
)


@dataclass(frozen=True)
class Born:
    """A range of birth dates; the end is exclusive."""

    start: date
    end: date

    @property
    def name(self) -> str:
        """Name of the file that stores the response for the range."""
        return f"{self.start}_{self.end}"

    def halves(self) -> list[Born]:
        """Return the earlier and the later half."""
        middle = self.start + (self.end - self.start) // 2  # whole days
        return [Born(self.start, middle), Born(middle, self.end)] if middle > self.start else []

    def which(self) -> str:
        """Return the condition on ``?item``, in SPARQL."""
        return BORN % (self.start, self.end)


@dataclass(frozen=True)
class Batch:
    """The items that one query requests, given by their ids."""

    name: str
    ids: Sequence[str]

    def halves(self) -> list[Batch]:
        """Return the first and the second half."""
        half = len(self.ids) // 2
        parts = (self.ids[:half], self.ids[half:])
        return [Batch(self.name + n, ids) for n, ids in zip("ab", parts, strict=True) if half]


@dataclass
class Endpoint:
    """An endpoint that is sent one request at a time; every response is saved unchanged."""

    endpoint: str
    politeness: Politeness
    into: Path

    def gather(self, part: Born | Batch, folder: str, query: Callable[[Any], str]) -> None:
        """Save the response to the query for a part, or for each half of it if that is too slow."""
        halves = part.halves()
        if not any(self._path(f"{folder}/{half.name}").exists() for half in halves):
            ids = part.ids if isinstance(part, Batch) else ()
            with suppress(Slow):
                self.save(f"{folder}/{part.name}", query(part), 2 if halves else None, ids)
                return
        for half in halves:
            self.gather(half, folder, query)

    def save(
        self, name: str, query: str, slow_attempts: int | None = None, ids: Sequence[str] = ()
    ) -> None:
        """Save one response, unless it has been saved before.

        The response to a batch may contain only the ids in the batch. Every response must have as
        many rows as the endpoint counts, since endpoints may truncate their results.
        """
        if self._path(name).exists():
            return
        request = f"{self.endpoint} ({name})"
        ask = partial(self._ask, query, ids)
        write_gzip(self._path(name), patiently(ask, request, self.politeness, slow_attempts))

    def rows(self, folder: str) -> Iterator[Binding]:
        """Yield the rows of all saved responses in a folder, or of the response with that name."""
        for path in [*self.into.glob(f"{folder}.json.gz"), *self.into.glob(f"{folder}/*.json.gz")]:
            yield from bindings(whole(path))

    def items(self, prefix: str) -> list[str]:
        """Return the distinct ids in the saved responses, sorted by number."""
        people = {item(row) for row in self.rows(prefix)}
        return sorted(people, key=lambda qid: int(qid[1:]))

    def forget(self, folder: str) -> None:
        """Remove all responses in a folder, or the response with that name."""
        self._path(folder).unlink(missing_ok=True)
        shutil.rmtree(self.into / folder, ignore_errors=True)

    def _path(self, name: str) -> Path:
        return self.into / f"{name}.json.gz"

    def _ask(self, query: str, ids: Sequence[str]) -> bytes:
        """Return the response to a query, after a check that it is complete."""
        body, rows = self._answer(query, ids)
        _, counted = self._answer(COUNT % query.partition(" ORDER BY ")[0])
        number = counted[0]["count"]["value"] if len(counted) == 1 else ""
        if not re.fullmatch("[0-9]{1,15}", number):
            raise Busy("the response to a count of rows contains no number")
        if int(number) > len(rows):
            raise Slow(f"the response contains only {len(rows):,} of {int(number):,} rows")
        return body

    def _answer(self, query: str, ids: Sequence[str] = ()) -> tuple[bytes, list[Binding]]:
        form, headers = _request(self.endpoint, PREFIXES + query)
        body, _ = receive(self.endpoint, self.politeness, form=form, headers=headers, hint=HINT)
        return body, _whole(body, query, ids)


def _request(endpoint: str, query: str) -> tuple[dict[str, str], dict[str, str]]:
    """Return the form and the headers of a SPARQL protocol request, for :func:`receive`."""
    from SPARQLWrapper import JSON, POST, SPARQLWrapper

    wrapper = SPARQLWrapper(endpoint, returnFormat=JSON)
    wrapper.setMethod(POST)
    wrapper.setQuery(query)
    request: Any = wrapper._createRequest()  # noqa: SLF001 - its query() has no size limit
    return dict(parse_qsl(request.data.decode())), {"Accept": request.get_header("Accept")}


@contextmanager
def connected(endpoint: str, politeness: Politeness, into: Path) -> Iterator[Endpoint]:
    """Yield the endpoint, or a local one that serves the triples in the mirror.

    Raises UserError if the mirror contains no triples for the endpoint, or no engine is installed.
    """
    mirror = mirror_of(politeness)
    if mirror is None:
        yield Endpoint(endpoint, politeness, into)
        return
    folder = mirror / host(endpoint) / urlsplit(endpoint).path.strip("/")
    triples = sorted(path for path in folder.glob("*") if path.name.endswith(TRIPLES))
    if not triples:
        raise UserError(
            f"{endpoint}: no file of triples ({', '.join(f'*{end}' for end in TRIPLES)}) in "
            f"{folder}; add one, or name your own endpoint and fetch without --mirror ({PAGE})"
        )
    with serving(*triples) as address:
        yield Endpoint(address, Politeness(contact=politeness.contact), into)


@contextmanager
def serving(*triples: Path) -> Iterator[str]:
    """Run a SPARQL engine on files of triples; yield the address of its endpoint.

    ``triples``: files in N-Triples or Turtle, possibly compressed with gzip.

    Raises UserError if the engine is not installed, or the files cannot be read as triples.
    """
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", "")))
    engine = shutil.which("oxigraph", path=path)
    if engine is None:
        raise UserError(
            "oxigraph, which serves files of triples, is not installed; run `pip install oxigraph`"
        )
    with tempfile.TemporaryDirectory() as folder:
        location = ["--location", folder]
        load = [engine, "load", *location, "--file", *map(str, triples)]
        loaded = subprocess.run(load, check=False, capture_output=True, text=True)  # noqa: S603
        if loaded.returncode:
            reason = " ".join(loaded.stderr.split())[-200:]
            names = ", ".join(map(str, triples))
            raise UserError(f"{names}: cannot be read as triples ({reason}); replace the files")
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            address, port = free.getsockname()
        serve = [engine, "serve", *location, "--bind", f"{address}:{port}"]
        quiet = subprocess.DEVNULL
        with subprocess.Popen(serve, stdout=quiet, stderr=quiet) as server:  # noqa: S603
            try:
                while server.poll() is None:  # wait until the server listens
                    with suppress(OSError), socket.create_connection((address, port)):
                        break
                    time.sleep(0.05)
                yield f"http://{address}:{port}/query"
            finally:
                server.terminate()


def _whole(body: bytes, query: str, ids: Sequence[str]) -> list[Binding]:
    """Return the rows in a body; reject a result that is incomplete or contains other ids.

    No query here contains OPTIONAL, so every row must have all variables.
    """
    variables = set(re.findall(r"\?(\w+)", re.sub(r"\(.*? AS ", "", query.partition(" WHERE ")[0])))
    try:
        rows = bindings(body)
        if any(row.keys() != variables for row in rows):
            raise ValueError(f"a row without {', '.join(sorted(variables))}")  # noqa: TRY301
        if "label" in variables and not all("xml:lang" in row["label"] for row in rows):
            raise ValueError("a label without a language")  # noqa: TRY301
        answered = {item(row) for row in rows} if "item" in variables else set()
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        if body.lstrip()[:1] == b"{":
            raise Slow("the response stops in the middle") from error
        raise Busy(f"the response is {web_page(body) or 'not JSON'}") from error
    except ValueError as error:
        raise Busy(f"the response is JSON, but not a result of the query ({error})") from error
    if ids and (strange := sorted(answered - set(ids))[:3]):
        raise Busy(f"the response contains {', '.join(strange)}, which were not requested")
    return rows


def ranges(first: date, last: date, days: int) -> list[Born]:
    """Split the days from ``first`` to ``last``, both included, into ranges of ``days`` days."""
    starts = [first + offset * DAY for offset in range(0, (last - first).days + 1, days)]
    return [Born(*ends) for ends in pairwise([*starts, last + DAY])]


def batches(ids: Sequence[str], size: int) -> list[Batch]:
    """Split ids into batches of equal size."""
    return [Batch(f"{i // size:05d}", ids[i : i + size]) for i in range(0, len(ids), size)]


def values(ids: Iterable[str]) -> str:
    """Return ids as the data block of a VALUES clause."""
    return " ".join(ITEM.format(qid) for qid in ids)
