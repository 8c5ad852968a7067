import gzip
import json
import re
import urllib.parse
import urllib.request
from contextlib import contextmanager
from datetime import date
from pathlib import Path

import pytest
from samples import DAY, FACTS, LANGUAGES, POLITE, SAMPLES, TOP, oxigraph, wikidata_params

from plumbline.builders.core.errors import UserError
from plumbline.builders.core.parquet import Row
from plumbline.builders.core.snapshot import MANIFEST, Snapshot
from plumbline.builders.datasets.politicians import build as politicians
from plumbline.builders.datasets.politicians import fetch as wikidata
from plumbline.builders.datasets.politicians.build import FILES
from plumbline.builders.fetch.sparql import PREFIXES
from plumbline.builders.readers.table import bindings
from sources.misbehaving import (
    beyond,
    cut,
    misbehaving,
    rows,
    says,
    status,
)

REAL = TOP.parent / "shared" / "data" / "politicians" / "wikidata_people.nt.gz"
TURTLE = "".join(f"@prefix {line.removeprefix('PREFIX ')} .\n" for line in PREFIXES.splitlines())


def contents(folder: Path) -> dict[str, bytes]:
    """Return every file of a folder, decompressed."""
    return {
        path.relative_to(folder).as_posix(): (
            gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        )
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def ids(folder: Path) -> list[str]:
    return gzip.decompress((folder / "ids.txt.gz").read_bytes()).decode().split()


def written_down() -> list[str]:
    """Return the ids of the people in the sample facts, read without any client."""
    found = re.findall(r"^wd:Q(\d+) wdt:P31 wd:Q5 ;", FACTS[0].read_text("utf-8"), re.MULTILINE)
    return [f"Q{number}" for number in sorted(map(int, found))]


def built(folder: Path, **changes) -> list:
    params = {
        "version": "0.0.1",
        "snapshot": str(folder),
        "languages": LANGUAGES,
        "born_from": date(1900, 1, 1),
        "born_to": date(2000, 12, 31),
    }
    wanted = politicians.Params(**(params | changes))
    return list(politicians.build(Snapshot.open(folder), wanted))


@contextmanager
def triples(folder: Path, turtle: str):
    """Run an engine over some facts in Turtle; yield the address of its endpoint."""
    path = folder / "facts.ttl"
    path.write_text(TURTLE + turtle, "utf-8")
    with oxigraph(path) as address:
        yield address


def test_fetch_wikidata_makes_the_sample(made):
    folder = made / "wikidata" / DAY
    found, kept = contents(folder), contents(SAMPLES / "wikidata" / DAY)
    # zlib builds may compress differently: the hashes of compressed files stand aside
    for files in (found, kept):
        manifest = json.loads(files.pop(MANIFEST))
        assert set(manifest["files"]) == set(files)
        manifest["files"] = None
        files["manifest without hashes"] = json.dumps(manifest).encode()
    assert found == kept
    assert ids(folder) == written_down()


def test_fetch_wikidata_needs_a_contact(tmp_path):
    nobody = POLITE.model_copy(update={"contact": "  "})
    with pytest.raises(UserError, match=r"sources\.politeness\.contact"):
        wikidata.fetch(wikidata_params("http://127.0.0.1:9/query"), nobody, tmp_path / DAY)
    assert not (tmp_path / DAY).exists()


@pytest.mark.parametrize(
    "behaviour",
    [
        status(503),
        cut,
        says(b'{"error": "overloaded"}'),
    ],
    ids=["503", "cut", "other JSON"],
)
def test_fetch_retries_passing_failures(endpoint, tmp_path, behaviour):
    def every_fourth(number, body):
        return behaviour if number % 4 == 1 else None

    with misbehaving(endpoint, every_fourth) as server:
        wikidata.fetch(wikidata_params(server.endpoint), POLITE, tmp_path / DAY)
    made, kept = contents(tmp_path / DAY), contents(SAMPLES / "wikidata" / DAY)
    for name in ("request.json", MANIFEST):
        del made[name], kept[name]
    assert made == kept


@pytest.mark.slow
def test_fetch_wikidata_splits_large_queries(endpoint, tmp_path):
    patience = POLITE.model_copy(update={"attempts": 1})
    behaviour = status(500, "java.util.concurrent.TimeoutException")
    with misbehaving(endpoint, beyond(ids=20, days=3000, behaviour=behaviour)) as server:
        wikidata.fetch(wikidata_params(server.endpoint), patience, tmp_path / DAY)
    parts = {path.name for path in (tmp_path / DAY / "labels").iterdir()}
    assert "00000.json.gz" not in parts
    assert "00000aa.json.gz" in parts
    assert ids(tmp_path / DAY) == written_down()
    assert built(tmp_path / DAY) == built(SAMPLES / "wikidata" / DAY)


def test_fetch_wikidata_refuses_incomplete_answers(endpoint, tmp_path):
    lost = []

    def once(number, body):
        wrong = "P106" in body and "COUNT" not in body and not lost
        lost.extend([number] * wrong)
        return rows(lambda found: found[:-1]) if wrong else None

    with misbehaving(endpoint, once) as server:
        wikidata.fetch(wikidata_params(server.endpoint), POLITE, tmp_path / DAY)
    assert lost
    made, kept = (sorted(map(repr, built(f / DAY))) for f in (tmp_path, SAMPLES / "wikidata"))
    assert made == kept


UNDATED = """
wd:Q7 wdt:P31 wd:Q5 ; wdt:P106 wd:Q82955 .
wd:Q123456 wdt:P31 wd:Q5 ; wdt:P106 wd:Q82955 .
wd:Q1000 wdt:P31 wd:Q5 ; wdt:P106 wd:Q82955 ; wdt:P569 _:unknown .
wd:Q2000 wdt:P31 wd:Q5 ; wdt:P106 wd:Q82955 ; wdt:P569 "1950-06-01T00:00:00Z"^^xsd:dateTime .
wd:Q3000 wdt:P31 wd:Q5 ; wdt:P106 wd:Q82955 ; wdt:P569 "1850-06-01T00:00:00Z"^^xsd:dateTime .
"""


def test_fetch_wikidata_undated_people(tmp_path):
    with triples(tmp_path, UNDATED) as engine:
        wikidata.fetch(wikidata_params(engine), POLITE, tmp_path / "dated" / DAY)
        wikidata.fetch(wikidata_params(engine, undated=True), POLITE, tmp_path / "all" / DAY)
    assert ids(tmp_path / "dated" / DAY) == ["Q2000"]
    assert ids(tmp_path / "all" / DAY) == ["Q7", "Q1000", "Q2000", "Q123456"]


SEVERAL = """
wd:Q30185 wdt:P279 wd:Q82955 . wd:Q99 wdt:P279 wd:Q30185 .
wd:Q1001 wdt:P31 wd:Q5 ; wdt:P106 wd:Q99, wd:Q82955 ; wdt:P21 wd:Q6581072 ;
    wdt:P27 wd:Q16, wd:Q142, wd:Q9 ; wdt:P569 "1950-06-01T00:00:00Z"^^xsd:dateTime ;
    rdfs:label "Anne Martin"@mul, "Анна Мартен"@ru, "Anne Martin (engl.)"@en-gb .
wd:Q1002 wdt:P31 wd:Q5 ; wdt:P106 wd:Q999 ; wdt:P569 "1950-06-01T00:00:00Z"^^xsd:dateTime .
wd:Q16 wdt:P297 "CA", "ca" . wd:Q142 wdt:P297 "FR", "FX" .
"""


def test_fetch_wikidata_keeps_files_of_the_user(tmp_path):
    texts = {
        "mentions": "language,qid,mentions\nen,Q1001,12\nru,Q1001,345\n",
        "names": "language,name,gender\nru,Анна Мартен,female\n",
    }
    terms = {"licence": "none stated", "citation": "somebody (2026)"}
    brought = {}
    for kind, text in texts.items():
        (tmp_path / f"{kind}.csv").write_text(text, "utf-8")
        brought[kind] = {"file": str(tmp_path / f"{kind}.csv"), **terms}
    with triples(tmp_path, SEVERAL) as engine:
        wikidata.fetch(wikidata_params(engine, **brought), POLITE, tmp_path / DAY)
    kept = Snapshot.open(tmp_path / DAY)
    assert {kind: kept.read(FILES[kind]).decode() for kind in texts} == texts
    assert "mentions: somebody (2026); names: somebody (2026)" in kept.manifest["citation"]
    (row,) = [item for item in built(tmp_path / DAY) if isinstance(item, Row)]
    assert (row.config, row.values["name"], row.values["popularity"]) == ("ru", "Анна Мартен", 345)


def ask(engine: str, query: str) -> bytes:
    body = urllib.parse.urlencode({"query": PREFIXES + query}).encode()
    wants = {"Accept": "application/sparql-results+json"}
    with urllib.request.urlopen(urllib.request.Request(engine, body, wants)) as answer:
        assert answer.status == 200
        return answer.read()


@pytest.mark.slow
@pytest.mark.shared
@pytest.mark.skipif(not REAL.exists(), reason=f"{REAL} is absent")
def test_fetch_wikidata_real_people(tmp_path):
    every = gzip.decompress(REAL.read_bytes()).decode().splitlines(keepends=True)
    numbers = [int(re.match(r"<[^>]*/Q(\d+)>", line)[1]) for line in every]
    assert len(set(numbers)) == 26_670  # as the README beside the file counts them
    chosen = {number for number in numbers if number % 6 == 0}  # all of them take three minutes
    graph = tmp_path / "people.nt"
    kept = [line for line, number in zip(every, numbers, strict=True) if number in chosen]
    graph.write_text("".join(kept), "utf-8")
    with oxigraph(graph) as engine:
        params = wikidata_params(
            engine,
            undated=True,
            born_from=date(1, 1, 1),
            born_to=date(2100, 12, 31),
            range_days=36600,
            batch_size=400,
        )
        patience = POLITE.model_copy(update={"timeout_s": 300})
        wikidata.fetch(params, patience, tmp_path / DAY)
        query = "SELECT ?gender (COUNT(*) AS ?n) WHERE { ?item wdt:P21 ?gender } GROUP BY ?gender"
        counted = {
            row["gender"]["value"].rsplit("/", 1)[-1]: int(row["n"]["value"])
            for row in bindings(ask(engine, query))
        }
    snapshot = Snapshot.open(tmp_path / DAY)
    genders: dict[str, int] = {}
    for name in snapshot.names("facts/"):
        for row in bindings(snapshot.read(name)):
            if row["property"]["value"].endswith("/P21"):
                gender = row["value"]["value"].rsplit("/", 1)[-1]
                genders[gender] = genders.get(gender, 0) + 1
    assert set(ids(tmp_path / DAY)) == {f"Q{number}" for number in chosen}
    assert genders == counted
    assert min(counted.values()) > 500
