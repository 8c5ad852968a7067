import gzip
from itertools import pairwise

import pytest
from lib.serving import anything, server
from samples import POLITE, files
from sources.misbehaving import always, at_first, misbehaving, status

from plumbline.builders.core import snapshot
from plumbline.builders.core.errors import UserError
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


@pytest.mark.parametrize(
    "contact",
    [
        "",
        "a@b.org\r\nX-Other: yes",
    ],
)
def test_user_agent_bad_contact(contact):
    with pytest.raises(UserError, match=r"params\.yaml") as caught:
        Politeness(contact=contact).user_agent()
    assert "\n" not in str(caught.value)


def test_get_waits_grow(site):
    policy = POLITE.model_copy(update={"attempts": 4, "backoff_s": 0.1})
    told = pytest.raises(UserError)
    with misbehaving(site, always(status(503))) as server, told:
        get(f"{server.address}/file.txt", policy, anything)
    times = [request.at for request in server.asked]
    waits = [after - before for before, after in pairwise(times)]
    assert len(times) == 4
    assert all(wait >= least for wait, least in zip(waits, [0.1, 0.2, 0.4], strict=True))


def test_get_long_retry_after_ends(site):
    policy = POLITE.model_copy(update={"longest_wait_s": 5})
    told = pytest.raises(UserError)
    with misbehaving(site, always(status(503, Retry_After=3600))) as server, told:
        get(f"{server.address}/file.txt", policy, anything)
    assert len(server.asked) == 1


@pytest.mark.parametrize(
    "code",
    [
        404,
    ],
)
def test_get_does_not_retry_a_refusal(site, code):
    with misbehaving(site, always(status(code))) as server:
        url = f"{server.address}/file.txt"
        with pytest.raises(UserError):
            get(url, POLITE, anything)
    assert len(server.asked) == 1


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
    with server(sent(body[:-9])) as at, pytest.raises(UserError):
        get(at.at, ONCE, anything)


@pytest.mark.parametrize(
    "coding",
    [
        "gzip",
    ],
)
def test_get_takes_no_more_than_the_maximum_size_decompressed(monkeypatch, coding):
    body = gzip.compress(bytes(8 << 20)) if coding == "gzip" else bytes(8 << 20)
    monkeypatch.setattr(snapshot, "READ", 4 << 20)
    with server(sent(body, coding)) as at, pytest.raises(UserError):
        get(at.at, ONCE, anything)
    assert len(at.asked) == 1


@pytest.mark.parametrize("code", [429, 503, 404])
def test_get_status_with_a_cut_body(site, tmp_path, code):
    def cut_error(handler, real):
        handler.say(code, "text/plain", b"busy " * 400, length=50_000, Retry_After=1)

    hasty = POLITE.model_copy(update={"attempts": 3})
    with misbehaving(site, at_first(1, cut_error)) as server:
        if code == 404:
            with pytest.raises(UserError):
                get(f"{server.address}/file.txt", hasty, anything)
            assert len(server.asked) == 1
        else:
            assert get(f"{server.address}/file.txt", hasty, anything).startswith(b"content")
            first, second = (request.at for request in server.asked)
            assert second - first >= 1
