"""Causal language models (GPT-2, Llama and their kin): words, continuations and texts.

``fill`` and ``predict`` read what stands before the mask that ends a prompt as a prefix: a
candidate's log-probability is that of its piece as the next token, the same number as that of the
continuation by the word, at one forward for a prompt instead of one for every prompt and word. The
space before the mask belongs to the piece.
"""

from __future__ import annotations

import re
from contextlib import suppress
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from transformers import AutoModelForCausalLM
from transformers.cache_utils import DynamicLayer

from plumbline.builders.core.errors import UserError
from plumbline.probes.models import batching, kernels
from plumbline.probes.models.batching import blocks
from plumbline.probes.models.forward import Candidates, Prompts, Reader
from plumbline.probes.models.kernels import HeadOnly, close
from plumbline.probes.models.sampling import Writer
from plumbline.probes.models.scorer import (
    MASK,
    Score,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

TRIAL = 48  # tokens of the texts on which shared beginnings must agree with whole texts
PAIRS = 1 << 16  # texts tokenised at once where every prompt is tried with every word
ACROSS = re.compile(r"[^\s▁ĠĊĉč][▁Ġ]")  # in a piece: the end of a word and the space behind it


class Causal(Reader, Writer):
    """A model that reads and writes from left to right, and its tokenizer."""

    auto = AutoModelForCausalLM
    continues = True

    def __init__(self, where: Path, name: str, revision: str, **options: Any) -> None:
        super().__init__(where, name, revision, **options)
        self.body = self.model.get_submodule(_body(self.model))
        self.head = HeadOnly(self.body)
        self.opening = self.tokens.opening()
        self.shares = self._shares()

    def options(self, ids: torch.Tensor, language: str) -> dict[str, Any]:  # noqa: ARG002
        """Return the inputs of a forward pass besides the tokens."""
        return {"use_cache": False}

    def alone(self, words: list[str], language: str) -> list[tuple[list[int], list[int]]]:
        """Return the tokens of each word behind what begins a text, and the places of its own."""
        start: list[int] = []
        with suppress(UserError):  # GPT-1 has no such token: there nothing stands before the word
            start = self._begin(empty=True)
        encoded = self.tokens.encode(words, language, special=False)
        return [([*start, *ids], [len(start) + n for n in range(len(ids))]) for ids in encoded]

    def prepare(
        self, prompts: list[str], language: str, known: Candidates | None = None
    ) -> Prompts:
        """Return prompts for the token at the mask that ends each.

        The space before the mask belongs to the token: a word of its own is one with that space. A
        prompt that does not end with its only mask, is too long for the model, or has no token
        boundary where a word begins is a UserError.
        """
        for prompt in prompts:
            if not prompt.endswith(MASK) or prompt.count(MASK) != 1:
                raise UserError(
                    f"models.{self.name}: reads from left to right, and sees nothing behind a "
                    f"mask; give a prompt with one mask at its very end, not {prompt!r}"
                )
        gap, known = self.tokens.gap(language), known or {}
        prefixes = [
            prompt.removesuffix(MASK).removesuffix(" " if gap else "") for prompt in prompts
        ]
        texts, heads, encoded = self._encoded(prefixes)
        for text, ids in zip(texts, encoded, strict=True):
            self.tokens.fits(text, len(ids) + 1, self.longest)  # one for the word
        self._check_boundaries(texts, heads, known, gap)

        def score(rows: list[int]) -> torch.Tensor:
            ids = self.batches.move([encoded[i] for i in rows])
            return self.nats(self.look(ids, torch.full_like(ids[:, 0], ids.shape[1] - 1)))

        def sums() -> NDArray[np.float64]:
            words = [word for word, tail in known.items() if len(tail) > 1]
            pairs = ((prefix, f"{gap}{word}") for prefix in prefixes for word in words)
            scores = [score.logprob_nats for score in self.logprobs(pairs)]
            return np.array(scores).reshape(len(prompts), -1)

        return Prompts(texts, encoded, score, sums)

    def _behind_context(self, prefix: str) -> str:
        """Return a prefix behind the context, with a space between them as for other kinds."""
        return self.context + prefix if prefix else self.context.removesuffix(" ")

    def _encoded(
        self, prefixes: Sequence[str]
    ) -> tuple[list[str], list[list[int]], list[list[int]]]:
        """Return each prefix as the model gets it: text, its tokens, all tokens."""
        texts = [self._behind_context(prefix) for prefix in prefixes]
        heads = self.tokens.encode(texts, special=False)
        return texts, heads, [[*self._begin(empty=not ids), *ids] for ids in heads]

    def _begin(self, *, empty: bool) -> list[int]:
        """Return the tokens before a text: the tokenizer's own, or of an empty one its start."""
        if self.opening or not empty:
            return self.opening
        start = self.tokens.tokenizer.bos_token_id
        if start is None:
            start = getattr(self.model.config, "bos_token_id", None)
        if start is None or start >= len(self.tokens):  # GPT-2's default, whatever the vocabulary
            raise UserError(
                f"models.{self.name}: has no beginning-of-text token; give a prefix that is not "
                "empty"
            )
        return [start]

    def _check_boundaries(
        self, given: Sequence[str], heads: list[list[int]], known: Candidates, gap: str
    ) -> None:
        """Refuse prompts after which a word is not tokenised as the piece that is scored.

        Every prompt is tried with every word where no space is between them, or the vocabulary has
        pieces across spaces. Else every prompt with one, every word with one.
        """
        words, n = list(known), len(given)
        if not words:
            return
        tried: Iterable[tuple[int, str]] = product(range(n), words)
        if gap and not crosses(self.tokens.tokenizer.get_vocab()):
            tried = ((i % n, words[i % len(words)]) for i in range(max(n, len(words))))
        for pairs in blocks(tried, PAIRS):
            texts = [f"{given[i]}{gap}{word}" for i, word in pairs]
            encoded = self.tokens.encode(texts, special=False)
            for (i, word), text, ids in zip(pairs, texts, encoded, strict=True):
                if tuple(ids[self.tokens.after(given[i], text, ids, heads[i]) :]) != known[word]:
                    raise UserError(
                        f"models.{self.name}: {word!r} has other tokens in {text!r} than "
                        "elsewhere; word the prompt so that it ends where a token does"
                    )

    def logprobs(self, pairs: Iterable[tuple[str, str]]) -> Iterator[Score]:
        """Score each continuation after its prefix, in the order given.

        The whole string is tokenised, and the log-probabilities of the tokens behind those of the
        prefix are summed. Texts that begin alike share the computation of their beginning. With
        an empty prefix the model's beginning-of-text token stands before the continuation, also
        where its tokenizer puts none before other texts (GPT-2's); no such token is a UserError, as
        is a prefix whose tokens are not the first of the whole, a text that is too long or empty,
        or an answer that is not finite.
        """
        for block in blocks(pairs):
            yield from self._score([(self._behind_context(prefix), rest) for prefix, rest in block])

    def _score(self, pairs: list[tuple[str, str]]) -> list[Score]:
        texts = [prefix + rest for prefix, rest in pairs]
        encoded = self.tokens.encode(texts, special=False)
        heads = self.tokens.encode([prefix for prefix, _ in pairs], special=False)
        whole, starts = [], []
        for (prefix, rest), head, text, ids in zip(pairs, heads, texts, encoded, strict=True):
            begin = self._begin(empty=not head)
            starts.append(len(begin) + self.tokens.after(prefix, text, ids, head))
            whole.append([*begin, *ids])
            self.tokens.fits(text, len(whole[-1]), self.longest)
            if len(ids) == len(head):
                raise UserError(
                    f"models.{self.name}: no token to score in {rest!r} after {prefix!r}"
                )
        read = [ids[:-1] for ids in whole]  # nothing is asked after the last token
        if self.shares:
            parts = kernels.parts(read, batching.TOKENS)
            shapes, costs = [0] * len(parts), [batching.TOKENS] * len(parts)
        else:
            parts = [[row] for row in range(len(pairs))]
            shapes = costs = [len(ids) for ids in read]

        def launch(chosen: list[int]) -> tuple[list[int], torch.Tensor]:
            rows = [row for part in chosen for row in parts[part]]
            return rows, self._sums([whole[row] for row in rows], [starts[row] for row in rows])

        sums = np.zeros((len(pairs), 2))
        for _, (rows, values) in self.batches.run(shapes, costs, launch):
            sums[rows] = values.cpu().numpy()
        scored = [ids[start:] for ids, start in zip(whole, starts, strict=True)]
        return self.scores(texts, sums[:, 0], scored, sums[:, 1])

    def _sums(self, texts: list[list[int]], starts: list[int]) -> torch.Tensor:
        """Return sums (texts, 2) over the tokens of each from its start on.

        They are of log-probabilities, and of tokens that are not the best. The texts are
        neighbours, or where nothing is shared equally long.
        """
        read = [ids[:-1] for ids in texts]
        scored = [(n, p) for n, ids in enumerate(texts) for p in range(starts[n], len(ids))]
        row, true = self.batches.move([(n, texts[n][p]) for n, p in scored]).t()
        tree, options = None, self.options(row, "")
        if self.shares:
            tree = kernels.grow(read, self.batches.move)
            ids, options["position_ids"] = tree.tokens, tree.places
            where = [tree.paths[n][p - 1] for n, p in scored]
        else:
            ids = self.batches.move(read)
            where = [n * ids.shape[1] + p - 1 for n, p in scored]
            ids = self.enough(ids, ids.shape[1])
        places, which = torch.unique(self.batches.move(where), return_inverse=True)
        looked, length = self.enough(places), ids.shape[1]
        with kernels.reading(tree), self.head.at(looked // length, looked % length):
            logits = self.model(input_ids=ids, **options).logits.squeeze(1)
        scores = self.nats(logits[: len(places)])  # a place may be asked for many tokens
        values, best = scores[which, true], scores.amax(1)[which]
        chosen = torch.stack([values.double(), (values < best).double()], dim=1)
        return chosen.new_zeros(len(texts), 2).index_add_(0, row, chosen)

    def opened(
        self, prompts: list[str], room: int, _language: str
    ) -> tuple[list[str], list[list[int]]]:
        """Return each prompt as the model gets it, as text and tokens, with room for more."""
        texts, _, begun = self._encoded(prompts)
        for text, ids in zip(texts, begun, strict=True):
            self.tokens.fits(text, len(ids) + room, self.longest)
        return texts, begun

    def begin(self, ids: torch.Tensor) -> tuple[torch.Tensor, dict[str, Any]]:
        """Return logits (texts, vocabulary) for the first new token, and what to go on with."""
        out = self.model(input_ids=ids, use_cache=True, logits_to_keep=1)
        cache = getattr(out, "past_key_values", None)
        # GPT-1 keeps no states, Mamba others: such a text is read anew for each token
        state = {"input_ids": ids} if cache is None else {"past_key_values": cache}
        return out.logits[:, -1], state

    def step(self, last: torch.Tensor, state: dict[str, Any]) -> torch.Tensor:
        """Return logits (texts, vocabulary) after the tokens ``last`` (texts,)."""
        ids = last.unsqueeze(1)
        if "input_ids" in state:
            state["input_ids"] = torch.cat([state["input_ids"], ids], dim=1)
            out = self.model(**state, use_cache=False, logits_to_keep=1)
        else:
            out = self.model(input_ids=ids, use_cache=True, **state)
        logits: torch.Tensor = out.logits[:, -1]
        return logits

    def keep(self, rows: torch.Tensor, state: dict[str, Any]) -> None:
        """Go on with some of the texts only."""
        if "input_ids" in state:
            state["input_ids"] = state["input_ids"][rows]
        else:
            state["past_key_values"].batch_select_indices(rows)

    @torch.inference_mode()
    def _shares(self) -> bool:
        """Tell whether texts may share their beginning, having prepared the model for it.

        Every layer must see all tokens: sliding windows do not, nor do recurrent layers. And the
        model must leave its attention to others: tried on random texts.
        """
        out = self.body(input_ids=self.batches.move([[0]]), use_cache=True)
        layers = getattr(getattr(out, "past_key_values", None), "layers", [])
        if not layers or any(type(x) is not DynamicLayer or not x.is_initialized for x in layers):
            return False
        size, length = self.model.config.vocab_size, min(TRIAL, self.longest)
        draw = torch.Generator().manual_seed(0)
        ids = torch.randint(size // 2, size, (1, length), generator=draw).repeat(3, 1)
        ids[1:, length // 2 :] = torch.randint(size, (2, length - length // 2), generator=draw)
        texts = sorted([ids[0].tolist(), ids[1].tolist(), ids[2, : -length // 4].tolist()])
        plain = [self.model(input_ids=self.batches.move([text])).logits[0] for text in texts]
        if not kernels.prepare(self.model):
            return False
        tree = kernels.grow(texts, self.batches.move)
        with suppress(RuntimeError, TypeError, ValueError), kernels.reading(tree):
            out = self.model(input_ids=tree.tokens, position_ids=tree.places, use_cache=False)
            pairs = zip(tree.paths, plain, strict=True)
            differences = [(out.logits[0][path] - true).abs().max() for path, true in pairs]
            if close(torch.stack(differences).max(), plain[0]):
                return True
        kernels.release(self.model)
        return False


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
