"""Large files, from a server with ranges that breaks off, changes its mind, or is slow."""

from __future__ import annotations

import http.server
import random
import re
import threading
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

import pytest
from samples import POLITE

from plumbline.builders.core.errors import UserError
from plumbline.builders.fetch.download import download

if TYPE_CHECKING:
    from pathlib import Path

BODY = random.Random(5).randbytes(3_000_000)


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        state = self.server.state
        state["asked"].append(dict(self.headers))
        number = len(state["asked"])
        body, begin, status = state["body"], 0, 200
        found = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", ""))
        same = self.headers.get("If-Range") in (None, state["tag"])
        if found and state["ranges"] and same:
            begin, status = int(found[1]), 206
        if state["status"](number):
            self.send_response(state["status"](number))
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        self.send_response(status)
        self.send_header("Content-Length", str(len(body) - begin))
        if state["tag"]:
            self.send_header("ETag", state["tag"])
        if status == 206:
            shift = state["shift"]
            self.send_header("Content-Range", f"bytes {begin + shift}-{len(body) - 1}/{len(body)}")
        self.end_headers()
        with suppress(BrokenPipeError, ConnectionResetError):
            self.send(body[begin:], state["most"](number))

    def send(self, body: bytes, most: int) -> None:
        state = self.server.state
        for start in range(0, min(len(body), most), state["piece"]):
            self.wfile.write(body[start : min(start + state["piece"], most)])
            self.wfile.flush()
            state["closing"].wait(state["pause_s"])

    def log_message(self, *arguments) -> None:
        pass


@contextmanager
def server(**changes):
    state = {"body": BODY, "ranges": True, "tag": '"a"', "status": lambda n: 0, "asked": []}
    state |= {"most": lambda n: 10**9, "shift": 0, "piece": 1 << 20, "pause_s": 0}
    state |= {"closing": threading.Event()} | changes
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as found:
        found.state = state
        loop = threading.Thread(target=found.serve_forever, args=(0.02,))
        loop.start()
        try:
            yield f"http://127.0.0.1:{found.server_port}/big", state
        finally:
            state["closing"].set()
            found.shutdown()
            loop.join()


def sound(part: Path) -> str | None:
    return None if part.read_bytes() == BODY else "not the file"


def get(address: str, path: Path, **changes) -> None:
    download(address, POLITE.model_copy(update=changes), path, sound)


def ranges(state) -> list[str | None]:
    return [headers.get("Range") for headers in state["asked"]]


def test_a_file_that_comes_in_one_piece_is_whole_and_alone(tmp_path):
    with server() as (address, state):
        get(address, tmp_path / "en" / "big")
    assert [p.name for p in (tmp_path / "en").iterdir()] == ["big"]
    assert state["asked"][0]["User-Agent"] == POLITE.user_agent()


def test_a_line_that_breaks_is_gone_on_with_where_it_broke(tmp_path):
    with server(most=lambda n: 1_000_000 if n < 3 else 10**9) as (address, state):
        get(address, tmp_path / "big")
    assert ranges(state) == [None, "bytes=1000000-", "bytes=2000000-"]
    assert state["asked"][1]["If-Range"] == '"a"'


def test_another_process_goes_on_too(tmp_path):
    lost = pytest.raises(UserError, match="nothing fetched so far is lost")
    with server(most=lambda n: 1_000_000 if n < 2 else 10**9) as (address, state):
        with lost:
            get(address, tmp_path / "big", attempts=1)
        assert not (tmp_path / "big").exists()
        get(address, tmp_path / "big", attempts=1)
    assert ranges(state) == [None, "bytes=1000000-"]


@pytest.mark.parametrize(
    ("changes", "asked"),
    [({"ranges": False}, "bytes=1000000-"), ({"tag": ""}, None), ({"tag": 'W/"a"'}, None)],
)
def test_where_the_rest_cannot_be_had_the_file_is_asked_for_anew(tmp_path, changes, asked):
    with server(most=lambda n: 1_000_000 if n < 2 else 10**9, **changes) as (address, state):
        get(address, tmp_path / "big")
    assert ranges(state) == [None, asked]


def test_a_file_that_changed_meanwhile_is_not_patched_together(tmp_path):
    with (
        server(body=BODY[::-1], most=lambda n: 1_000_000) as (address, _),
        pytest.raises(UserError),
    ):
        get(address, tmp_path / "big", attempts=1)
    with server(tag='"b"') as (address, state):
        get(address, tmp_path / "big", attempts=1)
    assert ranges(state) == ["bytes=1000000-"]


def test_a_wrong_range_or_a_shorter_file_is_asked_for_anew(tmp_path):
    cut = {"most": lambda n: 1_000_000 if n == 1 else 10**9}
    with server(shift=7, **cut) as (address, state):
        get(address, tmp_path / "one")
    assert ranges(state) == [None, "bytes=1000000-", None]
    with server(status=lambda n: 416 if n == 2 else 0, **cut) as (address, state):
        get(address, tmp_path / "two")
    assert ranges(state) == [None, "bytes=1000000-", None]


def test_a_file_longer_than_one_answer_may_take_comes_in_several_that_are_no_failures(tmp_path):
    slow = {"piece": 1_100_000, "pause_s": 0.4}
    with server(**slow) as (address, state):
        get(address, tmp_path / "big", timeout_s=0.3, attempts=1)
    assert len(state["asked"]) == 3


def test_a_file_that_only_trickles_in_is_given_up(tmp_path):
    with (
        server(piece=1000, pause_s=0.05) as (address, _),
        pytest.raises(UserError, match=r"no whole answer within 0\.2 s"),
    ):
        get(address, tmp_path / "big", timeout_s=0.2, attempts=2)


def test_a_wrong_address_is_told_at_once_and_a_wrong_file_is_not_kept(tmp_path):
    with (
        server(status=lambda n: 404) as (address, state),
        pytest.raises(UserError, match=r"HTTP 404; check the address"),
    ):
        get(address, tmp_path / "big")
    assert len(state["asked"]) == 1
    with (
        server(body=b"<html>") as (address, _),
        pytest.raises(UserError, match=r"^http://.*/big: not the file; check the address"),
    ):
        get(address, tmp_path / "big")
    assert list(tmp_path.iterdir()) == []
