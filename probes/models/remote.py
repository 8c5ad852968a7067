"""Models behind an OpenAI-compatible server: generation and, where supported, log-probabilities.

A server is not trusted: a response that does not contain what was requested is an error that names
model and row (counted from 0), never a number. What a server does unseen is beyond control: the
chat template around a prompt, its use of a seed, and sampling settings that were not sent.

Scores come from the echo of a prompt. OpenAI's completions give for each token its string, its
log-probability and ``text_offset``, the character where it begins. Servers differ in the last: some
count tokens that are not in the text (the one for its beginning), or the space that SentencePiece
puts before a text; some add up the lengths of tokens decoded one by one, which is wrong where a
character takes several tokens. So the offsets are held against the text, and what does not fit is
refused.
"""

from __future__ import annotations

import math
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import islice, pairwise
from typing import TYPE_CHECKING, Any, TypeVar

from plumbline.builders.core.errors import UserError
from plumbline.probes.models.client import Budget, Client, Refused, usage
from plumbline.probes.models.scorer import DECIMALS, SAMPLING, Sampling, Score, Text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from plumbline.probes.models.params import Endpoint

Item = TypeVar("Item")
Answer = TypeVar("Answer")

BLOCK = 16  # requests of each thread before their responses are handed on
PAUSE_S = 1.1  # between two equal requests: clocks in responses tick in seconds
AROUND = 64  # tokens that a chat template may put around a prompt
IDENTITY = ("id", "created", "owned_by", "parent", "max_model_len", "meta")
READING = Sampling(tokens=1, temperature=0.0)  # one token, not used: some servers take 0 for all
LEAST = -9999.0  # what servers write for minus infinity
ROUNDING = 1e-6  # above the logarithm of 1
OLLAMA = "fp_ollama"  # the system_fingerprint of its answers
LATEST = ":latest"  # the tag that Ollama adds to a name without one
PARTS = ("\ufffd", "bytes:")  # stand in tokens that are a part of a character


class Remote:
    """A model on a server."""

    def __init__(self, name: str, endpoint: Endpoint, revision: str) -> None:
        self.name, self.endpoint, self.revision = name, endpoint, revision
        self.budget = Budget(endpoint.token_budget)
        self._limit = "max_tokens"  # what the server calls the most tokens that it may write

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

        def ask(client: Client, row: str, item: tuple[str, int]) -> Text:
            prompt, seed = item
            body: dict[str, Any] = {"seed": seed}
            if chat:
                body["messages"] = [{"role": "user", "content": prompt}]
            else:
                body["prompt"] = prompt
            try:
                answer = self._ask(client, row, prompt, body, sampling)
            except Refused as refused:
                if "max_completion_tokens" not in refused.reason:
                    raise
                self._limit = "max_completion_tokens"  # OpenAI's newer models take no other
                answer = self._ask(client, row, prompt, body, sampling)
            if answer.get("system_fingerprint") == OLLAMA:
                _of_ollama(row, sampling, chat=chat)
            choice = _choice(row, answer)
            reason = choice.get("finish_reason")
            holder = choice.get("message") if chat else choice
            text = holder.get("content" if chat else "text") if isinstance(holder, dict) else None
            if text is None and chat and reason == "length":
                text = ""  # all of it went into thoughts that are not shown
            if not isinstance(text, str) or reason not in ("stop", "length"):
                raise UserError(f"{row}: no text, but an answer that ended with {reason!r}")
            tokens = usage(answer, "completion_tokens") or 0
            return Text(prompt, seed, text, tokens, reason == "stop")

        return self._each(zip(prompts, seeds, strict=True), ask, lambda item: item[0])

    def logprobs(self, pairs: Iterable[tuple[str, str]]) -> Iterator[Score]:
        """Score each continuation after its prefix, in their order.

        The server gets the whole string and tells its tokens. ``text`` is that string, ``tokens``
        are the continuation's; ``unknown`` is 0, since no server tells. A server that does not tell
        log-probabilities of a given text, a prefix that ends within a token, or a value that is
        missing or not finite is a UserError, as is what is one in :meth:`generate`.
        """
        if self.endpoint.api == "chat":
            raise UserError(
                f"models.{self.name}: a chat tells nothing of a given text; scores need a server "
                "with plain completions, and endpoint.api: completions"
            )

        def ask(client: Client, row: str, pair: tuple[str, str]) -> Score:
            prefix, text = pair
            if not text:
                raise UserError(f"{row}: nothing to score after the prefix")
            asked = {"prompt": prefix + text, "echo": True, "logprobs": 1}
            try:
                answer = self._ask(client, row, prefix + text, asked, READING)
                if answer.get("system_fingerprint") == OLLAMA:
                    raise UserError(
                        f"{row}: Ollama tells no log-probabilities of a given text; serve the "
                        "model with vLLM, or score its weights here, kind: causal"
                    )
            except Refused as refused:
                if "echo" in refused.reason or "logprob" in refused.reason:
                    raise _untold(row, f"it says: {refused.reason}") from None
                raise
            values = continuation(row, _choice(row, answer), prefix, text)
            return Score(prefix + text, round(math.fsum(values), DECIMALS) + 0.0, len(values))

        return self._each(pairs, ask, "".join)

    def _ask(
        self, client: Client, row: str, prompt: str, asked: dict[str, Any], sampling: Sampling
    ) -> dict[str, Any]:
        """Send one request."""
        body = {
            "model": self.endpoint.model,
            **asked,
            self._limit: sampling.tokens,
            "temperature": sampling.temperature,
            "top_p": sampling.top_p,
        }
        if sampling.top_k > 0:
            body["top_k"] = sampling.top_k  # an extension, refused by some servers
        path = "/chat/completions" if "messages" in asked else "/completions"
        # No tokenizer in use makes more tokens of a text than it has bytes.
        return client.request(row, path, body, len(prompt.encode()) + AROUND + sampling.tokens)

    def _each(
        self,
        items: Iterable[Item],
        ask: Callable[[Client, str, Item], Answer],
        words: Callable[[Item], str],
    ) -> Iterator[Answer]:
        """Send several requests at once, and yield the responses in the order of the items."""
        number = self.endpoint.concurrency

        def send(place: tuple[int, Item]) -> Answer:
            i, item = place
            return ask(client, f"models.{self.name}: row {i} ({words(item)[:60]!r})", item)

        numbered = enumerate(items)
        with Client(self.endpoint, self.budget) as client, ThreadPoolExecutor(number) as pool:
            while block := list(islice(numbered, BLOCK * number)):
                yield from pool.map(send, block)


def identify(endpoint: Endpoint) -> dict[str, Any]:
    """Return what the server says of the model, as far as it says the same twice.

    Some servers send the present time as ``created``; such things are left out. A server without
    a list of models (HTTP 404 or 405) tells nothing: the name alone is returned. One that lists its
    models, this not among them, is a UserError, as is what is one in :meth:`Client.request`.
    """
    with Client(endpoint) as client:
        try:
            first = _listed(client, endpoint)
        except Refused as refused:
            if refused.status in (404, 405):
                return {"id": endpoint.model}
            raise
        time.sleep(PAUSE_S)
        second = _listed(client, endpoint)
    return {k: first[k] for k in IDENTITY if k in first and first[k] == second.get(k)}


def _listed(client: Client, endpoint: Endpoint) -> dict[str, Any]:
    """Return the server's entry for the model."""
    listed = client.request(f"{endpoint.url}/models", "/models").get("data")
    if not isinstance(listed, list) or not all(isinstance(entry, dict) for entry in listed):
        raise UserError(f"{endpoint.url}/models: not a list of models; check endpoint.url")
    for entry in listed:
        if entry.get("id") in (endpoint.model, endpoint.model + LATEST):
            return dict(entry)
    names = sorted({str(entry.get("id")) for entry in listed})
    shown = ", ".join(names[:20]) + (f" and {len(names) - 20} more" if len(names) > 20 else "")
    raise UserError(
        f"endpoint.model: {endpoint.url} has no {endpoint.model!r}; it lists: {shown or 'none'}"
    )


def _choice(row: str, answer: dict[str, Any]) -> dict[str, Any]:
    """Return the one choice of an answer."""
    choices = answer.get("choices")
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        raise UserError(f"{row}: an answer without choices; is the server OpenAI-compatible?")
    return choices[0]


def _of_ollama(row: str, sampling: Sampling, *, chat: bool) -> None:
    """Refuse what Ollama takes and does otherwise in silence."""
    if not chat:
        raise UserError(
            f"{row}: Ollama puts the model's chat template around the prompt of a completion too; "
            "write endpoint.api: chat"
        )
    if sampling.top_k > 0:
        raise UserError(
            f"{row}: Ollama ignores top_k in requests; write PARAMETER top_k {sampling.top_k} into "
            "the model's Modelfile, and top_k: 0 into the params"
        )


def _untold(row: str, why: str) -> UserError:
    return UserError(
        f"{row}: this server does not tell log-probabilities of a given text, {why}; scores need "
        "one that takes echo and logprobs in completions, as vLLM does"
    )


def continuation(row: str, choice: dict[str, Any], prefix: str, text: str) -> list[float]:
    """Return the log-probabilities, in nats, of exactly the tokens of a text behind its prefix.

    ``choice`` is one of a completion's, asked for with ``echo`` and ``logprobs``; ``row`` says what
    was asked. A UserError if the prompt or its log-probabilities are not there, the tokens do not
    fit the text, the prefix does not end where a token does, or a value is missing or impossible.
    """
    whole, told = prefix + text, choice.get("logprobs")
    if not str(choice.get("text")).startswith(whole):
        raise _untold(row, "it does not echo the prompt")
    if not isinstance(told, dict):
        raise _untold(row, "it sends none")
    tokens, offsets, values = (
        list(told[name]) if isinstance(told.get(name), list) else []
        for name in ("tokens", "text_offset", "token_logprobs")
    )
    if not len(tokens) == len(offsets) == len(values) > 0:
        raise _untold(row, "tokens, text_offset and token_logprobs are not of one length")
    starts = _starts(tokens, offsets, whole)
    if starts is None:
        raise UserError(
            f"{row}: the server's tokens or their text_offset do not add up to the text, so which "
            "are the continuation's cannot be told; score such texts with the weights, kind: causal"
        )
    at = [tokens[i] for i, start in enumerate(starts) if start == len(prefix)]
    if not at or (len(at) > 1 and not _parts(at, tokens)):
        raise UserError(
            f"{row}: the prefix ends within a token, at character {len(prefix)}; move its border, "
            "such as a space from its end to the beginning of the continuation"
        )
    own = [i for i, start in enumerate(starts) if len(prefix) <= start < len(whole)]
    for i in own:
        if not isinstance(values[i], float | int) or not LEAST < values[i] <= ROUNDING:
            raise UserError(f"{row}: {values[i]!r} as the log-probability of token {tokens[i]!r}")
    return [float(values[i]) for i in own]


def _parts(at: list[str], tokens: list[str]) -> bool:
    """Tell whether tokens that begin at one place are parts of one character, the last its end.

    OpenAI names the bytes of each. vLLM gives the character to the token that completes it, and
    nothing to those before: so no token that completes one is plain ASCII.
    """
    if all(any(part in token for part in PARTS) for token in at):
        return True
    ends = (then for token, then in pairwise(tokens) if not token and then)
    return not any(at[:-1]) and not at[-1].isascii() and not any(end.isascii() for end in ends)


def _starts(tokens: list[Any], offsets: list[Any], whole: str) -> list[int] | None:
    """Return where in the text each token begins, or None where they do not tile it.

    Tokens before the text begin at -1.
    """
    if not all(isinstance(t, str) for t in tokens) or not all(isinstance(o, int) for o in offsets):
        return None
    bare = [token.removeprefix(" ") for token in tokens]
    first = next((i for i, b in enumerate(bare) if whole.startswith((tokens[i], b))), None)
    if first is None:
        return None
    added = 0 if whole.startswith(tokens[first]) else 1  # the space that is not in the text
    starts = [-1] * first + [0] + [o - offsets[first] - added for o in offsets[first + 1 :]]
    ends = [*starts[1:], starts[-1] + len(tokens[-1]) - added * (first == len(tokens) - 1)]
    for i, (start, end) in enumerate(zip(starts, ends, strict=True)):
        if i < first or start >= len(whole):
            continue
        token = bare[i] if added and i == first else tokens[i]
        split = any(part in token for part in PARTS)
        if not start <= end <= len(whole) or not (split or whole[start:end] == token):
            return None
    return starts if len(whole) in (*starts, ends[-1]) else None
