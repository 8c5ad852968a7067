"""Reading what a server tells of a text that it was given.

OpenAI's completions give for each token its string, its log-probability and ``text_offset``, the
character where it begins. Servers differ in the last: some count tokens that are not in the text
(the one for its beginning), or the space that SentencePiece puts before a text; some add up the
lengths of tokens decoded one by one, which is wrong where a character takes several tokens. So
the offsets are held against the text, and what does not fit is refused.
"""

from __future__ import annotations

from typing import Any

from plumbline.builders.core.errors import Problem

LEAST = -9999.0  # what servers write for minus infinity
ROUNDING = 1e-6  # above the logarithm of 1
PARTS = ("\ufffd", "bytes:")  # stand in tokens that are a part of a character


def untold(row: str, why: str) -> Problem:
    """Return the problem of a server that does not tell."""
    return Problem(
        f"{row}: this server does not tell log-probabilities of a given text, {why}; scores need "
        "one that takes echo and logprobs in completions, as vLLM does"
    )


def continuation(row: str, choice: dict[str, Any], prefix: str, text: str) -> list[float]:
    """Return the log-probabilities, in nats, of exactly the tokens of a text behind its prefix.

    Parameters
    ----------
    row
        What was asked, for messages.
    choice
        One of a completion's ``choices``, asked for with ``echo`` and ``logprobs``.

    Raises
    ------
    Problem
        If the prompt or its log-probabilities are not there, the tokens do not fit the text,
        the prefix does not end where a token does, or a value is missing or impossible.
    """
    whole, told = prefix + text, choice.get("logprobs")
    if not str(choice.get("text")).startswith(whole):
        raise untold(row, "it does not echo the prompt")
    if not isinstance(told, dict):
        raise untold(row, "it sends none")
    tokens, offsets, values = (
        list(told[name]) if isinstance(told.get(name), list) else []
        for name in ("tokens", "text_offset", "token_logprobs")
    )
    if not len(tokens) == len(offsets) == len(values) > 0:
        raise untold(row, "tokens, text_offset and token_logprobs are not of one length")
    starts = _starts(tokens, offsets, whole)
    if starts is None:
        raise Problem(
            f"{row}: the server's tokens or their text_offset do not add up to the text, so which "
            "are the continuation's cannot be told; score such texts with the weights, kind: causal"
        )
    if starts.count(len(prefix)) != 1:
        raise Problem(
            f"{row}: the prefix ends within a token, at character {len(prefix)}; move its border, "
            "such as a space from its end to the beginning of the continuation"
        )
    own = [i for i, start in enumerate(starts) if len(prefix) <= start < len(whole)]
    for i in own:
        if not isinstance(values[i], float | int) or not LEAST < values[i] <= ROUNDING:
            raise Problem(f"{row}: {values[i]!r} as the log-probability of token {tokens[i]!r}")
    return [float(values[i]) for i in own]


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
