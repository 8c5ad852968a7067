import gzip
import zlib
from datetime import UTC, datetime
from itertools import pairwise

import pytest
from lib.test_bounds_of_answers import anything, server
from pydantic import ValidationError
from samples import POLITE, files
from sources.misbehaving import always, at_first, misbehaving, status, web_page

from plumbline.builders.core.errors import UserError
from plumbline.builders.fetch.http import Politeness, decoded, get, retry_after

NOW = datetime(2026, 11, 21, 12, 0, 0, tzinfo=UTC)


@pytest.fixture
def site(tmp_path):
    (tmp_path / "file.txt").write_bytes(b"content\n" * 50_000)
    with files(tmp_path) as address:
        yield address


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("120", 120),
        (" 0 ", 0),
        ("Sat, 21 Nov 2026 12:01:30 GMT", 90),
        ("Sat, 21 Nov 2026 13:00:30 +0100", 30),
        ("Saturday, 21-Nov-26 12:00:05 GMT", 5),
        ("Sat, 21 Nov 2026 11:00:00 GMT", 0),
        ("Sat, 21 Nov 2026 12:00:07", 7),
        (None, None),
        ("", None),
        ("soon", None),
        ("-5", None),
        ("1.5", None),
        ("\u00b2", None),
        ("Sat, 99 Nov 2026 12:00:00 GMT", None),
    ],
)
def test_retry_after_is_read_in_seconds_and_as_a_date(header, seconds):
    assert retry_after(header, NOW) == seconds


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

    once = POLITE.model_copy(update={"attempts": 1, "timeout_s": 5})
    with server(keeping) as at:
        assert get(f"{at.at}/sized", once, anything) == b"abcdef"
        assert get(f"{at.at}/chunked", once, anything) == b"abcdef"


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
    told = pytest.raises(UserError, match="asks to wait 3600 s, longer than longest_wait_s")
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


@pytest.mark.parametrize("coding", ["gzip", "x-gzip", " GZIP ", "deflate", None, "identity"])
def test_a_body_is_decoded_as_its_header_says(coding):
    own = (coding or "identity").strip().lower()
    body = {"deflate": zlib.compress, "identity": bytes}.get(own, gzip.compress)(b"content" * 9)
    assert decoded(body, coding, "x") == b"content" * 9
    if "gzip" in own:  # members one after the other are one body, what follows them is none
        assert decoded(body + body + b"junk", coding, "x") == b"content" * 18
    if own != "identity":
        with pytest.raises((EOFError, zlib.error)):
            decoded(body[:-9], coding, "x")


def test_a_coding_that_nobody_asked_for_is_named():
    with pytest.raises(UserError, match="coding 'br', which was not asked for"):
        decoded(b"x", "br", "http://a")


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
