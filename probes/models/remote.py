"""Models behind an OpenAI-compatible server: generation and, where supported, log-probabilities.

A response that does not contain what was requested is an error that names model and row (counted
from 0), never a number. Scores come from the echo of a prompt, as vLLM's completions give it: each
token as text, with its log-probability. The tokens must add up to the text.
"""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from itertools import accumulate, islice
from typing import TYPE_CHECKING, Any, TypeVar

from plumbline.builders.core.errors import UserError
from plumbline.probes.models.client import Client, Refused, usage
from plumbline.probes.models.scorer import DECIMALS, SAMPLING, Sampling, Score, Text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from plumbline.probes.models.params import Endpoint

Item = TypeVar("Item")
Result = TypeVar("Result")

BLOCK = 16  # requests of each thread before their responses are handed on
AROUND = 64  # tokens that a chat template may put around a prompt
IDENTITY = ("id", "owned_by", "parent", "max_model_len", "meta")
READING = Sampling(tokens=1, temperature=0.0)  # one token, not used: some servers take 0 for all
LEAST = -9999.0  # what servers write for minus infinity
ROUNDING = 1e-6  # above the logarithm of 1
OLLAMA = "fp_ollama"  # the system_fingerprint of its responses


class Remote:
    """A model on a server."""

    def __init__(self, name: str, endpoint: Endpoint, revision: str) -> None:
        self.name, self.endpoint, self.revision = name, endpoint, revision
        self._limit = "max_tokens"  # what the server calls the most tokens that it may write

    @cached_property
    def client(self) -> Client:
        """The connection, made when it is first needed."""
        return Client(self.endpoint)

    def facts(self) -> dict[str, str | int]:
        """Return what other models do, as far as a server tells: vocabulary 0 is not known."""
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
        """Continue each prompt, or answer it as the first message of a chat, in their order.

        ``tokens`` are those that the server counts, 0 where it does not. ``top_k`` is sent only
        where it is set: without it, some servers take one from the model's own configuration.
        A server that refuses, fails for too long or leaves out a text, or a budget that is spent,
        is a UserError.
        """
        chat = self.endpoint.api == "chat"

        def write(row: str, item: tuple[str, int]) -> Text:
            prompt, seed = item
            body: dict[str, Any] = {"prompt": prompt, "seed": seed}
            if chat:
                body = {"messages": [{"role": "user", "content": prompt}], "seed": seed}
            try:
                response = self._complete(row, prompt, body, sampling)
            except Refused as refused:
                if "max_completion_tokens" not in refused.reason:
                    raise
                self._limit = "max_completion_tokens"  # OpenAI's newer models take no other
                response = self._complete(row, prompt, body, sampling)
            if response.get("system_fingerprint") == OLLAMA and (not chat or sampling.top_k > 0):
                raise UserError(
                    f"{row}: Ollama ignores top_k, and adds its chat template to completions; "
                    "set top_k: 0 and endpoint.api: chat"
                )
            choice = _choice(row, response)
            reason = choice.get("finish_reason")
            message = choice.get("message") if chat else choice
            text = message.get("content" if chat else "text") if message else None
            if text is None and chat and reason == "length":
                text = ""  # all of it went into thoughts that are not shown
            if not isinstance(text, str) or reason not in ("stop", "length"):
                raise UserError(f"{row}: no text in the response, which ended with {reason!r}")
            tokens = usage(response, "completion_tokens") or 0
            return Text(prompt, seed, text, tokens, reason == "stop")

        return self._map(write, zip(prompts, seeds, strict=True), lambda item: item[0])

    def logprobs(self, pairs: Iterable[tuple[str, str]]) -> Iterator[Score]:
        """Score each continuation after its prefix, in their order.

        ``text`` of a score is prefix and continuation, ``tokens`` are the continuation's;
        ``unknown`` is 0, since no server reports it. A server without log-probabilities of a given
        text, a prefix that ends within a token, or a value that is missing or not finite is a
        UserError, as in :meth:`generate`.
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
                    raise _no_scores(row) from None
                raise
            values = continuation(row, _choice(row, response), prefix, text)
            return Score(prefix + text, round(math.fsum(values), DECIMALS) + 0.0, len(values))

        return self._map(score, pairs, "".join)

    def _complete(
        self, row: str, prompt: str, body: dict[str, Any], sampling: Sampling
    ) -> dict[str, Any]:
        """Return the response to one prompt."""
        body = {
            "model": self.endpoint.model,
            **body,
            self._limit: sampling.tokens,
            "temperature": sampling.temperature,
            "top_p": sampling.top_p,
        }
        if sampling.top_k > 0:
            body["top_k"] = sampling.top_k  # an extension, refused by some servers
        path = "/chat/completions" if "messages" in body else "/completions"
        # No tokenizer in use makes more tokens of a text than it has bytes.
        return self.client.post(row, path, body, len(prompt.encode()) + AROUND + sampling.tokens)

    def _map(
        self,
        send: Callable[[str, Item], Result],
        items: Iterable[Item],
        words: Callable[[Item], str],
    ) -> Iterator[Result]:
        """Send several requests at once, and yield the results in the order of the items."""
        number = self.endpoint.concurrency

        def send_row(numbered: tuple[int, Item]) -> Result:
            i, item = numbered
            return send(f"models.{self.name}: row {i} ({words(item)[:60]!r})", item)

        rows = enumerate(items)
        with ThreadPoolExecutor(number) as pool:
            while block := list(islice(rows, BLOCK * number)):
                yield from pool.map(send_row, block)


def identify(endpoint: Endpoint) -> dict[str, Any]:
    """Return the server's description of the model, without times.

    A server without a list of models (HTTP 404 or 405) leaves the name alone. One that lists its
    models, this not among them, is a UserError.
    """
    try:
        listed = Client(endpoint).get("/models").get("data")
    except Refused as refused:
        if refused.status in (404, 405):
            return {"id": endpoint.model}
        raise
    models = {str(entry.get("id")): entry for entry in listed or () if isinstance(entry, dict)}
    # Ollama adds the tag ":latest" to a name without one
    model = models.get(endpoint.model) or models.get(f"{endpoint.model}:latest")
    if model is None:
        names = ", ".join(sorted(models)[:20]) or "none"
        raise UserError(f"endpoint.model: {endpoint.url} has no {endpoint.model!r}; it has {names}")
    return {key: model[key] for key in IDENTITY if key in model}


def _choice(row: str, response: dict[str, Any]) -> dict[str, Any]:
    """Return the one choice of a response."""
    choices = response.get("choices")
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        raise UserError(f"{row}: a response without choices; is the server OpenAI-compatible?")
    return choices[0]


def _no_scores(row: str) -> UserError:
    return UserError(
        f"{row}: the server gives no log-probabilities of a given text; serve the model with vLLM, "
        "or score its weights here, kind: causal"
    )


def continuation(row: str, choice: dict[str, Any], prefix: str, text: str) -> list[float]:
    """Return the log-probabilities, in nats, of exactly the tokens of a text behind its prefix.

    ``choice`` is one of a completion's, requested with ``echo`` and ``logprobs``; ``row`` names the
    request. A UserError if the prompt or its log-probabilities are missing, the tokens do not add
    up to the text, the prefix does not end where a token does, or a value is missing or impossible.
    """
    whole, logprobs = prefix + text, choice.get("logprobs")
    if not isinstance(logprobs, dict) or not str(choice.get("text")).startswith(whole):
        raise _no_scores(row)
    tokens, values = (list(logprobs.get(name) or ()) for name in ("tokens", "token_logprobs"))
    starts = token_starts(tokens, whole)
    if len(tokens) != len(values) or starts is None:
        raise UserError(f"{row}: the server's tokens do not add up to the text")
    first = [token for start, token in zip(starts, tokens, strict=True) if start == len(prefix)]
    # a character of several tokens is empty text but for the last of them, which is all of it
    if not text or not first or (len(first) > 1 and first[-1].isascii()):
        raise UserError(f"{row}: no token begins at the end of the prefix ({prefix!r})")
    scored = [value for start, value in zip(starts, values, strict=True) if start >= len(prefix)]
    scored = scored[: sum(len(prefix) <= start < len(whole) for start in starts)]
    for value in scored:
        if not isinstance(value, float | int) or not LEAST < value <= ROUNDING:
            raise UserError(f"{row}: {value!r} as the log-probability of a token")
    return [float(value) for value in scored]


def token_starts(tokens: list[Any], whole: str) -> list[int] | None:
    """Return the character of a text at which each token begins, or None if they do not add up.

    Tokens before the text begin at -1. SentencePiece may put a space before the text.
    """
    if not all(isinstance(token, str) for token in tokens):
        return None
    for first in range(len(tokens)):
        behind = "".join(tokens[first:])
        space = not behind.startswith(whole) and behind.startswith(f" {whole}")
        if space or behind.startswith(whole):
            ends = accumulate(map(len, tokens[first:]), initial=-space)
            starts = [-1] * first + [max(start, 0) for start in ends][:-1]
            return starts if len(whole) in (*starts, len(behind) - space) else None
    return None
