"""Requests to an OpenAI-compatible server through the ``openai`` client, within a token budget.

The key is read from the environment for each run and is sent to the address in params.yaml only:
no redirect is followed, no error message contains it, and a response that does is refused.
"""

from __future__ import annotations

import json
import os
from threading import Lock
from typing import TYPE_CHECKING, Any, Self

from plumbline.builders.core.errors import UserError
from plumbline.builders.core.masking import SHORTEST, in_the_open, keep, mask

if TYPE_CHECKING:
    from openai import OpenAI

    from plumbline.probes.models.params import Endpoint

LONGEST_MESSAGE = 200  # characters of a server's message that an error repeats


class Refused(UserError):  # noqa: N818
    """A request that the server refuses with a status that a retry does not change."""

    def __init__(self, message: str, status: int, reason: str) -> None:
        super().__init__(message)
        self.status, self.reason = status, reason


class Budget:
    """The tokens that a model may cost, shared by concurrent requests."""

    def __init__(self, limit: int) -> None:
        self.limit, self.spent = limit, 0
        self._lock = Lock()

    def reserve(self, most: int) -> None:
        """Reserve the most tokens that a request can cost; UserError if they exceed the limit."""
        with self._lock:
            if self.spent + most > self.limit:
                raise UserError(
                    f"endpoint.token_budget: {self.spent:,} of {self.limit:,} tokens are used or "
                    f"reserved, and the next request may take {most:,}; raise it for other rows"
                )
            self.spent += most

    def settle(self, most: int, used: int) -> None:
        """Replace a reservation by the tokens that were used."""
        with self._lock:
            self.spent += used - most


class Client:
    """Connection of one run to an endpoint; may be used from several threads at once."""

    def __init__(self, endpoint: Endpoint, budget: Budget | None = None) -> None:
        self.endpoint, self.budget = endpoint, budget or Budget(endpoint.token_budget)
        self._key = read_key(endpoint)
        self._openai = _connect(endpoint, self._key)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self._openai.close()

    def request(
        self, what: str, path: str, body: dict[str, Any] | None = None, most: int = 0
    ) -> dict[str, Any]:
        """Return the JSON object with which the server responds.

        Parameters
        ----------
        what
            The request, as errors name it.
        path
            Path below the endpoint's address.
        body
            Sent as JSON by POST; without it the path is read by GET.
        most
            Tokens that the request can cost at most; they count in full where the server does not
            report its usage.

        Raises
        ------
        Refused
            For a status that a retry does not change, a redirect included.
        UserError
            If the budget is spent, all tries failed, or the response is not a JSON object or
            contains the key.
        """
        self.budget.reserve(most)
        used: int | None = None  # a failed request counts in full: the server may charge it
        try:
            response = self._send(what, path, body)
            used = usage(response)
        except Refused:
            used = 0
            raise
        finally:
            self.budget.settle(most, most if used is None else used)
        return response

    def _send(self, what: str, path: str, body: dict[str, Any] | None) -> dict[str, Any]:
        import openai

        try:
            options: Any = {} if self._key else {"headers": {"Authorization": openai.Omit()}}
            if body is None:
                response = self._openai.get(path, cast_to=object, options=options)
            else:
                response = self._openai.post(path, cast_to=object, body=body, options=options)
        except openai.APIStatusError as error:
            failure: UserError = self._failure(what, error)
        except openai.APIConnectionError as error:
            cause = type(error.__cause__ or error).__name__
            tries = self.endpoint.tries
            failure = UserError(f"{what}: no response in {tries} tries ({cause})")
        except ValueError:
            failure = UserError(f"{what}: the response is not JSON; check endpoint.url")
        else:
            return self._checked(what, response)
        raise failure  # outside of the handler: the client's errors hold the request with the key

    def _checked(self, what: str, response: object) -> dict[str, Any]:
        """Return a response if it is an object without an error and without the key."""
        if not isinstance(response, dict):
            raise UserError(f"{what}: the response is no JSON object; check endpoint.url")
        text = json.dumps(response)
        if len(self._key) >= SHORTEST and json.dumps(self._key)[1:-1] in text:
            raise UserError(f"{what}: the server returns the key in its response; nothing was kept")
        if response.get("error"):
            raise UserError(f"{what}: HTTP 200 with an error: {self._message(response)}")
        return response

    def _failure(self, what: str, error: Any) -> UserError:
        """Return the error for a status of 300 or more."""
        status, variable = error.status_code, self.endpoint.key
        reason = self._message(error.body or error.response.text)
        if status < 400:
            advice = "redirects are not followed; write the final address as endpoint.url"
        elif status in (401, 403) and variable:
            advice = f"check the key in the environment variable {variable}"
        elif status in (401, 403):
            advice = "name the environment variable that holds a key in endpoint.key"
        elif status in (404, 405):
            advice = "check endpoint.url (up to and with /v1), endpoint.model and endpoint.api"
        elif status in (408, 409, 429) or status >= 500:
            return UserError(f"{what}: HTTP {status} in {self.endpoint.tries} tries: {reason}")
        else:
            advice = "the server does not accept the request"
        return Refused(f"{what}: HTTP {status}, {advice}: {reason}", status, reason)

    def _message(self, body: Any) -> str:
        """Return the message in the body of an error, on one line and without the key."""
        for name in ("error", "message", "detail"):
            body = body[name] if isinstance(body, dict) and body.get(name) else body
        words = " ".join((body if isinstance(body, str) else json.dumps(body)).split())
        return mask(words, self._key)[:LONGEST_MESSAGE]


def _connect(endpoint: Endpoint, key: str) -> OpenAI:
    """Return a client for an endpoint that sends nothing of another account's settings."""
    try:
        import openai
    except ModuleNotFoundError as error:
        raise UserError("remote models need: pip install 'plumbline[remote]'") from error
    headers: Any = {"OpenAI-Organization": openai.Omit(), "OpenAI-Project": openai.Omit()}
    return openai.OpenAI(
        api_key=key or "none",
        base_url=endpoint.url,
        timeout=endpoint.timeout_s,
        max_retries=endpoint.tries - 1,
        default_headers=headers,
        # Over http a proxy would see the request.
        http_client=openai.DefaultHttpxClient(
            follow_redirects=False, trust_env=endpoint.url.startswith("https:")
        ),
    )


def usage(response: dict[str, Any], count: str = "total_tokens") -> int | None:
    """Return the tokens that the server reports for a response, or None."""
    reported = response.get("usage")
    tokens = reported.get(count) if isinstance(reported, dict) else None
    return tokens if isinstance(tokens, int) and tokens >= 0 else None


def read_key(endpoint: Endpoint) -> str:
    """Return the key from the environment, "" where the endpoint names none.

    Raises
    ------
    UserError
        If the variable is not set or is no key, the address has a query, or others could read the
        key on its way.
    """
    if "?" in endpoint.url or "#" in endpoint.url:
        raise UserError(
            "endpoint.url: has a query; a key belongs into the environment variable that "
            "endpoint.key names, not into params.yaml"
        )
    if endpoint.key is None:
        return ""
    if in_the_open(endpoint.url):
        raise UserError(
            f"endpoint.url: {endpoint.url} would send the key in {endpoint.key} unencrypted; use "
            "https, or a tunnel that ends on 127.0.0.1"
        )
    key = os.environ.get(endpoint.key, "").strip()
    if not key:
        raise UserError(f"{endpoint.key}: not set; put the server's key into this variable")
    if not (key.isascii() and key.isprintable() and " " not in key):
        raise UserError(f"{endpoint.key}: not a key; only ASCII without spaces is")
    keep(key)
    return key
