"""Large files, from a server with ranges that breaks off, changes its mind, or is slow."""

import random
import re
from contextlib import contextmanager
from pathlib import Path

import pytest
from lib.serving import server
from samples import POLITE

from plumbline.builders.core.errors import UserError
from plumbline.builders.fetch.http import download

BODY = random.Random(5).randbytes(3_000_000)


def send(handler, state: dict) -> None:
    """Answer as a state says: which body and version, with ranges or not, how much and how fast."""
    number = len(handler.server.asked)
    body, begin, status = state["body"], 0, 200
    found = re.fullmatch(r"bytes=(\d+)-", handler.headers.get("Range", ""))
    same = handler.headers.get("If-Range") in (None, state["tag"])
    if found and state["ranges"] and same:
        begin, status = int(found[1]), 206
    if state["status"](number):
        handler.send_response(state["status"](number))
        handler.send_header("Content-Length", "0")
        handler.end_headers()
        return
    handler.send_response(status)
    handler.send_header("Content-Length", str(len(body) - begin))
    if state["tag"]:
        handler.send_header("ETag", state["tag"])
    if status == 206:
        shift = state["shift"]
        handler.send_header("Content-Range", f"bytes {begin + shift}-{len(body) - 1}/{len(body)}")
    handler.end_headers()
    rest = body[begin:][: state["most"](number)]
    for start in range(0, len(rest), state["piece"]):
        handler.wfile.write(rest[start : start + state["piece"]])
        handler.wfile.flush()
        handler.server.closing.wait(state["pause_s"])


@contextmanager
def serving(**changes):
    state = {"body": BODY, "ranges": True, "tag": '"a"', "status": lambda n: 0}
    state |= {"most": lambda n: 10**9, "shift": 0, "piece": 1 << 20, "pause_s": 0} | changes
    with server(lambda handler: send(handler, state)) as found:
        yield f"{found.at}/big", found.asked


def sound(part: Path) -> str | None:
    return None if part.read_bytes() == BODY else "not the file"


def get(address: str, path: Path, **changes) -> None:
    download(address, POLITE.model_copy(update=changes), path, sound)


def ranges(asked) -> list[str | None]:
    return [handler.headers.get("Range") for handler in asked]


def test_download_in_one_piece(tmp_path):
    with serving() as (address, asked):
        get(address, tmp_path / "en" / "big")
    assert [p.name for p in (tmp_path / "en").iterdir()] == ["big"]
    assert asked[0].headers["User-Agent"] == POLITE.user_agent()


def test_download_continues_a_broken_transfer(tmp_path):
    with serving(most=lambda n: 1_000_000 if n < 3 else 10**9) as (address, asked):
        get(address, tmp_path / "big")
    assert ranges(asked) == [None, "bytes=1000000-", "bytes=2000000-"]
    assert asked[1].headers["If-Range"] == '"a"'


def test_download_continues_in_another_process(tmp_path):
    lost = pytest.raises(UserError)
    with serving(most=lambda n: 1_000_000 if n < 2 else 10**9) as (address, asked):
        with lost:
            get(address, tmp_path / "big", attempts=1)
        assert not (tmp_path / "big").exists()
        get(address, tmp_path / "big", attempts=1)
    assert ranges(asked) == [None, "bytes=1000000-"]


@pytest.mark.parametrize(
    ("changes", "wanted"),
    [
        ({"ranges": False}, "bytes=1000000-"),
        ({"tag": ""}, None),
    ],
)
def test_download_without_ranges_starts_again(tmp_path, changes, wanted):
    with serving(most=lambda n: 1_000_000 if n < 2 else 10**9, **changes) as (address, asked):
        get(address, tmp_path / "big")
    assert ranges(asked) == [None, wanted]


def test_download_of_a_changed_file_starts_again(tmp_path):
    with (
        serving(body=BODY[::-1], most=lambda n: 1_000_000) as (address, _),
        pytest.raises(UserError),
    ):
        get(address, tmp_path / "big", attempts=1)
    with serving(tag='"b"') as (address, asked):
        get(address, tmp_path / "big", attempts=1)
    assert ranges(asked) == ["bytes=1000000-"]


def test_download_wrong_address_or_file(tmp_path):
    with (
        serving(status=lambda n: 404) as (address, asked),
        pytest.raises(UserError),
    ):
        get(address, tmp_path / "big")
    assert len(asked) == 1
    with (
        serving(body=b"<html>") as (address, _),
        pytest.raises(UserError),
    ):
        get(address, tmp_path / "big")
    assert list(tmp_path.iterdir()) == []
