"""Models behind an OpenAI-compatible server: generation and, where supported, log-probabilities.

The ``openai`` client handles retries. An incomplete response raises an error that names the model
and the row (counted from 0). Scores are read from the echo of a prompt, as in vLLM's completions,
which lists each token's text and log-probability; the concatenated tokens must equal the text. The
key is read from the environment for each run, and no error message contains it.
"""

from __future__ import annotations

import json
import math
import os
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from itertools import accumulate, islice
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeVar

from plumbline.builders.core.errors import UserError, keep, mask, optional_library
from plumbline.probes.models.scorer import DECIMALS, SAMPLING, Sampling, Score, Text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from openai import OpenAI

    from plumbline.probes.models.params import Endpoint

Item = TypeVar("Item")
Result = TypeVar("Result")

TIMEOUT_S = 120.0  # seconds to wait for a response
RETRIES = 5  # number of retries after a failed request
LONGEST_MESSAGE = 200  # maximum length of a server's message in an error
BLOCK = 16  # requests sent by each thread before responses are yielded
AROUND = 64  # number of tokens that a chat template may add to a prompt
IDENTITY = ("id", "owned_by", "parent", "max_model_len", "meta")
READING = Sampling(tokens=1, temperature=0.0)  # one unused token; some servers treat 0 as no limit
LEAST = -9999.0  # represents minus infinity in servers' responses
ROUNDING = 1e-6  # tolerance for log-probabilities above 0
OLLAMA = "fp_ollama"  # system_fingerprint in Ollama's responses
NO_SCORES = (
    "the server returns no log-probabilities of the input; serve the model with vLLM, or load "
    "its weights here with kind: causal"
)


class Refused(UserError):  # noqa: N818
    """Raised if the server refuses a request with an HTTP error status."""

    def __init__(self, message: str, status: int, reason: str) -> None:
        super().__init__(message)
        self.status, self.reason = status, reason


class Remote:
    """A model on a server."""

    def __init__(self, name: str, endpoint: Endpoint, revision: str) -> None:
        self.name, self.endpoint, self.revision = name, endpoint, revision
        self.spent = 0  # tokens
        self._lock = Lock()
        self._limit = "max_tokens"  # name of the token limit in the server's API

    @cached_property
    def _client(self) -> OpenAI:
        return connect(self.endpoint)

    def facts(self) -> dict[str, str | int]:
        """Return the facts about the model; the vocabulary is 0, since its size is unknown."""
        return {
            "model": self.name,
            "revision": self.revision,
            "architecture": f"remote: {self.endpoint.model}",
            "vocabulary": 0,
            "mask_token": "",
            "dtype": "unknown",
        }

    def generate(
        self, prompts: Iterable[str], seeds: Iterable[int], sampling: Sampling = SAMPLING
    ) -> Iterator[Text]:
        """Continue each prompt, or respond to it as the first message of a chat, in order.

        ``tokens`` is the number reported by the server, or 0 if none is reported. ``top_k`` is sent
        only if it is set; otherwise some servers use the value in the model's configuration. Raises
        UserError if the server refuses a request, fails repeatedly or omits a text, or if the token
        budget is used up.
        """
        chat = self.endpoint.api == "chat"

        def write(row: str, item: tuple[str, int]) -> Text:
            prompt, seed = item
            body: dict[str, Any] = {"prompt": prompt, "seed": seed}
            if chat:
                body = {"messages": [{"role": "user", "content": prompt}], "seed": seed}
            response = self._complete(row, prompt, body, sampling)
            if response.get("system_fingerprint") == OLLAMA and (not chat or sampling.top_k > 0):
                raise UserError(
                    f"{row}: Ollama ignores top_k, and adds its chat template to completions; "
                    "set top_k: 0 and endpoint.api: chat"
                )
            choice = response["choices"][0]
            reason = choice.get("finish_reason")
            text = (choice.get("message") or {}).get("content") if chat else choice.get("text")
            if text is None and chat and reason == "length":
                text = ""  # all tokens were used for hidden reasoning
            if not isinstance(text, str) or reason not in ("stop", "length"):
                raise UserError(f"{row}: no text in the response, which ended with {reason!r}")
            tokens = (response.get("usage") or {}).get("completion_tokens") or 0
            return Text(prompt, seed, text, tokens, reason == "stop")

        return self._map(write, zip(prompts, seeds, strict=True))

    def logprobs(self, pairs: Iterable[tuple[str, str]]) -> Iterator[Score]:
        """Score each continuation after its prefix, in order.

        The ``text`` of a score is the prefix and the continuation; ``tokens`` is the number of
        tokens of the continuation; ``unknown`` is 0, since servers do not report it. Raises
        UserError as in :meth:`generate`, and if the server returns no log-probabilities of input
        text, if a prefix ends within a token, or if a value is missing or not finite.
        """
        if self.endpoint.api == "chat":
            raise UserError(f"models.{self.name}: scores need endpoint.api: completions")

        def score(row: str, pair: tuple[str, str]) -> Score:
            prefix, text = pair
            body = {"prompt": prefix + text, "echo": True, "logprobs": 1}
            try:
                response = self._complete(row, prefix + text, body, READING)
            except Refused as refused:
                if "echo" in refused.reason or "logprob" in refused.reason:
                    raise UserError(f"{row}: {NO_SCORES}") from None
                raise
            values = continuation(row, response["choices"][0], prefix, text)
            return Score(prefix + text, round(math.fsum(values), DECIMALS) + 0.0, len(values))

        return self._map(score, pairs)

    def _complete(
        self, row: str, prompt: str, body: dict[str, Any], sampling: Sampling
    ) -> dict[str, Any]:
        """Return the response to one prompt, and subtract its tokens from the budget."""
        limit = self.endpoint.token_budget
        if self.spent >= limit:
            raise UserError(f"endpoint.token_budget: {self.spent} of {limit} tokens have been used")
        body = {
            "model": self.endpoint.model,
            **body,
            self._limit: sampling.tokens,
            "temperature": sampling.temperature,
            "top_p": sampling.top_p,
        }
        if sampling.top_k > 0:
            body["top_k"] = sampling.top_k  # an extension that some servers refuse
        path = "/chat/completions" if "messages" in body else "/completions"
        try:
            response = request(self._client, row, path, body)
        except Refused as refused:
            if "max_completion_tokens" not in refused.reason:
                raise
            self._limit = "max_completion_tokens"  # OpenAI's newer models accept only this name
            body[self._limit] = body.pop("max_tokens", sampling.tokens)
            response = request(self._client, row, path, body)
        if not response.get("choices"):
            raise UserError(f"{row}: the response has no choices; use an OpenAI-compatible server")
        # Common tokenizers never produce more tokens than a text has bytes.
        most = len(prompt.encode()) + AROUND + sampling.tokens
        with self._lock:
            self.spent += (response.get("usage") or {}).get("total_tokens") or most
        return response

    def _map(self, send: Callable[[str, Item], Result], items: Iterable[Item]) -> Iterator[Result]:
        """Send several requests concurrently, and yield the results in the order of the items."""
        number = self.endpoint.concurrency

        def send_row(numbered: tuple[int, Item]) -> Result:
            i, item = numbered
            return send(f"models.{self.name}: row {i} {str(item)[:60]}", item)

        rows = enumerate(items)
        with ThreadPoolExecutor(number) as pool:
            while block := list(islice(rows, BLOCK * number)):
                yield from pool.map(send_row, block)


def connect(endpoint: Endpoint) -> OpenAI:
    """Return a client for an endpoint; account settings in the environment are ignored.

    Raises
    ------
    UserError
        If the key is missing from the environment or would be sent unencrypted.
    """
    with optional_library():
        import openai
    key = ""
    if endpoint.key is not None:
        key = os.environ.get(endpoint.key, "").strip()
        if not (key and key.isascii() and key.isprintable()):
            raise UserError(f"{endpoint.key}: set this environment variable to the server's key")
        keep(key)
    headers: Any = {"OpenAI-Organization": openai.Omit(), "OpenAI-Project": openai.Omit()}
    return openai.OpenAI(
        api_key=key or "none",
        base_url=endpoint.url,
        timeout=TIMEOUT_S,
        max_retries=RETRIES,
        default_headers=headers,
        # Over http, a proxy could read the request.
        http_client=openai.DefaultHttpxClient(
            follow_redirects=False, trust_env=endpoint.url.startswith("https:")
        ),
    )


def request(
    client: OpenAI, name: str, path: str, body: dict[str, Any] | None = None
) -> dict[str, Any]:
    """Return the JSON object at a server's path, or the response to ``body`` if it is given.

    Raises
    ------
    UserError
        If the server refuses or fails, or returns no JSON object. The message begins with ``name``.
    """
    import openai

    try:
        if body is None:
            response = client.get(path, cast_to=object)
        else:
            response = client.post(path, cast_to=object, body=body)
        if isinstance(response, dict) and not response.get("error"):
            return response
        failure = UserError(f"{name}: {_message(response)}")
    except openai.APIStatusError as error:
        status, reason = error.status_code, _message(error.body or error.response.text)
        advice = "check the key" if status in (401, 403) else "check url, model and api"
        failure = Refused(f"{name}: HTTP {status}, {advice} of endpoint: {reason}", status, reason)
    except openai.APIConnectionError as error:
        failure = UserError(f"{name}: no response ({type(error.__cause__ or error).__name__})")
    except ValueError:
        failure = UserError(f"{name}: the response is not JSON; check endpoint.url")
    raise failure  # raised outside the handler, because the client's errors contain the key


def _message(body: Any) -> str:
    """Return the message in an error's body as one line, with the key masked."""
    for name in ("error", "message", "detail"):
        body = body[name] if isinstance(body, dict) and body.get(name) else body
    words = " ".join((body if isinstance(body, str) else json.dumps(body)).split())
    return mask(words)[:LONGEST_MESSAGE]


def identify(endpoint: Endpoint) -> dict[str, Any]:
    """Return the server's description of the model, without timestamps.

    If the server does not list its models (HTTP 404 or 405), only the name is returned. Raises
    UserError if the model is not in the list.
    """
    try:
        listed = request(connect(endpoint), f"{endpoint.url}/models", "/models").get("data")
    except Refused as refused:
        if refused.status in (404, 405):
            return {"id": endpoint.model}
        raise
    models = {str(entry.get("id")): entry for entry in listed or ()}
    # Ollama adds the tag ":latest" to a name without one
    model = models.get(endpoint.model) or models.get(f"{endpoint.model}:latest")
    if model is None:
        names = ", ".join(sorted(models)[:20]) or "none"
        raise UserError(f"endpoint.model: {endpoint.url} has no {endpoint.model!r}, only {names}")
    return {key: model[key] for key in IDENTITY if key in model}


def continuation(row: str, choice: dict[str, Any], prefix: str, text: str) -> list[float]:
    """Return the log-probabilities, in nats, of the tokens of a text that follows a prefix.

    ``choice`` belongs to a completion requested with ``echo`` and ``logprobs``; ``row`` is the
    prefix of error messages. Raises UserError if the prompt or its log-probabilities are missing,
    if the tokens do not add up to the text, if the prefix ends within a token, or if a value is
    missing or impossible.
    """
    prompt, logprobs = prefix + text, choice.get("logprobs")
    if not isinstance(logprobs, dict) or not str(choice.get("text")).startswith(prompt):
        raise UserError(f"{row}: {NO_SCORES}")
    tokens, values = (list(logprobs.get(name) or ()) for name in ("tokens", "token_logprobs"))
    starts = token_starts(tokens, prompt)
    if len(tokens) != len(values) or starts is None:
        raise UserError(f"{row}: the server's tokens do not add up to the text")
    first = [token for start, token in zip(starts, tokens, strict=True) if start == len(prefix)]
    # if a character has several tokens, only the last of them has text
    if not text or not first or (len(first) > 1 and first[-1].isascii()):
        raise UserError(f"{row}: the prefix ends within a token ({prefix!r})")
    scored = [value for start, value in zip(starts, values, strict=True) if start >= len(prefix)]
    scored = scored[: sum(len(prefix) <= start < len(prompt) for start in starts)]
    for value in scored:
        if not isinstance(value, float | int) or not LEAST < value <= ROUNDING:
            raise UserError(f"{row}: {value!r} is not a log-probability of a token")
    return [float(value) for value in scored]


def token_starts(tokens: list[Any], text: str) -> list[int] | None:
    """Return the character offset of each token in a text, or None if the tokens are not the text.

    Tokens before the text have the offset -1. SentencePiece may add a space before the text.
    """
    if not all(isinstance(token, str) for token in tokens):
        return None
    for first in range(len(tokens)):
        behind = "".join(tokens[first:])
        space = not behind.startswith(text) and behind.startswith(f" {text}")
        if space or behind.startswith(text):
            ends = accumulate(map(len, tokens[first:]), initial=-space)
            starts = [-1] * first + [max(start, 0) for start in ends][:-1]
            return starts if len(text) in (*starts, len(behind) - space) else None
    return None
