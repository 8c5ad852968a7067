"""Candidate words at a mask that ends the prompt, as a model that reads from left to right says.

What stands before the mask is a prefix, and a candidate's log-probability that of its piece as the
next token: the same number as that of the continuation by the word, at one forward for a prompt
instead of one for every prompt and word. The space before the mask belongs to the piece.
"""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from transformers import AutoModelForCausalLM

from plumbline.builders.core.errors import Problem
from plumbline.probes.models.batching import blocks
from plumbline.probes.models.forward import Adapter, enough, logsoftmax
from plumbline.probes.models.kernels.head_only import gated
from plumbline.probes.models.scorer import MASK, Filled, Predicted, Score

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

PAIRS = 1 << 16  # texts tokenised at once where every prompt is tried with every word
ACROSS = re.compile(r"[^\s▁ĠĊĉč][▁Ġ]")  # in a piece: the end of a word and the space behind it


class NextWord(Adapter):
    """A model that reads from left to right, at the end of a prompt."""

    auto = AutoModelForCausalLM

    def __init__(self, where: Path, name: str, revision: str, **options: Any) -> None:
        super().__init__(where, name, revision, **options)
        self.gate = gated(self.model, _body(self.model))
        self.opening = self.tokens.opening()

    def logprobs(self, pairs: Iterable[tuple[str, str]]) -> Iterator[Score]:
        """Score each continuation after its prefix."""
        raise NotImplementedError

    def fill(
        self,
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
            boundary lies where a word begins; or the model answers with numbers that are not
            finite.
        """
        known = self.known(words, language, multi=multi)
        gap = self.tokens.gap(language)
        everyone = not gap or crosses(self.tokens.tokenizer.get_vocab())
        for block in blocks(prompts):
            prefixes = [self._prefix(prompt, gap) for prompt in block]
            given, heads, encoded = self._encoded(prefixes)
            self._boundaries(given, heads, known, gap, everyone=everyone)
            sums = partial(self._whole_words, prefixes, gap)
            yield self.filled(given, encoded, known, top_k, partial(self._next, encoded), sums)

    def predict(
        self, prompts: Iterable[str], top_k: int, *, language: str = ""
    ) -> Iterator[Predicted]:
        """Rank all tokens of the vocabulary at the mask that ends each prompt.

        The space before the mask belongs to the token: a word of its own is one with that space.

        Raises
        ------
        Problem
            If a prompt does not end with its only mask, is too long for the model, or the model
            answers with numbers that are not finite.
        """
        gap = self.tokens.gap(language)
        for block in blocks(prompts):
            given, _, encoded = self._encoded([self._prefix(prompt, gap) for prompt in block])
            yield self.predicted(given, encoded, top_k, partial(self._next, encoded))

    def _prefix(self, prompt: str, gap: str) -> str:
        """Return what stands before the mask of a prompt, as the user wrote it."""
        if not prompt.endswith(MASK) or prompt.count(MASK) != 1:
            raise Problem(
                f"models.{self.name}: reads from left to right, and sees nothing behind a mask; "
                f"give a prompt with one mask at its very end, not {prompt!r}"
            )
        return prompt.removesuffix(MASK).removesuffix(" " if gap else "")

    def _given(self, prefix: str) -> str:
        """Return a prefix behind the context, with a space between them as for other kinds."""
        return self.context + prefix if prefix else self.context.removesuffix(" ")

    def _encoded(
        self, prefixes: Sequence[str]
    ) -> tuple[list[str], list[list[int]], list[list[int]]]:
        """Return what the model gets before each mask: as text, its tokens, all tokens."""
        given = [self._given(prefix) for prefix in prefixes]
        heads = self.tokens.encode(given, special=False)
        encoded = [[*self._begin(empty=not ids), *ids] for ids in heads]
        for text, ids in zip(given, encoded, strict=True):
            self.tokens.fits(text, range(len(ids) + 1), self.longest)  # one for the word
        return given, heads, encoded

    def _begin(self, *, empty: bool) -> list[int]:
        """Return what the tokenizer puts before a text, or where nothing else is, its start."""
        if self.opening or not empty:
            return self.opening
        start = self.tokens.tokenizer.bos_token_id
        if start is None:
            start = getattr(self.model.config, "bos_token_id", None)
        if start is None or start >= len(self.tokens):  # GPT-2's default, whatever the vocabulary
            raise Problem(
                f"models.{self.name}: has no beginning-of-text token; give a prefix that is not "
                "empty"
            )
        return [start]

    def _boundaries(
        self,
        given: Sequence[str],
        heads: list[list[int]],
        known: dict[str, tuple[int, ...]],
        gap: str,
        *,
        everyone: bool,
    ) -> None:
        """Refuse prompts after which a word is not tokenised as the piece that is scored.

        Parameters
        ----------
        heads
            The tokens of what stands before each mask.
        everyone
            Whether every prompt is tried with every word: where no space is between them, or the
            vocabulary has pieces across spaces. Else every prompt with one, every word with one.
        """
        words = list(known)
        if not words:
            return
        n, w = len(given), len(words)
        pairs = n * w if everyone else max(n, w)
        for start in range(0, pairs, PAIRS):
            part = range(start, min(start + PAIRS, pairs))
            tried = [(i // w, i % w) if everyone else (i % n, i % w) for i in part]
            texts = [f"{given[p]}{gap}{words[q]}" for p, q in tried]
            whole = self.tokens.encode(texts, special=False)
            for (p, q), text, ids in zip(tried, texts, whole, strict=True):
                shared = self.tokens.after(given[p], text, ids, heads[p])
                if tuple(ids[shared:]) != known[words[q]]:
                    raise Problem(
                        f"models.{self.name}: {words[q]!r} has other tokens in {text!r} than "
                        "elsewhere; word the prompt so that it ends where a token does"
                    )

    def _next(self, encoded: list[list[int]], rows: list[int]) -> torch.Tensor:
        """Return the log-probabilities (rows, vocabulary) of the token after some texts."""
        ids = self.batches.move([encoded[i] for i in rows])
        texts, length = ids.shape
        looked = enough(self.fewest, texts).to(ids.device)
        with self.gate.at(looked, torch.full_like(looked, length - 1)):
            again = enough(self.fewest, texts, length).to(ids.device)
            out = self.model(input_ids=ids[again], use_cache=False)
        return logsoftmax(self.name, out.logits.squeeze(1)[:texts], self.dtype)

    def _whole_words(
        self, prefixes: Sequence[str], gap: str, words: Sequence[str]
    ) -> NDArray[np.float64]:
        """Return the log-probability (prompts, words) of words of several pieces."""
        pairs = ((prefix, f"{gap}{word}") for prefix in prefixes for word in words)
        scores = [score.logprob_nats for score in self.logprobs(pairs)]
        return np.array(scores, np.float64).reshape(len(prefixes), len(words))


def crosses(pieces: Iterable[str]) -> bool:
    """Tell whether a piece of a vocabulary may stand for the end of a word and what comes next.

    If none does, the tokens before a space never depend on the word behind it.
    """
    return any(ACROSS.search(piece) for piece in pieces)


def _body(model: Any) -> str:
    """Return the path of that part of a model whose last states its head reads."""
    path = str(model.base_model_prefix)
    if not hasattr(model, path):
        path = "model"  # Llama 4's prefix is another model's
    # OPT's and BART's head ask the decoder within
    return f"{path}.decoder" if hasattr(model.get_submodule(path), "decoder") else path
