"""Causal language models (GPT-2, Llama and their kin): continuations scored, texts written.

Words at the end of a prompt are ranked in :mod:`probes.models.nextword`.
"""

from __future__ import annotations

from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from transformers import AutoModelForCausalLM, DynamicCache
from transformers.cache_utils import DynamicLayer

from builders.lib.problem import Problem
from probes.models import batches, nextword, prefixes, sample, states
from probes.models.batches import Batches
from probes.models.body import enough, logsoftmax, packs, pretrained
from probes.models.gate import gated
from probes.models.scorer import (
    DECIMALS,
    SAMPLING,
    Filled,
    Represented,
    Sampling,
    Score,
    Text,
    Vocabulary,
)
from probes.models.tokens import Tokens, longest

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from probes.models.prefixes import Cluster

STEP = 4  # tokens


class Causal:
    """A model that reads and writes from left to right, and its tokenizer."""

    continues = True

    def __init__(
        self,
        where: Path,
        name: str,
        revision: str,
        *,
        dtype: str,
        context: str = "",
        pickles: bool = False,
    ) -> None:
        self.tokens = Tokens(where, name)
        self.model: Any = pretrained(where, name, dtype, AutoModelForCausalLM, pickles=pickles)
        self.architecture = type(self.model).__name__
        self.longest = longest(self.tokens.tokenizer, self.model)
        self.packed = packs(self.model)
        self.gate = gated(self.model, _body(self.model))
        self.batches = Batches(name, self.model.device)
        self.name, self.revision, self.dtype = name, revision, dtype
        self.context = context
        self.opening = self.tokens.opening()
        self.ends = sample.ends(self.model)
        self.shares = self._shares()

    def facts(self) -> dict[str, str | int]:
        """Return model, revision, architecture, size of the vocabulary, mask token, dtype."""
        return {
            "model": self.name,
            "revision": self.revision,
            "architecture": self.architecture,
            "vocabulary": len(self.tokens),
            "mask_token": "",
            "dtype": self.dtype,
        }

    def vocabulary(self, words: Sequence[str], language: str = "") -> Vocabulary:
        """Tell which words are one word-initial piece; see :mod:`probes.models.tokens`."""
        return self.tokens.vocabulary(words, language)

    def fill(
        self,
        prompts: Iterable[str],
        words: Sequence[str],
        top_k: int,
        *,
        multi: bool = False,
        language: str = "",
    ) -> Iterator[Filled]:
        """Rank candidate words at the mask that ends each prompt; see :mod:`.nextword`."""
        return nextword.fill(self, prompts, words, top_k, multi=multi, language=language)

    def represent(self, words: Iterable[str], *, language: str = "") -> Iterator[Represented]:
        """Give the last hidden state of each word alone; see :mod:`probes.models.states`."""
        begin = partial(self._begin, empty=True)
        encode = partial(states.alone, self.tokens, language=language, begin=begin)
        ask, longest = self._states, self.longest
        return states.represent(self.tokens, self.batches, words, encode, ask, longest)

    def _states(self, ids: torch.Tensor) -> torch.Tensor:
        """Return the last hidden states (texts, length, width)."""
        again = enough(*ids.shape).to(ids.device)
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
        source = iter(pairs)
        while block := list(islice(source, batches.BLOCK)):
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
        limits = [start - 1 if self.shares else 0 for start in starts]
        # prefixes of few different lengths, so that suffixes of equal lengths meet in batches
        clusters = [
            c._replace(shared=c.shared // STEP * STEP) for c in prefixes.clusters(whole, limits)
        ]
        sums = np.zeros(len(pairs))

        def launch(chosen: list[int]) -> list[tuple[list[int], torch.Tensor]]:
            return list(self._clusters([clusters[c] for c in chosen], whole, starts))

        def finish(_: list[int], done: list[tuple[list[int], torch.Tensor]]) -> None:
            for rows, values in done:
                sums[rows] = values.cpu().numpy()

        shapes = [(c.shared, len(whole[c.rows[0]]) if not c.shared else 0) for c in clusters]
        costs = [c.shared + sum(len(whole[r]) - c.shared for r in c.rows) for c in clusters]
        # clusters are taken together in fours, since each batch of theirs is one of several lengths
        costs = [cost // 4 if c.shared else cost for c, cost in zip(clusters, costs, strict=True)]
        self.batches.run(shapes, costs, torch.inference_mode()(launch), finish)
        return [
            Score(
                text,
                round(float(value), DECIMALS) + 0.0,
                len(ids) - start,
                self.tokens.unknown(ids[start:]),
            )
            for text, value, ids, start in zip(texts, sums, whole, starts, strict=True)
        ]

    def _clusters(
        self, chosen: list[Cluster], whole: list[list[int]], starts: list[int]
    ) -> Iterator[tuple[list[int], torch.Tensor]]:
        """Yield rows and their sums for clusters that share equally long prefixes."""
        shared = chosen[0].shared
        layers: list[tuple[torch.Tensor, torch.Tensor]] = []
        if shared:
            first = self.batches.move([whole[c.rows[0]][:shared] for c in chosen])
            again = enough(len(chosen), shared)
            cache = self.gate.inner(input_ids=first[again], use_cache=True).past_key_values
            layers = [(layer.keys, layer.values) for layer in cache.layers]
        by_length: dict[int, list[tuple[int, int]]] = {}
        for place, cluster in enumerate(chosen):
            for row in cluster.rows:
                by_length.setdefault(len(whole[row]), []).append((row, place))
        for members in by_length.values():
            fit = max(1, self.batches.tokens // (len(whole[members[0][0]]) - shared))
            for begin in range(0, len(members), fit):
                part = members[begin : begin + fit]
                rows = [row for row, _ in part]
                yield (
                    rows,
                    self._suffixes(rows, [p for _, p in part], shared, layers, whole, starts),
                )

    def _suffixes(
        self,
        rows: list[int],
        places: list[int],
        shared: int,
        layers: list[tuple[torch.Tensor, torch.Tensor]],
        whole: list[list[int]],
        starts: list[int],
    ) -> torch.Tensor:
        """Return the sums (rows,) of equally long texts whose first tokens are in the cache."""
        ids = self.batches.move([whole[r][shared:] for r in rows])
        again = enough(*ids.shape)
        options: dict[str, Any] = {"use_cache": False}
        if layers:
            index = self.batches.move(places)[again]
            cache = DynamicCache()
            for number, (keys, values) in enumerate(layers):
                cache.update(keys[index], values[index], number)
            options = {"past_key_values": cache, "use_cache": True}
        where = [
            (n, p - shared) for n, r in enumerate(rows) for p in range(starts[r], len(whole[r]))
        ]
        row, place = self.batches.move(where).t()
        looked = enough(len(where))
        with self.gate.at(row[looked], place[looked] - 1):
            logits = self.model(input_ids=ids[again], **options).logits.squeeze(1)
        scores = logsoftmax(self.name, logits[: len(where)], self.dtype)
        chosen = scores.gather(1, ids[row, place].unsqueeze(1)).squeeze(1).double()
        return torch.zeros(len(rows), dtype=torch.float64, device=ids.device).index_add_(
            0, row, chosen
        )

    def generate(
        self, prompts: Iterable[str], seeds: Iterable[int], sampling: Sampling = SAMPLING
    ) -> Iterator[Text]:
        """Continue each prompt, in the order given; see :mod:`probes.models.sample`.

        Raises
        ------
        Problem
            If a prompt leaves no room for the tokens asked for, or an answer is not finite.
        """
        source = iter(zip(prompts, seeds, strict=True))
        while block := list(islice(source, batches.BLOCK)):
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

    def _given(self, prefix: str) -> str:
        """Return a prefix behind the context, with a space between them as for other kinds."""
        return " ".join(part for part in (self.context, prefix) if part)

    def _shares(self) -> bool:
        """Tell whether texts may share their beginning: whether every layer keeps all its states.

        Sliding windows keep the last ones only, and recurrent layers none of single tokens.
        """
        with torch.inference_mode():
            out = self.gate.inner(input_ids=self.batches.move([[0]]), use_cache=True)
        layers = getattr(getattr(out, "past_key_values", None), "layers", [])
        whole = [type(layer) is DynamicLayer and layer.is_initialized for layer in layers]
        return bool(whole) and all(whole)

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


def _body(model: Any) -> str:
    """Return the path of that part of a model whose last states its head reads."""
    path = str(model.base_model_prefix)
    if not hasattr(model, path):
        path = "model"  # Llama 4's prefix is another model's
    # OPT's and BART's head ask the decoder within
    return f"{path}.decoder" if hasattr(model.get_submodule(path), "decoder") else path
