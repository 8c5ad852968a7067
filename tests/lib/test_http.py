"""Requests of one file: retries, whole bodies, continued downloads, the maximum size."""

import gzip
import io
import random
import re
import zipfile
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

import pytest
from lib.serving import anything, server
from samples import POLITE, files
from sources.misbehaving import always, at_first, misbehaving, status

from plumbline.builders.core import snapshot
from plumbline.builders.core.errors import UserError
from plumbline.builders.fetch.http import Politeness, download, get, retry_after
from plumbline.builders.readers import archives

ONCE = POLITE.model_copy(update={"attempts": 1, "timeout_s": 5})
BODY = random.Random(5).randbytes(3_000_000)


@pytest.fixture
def site(tmp_path):
    (tmp_path / "file.txt").write_bytes(b"content\n" * 50_000)
    with files(tmp_path) as address:
        yield address


@pytest.mark.parametrize(
    ("header", "seconds"),
    [("120", 120), ("Sat, 21 Nov 2020 11:00:00 GMT", 0), (None, None), ("soon", None)],
)
def test_retry_after_in_seconds_or_unreadable(header, seconds):
    assert retry_after(header) == seconds


@pytest.mark.parametrize("contact", ["", "a@b.org\r\nX-Other: yes"])
def test_user_agent_bad_contact(contact):
    with pytest.raises((UserError, ValueError), match="contact"):
        Politeness(contact=contact).user_agent()


def test_get_waits_grow(site):
    policy = POLITE.model_copy(update={"attempts": 4, "backoff_s": 0.1})
    with misbehaving(site, always(status(503))) as busy, pytest.raises(UserError):
        get(f"{busy.address}/file.txt", policy, anything)
    waits = [after.at - before.at for before, after in pairwise(busy.asked)]
    assert len(waits) == 3
    assert all(wait >= least for wait, least in zip(waits, [0.1, 0.2, 0.4], strict=True))


@pytest.mark.parametrize("behaviour", [status(503, Retry_After=3600), status(404)])
def test_get_does_not_retry_a_refusal_or_a_long_wait(site, behaviour):
    policy = POLITE.model_copy(update={"longest_wait_s": 5})
    with misbehaving(site, always(behaviour)) as refusing, pytest.raises(UserError):
        get(f"{refusing.address}/file.txt", policy, anything)
    assert len(refusing.asked) == 1


@pytest.mark.parametrize("code", [429, 404])
def test_get_status_with_a_cut_body(site, code):
    def cut_error(handler, real):
        handler.say(code, "text/plain", b"busy " * 400, length=50_000, Retry_After=1)

    hasty = POLITE.model_copy(update={"attempts": 3})
    with misbehaving(site, at_first(1, cut_error)) as cutting:
        url = f"{cutting.address}/file.txt"
        if code == 404:
            with pytest.raises(UserError):
                get(url, hasty, anything)
            assert len(cutting.asked) == 1
        else:
            assert get(url, hasty, anything).startswith(b"content")
            first, second = (request.at for request in cutting.asked)
            assert second - first >= 1


def sent(body):
    def act(handler):
        handler.send_response(200)
        handler.send_header("Content-Encoding", "gzip")
        handler.end_headers()
        handler.wfile.write(body)

    return act


def test_get_gzip_is_decoded_and_half_of_it_is_a_failure():
    body = gzip.compress(b"content" * 900)
    with server(sent(body)) as at:
        assert get(at.at, ONCE, anything) == b"content" * 900
    with server(sent(body[:-9])) as at, pytest.raises(UserError):
        get(at.at, ONCE, anything)


def zipped(body):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.txt", body)
    return out.getvalue()


def test_nothing_is_read_above_the_maximum_size_decompressed(monkeypatch):
    monkeypatch.setattr(snapshot, "READ", 1 << 20)
    body = bytes((1 << 20) + 1)
    with server(sent(gzip.compress(body))) as at, pytest.raises(UserError):
        get(at.at, ONCE, anything)
    assert len(at.asked) == 1
    with pytest.raises(snapshot.TooLarge):
        archives.unpacked(zipped(body), "a.txt")
    assert len(archives.unpacked(zipped(body[1:]), "a.txt")) == 1 << 20
    with pytest.raises(ValueError):
        archives.unpacked(zipped(b"abc")[:-9], "a.txt")


def send(handler, state: dict) -> None:
    """Answer as a state says: which body and version, with ranges or not, how much of it."""
    number = len(handler.server.asked)
    body, begin, code = state["body"], 0, 200
    wanted = re.fullmatch(r"bytes=(\d+)-", handler.headers.get("Range", ""))
    same = handler.headers.get("If-Range") in (None, state["tag"])
    if wanted and state["ranges"] and same:
        begin, code = int(wanted[1]), 206
    handler.send_response(code)
    handler.send_header("Content-Length", str(len(body) - begin))
    if state["tag"]:
        handler.send_header("ETag", state["tag"])
    if code == 206:
        handler.send_header("Content-Range", f"bytes {begin}-{len(body) - 1}/{len(body)}")
    handler.end_headers()
    handler.wfile.write(body[begin:][: state["most"](number)])


@contextmanager
def serving(**changes):
    state = {"body": BODY, "ranges": True, "tag": '"a"', "most": lambda n: 10**9} | changes
    with server(lambda handler: send(handler, state)) as found:
        yield f"{found.at}/big", found.asked


def sound(part: Path) -> str | None:
    return None if part.read_bytes() == BODY else "not the file"


def fetch(address: str, path: Path, attempts: int = 6) -> None:
    download(address, POLITE.model_copy(update={"attempts": attempts}), path, sound)


def ranges(asked) -> list[str | None]:
    return [handler.headers.get("Range") for handler in asked]


def until(number: int):
    """Send a megabyte a request, and from the request of that number on all."""
    return lambda n: 1_000_000 if n < number else 10**9


def test_download_continues_a_broken_transfer(tmp_path):
    with serving(most=until(3)) as (address, asked):
        fetch(address, tmp_path / "en" / "big")
    assert ranges(asked) == [None, "bytes=1000000-", "bytes=2000000-"]
    assert asked[1].headers["If-Range"] == '"a"'
    assert [p.name for p in (tmp_path / "en").iterdir()] == ["big"]


def test_download_continues_in_another_process(tmp_path):
    with serving(most=until(2)) as (address, asked):
        with pytest.raises(UserError):
            fetch(address, tmp_path / "big", attempts=1)
        assert not (tmp_path / "big").exists()
        fetch(address, tmp_path / "big", attempts=1)
    assert ranges(asked) == [None, "bytes=1000000-"]


@pytest.mark.parametrize(
    ("changes", "wanted"), [({"ranges": False}, "bytes=1000000-"), ({"tag": ""}, None)]
)
def test_download_without_ranges_starts_again(tmp_path, changes, wanted):
    with serving(most=until(2), **changes) as (address, asked):
        fetch(address, tmp_path / "big")
    assert ranges(asked) == [None, wanted]


def test_download_of_a_changed_file_starts_again(tmp_path):
    other = serving(body=BODY[::-1], most=lambda n: 1_000_000)
    with other as (address, _), pytest.raises(UserError):
        fetch(address, tmp_path / "big", attempts=1)
    with serving(tag='"b"') as (address, asked):
        fetch(address, tmp_path / "big", attempts=1)
    assert ranges(asked) == ["bytes=1000000-"]


def test_download_wrong_file_leaves_nothing(tmp_path):
    with serving(body=b"<html>") as (address, _), pytest.raises(UserError):
        fetch(address, tmp_path / "big")
    assert list(tmp_path.iterdir()) == []
