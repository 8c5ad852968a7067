import gzip
import time
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from itertools import pairwise

import pytest
from lib.serving import anything, server
from pydantic import ValidationError
from samples import POLITE, files
from sources.misbehaving import always, at_first, misbehaving, status, web_page

from plumbline.builders.core import limits
from plumbline.builders.core.errors import UserError
from plumbline.builders.fetch import sparql
from plumbline.builders.fetch.http import Politeness, get, retry_after

ONCE = POLITE.model_copy(update={"attempts": 1, "timeout_s": 5})


@pytest.fixture
def site(tmp_path):
    (tmp_path / "file.txt").write_bytes(b"content\n" * 50_000)
    with files(tmp_path) as address:
        yield address


@pytest.mark.parametrize(
    ("header", "seconds"),
    [("120", 120), (" 0 ", 0), ("Sat, 21 Nov 2020 11:00:00 GMT", 0)]
    + [(header, None) for header in (None, "", "soon", "-5", "1.5", "\u00b2")],
)
def test_retry_after_in_seconds_or_unreadable(header, seconds):
    assert retry_after(header) == seconds


def test_retry_after_as_a_date():
    then = datetime.now(UTC) + timedelta(seconds=90)
    assert retry_after(format_datetime(then, usegmt=True)) == pytest.approx(90, abs=3)


def test_the_user_agent_names_project_and_contact():
    agent = Politeness(contact=" someone@example.org ").user_agent()
    assert agent.startswith("plumbline/")
    assert agent.endswith("contact someone@example.org)")


@pytest.mark.parametrize("contact", ["", "  ", "\n", "Zażółć", "a@b.org\r\nX-Other: yes"])
def test_a_contact_that_no_header_can_hold_is_refused_in_one_sentence(contact):
    with pytest.raises(UserError, match=r"^params\.yaml, sources\.politeness\.contact: ") as caught:
        Politeness(contact=contact).user_agent()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "wrong", [{"attempts": 0}, {"timeout_s": 0}, {"backoff_s": -1}, {"patience": 3}]
)
def test_politeness_that_makes_no_sense_is_refused(wrong):
    with pytest.raises(ValidationError):
        Politeness(contact="tests", **wrong)


def test_a_connection_that_the_server_keeps_open_does_not_hold_up():
    def keeping(handler):
        handler.protocol_version, handler.close_connection = "HTTP/1.1", False
        handler.send_response(200)
        if handler.path == "/chunked":
            handler.send_header("Transfer-Encoding", "chunked")
            handler.end_headers()
            handler.wfile.write(b"3\r\nabc\r\n3\r\ndef\r\n0\r\n\r\n")
        else:
            handler.send_header("Content-Length", "6")
            handler.end_headers()
            handler.wfile.write(b"abcdef")

    with server(keeping) as at:
        assert get(f"{at.at}/sized", ONCE, anything) == b"abcdef"
        assert get(f"{at.at}/chunked", ONCE, anything) == b"abcdef"


def test_waits_grow_and_the_service_is_asked_no_more_than_allowed(site):
    policy = POLITE.model_copy(update={"attempts": 4, "backoff_s": 0.1})
    told = pytest.raises(UserError, match=r"gave up after 4 attempts \(HTTP 503, too busy\)")
    with misbehaving(site, always(status(503))) as server, told:
        get(f"{server.address}/file.txt", policy, anything)
    times = [request.at for request in server.asked]
    waits = [after - before for before, after in pairwise(times)]
    assert len(times) == 4
    assert all(wait >= least for wait, least in zip(waits, [0.1, 0.2, 0.4], strict=True))


def test_a_wait_longer_than_the_policy_allows_ends_at_once(site):
    policy = POLITE.model_copy(update={"longest_wait_s": 5})
    told = pytest.raises(UserError, match="3600 s")
    with misbehaving(site, always(status(503, Retry_After=3600))) as server, told:
        get(f"{server.address}/file.txt", policy, anything)
    assert len(server.asked) == 1


@pytest.mark.parametrize("code", [403, 404])
def test_a_refusal_is_not_asked_for_twice(site, code):
    with misbehaving(site, always(status(code))) as server:
        url = f"{server.address}/file.txt"
        with pytest.raises(UserError, match=f"^{url}: HTTP {code}; check the address"):
            get(url, POLITE, anything)
    assert len(server.asked) == 1


def test_what_is_expected_of_a_body_is_held_against_it(site):
    with misbehaving(site, always(web_page)) as server:
        url = f"{server.address}/file.txt"
        with pytest.raises(UserError, match=f"^{url}: a web page; check the address"):
            get(url, POLITE, lambda body: "a web page" if body[:1] == b"<" else None)


def sent(body, coding="gzip"):
    def act(handler):
        handler.send_response(200)
        handler.send_header("Content-Encoding", coding)
        handler.end_headers()
        handler.wfile.write(body)

    return act


def test_get_gzip_is_decoded_and_half_of_it_is_a_failure():
    body = gzip.compress(b"content" * 900)
    with server(sent(body)) as at:
        assert get(at.at, ONCE, anything) == b"content" * 900
    with server(sent(body[:-9])) as at, pytest.raises(UserError, match="attempts"):
        get(at.at, ONCE, anything)


@pytest.mark.parametrize("coding", ["gzip", "identity"])
def test_get_takes_no_more_than_the_maximum_size_decompressed(monkeypatch, coding):
    body = gzip.compress(bytes(8 << 20)) if coding == "gzip" else bytes(8 << 20)
    monkeypatch.setattr(limits, "READ", 4 << 20)
    with server(sent(body, coding)) as at, pytest.raises(UserError, match="4 MB"):
        get(at.at, ONCE, anything)
    assert len(at.asked) == 1


def test_get_follows_a_redirect(site):
    def leads(handler):
        handler.send_response(302)
        handler.send_header("Location", f"{site}/file.txt")
        handler.end_headers()

    with server(leads) as at:
        assert get(at.at, ONCE, anything).startswith(b"content")


def test_a_dead_endpoint_is_given_up_after_the_time_that_is_stated(tmp_path):
    hasty = POLITE.model_copy(update={"timeout_s": 0.2, "give_up_s": 1.0, "attempts": 6})
    batch = sparql.Batch("00000", [f"Q{number}" for number in range(1, 401)])
    start = time.monotonic()
    with server(lambda handler: handler.server.closing.wait(30)) as at:
        client = sparql.Endpoint(at.at, hasty, tmp_path)
        with pytest.raises(UserError, match="for 1 s"):
            client.gather(batch, "facts", lambda part: f"SELECT ?item WHERE {len(part.ids)}")
    assert time.monotonic() - start < 4


@pytest.mark.parametrize("code", [429, 503, 404])
def test_a_status_and_its_retry_after_count_though_the_body_is_cut(site, tmp_path, code):
    def cut_error(handler, real):
        handler.say(code, "text/plain", b"busy " * 400, length=50_000, Retry_After=1)

    hasty = POLITE.model_copy(update={"attempts": 3})
    with misbehaving(site, at_first(1, cut_error)) as server:
        if code == 404:
            with pytest.raises(UserError, match="HTTP 404; check the address"):
                get(f"{server.address}/file.txt", hasty, anything)
            assert len(server.asked) == 1
        else:
            assert get(f"{server.address}/file.txt", hasty, anything).startswith(b"content")
            first, second = (request.at for request in server.asked)
            assert second - first >= 1
