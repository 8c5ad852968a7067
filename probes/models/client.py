"""Requests to an OpenAI-compatible server: key, budget, time-outs and retries.

The key is read from the environment for each run and stays within its client. It is sent to the
address in params.yaml only: no redirect is followed, no error message contains it, and a response
that does is refused. Keys of other services in ``~/.netrc`` and cookies are not sent.
"""

from __future__ import annotations

import json
import os
import time
from http.cookiejar import DefaultCookiePolicy
from threading import Condition, Event, Lock
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import urlsplit

import requests
from requests.adapters import HTTPAdapter
from urllib3.exceptions import HTTPError, ReadTimeoutError

from plumbline.builders.core.errors import UserError, reading
from plumbline.builders.core.limits import parsed, within
from plumbline.builders.core.masking import SHORTEST, in_the_open, keep, mask
from plumbline.builders.fetch.http import (
    Busy,
    Politeness,
    Slow,
    patiently,
    retry_after,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from plumbline.probes.models.params import Endpoint

FIRST_WAIT_S = 1.0  # after a failure; doubles each time, with jitter
LONGEST_WAIT_S = 600.0  # a server that asks for more is left alone
SAID = 200  # characters of a server's words that stand in a message


class Refused(UserError):  # noqa: N818
    """The server's no, which asking again would not change."""

    def __init__(self, message: str, status: int, said: str) -> None:
        super().__init__(message)
        self.status, self.said = status, said


class Spent(UserError):  # noqa: N818
    """The budget has no room for the next request."""


class Budget:
    """The tokens that a model may cost, shared by all requests on their way."""

    def __init__(self, limit: int) -> None:
        self.limit, self.spent, self.guessed = limit, 0, 0
        self._held = 0  # by requests on their way, the most that they can cost
        self._over = ""  # why it is
        self._turn, self._change = Lock(), Condition()

    def hold(self, most: int) -> None:
        """Set tokens aside for a request, waiting for others to come back if need be.

        Raises :class:`Spent` if it could go over the limit, with none on its way that could free
        some; from then on always, since a later row is of no use without it.
        """
        # Only one waits and others queue behind it: no later, smaller request slips past.
        with self._turn, self._change:
            self._change.wait_for(lambda: not self._held or self._fits(most))
            if not self._over and not self._fits(most):
                self._over = (
                    f"{self.spent:,} of {self.limit:,} tokens are used ({self.guessed:,} of them "
                    "assumed, one for each byte asked and the longest answer, where the server "
                    f"did not say), and the next request may take {most:,}"
                )
            if self._over:
                raise Spent(self._over)
            self._held += most

    def settle(self, most: int, used: int | None) -> None:
        """Give back what was set aside, and count what was used: all of it where unknown."""
        with self._change:
            self._held -= most
            self.spent += most if used is None else used
            self.guessed += most if used is None else 0
            self._change.notify_all()

    def _fits(self, most: int) -> bool:
        return self.spent + self._held + most <= self.limit


class Client:
    """One run's connection to an endpoint; may be used from several threads at once."""

    def __init__(self, endpoint: Endpoint, budget: Budget | None = None) -> None:
        self.endpoint, self.budget = endpoint, budget or Budget(endpoint.token_budget)
        self._key = read_key(endpoint)
        self._stopped = Event()
        self._session = requests.Session()
        self._session.auth = self._sign  # also keeps requests from looking into ~/.netrc
        self._session.cookies.set_policy(DefaultCookiePolicy(allowed_domains=[]))
        # A proxy sees what goes by http; by https only where it goes.
        self._session.trust_env = endpoint.url.startswith("https:")
        self._session.headers["User-Agent"] = "plumbline/0.1"
        self._session.mount(endpoint.url, HTTPAdapter(pool_maxsize=endpoint.concurrency))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self._session.close()

    def stop(self) -> None:
        """Let no further request, and no further try, go out."""
        self._stopped.set()

    def ask(
        self, what: str, path: str, body: dict[str, Any] | None = None, most: int = 0
    ) -> dict[str, Any]:
        """Return the JSON object that the server answers to a request: ``what``, in words.

        ``path`` stands behind the endpoint's address; ``body`` is sent as JSON, without it the path
        is only read; ``most`` is the tokens that the request can cost. :class:`Refused` is a
        status that asking again does not change, a redirect included; :class:`Spent`, no room in
        the budget; any other UserError, that all tries failed, or the server sends the key back.
        """

        def once() -> dict[str, Any]:
            if self._stopped.is_set():
                raise UserError(f"{what}: not asked, the run has stopped")
            self.budget.hold(most)
            cost: int | None = None  # an answer that is lost counts as the most it can have cost
            try:
                status, headers, raw = self._send(path, body)
                cost = 0 if status >= 300 else None
                answer = self._read(what, status, headers, raw)
                cost = used(answer)
                return answer
            finally:
                self.budget.settle(most, cost)

        policy = Politeness(
            contact="",
            timeout_s=self.endpoint.timeout_s,
            attempts=self.endpoint.tries,
            backoff_s=FIRST_WAIT_S,
            longest_wait_s=LONGEST_WAIT_S,
        )
        return patiently(once, what, policy)

    def _send(self, path: str, body: dict[str, Any] | None) -> tuple[int, Mapping[str, str], bytes]:
        """Return status, headers and the whole body."""
        limit = self.endpoint.timeout_s
        slow: Busy = Slow(f"no whole answer within {limit:g} s")
        end, raw = time.monotonic() + limit, bytearray()
        try:
            with self._session.request(
                "GET" if body is None else "POST",
                self.endpoint.url.rstrip("/") + path,
                json=body,
                timeout=limit,
                stream=True,
                allow_redirects=False,  # the key is for this address
            ) as answer:
                while part := answer.raw.read1(1 << 16, decode_content=True):
                    raw += part
                    with reading(self.endpoint.url, "check endpoint.url"):
                        within(len(raw))
                    if time.monotonic() > end:
                        raise slow
                return answer.status_code, answer.headers, bytes(raw)
        except (requests.exceptions.Timeout, ReadTimeoutError):
            failure = slow
        except (requests.exceptions.RequestException, HTTPError) as error:
            failure = Busy(f"the connection failed ({type(error).__name__})")
        raise failure  # out here: what requests raises holds the request, and so the key

    def _read(
        self, what: str, status: int, headers: Mapping[str, str], raw: bytes
    ) -> dict[str, Any]:
        """Return the object in an answer, or raise what its status means."""
        try:
            found = parsed(raw)
        except ValueError:
            found = raw.decode(errors="replace")
        said: Any = found
        for name in ("error", "message", "detail"):
            said = said[name] if isinstance(said, dict) and said.get(name) else said
        words = " ".join((said if isinstance(said, str) else json.dumps(said)).split())
        words = mask(words, self._key)[:SAID]
        if status >= 300:
            raise self._refusal(what, status, headers, words)
        if not isinstance(found, dict):
            raise Busy(f"not JSON under HTTP 200 but {words!r}")
        if len(self._key) >= SHORTEST and _in_json(self._key) in json.dumps(found):
            raise UserError(
                f"{what}: the server sends the key back in its answer; nothing was kept"
            )
        if found.get("error"):
            raise Busy(f"an error under HTTP 200: {words}")
        return found

    def _refusal(self, what: str, status: int, headers: Mapping[str, str], said: str) -> Exception:
        """Return what a status of 300 or more means."""
        if status in (408, 504):
            return Slow(f"HTTP {status}: {said}")
        if status == 429 or status >= 500:
            return Busy(f"HTTP {status}: {said}", retry_after(headers.get("Retry-After")))
        variable = self.endpoint.key
        if status < 400:
            to = mask(headers.get("Location", "").partition("?")[0], self._key)
            advice = f"it sends on to {to or 'another path'}; write the right endpoint.url"
        elif status in (401, 403) and variable:
            advice = f"check the key in the environment variable {variable}"
        elif status in (401, 403):
            advice = "name the environment variable that holds a key in endpoint.key"
        elif status in (404, 405):
            advice = "check endpoint.url (up to and with /v1), endpoint.model and endpoint.api"
        else:
            advice = "it does not take the request as it is"
        return Refused(f"{what}: HTTP {status}, {advice}; the server says: {said}", status, said)

    def _sign(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        if self._key:
            request.headers["Authorization"] = f"Bearer {self._key}"
        return request


def used(answer: dict[str, Any], what: str = "total_tokens") -> int | None:
    """Return the tokens that the server says an answer took, or None."""
    usage = answer.get("usage")
    count = usage.get(what) if isinstance(usage, dict) else None
    return count if isinstance(count, int) and count >= 0 else None


def read_key(endpoint: Endpoint) -> str:
    """Return the key, or nothing where the endpoint names none.

    A variable that is not set, or an address that others could read the key on the way to, is a
    UserError.
    """
    try:
        parts = urlsplit(endpoint.url)
        host, _ = parts.hostname or "", parts.port
    except ValueError:
        host = ""
    if not host:
        raise UserError(f"endpoint.url: {endpoint.url} is no address of a server")
    if parts.query or parts.fragment:
        raise UserError(
            "endpoint.url: has more to it than an address; a key belongs into the environment "
            "variable that endpoint.key names, not into params.yaml"
        )
    if endpoint.key is None:
        return ""
    if in_the_open(endpoint.url):
        raise UserError(
            f"endpoint.url: http://{host} would send the key in {endpoint.key} for "
            "anybody on the way to read; use https, or a tunnel that ends on 127.0.0.1"
        )
    key = os.environ.get(endpoint.key, "").strip()
    if not key:
        raise UserError(
            f"{endpoint.key}: not set; endpoint.key names this environment variable, put the key "
            "for the server into it"
        )
    if not (key.isascii() and key.isprintable() and " " not in key):
        raise UserError(f"{endpoint.key}: what stands in it cannot be a key; no spaces, only ASCII")
    keep(key)
    return key


def _in_json(key: str) -> str:
    """Return a key as it stands in JSON."""
    return json.dumps(key)[1:-1]
