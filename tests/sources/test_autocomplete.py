import gzip
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
import urllib.parse
from datetime import UTC, datetime, timedelta

import pytest
import suggesting
import whole
from pydantic import ValidationError
from samples import DAY, POLITE, TOP, autocomplete_params, files, noon, published_params

from plumbline.builders.core.errors import UserError
from plumbline.builders.core.parquet import Row
from plumbline.builders.core.snapshot import MANIFEST, Snapshot
from plumbline.builders.datasets.stereotypes import build as stereotypes
from plumbline.builders.datasets.stereotypes import fetch as autocomplete
from plumbline.builders.fetch.http import Politeness
from sources.misbehaving import (
    always,
    at_first,
    half,
    misbehaving,
    passed_on,
    says,
    status,
    web_page,
)

CLOCK = noon(DAY)
SHORT = Politeness(contact="tests", attempts=2, backoff_s=0.01, timeout_s=20)
GROUPS = "category,group,name,kind\nage,kids,kids,people\ncountry,Spain,Spain,country\n"
QUERIES = 10  # two groups, five templates each
SCRIPT = """
import sys
from pathlib import Path
from plumbline.builders.datasets.stereotypes import fetch as autocomplete
from samples import DAY, POLITE, autocomplete_params, noon
autocomplete.fetch(autocomplete_params(*sys.argv[1:3]), POLITE, Path(sys.argv[3]), noon(DAY))
"""


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


def only(engine: str, behaviour):
    """Misbehave towards the requests to one engine."""

    def act(handler, real):
        (behaviour if handler.path.startswith(f"/{engine}?") else passed_on)(handler, real)

    return act


def without_addresses(found: dict[str, bytes]) -> dict[str, bytes]:
    """Leave out the manifest, which names the server that was asked."""
    return {name: body for name, body in found.items() if name != MANIFEST}


def built(folder) -> list[dict]:
    """Return the rows of the dataset of a wave alone."""
    params = whole.tree()["datasets"]["stereotypes"] | {"published": []}
    found = stereotypes.build(Snapshot.open(folder), stereotypes.Params(**params))
    return [item.values for item in found if isinstance(item, Row)]


def test_a_wave_has_every_body_as_sent_with_engine_locale_and_time(address, groups, tmp_path):
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


def test_an_engine_gets_query_locale_and_who_asks(address, groups, tmp_path):
    with misbehaving(address, delay_s=0.01) as server:
        engine = {"format": "firefox", "address": server.address + "/google?q={query}&at={gl}-{hl}"}
        locales = {"nl-be": {"language": "en", "hl": "nl", "gl": "be", "kl": "be-nl"}}
        fetched(address, groups, tmp_path / DAY, engines={"g": engine}, locales=locales)
        asked = [urllib.parse.parse_qs(r.path.partition("?")[2]) for r in server.asked]
        assert {tuple(a["at"]) for a in asked} == {("be-nl",)}
        assert [a["q"] for a in asked][:2] == [["why are kids so"], ["what makes kids so"]]
        assert "tests" in server.asked[0].headers["User-Agent"]
        assert server.most_at_once == 1
    assert len(lines(tmp_path / DAY, "g", "nl-be")) == QUERIES


@pytest.mark.parametrize(
    "behaviour",
    [status(429, Retry_After=0), status(403), web_page, half, says(b'["unusual traffic", 3]')],
    ids=["429", "403", "captcha", "half", "other"],
)
def test_throttling_that_passes_leaves_no_trace(address, groups, tmp_path, behaviour):
    whole = fetched(address, groups, tmp_path / "a" / DAY)
    with misbehaving(address, at_first(2, behaviour)) as server:
        found = fetched(server.address, groups, tmp_path / "b" / DAY)
        assert len(server.asked) == 3 * QUERIES + 2
    assert without_addresses(found) == without_addresses(whole)


def test_an_engine_that_stays_throttled_is_put_aside_and_loses_nothing(address, groups, tmp_path):
    into, phase = tmp_path / DAY, {}

    def script(number, body):
        if "over" in phase:
            return None

        def act(handler, real):
            phase["google"] = phase.get("google", 0) + handler.path.startswith("/google?")
            late = phase["google"] > 4 and handler.path.startswith("/google?")
            (web_page if late else passed_on)(handler, real)

        return act

    with misbehaving(address, script) as server:
        with pytest.raises(UserError, match=r"google/en, 4 of 10: .*captcha.*it continues") as told:
            fetched(server.address, groups, into, SHORT)
        assert "yahoo" not in str(told.value)
        assert "\n" not in str(told.value)
        assert not (into / MANIFEST).exists()
        assert len(lines(into, "yahoo")) == len(lines(into, "duckduckgo")) == QUERIES
        phase["over"] = True
        before = len(server.asked)
        continued = fetched(server.address, groups, into)
        assert len(server.asked) - before == QUERIES - 4
        whole = fetched(server.address, groups, tmp_path / "whole" / DAY)
    assert continued == whole


def test_a_wave_is_completed_without_an_engine_that_is_given_up(address, groups, tmp_path):
    into = tmp_path / DAY
    with misbehaving(address, always(only("yahoo", web_page))) as server:
        with pytest.raises(UserError, match=r"yahoo/en, 0 of 10.*sources.autocomplete.absent"):
            fetched(server.address, groups, into, SHORT)
        before = len(server.asked)
        fetched(server.address, groups, into, SHORT, absent=["yahoo"])
        assert len(server.asked) == before  # the other engines had answered
    manifest = Snapshot.open(into).manifest
    assert manifest["request"]["absent"] == {"yahoo/en": "given up"}
    assert manifest["counts"] == {"queries": QUERIES, "answers": 2 * QUERIES}
    assert not (into / "answers/yahoo").exists()
    assert {e for row in built(into) for e in row["engines"]} == {"google", "duckduckgo"}
    with pytest.raises(ValidationError, match="no engine is left"):
        autocomplete_params(address, groups, absent=["google", "yahoo", "duckduckgo"])


def test_the_manifest_has_when_the_first_and_the_last_answer_came(address, groups, tmp_path):
    started = datetime(2026, 11, 21, 23, 59, 50, tzinfo=UTC)
    ticks = iter(range(1000))
    fetched(address, groups, tmp_path / DAY, clock=lambda: started + timedelta(seconds=next(ticks)))
    last = (started + timedelta(seconds=3 * QUERIES - 1)).strftime("%Y-%m-%dT%H:%M:%SZ")
    times = Snapshot.open(tmp_path / DAY).manifest["request"]["answered"]
    assert times == {"first": "2026-11-21T23:59:50Z", "last": last}


def test_an_answer_to_another_query_is_none(address, groups, tmp_path):
    other = json.dumps(["why are cats so", ["why are cats so soft"]])
    with (
        misbehaving(address, always(only("google", says(other.encode())))) as server,
        pytest.raises(UserError, match=r"google/en, 0 of 10: .*another query, 'why are cats so'"),
    ):
        fetched(server.address, groups, tmp_path / DAY, SHORT)


def test_an_engine_that_has_nothing_any_more_is_stopped_and_asked_again(address, groups, tmp_path):
    into, phase = tmp_path / DAY, {}

    def script(number, body):
        def act(handler, real):
            phase["asked"] = phase.get("asked", 0) + handler.path.startswith("/duckduckgo?")
            mine = handler.path.startswith("/duckduckgo?")
            blocked = mine and phase["asked"] > 3 and "over" not in phase
            (says(b"[]") if blocked else passed_on)(handler, real)

        return act

    with misbehaving(address, script) as server:
        with pytest.raises(UserError, match=r"duckduckgo/en, 6 of 10: 4 answers in a row without"):
            fetched(server.address, groups, into, empty_in_a_row=4)
        assert phase["asked"] == 6  # two with suggestions, one without, three refused
        phase["over"] = True
        continued = fetched(server.address, groups, into, empty_in_a_row=4)
        assert phase["asked"] == 6 + 4 + 4  # the four empty ones again, and those not asked yet
        whole = fetched(server.address, groups, tmp_path / "whole" / DAY)
    assert continued == whole


def test_a_longer_wait_than_allowed_ends_that_engine_at_once(address, groups, tmp_path):
    with misbehaving(address, always(only("yahoo", status(429, Retry_After=86400)))) as server:
        with pytest.raises(UserError, match=r"yahoo/en, 0 of 10: .*asks to wait"):
            fetched(server.address, groups, tmp_path / DAY)
        assert len([r for r in server.asked if r.path.startswith("/yahoo?")]) == 1


def test_text_in_latin_1_is_kept_as_sent_and_read_as_meant(groups, tmp_path):
    group = "category,group,name,kind\nage,café kids,café kids,people\n"
    path = tmp_path / "groups.csv"
    path.write_text(group, "utf-8")
    query = "why are café kids so"
    known = {("google", query): [f"{query} naïve"]}

    def latin(handler, real):
        body = real.body.decode().encode("latin-1")
        handler.say(200, "text/javascript; charset=ISO-8859-1", body)

    with (
        suggesting.suggesting(known) as upstream,
        misbehaving(upstream, always(only("google", latin))) as server,
    ):
        fetched(server.address, path, tmp_path / DAY)
    line = lines(tmp_path / DAY, "google")[0]
    assert line["encoding"] == "iso-8859-1"
    sent = json.dumps([query, [f"{query} naïve"], [], {}], ensure_ascii=False).encode("latin-1")
    assert line["body"].encode("latin-1")[: len(sent) - 4] == sent[:-4]
    assert [row["attribute"] for row in built(tmp_path / DAY)] == ["naïve"]


@pytest.mark.slow
def test_a_fetch_killed_again_and_again_ends_with_the_same_bytes(address, groups, tmp_path):
    seed = random.randrange(10**6)
    print("seed", seed)
    dice = random.Random(seed)
    into = tmp_path / "killed" / DAY
    path = os.pathsep.join(map(str, [TOP, TOP / "tests"]))
    with misbehaving(address, delay_s=0.03) as server:
        command = [sys.executable, "-c", SCRIPT, server.address, groups, into]
        for _ in range(2):
            stop = len(server.asked) + 1 + dice.randrange(8)
            with subprocess.Popen(
                command, env=os.environ | {"PYTHONPATH": path}, stderr=subprocess.DEVNULL
            ) as running:
                while len(server.asked) < stop and running.poll() is None:
                    time.sleep(0.001)
                time.sleep(dice.uniform(0, 0.06))
                running.send_signal(signal.SIGKILL)
        asked = len(server.asked)
        killed = fetched(server.address, groups, into)
        assert len(server.asked) - asked < 3 * QUERIES
        whole = fetched(server.address, groups, tmp_path / "whole" / DAY)
    assert killed == whole  # so nothing else is left either


def test_an_answer_that_was_half_written_is_asked_for_again(address, groups, tmp_path):
    into = tmp_path / DAY
    with (
        misbehaving(address, lambda n, body: status(404) if n > 3 else None) as server,
        pytest.raises(UserError, match="404"),
    ):
        fetched(server.address, groups, into)
    with misbehaving(address) as server:
        # the manifest names the server: continue with the request as it was begun
        begun = into / ".request.json"
        text = begun.read_text("utf-8")
        old = json.loads(text)["engines"]["google"]["address"].split("/google")[0]
        begun.write_text(text.replace(old, server.address), "utf-8")
        part = next((into / ".answers").glob("*.jsonl"))
        with part.open("ab") as file:
            file.write(b'{"body": "[\\"why')
        found = fetched(server.address, groups, into)
        whole = fetched(server.address, groups, tmp_path / "whole" / DAY)
    assert found == whole


def test_a_fetch_continued_later_keeps_the_times_that_it_had(address, groups, tmp_path):
    into = tmp_path / DAY
    clock = [datetime(2026, 11, 21, 8, 0, tzinfo=UTC)]
    phase = "throttled"

    def script(number, body):
        return web_page if phase == "throttled" and number >= 7 else None

    with misbehaving(address, script) as server:
        with pytest.raises(UserError, match="duckduckgo/en, 7 of 10"):
            fetched(server.address, groups, into, SHORT, lambda: clock[0])
        phase, clock[0] = "over", clock[0] + timedelta(hours=20)
        fetched(server.address, groups, into, SHORT, lambda: clock[0])
    times = [line["retrieved"] for line in lines(into, "duckduckgo")]
    assert times == ["2026-11-21T08:00:00Z"] * 7 + ["2026-11-22T04:00:00Z"] * 3


def test_what_is_there_is_not_asked_for_again_but_an_edited_file_is(address, groups, tmp_path):
    into = tmp_path / DAY
    with misbehaving(address) as server:
        before = fetched(server.address, groups, into)
        asked = len(server.asked)
        later = fetched(server.address, groups, into, clock=lambda: datetime.now(UTC))
        assert (later, len(server.asked)) == (before, asked)
        (into / "answers/yahoo/en.jsonl.gz").write_bytes(gzip.compress(b""))
        assert fetched(server.address, groups, into) == before
        assert len(server.asked) == asked + QUERIES


def test_a_slower_pace_continues_a_fetch_but_other_engines_do_not(address, groups, tmp_path):
    into = tmp_path / DAY
    fetched(address, groups, into)
    fetched(address, groups, into, pause_s=5)
    with pytest.raises(UserError, match=r"begun with other parameters"):
        fetched(address, groups, into, spelling="usual")


def test_the_published_files_are_kept_as_sent_and_a_web_page_is_refused(address, groups, tmp_path):
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "choenni2021.csv").write_bytes(suggesting.published_file())
    with files(tmp_path / "site") as at:
        found = fetched(address, groups, tmp_path / DAY, published=published_params(at))
        with misbehaving(at, always(web_page)) as server:
            others = published_params(server.address)
            with pytest.raises(UserError, match=r"choenni2021\.csv: a web page"):
                fetched(address, groups, tmp_path / "b" / DAY, published=others)
    assert found["published/choenni2021.csv"] == suggesting.published_file()


@pytest.mark.parametrize(
    ("field", "place"), [("address", "www.example.org/a.csv"), ("single_words", "file:///a.csv")]
)
def test_places_of_published_files_are_addresses(groups, field, place):
    others = published_params("https://example.org")
    others["choenni2021"]["single_words"] = "https://example.org/b.csv"
    assert autocomplete_params("https://example.org", groups, published=others)
    others["choenni2021"][field] = place
    with pytest.raises(ValidationError, match=rf"choenni2021\.{field}"):
        autocomplete_params("https://example.org", groups, published=others)


def test_a_server_that_cannot_show_who_it_is_is_not_believed(groups, tmp_path):
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("needs openssl")
    asked = "req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -keyout key.pem"
    command = [openssl, *asked.split(), "-out", "cert.pem"]
    subprocess.run(command, check=True, capture_output=True, cwd=tmp_path)
    with suggesting.suggesting({}, tls=tmp_path) as address:
        assert address.startswith("https://")
        with pytest.raises(UserError, match="SSLError"):
            fetched(address, groups, tmp_path / DAY, SHORT)
    assert not (tmp_path / DAY / "answers").exists()


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"locales": {"nl": {"language": "nl"}}}, "nl: no groups or no templates for 'nl'"),
        ({"templates": {"en": {"people": ["why are they so"]}}}, "needs {group} once"),
        ({"engines": {"a/b": {"format": "list", "address": "http://x/{query}"}}}, "'a/b': a name"),
        (
            {"engines": {"a": {"format": "list", "address": "http://x/"}}},
            "String should match pattern",
        ),
        ({"engines": {"a": {"format": "list", "address": "http://x/{query}{x}"}}}, "in braces"),
        ({"engines": {"a": {"format": "html", "address": "http://x/{query}"}}}, "Input should be"),
        ({"pause_s": -1}, "greater than or equal to 0"),
    ],
)
def test_parameters_that_make_no_sense_are_refused(groups, changes, told):
    with pytest.raises(ValueError) as caught:
        autocomplete_params("http://localhost", groups, **changes)
    assert told in str(caught.value)


def test_a_wave_is_named_for_its_day(groups, tmp_path):
    with pytest.raises(UserError, match="named for its day"):
        fetched("http://localhost", groups, tmp_path / "today")


def test_the_default_parameters_are_those_of_the_authors_and_make_the_papers_queries():
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
