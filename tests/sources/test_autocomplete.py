import gzip
import json
import urllib.parse

import pytest
import suggesting
import whole
from pydantic import ValidationError
from samples import DAY, POLITE, TOP, autocomplete_params, noon

from plumbline.builders.core.errors import UserError
from plumbline.builders.core.parquet import Row
from plumbline.builders.core.snapshot import MANIFEST, Snapshot
from plumbline.builders.datasets.stereotypes import build as stereotypes
from plumbline.builders.datasets.stereotypes import fetch as autocomplete
from sources.misbehaving import (
    always,
    at_first,
    misbehaving,
    passed_on,
    says,
    status,
    web_page,
)

CLOCK = noon(DAY)
SHORT = POLITE.model_copy(update={"attempts": 2})
GROUPS = "category,group,name,kind\nage,kids,kids,people\ncountry,Spain,Spain,country\n"
QUERIES = 10  # two groups, five templates each


@pytest.fixture(scope="module")
def address():
    with suggesting.suggesting(suggesting.suggestions(later=True)) as found:
        yield found


@pytest.fixture(scope="module")
def groups(tmp_path_factory):
    path = tmp_path_factory.mktemp("groups") / "groups.csv"
    path.write_text(GROUPS, "utf-8")
    return path


def fetched(address, groups, into, politeness=POLITE, clock=CLOCK, **changes):
    autocomplete.fetch(autocomplete_params(address, groups, **changes), politeness, into, clock)
    return contents(into)


def contents(folder) -> dict[str, bytes]:
    paths = (p for p in folder.rglob("*") if p.is_file())
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in paths}


def lines(folder, engine: str, locale: str = "en") -> list[dict]:
    body = gzip.decompress((folder / "answers" / engine / f"{locale}.jsonl.gz").read_bytes())
    return [json.loads(line) for line in body.decode().split("\n")[:-1]]


def without_addresses(found: dict[str, bytes]) -> dict[str, bytes]:
    """Leave out the manifest, which names the server that was asked."""
    return {name: body for name, body in found.items() if name != MANIFEST}


def built(folder) -> list[dict]:
    """Return the rows of the dataset of a wave alone."""
    params = whole.tree()["datasets"]["stereotypes"] | {"published": []}
    found = stereotypes.build(Snapshot.open(folder), stereotypes.Params(**params))
    return [item.values for item in found if isinstance(item, Row)]


def test_fetch_autocomplete_keeps_bodies_as_sent(address, groups, tmp_path):
    fetched(address, groups, tmp_path / DAY)
    known = suggesting.suggestions(later=True)
    for engine in ("google", "yahoo", "duckduckgo"):
        answers = lines(tmp_path / DAY, engine)
        assert len(answers) == QUERIES
        for line in answers:
            sent = suggesting.body(f"/{engine}", line["query"], known[engine, line["query"]])
            assert line["body"].encode(line["encoding"]) == sent
            assert line["retrieved"] == f"{DAY}T00:00:00Z"
    manifest = Snapshot.open(tmp_path / DAY).manifest
    assert manifest["counts"] == {"queries": QUERIES, "answers": 3 * QUERIES}
    assert manifest["retrieved"] == DAY


def test_fetch_autocomplete_sends_locale_and_contact(address, groups, tmp_path):
    with misbehaving(address, delay_s=0.01) as server:
        engine = {"format": "firefox", "address": server.address + "/google?q={query}&at={gl}-{hl}"}
        locales = {"nl-be": {"language": "en", "hl": "nl", "gl": "be", "kl": "be-nl"}}
        fetched(address, groups, tmp_path / DAY, engines={"g": engine}, locales=locales)
        asked = [urllib.parse.parse_qs(r.path.partition("?")[2]) for r in server.asked]
        assert {tuple(a["at"]) for a in asked} == {("be-nl",)}
        assert [a["q"] for a in asked][:2] == [["why are kids so"], ["what makes kids so"]]
        assert "tests" in server.asked[0].headers["User-Agent"]
    assert len(lines(tmp_path / DAY, "g", "nl-be")) == QUERIES


@pytest.mark.parametrize(
    "behaviour",
    [
        status(429, Retry_After=0),
        web_page,
    ],
    ids=["429", "captcha"],
)
def test_fetch_autocomplete_retries_throttling(address, groups, tmp_path, behaviour):
    whole = fetched(address, groups, tmp_path / "a" / DAY)
    with misbehaving(address, at_first(2, behaviour)) as server:
        found = fetched(server.address, groups, tmp_path / "b" / DAY)
        assert len(server.asked) == 3 * QUERIES + 2
    assert without_addresses(found) == without_addresses(whole)


def test_fetch_autocomplete_continues_a_throttled_engine(address, groups, tmp_path):
    into, phase = tmp_path / DAY, {"google": 0}

    def tired(handler, real):
        phase["google"] += handler.path.startswith("/google?")
        late = phase["google"] > 4 and handler.path.startswith("/google?")
        (web_page if late else passed_on)(handler, real)

    with misbehaving(address, lambda n, body: None if "over" in phase else tired) as server:
        with pytest.raises(UserError) as caught:
            fetched(server.address, groups, into, SHORT)
        assert "yahoo" not in str(caught.value)
        assert not (into / MANIFEST).exists()
        assert len(lines(into, "yahoo")) == len(lines(into, "duckduckgo")) == QUERIES
        phase["over"] = True
        before = len(server.asked)
        continued = fetched(server.address, groups, into)
        assert len(server.asked) - before == QUERIES - 4
        whole = fetched(server.address, groups, tmp_path / "whole" / DAY)
    assert continued == whole


def test_fetch_autocomplete_without_an_absent_engine(address, groups, tmp_path):
    into = tmp_path / DAY

    def no_yahoo(handler, real):
        (web_page if handler.path.startswith("/yahoo?") else passed_on)(handler, real)

    with misbehaving(address, always(no_yahoo)) as server:
        with pytest.raises(UserError):
            fetched(server.address, groups, into, SHORT)
        before = len(server.asked)
        answers = into / "answers" / "google" / "en.jsonl.gz"
        whole = answers.read_bytes()
        answers.write_bytes(whole[:-9])
        with pytest.raises(UserError, match="remove the folder"):
            fetched(server.address, groups, into, SHORT, absent=["yahoo"])
        answers.write_bytes(whole)
        fetched(server.address, groups, into, SHORT, absent=["yahoo"])
        assert len(server.asked) == before  # the other engines had answered
    manifest = Snapshot.open(into).manifest
    assert manifest["request"]["absent"] == {"yahoo/en": "given up"}
    assert manifest["counts"] == {"queries": QUERIES, "answers": 2 * QUERIES}
    assert {e for row in built(into) for e in row["engines"]} == {"google", "duckduckgo"}
    with pytest.raises(ValidationError):
        autocomplete_params(address, groups, absent=["google", "yahoo", "duckduckgo"])


def test_fetch_autocomplete_many_empty_answers(address, groups, tmp_path):
    into, phase = tmp_path / DAY, {"asked": 0}

    def blocked(handler, real):
        mine = handler.path.startswith("/duckduckgo?")
        phase["asked"] += mine
        empty = mine and phase["asked"] > 3 and "over" not in phase
        (says(b"[]") if empty else passed_on)(handler, real)

    with misbehaving(address, always(blocked)) as server:
        with pytest.raises(UserError):
            fetched(server.address, groups, into, empty_in_a_row=4)
        assert phase["asked"] == 6  # two with suggestions, one without, three refused
        phase["over"] = True
        continued = fetched(server.address, groups, into, empty_in_a_row=4)
        assert phase["asked"] == 6 + 4 + 4  # the four empty ones again, and those not asked yet
        whole = fetched(server.address, groups, tmp_path / "whole" / DAY)
    assert continued == whole


def test_queries_of_the_default_params():
    tree = whole.tree()["sources"]["autocomplete"]
    params = autocomplete.Params(**tree)
    assert {kind: len(t) for kind, t in params.templates["en"].items()} == {
        "people": 5,
        "country": 5,
    }
    assert params.templates["en"] == suggesting.TEMPLATES
    entries = autocomplete.groups((TOP / params.groups["en"]).read_bytes())
    asked = autocomplete.queries(entries, dict(params.templates["en"]), "paper")
    assert len(asked) == 5 * 374
    usual = autocomplete.queries(entries, dict(params.templates["en"]), "usual")
    assert len(usual) == 5 * 373  # Syria is there twice by name
    assert usual["how come millennials are so"].group == "millenials"
