"""Polite and strict HTTP: identified, one request at a time, patient, and never half a body.

An answer has one deadline, from the first byte sent to the last that came, and a largest size,
which counts what is unpacked. It may lead on to another host only where that is said beforehand.
"""

from __future__ import annotations

import random
import re
import socket
import threading
import time
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from fnmatch import fnmatchcase
from types import MappingProxyType
from typing import Any, NamedTuple, Self, TypeVar
from urllib.parse import urljoin, urlsplit

import requests
from pydantic import Field, PrivateAttr
from requests.adapters import HTTPAdapter
from urllib3 import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.exceptions import HTTPError, ReadTimeoutError

from plumbline.builders.core.errors import UserError
from plumbline.builders.core.limits import MB, READ
from plumbline.builders.core.params import Params

T = TypeVar("T")
ADDRESS = r"^https?://[^\s/]+"
PIECE = 1 << 16  # bytes read at once
HINT = "check the address in its sources.yaml"
PROJECT = "plumbline/0.1 (research data; contact {contact})"
LEADS = {  # where these hosts keep their files
    "github.com": ["raw.githubusercontent.com", "codeload.github.com", "*.githubusercontent.com"],
    "huggingface.co": ["*.huggingface.co", "*.hf.co"],
}


class Politeness(Params):
    """How a client behaves towards a service."""

    contact: str = Field(description="e-mail or address of the person who fetches; sent along")
    timeout_s: float = Field(60, gt=0, description="longest time for one whole answer, seconds")
    attempts: int = Field(6, ge=1, description="tries for one request before giving up")
    backoff_s: float = Field(2, ge=0, description="first wait after a failure; doubles each time")
    longest_wait_s: float = Field(600, gt=0, description="no single wait is longer, seconds")
    give_up_s: float = Field(
        900,
        gt=0,
        description="an endpoint without a whole answer for so long is dead, seconds",
    )
    redirects: dict[str, list[str]] = Field(
        default_factory=dict,
        description="for each host, others to which it may lead on (* stands for any beginning); "
        "those of GitHub and Hugging Face are known",
    )
    _most: int = PrivateAttr(READ)

    def bounded(self, most: int) -> Self:
        """Return the same with another largest size of one answer, in bytes."""
        own = self.model_copy()
        own._most = most  # noqa: SLF001
        return own

    @property
    def most(self) -> int:
        """Return the largest size of one answer, in bytes."""
        return self._most

    def user_agent(self) -> str:
        """Return the User-Agent header.

        Raises UserError if no contact was given, or not one that a header can hold.
        """
        contact = self.contact.strip()
        if not contact:
            raise UserError(
                "params.yaml, sources.politeness.contact: empty; public services ask for an e-mail "
                "or address in the User-Agent, fill it in"
            )
        if not (contact.isascii() and contact.isprintable()):
            raise UserError(
                f"params.yaml, sources.politeness.contact: {contact!r} cannot stand in an HTTP "
                "header; write it in one line of ASCII"
            )
        return PROJECT.format(contact=contact)


class Busy(Exception):  # noqa: N818
    """The service asks to come back later, or the line broke; worth another try."""

    def __init__(self, message: str, wait_s: float | None = None) -> None:
        super().__init__(message)
        self.wait_s = wait_s


class Slow(Exception):  # noqa: N818
    """The answer did not come whole in time; a smaller question may do better."""

    wait_s = None


def retry_after(value: str | None, now: datetime | None = None) -> float | None:
    """Return the seconds that a Retry-After header asks for (RFC 9110, 10.2.3), or None."""
    if value is None:
        return None
    if re.fullmatch(r"\s*[0-9]+\s*", value):
        return float(value)
    try:
        when = parsedate_to_datetime(value)
    except ValueError:
        return None
    when = when if when.tzinfo else when.replace(tzinfo=UTC)
    return max(0.0, (when - (now or datetime.now(UTC))).total_seconds())


def patiently(
    ask: Callable[[], T],
    what: str,
    policy: Politeness,
    slow_attempts: int | None = None,
    heard: float | None = None,
) -> T:
    """Call ``ask`` until it answers, waiting as the service asks or twice as long each time.

    Raises UserError when all attempts failed, or the service asks for a longer wait than the policy
    allows.

    ``ask``: raises :class:`Busy` or :class:`Slow` when another try makes sense.
    ``what``: the request in words, for messages.
    ``slow_attempts``: after so many :class:`Slow` answers the last one is raised to the caller, who
    may ask for less; None treats them like any other failure.
    ``heard``: when the service last gave a whole answer, by the monotonic clock: ``give_up_s``
    after that no new try begins. By default only the attempts are counted.
    """
    slow = 0
    for attempt in range(1, policy.attempts + 1):
        try:
            return ask()
        except (Busy, Slow) as error:
            slow += isinstance(error, Slow)
            last = slow_attempts is not None and (
                slow >= slow_attempts or attempt == policy.attempts
            )
            reason, wait = str(error), error.wait_s
            if heard is not None and time.monotonic() - heard > policy.give_up_s:
                raise UserError(
                    f"{what}: no whole answer for {policy.give_up_s:g} s ({reason}), it is taken "
                    "for dead; nothing fetched so far is lost, run the same command later and it "
                    "continues"
                ) from error
            if isinstance(error, Slow) and last:
                raise
        if wait is not None and wait > policy.longest_wait_s:
            raise UserError(
                f"{what}: {reason}, and asks to wait {wait:.0f} s, longer than longest_wait_s "
                f"({policy.longest_wait_s:.0f}); run the same command later, it continues"
            )
        if attempt < policy.attempts:
            pause = policy.backoff_s * 2 ** (attempt - 1)
            jitter = random.uniform(0, pause / 4)  # noqa: S311 - spreads clients, guards nothing
            pause = min(pause + jitter, policy.longest_wait_s)
            time.sleep(pause if wait is None else max(wait, pause))
    raise UserError(
        f"{what}: gave up after {policy.attempts} attempts ({reason}); nothing fetched so far is "
        "lost, run the same command later and it continues"
    )


class Answer(NamedTuple):
    """The whole body of an answer, and its media type."""

    body: bytes
    kind: str


def get(url: str, policy: Politeness, expect: Callable[[bytes], str | None]) -> bytes:
    """Fetch one file whole.

    ``expect``: looks at the body and returns what is wrong with it, or None. A web page sent with
    status 200 in place of a file is caught here.

    Raises UserError on a status that no retry mends, a wrong body, or when all attempts failed.
    """
    body = patiently(lambda: receive(url, policy).body, url, policy)
    if wrong := expect(body):
        raise UserError(f"{url}: {wrong}; {HINT}")
    return body


def _nobody(request: requests.PreparedRequest) -> requests.PreparedRequest:
    """Sign nothing: else requests sends the password that ``~/.netrc`` has for a host."""
    return request


class _Deadline:
    """The sockets over which a thread sends: shut when its time is over, whatever comes by then."""

    def __init__(self, limit: float) -> None:
        self.end, self.sockets = time.monotonic() + limit, list[socket.socket]()

    def hold(self, connection: socket.socket) -> None:
        twin = socket.fromfd(connection.fileno(), connection.family, connection.type)
        self.sockets.append(twin)  # of its own, since TLS makes another of it
        if self.passed():
            self.shut()

    def passed(self) -> bool:
        return time.monotonic() >= self.end

    def shut(self) -> None:
        for each in self.sockets:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)


_thread = threading.local()


@contextmanager
def deadline(limit: float) -> Iterator[_Deadline]:
    """Give all that this thread sends by :class:`Watched`, and the answers, so many seconds."""
    own = _thread.deadline = _Deadline(limit)
    timer = threading.Timer(limit, own.shut)
    timer.daemon = True
    timer.start()
    try:
        yield own
    finally:
        timer.cancel()
        _thread.deadline = None
        for each in own.sockets:
            each.close()


def _watched(pool: Any) -> Any:
    """Return a class of pools whose connections give their sockets to the deadline."""

    class Connection(pool.ConnectionCls):  # type: ignore[misc]
        def _new_conn(self) -> socket.socket:
            made: socket.socket = super()._new_conn()
            _hold(made)
            return made

        def request(self, *given: Any, **named: Any) -> None:
            _hold(self.sock)  # of an earlier request
            super().request(*given, **named)

    return type("Pool", (pool,), {"ConnectionCls": Connection})


def _hold(connection: socket.socket | None) -> None:
    own: _Deadline | None = getattr(_thread, "deadline", None)
    if own and connection:
        own.hold(connection)


class Watched(HTTPAdapter):
    """An adapter for what has a deadline; proxies are no way around it."""

    POOLS = MappingProxyType(
        {"http": _watched(HTTPConnectionPool), "https": _watched(HTTPSConnectionPool)}
    )

    def init_poolmanager(self, *given: Any, **named: Any) -> None:
        """Set up the pools of connections."""
        super().init_poolmanager(*given, **named)
        self.poolmanager.pool_classes_by_scheme = self.POOLS

    def proxy_manager_for(self, *given: Any, **named: Any) -> Any:
        """Return those to a proxy."""
        manager = super().proxy_manager_for(*given, **named)
        manager.pool_classes_by_scheme = self.POOLS
        return manager


class _Session(requests.Session):
    """One request, which leads on only to where it may."""

    def __init__(self, policy: Politeness) -> None:
        super().__init__()
        self._leads = LEADS | policy.redirects
        for scheme in ("http://", "https://"):
            self.mount(scheme, Watched(max_retries=0))

    def get_redirect_target(self, resp: requests.Response) -> str | None:
        """Return where an answer leads on to; only to where it may."""
        target = super().get_redirect_target(resp)
        if target is None:
            return None
        here, there = urlsplit(resp.url), urlsplit(urljoin(resp.url, target))
        if there.scheme not in ("http", "https"):
            return target  # which nobody can follow
        begun = urlsplit((resp.history or [resp])[0].url).hostname or ""
        same = there.hostname == here.hostname and there.port in (here.port, 443, None)
        known = any(fnmatchcase(there.hostname or "", name) for name in self._leads.get(begun, ()))
        if (here.scheme, there.scheme) == ("https", "http") or not (same or known):
            raise UserError(
                f"{resp.url}: leads to another host, {there.scheme}://{there.hostname}; if you "
                "trust that, name it under sources.politeness.redirects, or in the address itself"
            )
        return target


@contextmanager
def opened(
    url: str, policy: Politeness, headers: Mapping[str, str], form: Mapping[str, str] | None = None
) -> Iterator[requests.Response]:
    """Send one request, and yield the answer before its body; a form is sent by POST.

    Raises Busy, Slow if the connection fails, or nothing comes in time; while the body is read,
    too.
    """
    headers = {"User-Agent": policy.user_agent(), **headers}
    limit, how = policy.timeout_s, "GET" if form is None else "POST"
    given = {"data": form, "headers": headers, "timeout": limit}
    try:
        with (
            deadline(limit) as own,
            _Session(policy) as session,
            session.request(how, url, stream=True, auth=_nobody, **given) as answer,  # type: ignore[arg-type]
        ):
            yield answer
    except (requests.exceptions.Timeout, ReadTimeoutError) as error:
        raise Slow(f"no answer within {limit:g} s") from error
    except (requests.exceptions.RequestException, HTTPError, EOFError, zlib.error) as error:
        if own.passed():
            raise Slow(f"no whole answer within {limit:g} s") from error
        failed = isinstance(error, requests.exceptions.RequestException)
        what = "failed" if failed else "was cut"
        raise Busy(f"the connection {what} ({type(error).__name__})") from error


def receive(
    url: str,
    policy: Politeness,
    throttling: Collection[int] = (),
    form: Mapping[str, str] | None = None,
    headers: Mapping[str, str] = MappingProxyType({}),
    hint: str = HINT,
) -> Answer:
    """Send one request, and return the answer whole; a form is sent by POST.

    ``throttling``: statuses by which this service asks to come back later, besides 429 and 503.

    Raises
    ------
    Busy, Slow
        If another try makes sense.
    UserError
        On a status that no retry mends.
    """
    end = time.monotonic() + policy.timeout_s
    with opened(url, policy, {"Accept-Encoding": "gzip", **headers}, form) as answer:
        if answer.status_code in throttling:
            wait = retry_after(answer.headers.get("Retry-After"))
            raise Busy(f"HTTP {answer.status_code}, refused for now", wait)
        refuse(answer, url, hint)
        body = b"".join(pieces(answer, policy, end, decode=False))
        body = decoded(body, answer.headers.get("Content-Encoding"), url, policy.most)
        return Answer(body, answer.headers.get("Content-Type", ""))


class TooLarge(UserError):  # noqa: N818
    """An answer has no end, or none that is worth waiting for."""


def too_large(what: str, most: int) -> TooLarge:
    """Return what to say of an answer that is larger than may be."""
    return TooLarge(
        f"{what}: sends more than {most // MB:,} MB, the most that is taken of it (LARGEST in "
        f"builders/core/limits.py); {HINT}"
    )


def decoded(body: bytes, coding: str | None, what: str, most: int = READ) -> bytes:
    """Undo a Content-Encoding (RFC 9110, 8.4.1); the result has at most so many bytes.

    Raises
    ------
    EOFError, zlib.error
        If the body does not come to its end, or is not in that coding.
    UserError
        If the coding is another than gzip and deflate.
    """
    coding = (coding or "identity").strip().lower()
    if coding == "identity" or not body:
        return body
    if coding not in ("gzip", "x-gzip", "deflate"):
        raise UserError(f"{what}: sent in the coding {coding!r}, which was not asked for; {HINT}")
    found, first = bytearray(), True
    # what follows the last member is no part of the body
    while first or (coding != "deflate" and body[:2] == b"\x1f\x8b"):
        member = zlib.decompressobj(wbits=32 + zlib.MAX_WBITS)
        found += member.decompress(body, most + 1 - len(found))
        if len(found) > most:
            raise too_large(what, most)
        if not member.eof:
            raise EOFError(f"{what}: the compressed body stops in the middle")
        body, first = member.unused_data, False
    return bytes(found)


def pieces(
    answer: requests.Response, policy: Politeness, end: float, *, decode: bool = True
) -> Iterator[bytes]:
    """Yield a body piece by piece; :class:`Slow`, if it has not ended at a time.

    Raises UserError if it is larger than the policy has it.
    """
    came = 0
    while found := answer.raw.read1(PIECE, decode_content=decode):
        came += len(found)
        if came > policy.most:
            raise too_large(answer.url, policy.most)
        yield found
        if time.monotonic() > end:
            break
    if time.monotonic() > end:  # also where it seems to have ended, since its socket was shut
        raise Slow(f"no whole answer within {policy.timeout_s:g} s")


def refuse(answer: requests.Response, what: str, hint: str = HINT) -> None:
    """Raise what the status of an answer means, see :func:`judge`."""
    if answer.status_code >= 400:
        try:
            said = answer.raw.read(PIECE, decode_content=True)
        except (HTTPError, OSError):
            said = b""  # the status tells enough
        judge(answer.status_code, answer.headers.get("Retry-After"), what, said, hint)


def judge(status: int, after: str | None, what: str, begins: bytes, hint: str = HINT) -> None:
    """Raise what a status of 400 or more means.

    ``after``: the header Retry-After, if there is one.
    ``begins``: how the answer begins.
    ``hint``: what a user may do about a refusal.

    Raises
    ------
    Busy, Slow
        If it may be mended by waiting, or by a smaller question.
    UserError
        If no retry mends it.
    """
    wait, said = retry_after(after), " ".join(begins.decode("utf-8", "replace").split())
    if status in (429, 503):
        raise Busy(f"HTTP {status}, too busy", wait)
    # Blazegraph says of a query that took too long that the server failed
    if status in (408, 504) or (status >= 500 and "timeout" in said.lower()):
        raise Slow(f"HTTP {status}, timed out")
    if status >= 500:
        raise Busy(f"HTTP {status}", wait)
    reason = "" if said[:1] in ("", "<") else f" ({said[:200]})"
    raise UserError(f"{what}: HTTP {status}{reason}; {hint}")
