"""Requests to an OpenAI-compatible server through the ``openai`` client, within a token budget.

The key is read from the environment for each run, and no error message contains it.
"""

from __future__ import annotations

import json
import os
from threading import Lock
from typing import TYPE_CHECKING, Any

from plumbline.builders.core.errors import UserError, in_the_open, keep, mask

if TYPE_CHECKING:
    from openai import OpenAI

    from plumbline.probes.models.params import Endpoint

TIMEOUT_S = 120.0  # seconds to wait for a response
RETRIES = 5  # after a first request that failed
LONGEST_MESSAGE = 200  # characters of a server's message that an error repeats


class Refused(UserError):  # noqa: N818
    """A request that the server refuses with an HTTP status."""

    def __init__(self, message: str, status: int, reason: str) -> None:
        super().__init__(message)
        self.status, self.reason = status, reason


class Client:
    """Connection to an endpoint; may be used from several threads at once."""

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint = endpoint
        self.spent = 0  # tokens
        self._lock = Lock()
        self._key = read_key(endpoint)
        self._openai = _connect(endpoint, self._key)

    def get(self, path: str) -> dict[str, Any]:
        """Return the JSON object at a path below the endpoint's address."""
        return self._send(f"{self.endpoint.url}{path}", path, None)

    def post(self, row: str, path: str, body: dict[str, Any], most: int) -> dict[str, Any]:
        """Return the JSON object with which the server responds to a prompt.

        Parameters
        ----------
        row
            Names the prompt in errors.
        most
            Tokens that the request can cost; counted where the server reports no usage.

        Raises
        ------
        UserError
            If the budget is spent, the server refuses or fails, or the response is no JSON object.
        """
        limit = self.endpoint.token_budget
        if self.spent >= limit:
            raise UserError(f"endpoint.token_budget: {self.spent} of {limit} tokens are used")
        response = self._send(row, path, body)
        used = usage(response)
        with self._lock:
            self.spent += most if used is None else used
        return response

    def _send(self, what: str, path: str, body: dict[str, Any] | None) -> dict[str, Any]:
        import openai

        try:
            if body is None:
                response = self._openai.get(path, cast_to=object)
            else:
                response = self._openai.post(path, cast_to=object, body=body)
        except openai.APIStatusError as error:
            failure = self._refusal(what, error)
        except openai.APIConnectionError as error:
            failure = UserError(f"{what}: no response ({type(error.__cause__ or error).__name__})")
        except ValueError:
            failure = UserError(f"{what}: the response is not JSON; check endpoint.url")
        else:
            if isinstance(response, dict) and not response.get("error"):
                return response
            failure = UserError(f"{what}: {self._message(response)}")
        raise failure  # outside of the handler: the client's errors hold the request with the key

    def _refusal(self, what: str, error: Any) -> UserError:
        status, reason = error.status_code, self._message(error.body or error.response.text)
        advice = "check endpoint.url, endpoint.model and endpoint.api"
        if status in (401, 403):
            advice = f"check the key in {self.endpoint.key or 'endpoint.key, which is not set'}"
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
        timeout=TIMEOUT_S,
        max_retries=RETRIES,
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
    return tokens if isinstance(tokens, int) else None


def read_key(endpoint: Endpoint) -> str:
    """Return the key from the environment, "" where the endpoint names none.

    Raises
    ------
    UserError
        If the variable holds no key, or others could read the key on its way.
    """
    if endpoint.key is None:
        return ""
    if in_the_open(endpoint.url):
        raise UserError(f"{endpoint.url}: would send the key in {endpoint.key} unencrypted")
    key = os.environ.get(endpoint.key, "").strip()
    if not (key and key.isascii() and key.isprintable()):
        raise UserError(f"{endpoint.key}: put the server's key into this environment variable")
    keep(key)
    return key
