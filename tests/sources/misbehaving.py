"""A server that passes requests on to a real one, and misbehaves by a script.

The script is a function of the number of the request (from 0) and of its body; it returns a
behaviour, or None to pass the request on.
"""

import http.server
import json
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import date
from typing import NamedTuple
from urllib.parse import unquote_plus, urlsplit

import requests

PAGE = b"<!DOCTYPE html>\n<html><body>Our servers are taking a rest.</body></html>\n"


class Request(NamedTuple):
    """One request as it arrived."""

    path: str
    headers: dict[str, str]
    body: str
    at: float


class Answer(NamedTuple):
    """What the real server says."""

    status: int
    kind: str
    body: bytes


Behaviour = Callable[["Handler", Answer], None]
Script = Callable[[int, str], Behaviour | None]


@dataclass
class Server:
    """A running server: its address, and what it was asked."""

    address: str
    upstream: str
    script: Script
    delay_s: float = 0
    asked: list[Request] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)
    closing: threading.Event = field(default_factory=threading.Event)

    @property
    def endpoint(self) -> str:
        return f"{self.address}/query"


class Handler(http.server.BaseHTTPRequestHandler):
    server: "_Listener"

    def do_GET(self) -> None:
        state = self.server.state
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        text = unquote_plus(body.decode())
        with state.lock:
            number = len(state.asked)
            state.asked.append(Request(self.path, dict(self.headers), text, time.monotonic()))
        state.closing.wait(state.delay_s)
        headers = {k: v for k, v in self.headers.items() if k in ("Accept", "Content-Type")}
        url = state.upstream + self.path
        real = requests.request(self.command, url, data=body, headers=headers, timeout=60)
        answer = Answer(real.status_code, real.headers.get("Content-Type", ""), real.content)
        with suppress(BrokenPipeError, ConnectionResetError):  # the client has gone
            (state.script(number, text) or passed_on)(self, answer)

    do_POST = do_GET  # noqa: N815

    def say(self, status: int, kind: str, body: bytes, length: int | None = None, **more) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body) if length is None else length))
        for name, value in more.items():
            self.send_header(name.replace("_", "-"), str(value))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments) -> None:
        pass


class _Listener(http.server.ThreadingHTTPServer):
    daemon_threads = False
    state: Server


@contextmanager
def misbehaving(
    upstream: str, script: Script = lambda number, body: None, delay_s: float = 0
) -> Iterator[Server]:
    """Run the server in front of a real one; yield its state."""
    parts = urlsplit(upstream)
    with _Listener(("127.0.0.1", 0), Handler) as listener:
        state = Server(
            address=f"http://127.0.0.1:{listener.server_port}",
            upstream=f"{parts.scheme}://{parts.netloc}",
            script=script,
            delay_s=delay_s,
        )
        listener.state = state
        loop = threading.Thread(target=listener.serve_forever, args=(0.02,))
        loop.start()
        try:
            yield state
        finally:
            state.closing.set()
            listener.shutdown()
            loop.join()


def passed_on(handler: Handler, real: Answer) -> None:
    handler.say(real.status, real.kind, real.body)


def status(code: int, text: str = "", **headers) -> Behaviour:
    """Answer with an error; underscores in the names of headers stand for hyphens."""
    return lambda handler, real: handler.say(code, "text/plain", text.encode(), **headers)


def web_page(handler: Handler, real: Answer) -> None:
    handler.say(200, "text/html", PAGE)


def half(handler: Handler, real: Answer) -> None:
    """Half of the real answer, as if it were whole."""
    handler.say(200, real.kind, real.body[: len(real.body) // 2])


def cut(handler: Handler, real: Answer) -> None:
    """Promise the whole answer, and hang up in the middle of it."""
    handler.say(200, real.kind, real.body[: len(real.body) // 2], length=len(real.body))


def rows(change: Callable) -> Behaviour:
    """Answer with other rows than the real ones."""

    def act(handler: Handler, real: Answer) -> None:
        found = json.loads(real.body)
        found["results"]["bindings"] = change(found["results"]["bindings"])
        handler.say(real.status, real.kind, json.dumps(found).encode())

    return act


def says(body: bytes, kind: str = "application/json") -> Behaviour:
    return lambda handler, real: handler.say(200, kind, body)


def at_first(times: int, behaviour: Behaviour) -> Script:
    """Misbehave for some requests, then no more."""
    return lambda number, body: behaviour if number < times else None


def always(behaviour: Behaviour) -> Script:
    return lambda number, body: behaviour


def beyond(*, ids: int = 10**9, days: int = 10**9, behaviour: Behaviour) -> Script:
    """Misbehave when asked for more people, or for more days of birth, than so many."""

    def script(number: int, body: str) -> Behaviour | None:
        people = body.partition("VALUES ?item {")[2].partition("}")[0].count("/entity/")
        born = [date.fromisoformat(day) for day in re.findall(r'"(\d{4}-\d\d-\d\d)T', body)]
        span = (born[1] - born[0]).days if born else 0
        return behaviour if people > ids or span > days else None

    return script
