"""Causal language models (GPT-2, Llama and similar): words, continuations and texts.

``fill`` and ``predict`` treat the text before the final mask of a prompt as a prefix. A candidate's
log-probability is that of its token, with the space before the mask, as the next token.
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
from plumbline.probes.models.scorer import MASK, Score

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

TRIAL = 48  # length of the texts used to compare shared prefixes with plain passes
PAIRS = 1 << 16  # texts that are tokenised together when every prompt is checked with every word
ACROSS = re.compile(r"[^\s▁ĠĊĉč][▁Ġ]")  # a token that spans the end of a word and a space


class Causal(Reader, Writer):
    """A left-to-right language model and its tokenizer."""

    auto = AutoModelForCausalLM
    continues = True

    def __init__(self, where: Path, name: str, revision: str, **options: Any) -> None:
        super().__init__(where, name, revision, **options)
        self.body = self.model.get_submodule(_body(self.model))
        self.head = HeadOnly(self.body)
        self.opening = self.tokens.opening()
        self.shares = self._shares()

    def options(self, ids: torch.Tensor, language: str) -> dict[str, Any]:  # noqa: ARG002
        """Return the inputs of a forward pass other than the tokens."""
        return {"use_cache": False}

    def alone(self, words: list[str], language: str) -> list[tuple[list[int], list[int]]]:
        """Return each word's tokens, preceded by a text's opening tokens, and their positions."""
        start: list[int] = []
        with suppress(UserError):  # GPT-1 has no beginning-of-text token, so the word comes first
            start = self._begin(empty=True)
        encoded = self.tokens.encode(words, language, special=False)
        return [([*start, *ids], [len(start) + n for n in range(len(ids))]) for ids in encoded]

    def prepare(
        self, prompts: list[str], language: str, candidates: Candidates | None = None
    ) -> Prompts:
        """Prepare the prediction of the token at the final mask of each prompt.

        Raises UserError if a prompt does not end with its only mask, is too long for the model, or
        has no token boundary before a word.
        """
        for prompt in prompts:
            if not prompt.endswith(MASK) or prompt.count(MASK) != 1:
                raise UserError(
                    f"models.{self.name}: reads from left to right, and sees nothing after a "
                    f"mask; give a prompt with one mask at its very end, not {prompt!r}"
                )
        gap, candidates = self.tokens.gap(language), candidates or {}
        prefixes = [
            prompt.removesuffix(MASK).removesuffix(" " if gap else "") for prompt in prompts
        ]
        texts, heads, encoded = self._encoded(prefixes)
        for text, ids in zip(texts, encoded, strict=True):
            self.tokens.fits(text, len(ids) + 1, self.longest)  # one more token for the word
        self._check_boundaries(texts, heads, candidates, gap)

        def score(rows: list[int]) -> torch.Tensor:
            ids = self.batches.move([encoded[i] for i in rows])
            return self.nats(self.look(ids, torch.full_like(ids[:, 0], ids.shape[1] - 1)))

        def sums() -> NDArray[np.float64]:
            words = [word for word, tail in candidates.items() if len(tail) > 1]
            pairs = ((prefix, f"{gap}{word}") for prefix in prefixes for word in words)
            scores = [score.logprob_nats for score in self.logprobs(pairs)]
            return np.array(scores).reshape(len(prompts), -1)

        return Prompts(texts, encoded, score, sums)

    def _behind_context(self, prefix: str) -> str:
        """Join the context and a prefix with a space, as for other kinds of models."""
        return self.context + prefix if prefix else self.context.removesuffix(" ")

    def _encoded(
        self, prefixes: Sequence[str]
    ) -> tuple[list[str], list[list[int]], list[list[int]]]:
        """Return the text and the tokens of each prefix, and the tokens of the model's input."""
        texts = [self._behind_context(prefix) for prefix in prefixes]
        heads = self.tokens.encode(texts, special=False)
        return texts, heads, [[*self._begin(empty=not ids), *ids] for ids in heads]

    def _begin(self, *, empty: bool) -> list[int]:
        """Return the tokens placed before a text: the tokenizer's or, for an empty text, BOS."""
        if self.opening or not empty:
            return self.opening
        start = self.tokens.tokenizer.bos_token_id
        if start is None:
            start = getattr(self.model.config, "bos_token_id", None)
        if start is None or start >= len(self.tokens):  # GPT-2's default id may not exist
            raise UserError(
                f"models.{self.name}: has no beginning-of-text token; give a prefix that is not "
                "empty"
            )
        return [start]

    def _check_boundaries(
        self, prefixes: Sequence[str], heads: list[list[int]], candidates: Candidates, gap: str
    ) -> None:
        """Raise UserError if a word after a prompt is tokenised differently from the scored tokens.

        All pairs of prompts and words are checked if no space separates them, or if some tokens in
        the vocabulary span a space between words; otherwise each prompt and each word is checked
        once.
        """
        words, n = list(candidates), len(prefixes)
        if not words:
            return
        tried: Iterable[tuple[int, str]] = product(range(n), words)
        if gap and not any(map(ACROSS.search, self.tokens.tokenizer.get_vocab())):
            tried = ((i % n, words[i % len(words)]) for i in range(max(n, len(words))))
        for pairs in blocks(tried, PAIRS):
            texts = [f"{prefixes[i]}{gap}{word}" for i, word in pairs]
            encoded = self.tokens.encode(texts, special=False)
            for (i, word), text, ids in zip(pairs, texts, encoded, strict=True):
                start = self.tokens.after(prefixes[i], text, ids, heads[i])
                if tuple(ids[start:]) != candidates[word]:
                    raise UserError(
                        f"models.{self.name}: {word!r} is tokenised differently in {text!r} than "
                        "elsewhere; end the prompt at a token boundary"
                    )

    def logprobs(self, pairs: Iterable[tuple[str, str]]) -> Iterator[Score]:
        """Score each continuation after its prefix, in order.

        The complete string is tokenised, and the log-probabilities of the tokens that follow the
        prefix are summed. A prefix shared by several texts is computed once. After an empty prefix
        the continuation follows the beginning-of-text token, even if the tokenizer does not add it
        to other texts (GPT-2). Raises UserError if the model has no such token, if the tokens of a
        prefix are not the first tokens of the text, if a text is too long or empty, or if an output
        is not finite.
        """
        for block in blocks(pairs):
            yield from self._score([(self._behind_context(prefix), text) for prefix, text in block])

    def _score(self, pairs: list[tuple[str, str]]) -> list[Score]:
        texts = ["".join(pair) for pair in pairs]
        encoded = self.tokens.encode(texts, special=False)
        heads = self.tokens.encode([prefix for prefix, _ in pairs], special=False)
        sequences, starts = [], []
        for (prefix, tail), head, text, ids in zip(pairs, heads, texts, encoded, strict=True):
            begin = self._begin(empty=not head)
            starts.append(len(begin) + self.tokens.after(prefix, text, ids, head))
            sequences.append([*begin, *ids])
            self.tokens.fits(text, len(sequences[-1]), self.longest)
            if len(ids) == len(head):
                raise UserError(
                    f"models.{self.name}: no token to score in {tail!r} after {prefix!r}"
                )
        read = [ids[:-1] for ids in sequences]  # no token follows the last one
        if self.shares:
            parts = kernels.parts(read, batching.TOKENS)
            shapes, costs = [0] * len(parts), [batching.TOKENS] * len(parts)
        else:
            parts = [[row] for row in range(len(pairs))]
            shapes = costs = [len(ids) for ids in read]

        def launch(chosen: list[int]) -> tuple[list[int], torch.Tensor]:
            rows = [row for part in chosen for row in parts[part]]
            return rows, self._sums([sequences[row] for row in rows], [starts[row] for row in rows])

        sums = np.zeros((len(pairs), 2))
        for _, (rows, values) in self.batches.run(shapes, costs, launch):
            sums[rows] = values.cpu().numpy()
        scored = [ids[start:] for ids, start in zip(sequences, starts, strict=True)]
        return self.scores(texts, sums[:, 0], scored, sums[:, 1])

    def _sums(self, texts: list[list[int]], starts: list[int]) -> torch.Tensor:
        """Return sums over the scored tokens of each text, as an array of shape (texts, 2).

        The columns are the sum of log-probabilities and the number of tokens that are not the most
        probable. Texts are sorted by their tokens or, without prefix sharing, have equal length.
        ``starts``: position of the first scored token of each text.
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
        scores = self.nats(logits[: len(places)])  # one position may score several tokens
        values, best = scores[which, true], scores.amax(1)[which]
        chosen = torch.stack([values.double(), (values < best).double()], dim=1)
        return chosen.new_zeros(len(texts), 2).index_add_(0, row, chosen)

    def opened(
        self, prompts: list[str], room: int, _language: str
    ) -> tuple[list[str], list[list[int]]]:
        """Return each model input as text and tokens, checking that ``room`` more tokens fit."""
        texts, _, begun = self._encoded(prompts)
        for text, ids in zip(texts, begun, strict=True):
            self.tokens.fits(text, len(ids) + room, self.longest)
        return texts, begun

    def begin(self, ids: torch.Tensor) -> tuple[torch.Tensor, dict[str, Any]]:
        """Return logits of shape (texts, vocabulary) for the first new token, and the state."""
        out = self.model(input_ids=ids, use_cache=True, logits_to_keep=1)
        cache = getattr(out, "past_key_values", None)
        # GPT-1 has no cache and Mamba a different one; their texts are recomputed for each token
        state = {"input_ids": ids} if cache is None else {"past_key_values": cache}
        return out.logits[:, -1], state

    def step(self, last: torch.Tensor, state: dict[str, Any]) -> torch.Tensor:
        """Return next-token logits of shape (texts, vocabulary) for ``last``, of shape (texts,)."""
        ids = last.unsqueeze(1)
        if "input_ids" in state:
            state["input_ids"] = torch.cat([state["input_ids"], ids], dim=1)
            out = self.model(**state, use_cache=False, logits_to_keep=1)
        else:
            out = self.model(input_ids=ids, use_cache=True, **state)
        logits: torch.Tensor = out.logits[:, -1]
        return logits

    def keep(self, rows: torch.Tensor, state: dict[str, Any]) -> None:
        """Retain only the selected texts in the state."""
        if "input_ids" in state:
            state["input_ids"] = state["input_ids"][rows]
        else:
            state["past_key_values"].batch_select_indices(rows)

    @torch.inference_mode()
    def _shares(self) -> bool:
        """Prepare the model to compute shared prefixes once; return True if that is possible.

        Every layer must attend to all tokens (sliding windows and recurrent layers do not), and it
        must be possible to replace the attention. Both conditions are checked on random texts.
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


def _body(model: Any) -> str:
    """Return the path of the submodule whose last hidden states are the input of the head."""
    path = str(model.base_model_prefix)
    if not hasattr(model, path):
        path = "model"  # Llama 4's prefix refers to another model
    # in OPT and BART, the head reads the inner decoder
    return f"{path}.decoder" if hasattr(model.get_submodule(path), "decoder") else path
