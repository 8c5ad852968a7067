"""Causal language models (GPT-2, Llama and their kin): continuations scored, texts written.

Words at the end of a prompt are ranked in :mod:`plumbline.probes.models.causal_fill`.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from transformers.cache_utils import DynamicLayer

from plumbline.builders.core.errors import Problem
from plumbline.probes.models import batching, hidden_states
from plumbline.probes.models import sampling as sample
from plumbline.probes.models.batching import blocks
from plumbline.probes.models.causal_fill import NextWord
from plumbline.probes.models.forward import enough, logsoftmax
from plumbline.probes.models.kernels import prefix_tree
from plumbline.probes.models.kernels.head_only import CLOSE, CLOSE_ELSE
from plumbline.probes.models.scorer import (
    DECIMALS,
    SAMPLING,
    Represented,
    Sampling,
    Score,
    Text,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

TRIAL = 48  # tokens of the texts on which shared beginnings must agree with whole texts


class Causal(NextWord):
    """A model that reads and writes from left to right, and its tokenizer."""

    continues = True

    def __init__(self, where: Path, name: str, revision: str, **options: Any) -> None:
        super().__init__(where, name, revision, **options)
        self.ends = sample.ends(self.model)
        self.shares = self._shares()

    def represent(self, words: Iterable[str], *, language: str = "") -> Iterator[Represented]:
        """Give the last hidden state of each word alone; see ``models.hidden_states``."""
        begin = partial(self._begin, empty=True)
        encode = partial(hidden_states.alone, self.tokens, language=language, begin=begin)
        ask, longest = self._states, self.longest
        return hidden_states.represent(self.tokens, self.batches, words, encode, ask, longest)

    def _states(self, ids: torch.Tensor) -> torch.Tensor:
        """Return the last hidden states (texts, length, width)."""
        again = enough(self.fewest, *ids.shape).to(ids.device)
        found: torch.Tensor = self.gate.inner(input_ids=ids[again], use_cache=False)[0]
        return found[: len(ids)]

    def logprobs(self, pairs: Iterable[tuple[str, str]]) -> Iterator[Score]:
        """Score each continuation after its prefix, in the order given.

        The whole string is tokenised, and the log-probabilities of the tokens behind those of the
        prefix are summed. Texts that begin alike share the computation of their beginning. With
        an empty prefix the model's beginning-of-text token stands before the continuation, also
        where its tokenizer puts none before other texts (GPT-2's).

        Raises
        ------
        Problem
            If the prefix's tokens are not the first of the whole, a text is too long or empty,
            the model has no beginning-of-text token where one is needed, or an answer is not
            finite.
        """
        for block in blocks(pairs):
            yield from self._score([(self._given(prefix), rest) for prefix, rest in block])

    def _score(self, pairs: list[tuple[str, str]]) -> list[Score]:
        texts = [prefix + rest for prefix, rest in pairs]
        encoded = self.tokens.encode(texts, special=False)
        distinct = sorted({prefix for prefix, _ in pairs})
        heads = dict(zip(distinct, self.tokens.encode(distinct, special=False), strict=True))
        whole: list[list[int]] = []
        starts: list[int] = []
        for (prefix, rest), text, ids in zip(pairs, texts, encoded, strict=True):
            head = heads[prefix] if prefix else []
            begin = self._begin(empty=not head)
            starts.append(len(begin) + self.tokens.after(prefix, text, ids, head))
            whole.append([*begin, *ids])
            self.tokens.fits(text, whole[-1], self.longest)
            if len(whole[-1]) == starts[-1]:
                raise Problem(f"models.{self.name}: no token to score in {rest!r} after {prefix!r}")
        sums = np.zeros(len(pairs))

        def finish(_: list[int], done: tuple[list[int], torch.Tensor]) -> None:
            sums[done[0]] = done[1].cpu().numpy()

        read = [ids[:-1] for ids in whole]  # nothing is asked after the last token
        if self.shares:
            parts = prefix_tree.parts(read, batching.TOKENS)
            shapes, costs = [0] * len(parts), [batching.TOKENS] * len(parts)
        else:
            parts = [[row] for row in range(len(pairs))]
            shapes = costs = [len(ids) for ids in read]

        @torch.inference_mode()
        def launch(chosen: list[int]) -> tuple[list[int], torch.Tensor]:
            rows = [row for part in chosen for row in parts[part]]
            return rows, self._sums([whole[row] for row in rows], [starts[row] for row in rows])

        self.batches.run(shapes, costs, launch, finish)
        return [
            Score(
                text,
                round(float(value), DECIMALS) + 0.0,
                len(ids) - start,
                self.tokens.unknown(ids[start:]),
            )
            for text, value, ids, start in zip(texts, sums, whole, starts, strict=True)
        ]

    def _sums(self, texts: list[list[int]], starts: list[int]) -> torch.Tensor:
        """Return the sums (texts,) over the tokens of each from its start on.

        The texts are neighbours, or where nothing is shared equally long.
        """
        read = [ids[:-1] for ids in texts]
        asked = [(n, p) for n, ids in enumerate(texts) for p in range(starts[n], len(ids))]
        options: dict[str, Any] = {"use_cache": False}
        tree = None
        if self.shares:
            tree = prefix_tree.grow(read, self.batches.move)
            ids, options["position_ids"] = tree.tokens, tree.places
            where = [tree.paths[n][p - 1] for n, p in asked]
        else:
            ids = self.batches.move(read)
            where = [n * ids.shape[1] + p - 1 for n, p in asked]
            ids = ids[enough(self.fewest, *ids.shape)]
        places, which = torch.unique(self.batches.move(where), return_inverse=True)
        looked = places[enough(self.fewest, len(places)).to(places.device)]
        length = ids.shape[1]
        with prefix_tree.reading(tree), self.gate.at(looked // length, looked % length):
            logits = self.model(input_ids=ids, **options).logits.squeeze(1)
        scores = logsoftmax(self.name, logits[: len(places)], self.dtype)
        chosen = scores[which, self.batches.move([texts[n][p] for n, p in asked])].double()
        row = self.batches.move([n for n, _ in asked])
        return chosen.new_zeros(len(texts)).index_add_(0, row, chosen)

    def generate(
        self, prompts: Iterable[str], seeds: Iterable[int], sampling: Sampling = SAMPLING
    ) -> Iterator[Text]:
        """Continue each prompt, in the order given; see :mod:`plumbline.probes.models.sampling`.

        Raises
        ------
        Problem
            If a prompt leaves no room for the tokens asked for, or an answer is not finite.
        """
        for block in blocks(zip(prompts, seeds, strict=True)):
            texts = [self._given(prompt) for prompt, _ in block]
            encoded = self.tokens.encode(texts, special=False)
            begun = [[*self._begin(empty=not ids), *ids] for ids in encoded]
            for text, ids in zip(texts, begun, strict=True):
                self.tokens.room(text, len(ids), sampling.tokens, self.longest)
            yield from sample.write(self, texts, begun, [seed for _, seed in block], sampling)

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
        out = self.gate.inner(input_ids=self.batches.move([[0]]), use_cache=True)
        layers = getattr(getattr(out, "past_key_values", None), "layers", [])
        whole = [type(layer) is DynamicLayer and layer.is_initialized for layer in layers]
        if not (whole and all(whole)):
            return False
        size, length = self.model.config.vocab_size, min(TRIAL, self.longest)
        draw = torch.Generator().manual_seed(0)
        ids = torch.randint(size // 2, size, (1, length), generator=draw).repeat(3, 1)
        ids[1:, length // 2 :] = torch.randint(size, (2, length - length // 2), generator=draw)
        texts = sorted([ids[0].tolist(), ids[1].tolist(), ids[2, : -length // 4].tolist()])
        plain = [self.model(input_ids=self.batches.move([text])).logits[0] for text in texts]
        if not prefix_tree.prepare(self.model):
            return False
        tree = prefix_tree.grow(texts, self.batches.move)
        try:
            with prefix_tree.reading(tree):
                logits = self.model(
                    input_ids=tree.tokens, position_ids=tree.places, use_cache=False
                ).logits[0]
        except (RuntimeError, TypeError, ValueError):
            prefix_tree.release(self.model)
            return False
        apart = torch.stack(
            [
                (logits[path] - true).abs().max()
                for path, true in zip(tree.paths, plain, strict=True)
            ]
        ).max()
        fine = bool(apart < CLOSE.get(self.model.dtype, CLOSE_ELSE) * plain[0].std(0).mean())
        if not fine:
            prefix_tree.release(self.model)
        return fine
