"""Answers without end, in drips, from elsewhere or from the dead: each has its bound."""

import gzip
import http.server
import threading
import time
from contextlib import contextmanager, suppress

import pytest
from samples import POLITE

from plumbline.builders.core import limits
from plumbline.builders.core.errors import UserError
from plumbline.builders.fetch import sparql
from plumbline.builders.fetch.download import download
from plumbline.builders.fetch.http import get

ONCE = POLITE.model_copy(update={"attempts": 1, "timeout_s": 1.0})
MB = limits.MB


@contextmanager
def server(act):
    """Answer every request by calling a function with the handler."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.server.asked.append(self)
            with suppress(BrokenPipeError, ConnectionResetError):
                act(self)

        do_HEAD = do_POST = do_PUT = do_GET  # noqa: N815

        def log_message(self, *arguments):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as found:
        found.asked, found.closing = [], threading.Event()
        threading.Thread(target=found.serve_forever, args=(0.02,), daemon=True).start()
        found.at = f"http://127.0.0.1:{found.server_port}"
        try:
            yield found
        finally:
            found.closing.set()
            found.shutdown()


def anything(body: object) -> None:
    return None


def bomb(handler):
    handler.send_response(200)
    handler.send_header("Content-Encoding", "gzip")
    handler.end_headers()
    handler.wfile.write(gzip.compress(bytes(8 * MB)))


def endless(handler):
    handler.send_response(200)
    handler.send_header("ETag", '"a"')
    handler.end_headers()
    while not handler.server.closing.is_set():
        handler.wfile.write(bytes(MB))


def drips(handler):
    for letter in b"HTTP/1.1 200 OK\r\nX: " + b"x" * 1000:
        handler.wfile.write(bytes([letter]))
        if handler.server.closing.wait(0.05):
            return


def body_drips(handler):
    handler.wfile.write(b"HTTP/1.0 200 OK\r\n\r\n")
    for _ in range(1000):
        handler.wfile.write(b"x")
        if handler.server.closing.wait(0.05):
            return


@pytest.mark.parametrize("act", [bomb, endless])
def test_no_more_is_taken_than_the_largest_size_counted_unpacked(act):
    told = pytest.raises(UserError, match="sends more than 4 MB, the most that is taken")
    with server(act) as at, told:
        get(at.at, ONCE.bounded(4 * MB), anything)


def test_a_download_without_end_stops_at_the_largest_size(tmp_path):
    told = pytest.raises(UserError, match="sends more than 4 MB")
    with server(endless) as at, told:
        download(f"{at.at}/x", ONCE.bounded(4 * MB), tmp_path / "x", anything)
    assert not any(path.stat().st_size > 100 for path in tmp_path.iterdir())


@pytest.mark.parametrize("act", [drips, body_drips])
def test_one_deadline_holds_for_headers_and_body_that_come_in_drips(act):
    start = time.monotonic()
    with server(act) as at, pytest.raises(UserError, match="no whole answer within 1 s"):
        get(at.at, ONCE, anything)
    assert time.monotonic() - start < 3


def leading(target):
    def act(handler):
        if handler.path == "/there":
            handler.send_response(200)
            handler.end_headers()
            handler.wfile.write(b"found")
            return
        handler.send_response(302)
        handler.send_header("Location", target)
        handler.end_headers()

    return act


def test_within_a_host_an_answer_may_lead_on():
    with server(leading("/there")) as at:
        assert get(at.at, ONCE, anything) == b"found"


@pytest.mark.parametrize("host", ["localhost", "127.0.0.2", "[::1]"])
def test_to_another_host_it_may_not(host):
    with (
        server(leading("/there")) as other,
        server(leading(f"http://{host}:{other.server_port}/there")) as at,
    ):
        with pytest.raises(UserError, match="leads to another host"):
            get(at.at, ONCE, anything)
        assert other.asked == []


def test_but_where_the_params_say_so():
    knowing = ONCE.model_copy(update={"redirects": {"127.0.0.1": ["local*"]}})
    with (
        server(leading("/there")) as other,
        server(leading(f"http://localhost:{other.server_port}/there")) as at,
    ):
        assert get(at.at, knowing, anything) == b"found"


def test_a_query_is_not_sent_on_elsewhere(tmp_path):
    with server(leading("/there")) as other:
        with server(leading(f"http://localhost:{other.server_port}/there")) as at:
            client = sparql.Endpoint(at.at, ONCE, tmp_path)
            with pytest.raises(UserError, match="leads to another host"):
                client.save("x", "SELECT ?item WHERE { }")
        assert other.asked == []


def test_a_dead_endpoint_is_given_up_after_the_time_that_is_stated(tmp_path):
    def silent(handler):
        handler.server.closing.wait(30)

    hasty = POLITE.model_copy(update={"timeout_s": 0.2, "give_up_s": 1.0, "attempts": 6})
    batch = sparql.Batch("00000", [f"Q{number}" for number in range(1, 401)])
    start = time.monotonic()
    with server(silent) as at:
        client = sparql.Endpoint(at.at, hasty, tmp_path)
        with pytest.raises(UserError, match=r"for 1 s .* dead.*continues"):
            client.gather(batch, "facts", lambda part: f"SELECT ?item WHERE {len(part.ids)}")
    assert time.monotonic() - start < 4


def test_a_download_that_was_killed_while_it_was_looked_at_is_not_fetched_again(tmp_path):
    body = bytes(3 * MB)

    def ranged(handler):
        begins = handler.headers.get("Range")
        assert begins == f"bytes={len(body)}-"
        handler.send_response(416)
        handler.send_header("Content-Range", f"bytes */{len(body)}")
        handler.send_header("Content-Length", "0")
        handler.end_headers()

    (tmp_path / ".part-x").write_bytes(body)
    (tmp_path / ".version-x").write_text('"a"')
    with server(ranged) as at:
        download(f"{at.at}/x", ONCE, tmp_path / "x", anything)
        assert len(at.asked) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["x"]
    assert (tmp_path / "x").read_bytes() == body
