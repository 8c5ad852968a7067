"""Candidate words at a mask that ends the prompt, as a model that reads from left to right says.

What stands before the mask is a prefix, and a candidate's log-probability that of its piece as the
next token: the same number as that of the continuation by the word, at one forward for a prompt
instead of one for every prompt and word. The space before the mask belongs to the piece.
"""

from __future__ import annotations

import re
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch

from plumbline.builders.core.errors import Problem
from plumbline.probes.models import batching, predictions
from plumbline.probes.models.forward import enough, logsoftmax
from plumbline.probes.models.scorer import DECIMALS, MASK, Filled, Predicted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from plumbline.probes.models.causal import Causal

PAIRS = 1 << 16  # texts tokenised at once where every prompt is tried with every word
ACROSS = re.compile(r"[^\s▁ĠĊĉč][▁Ġ]")  # in a piece: the end of a word and the space behind it


class Asked(NamedTuple):
    """What stands before the mask of a prompt."""

    prefix: str  # as the user wrote it
    given: str  # as the model gets it: with its context


def fill(
    scorer: Causal,
    prompts: Iterable[str],
    words: Sequence[str],
    top_k: int,
    *,
    multi: bool = False,
    language: str = "",
) -> Iterator[Filled]:
    """Rank candidate words at the mask that ends each prompt, in the order of the prompts.

    Parameters
    ----------
    multi
        Also rank words of several pieces: the sum over the pieces, each after those before it.

    Raises
    ------
    Problem
        If a prompt does not end with its only mask, is too long for the model, or no token
        boundary lies where a word begins; or the model answers with numbers that are not finite.
    """
    known = scorer.tokens.candidates(words, language)
    if not multi:
        known = {word: tail for word, tail in known.items() if len(tail) == 1}
    gap = scorer.tokens.gap(language)
    everyone = not gap or crosses(scorer.tokens.tokenizer.get_vocab())
    source = iter(prompts)
    while block := list(islice(source, batching.BLOCK)):
        asked = [_asked(scorer, prompt, gap) for prompt in block]
        heads = scorer.tokens.encode([a.given for a in asked], special=False)
        encoded = [[*scorer._begin(empty=not ids), *ids] for ids in heads]  # noqa: SLF001
        for (_, given), ids in zip(asked, encoded, strict=True):
            scorer.tokens.fits(given, range(len(ids) + 1), scorer.longest)  # one for the word
        _boundaries(scorer, asked, heads, known, gap, everyone=everyone)
        yield _block(scorer, asked, encoded, known, gap, min(top_k, len(known)))


def predict(
    scorer: Causal, prompts: Iterable[str], top_k: int, *, language: str = ""
) -> Iterator[Predicted]:
    """Rank all tokens of the vocabulary at the mask that ends each prompt.

    The space before the mask belongs to the token: a word of its own is one with that space.

    Raises
    ------
    Problem
        If a prompt does not end with its only mask, is too long for the model, or the model
        answers with numbers that are not finite.
    """

    def ask(encoded: list[list[int]], rows: list[int]) -> torch.Tensor:
        return _next(scorer, scorer.batches.move([encoded[i] for i in rows]))

    gap = scorer.tokens.gap(language)
    source = iter(prompts)
    while block := list(islice(source, batching.BLOCK)):
        given = [_asked(scorer, prompt, gap).given for prompt in block]
        heads = scorer.tokens.encode(given, special=False)
        encoded = [[*scorer._begin(empty=not ids), *ids] for ids in heads]  # noqa: SLF001
        for text, ids in zip(given, encoded, strict=True):
            scorer.tokens.fits(text, range(len(ids) + 1), scorer.longest)
        yield predictions.block(
            scorer.tokens, scorer.batches, given, encoded, partial(ask, encoded), top_k
        )


def crosses(pieces: Iterable[str]) -> bool:
    """Tell whether a piece of a vocabulary may stand for the end of a word and what comes next.

    If none does, the tokens before a space never depend on the word behind it.
    """
    return any(ACROSS.search(piece) for piece in pieces)


def _asked(scorer: Causal, prompt: str, gap: str) -> Asked:
    if not prompt.endswith(MASK) or prompt.count(MASK) != 1:
        raise Problem(
            f"models.{scorer.name}: reads from left to right, and sees nothing behind a mask; give "
            f"a prompt with one mask at its very end, not {prompt!r}"
        )
    prefix = prompt.removesuffix(MASK).removesuffix(" " if gap else "")
    return Asked(prefix, scorer._given(prefix))  # noqa: SLF001 part of the same model


def _boundaries(
    scorer: Causal,
    asked: Sequence[Asked],
    heads: list[list[int]],
    known: dict[str, tuple[int, ...]],
    gap: str,
    *,
    everyone: bool,
) -> None:
    """Refuse prompts after which a word is tokenised otherwise than as the piece that is scored.

    Parameters
    ----------
    heads
        The tokens of what stands before each mask.
    everyone
        Whether every prompt is tried with every word: where there is no space between them, or the
        vocabulary has pieces across spaces. Else every prompt with one and every word with one.
    """
    words = list(known)
    if not words:
        return
    n, w = len(asked), len(words)
    pairs = n * w if everyone else max(n, w)
    for start in range(0, pairs, PAIRS):
        part = range(start, min(start + PAIRS, pairs))
        tried = [(i // w, i % w) if everyone else (i % n, i % w) for i in part]
        texts = [f"{asked[p].given}{gap}{words[q]}" for p, q in tried]
        whole = scorer.tokens.encode(texts, special=False)
        for (p, q), text, ids in zip(tried, texts, whole, strict=True):
            shared = scorer.tokens.after(asked[p].given, text, ids, heads[p])
            if tuple(ids[shared:]) != known[words[q]]:
                raise Problem(
                    f"models.{scorer.name}: {words[q]!r} has other tokens in {text!r} than "
                    "elsewhere; word the prompt so that it ends where a token does"
                )


def _block(
    scorer: Causal,
    asked: Sequence[Asked],
    encoded: list[list[int]],
    known: dict[str, tuple[int, ...]],
    gap: str,
    top_k: int,
) -> Filled:
    """Rank the candidates for one block of prompts."""
    tails = list(known.values())
    single = [i for i, tail in enumerate(tails) if len(tail) == 1]
    several = [i for i, tail in enumerate(tails) if len(tail) > 1]
    first = scorer.batches.move([tails[i][0] for i in single])
    sums = _sums(scorer, asked, [list(known)[i] for i in several], gap)
    best = np.zeros((len(asked), top_k), np.int32)
    values = np.zeros((len(asked), top_k))

    def launch(rows: list[int]) -> tuple[torch.Tensor, torch.Tensor]:
        scores = _next(scorer, scorer.batches.move([encoded[i] for i in rows]))[:, first].double()
        every = scores.new_empty(len(rows), len(tails))
        every[:, single] = scores
        every[:, several] = torch.from_numpy(sums[rows]).to(every)
        every = torch.round(every, decimals=DECIMALS)
        order = torch.sort(-every, dim=1, stable=True).indices[:, :top_k]
        return order, every.gather(1, order)

    def finish(rows: list[int], done: tuple[torch.Tensor, torch.Tensor]) -> None:
        best[rows] = done[0].cpu().numpy()
        values[rows] = done[1].cpu().numpy()

    lengths = [len(ids) for ids in encoded]
    scorer.batches.run(lengths, lengths, torch.inference_mode()(launch), finish)
    return Filled(
        [given for _, given in asked],
        tuple(known),
        np.array([len(tail) for tail in tails], np.int32),
        best,
        values + 0.0,
        np.array(lengths, np.int32),
        np.array([scorer.tokens.unknown(ids) for ids in encoded], np.int32),
    )


def _next(scorer: Causal, ids: torch.Tensor) -> torch.Tensor:
    """Return the log-probabilities (texts, vocabulary) of the token after each text."""
    texts, length = ids.shape
    looked = enough(scorer.fewest, texts).to(ids.device)
    with scorer.gate.at(looked, torch.full_like(looked, length - 1)):
        out = scorer.model(
            input_ids=ids[enough(scorer.fewest, texts, length).to(ids.device)], use_cache=False
        )
    return logsoftmax(scorer.name, out.logits.squeeze(1)[:texts], scorer.dtype)


def _sums(
    scorer: Causal, asked: Sequence[Asked], words: Sequence[str], gap: str
) -> NDArray[np.float64]:
    """Return the log-probability (prompts, words) of words of several pieces after each prefix."""
    pairs = ((a.prefix, f"{gap}{word}") for a in asked for word in words)
    scores = [score.logprob_nats for score in scorer.logprobs(pairs)] if words else []
    return np.array(scores, np.float64).reshape(len(asked), len(words))
