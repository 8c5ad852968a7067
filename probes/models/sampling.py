"""Generation token by token, with separate random numbers for each text.

The numbers, one per token, are derived from the seed and the prompt and used for inverse transform
sampling, so a text does not depend on the batch or the order of prompts.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from plumbline.probes.models.batching import blocks
from plumbline.probes.models.forward import Adapter
from plumbline.probes.models.scorer import SAMPLING, Sampling, Text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path


class Writer(Adapter):
    """A model that generates token by token."""

    continues: bool  # True if the output continues the prompt
    # maps prompts, a number of new tokens and a language to model inputs, as text and tokens
    opened: Callable[[list[str], int, str], tuple[list[str], list[list[int]]]]
    # maps tokens of shape (texts, length) to next-token logits (texts, vocabulary) and the state
    begin: Callable[[torch.Tensor], tuple[torch.Tensor, dict[str, Any]]]
    # maps last tokens of shape (texts,) and the state to next-token logits (texts, vocabulary)
    step: Callable[[torch.Tensor, dict[str, Any]], torch.Tensor]
    keep: Callable[[torch.Tensor, dict[str, Any]], None]  # retains only the selected texts

    def __init__(self, where: Path, name: str, revision: str, **options: Any) -> None:
        super().__init__(where, name, revision, **options)
        ends = getattr(self.model.generation_config, "eos_token_id", None)
        if ends is None:
            ends = getattr(self.model.config, "eos_token_id", None)
        self.ends = set(ends) if isinstance(ends, list) else {ends}  # the tokens that end a text

    def generate(
        self,
        prompts: Iterable[str],
        seeds: Iterable[int],
        sampling: Sampling = SAMPLING,
        *,
        language: str = "",
    ) -> Iterator[Text]:
        """Continue or answer each prompt, in order, using the model's unmodified probabilities.

        The opening token that a config forces on a decoder is included, but not counted; other
        generation settings (beams, penalties, forbidden or closing tokens) are ignored. Raises
        UserError if a prompt leaves no room for the requested tokens, an output is not finite, or
        the language is missing.
        """
        for block in blocks(zip(prompts, seeds, strict=True)):
            texts, encoded = self.opened([prompt for prompt, _ in block], sampling.tokens, language)
            yield from self._texts(texts, encoded, [seed for _, seed in block], sampling)

    def _texts(
        self, prompts: list[str], encoded: list[list[int]], seeds: list[int], sampling: Sampling
    ) -> Iterator[Text]:
        def launch(rows: list[int]) -> list[list[int]]:
            ids = self.batches.move([encoded[i] for i in rows])
            luck = [_luck(prompts[i], seeds[i], sampling.tokens) for i in rows]
            return self._write(ids, np.array(luck), sampling)

        lengths = [len(ids) for ids in encoded]
        costs = [length + sampling.tokens for length in lengths]
        written: list[list[int]] = self.batches.each(lengths, costs, launch)
        for prompt, ids, seed, new in zip(prompts, encoded, seeds, written, strict=True):
            finished = bool(new) and new[-1] in self.ends
            begun = ids if self.continues else []
            before, joined, alone = self.tokens.tokenizer.batch_decode(
                [begun, [*begun, *new], new], skip_special_tokens=True
            )
            # spaces between the prompt and the new text belong to the new text
            text = joined[len(before) :] if joined.startswith(before) else alone
            yield Text(prompt, seed, text, len(new), finished)

    def _write(self, ids: torch.Tensor, luck: np.ndarray, sampling: Sampling) -> list[list[int]]:
        """Generate texts for prompts of equal length; finished texts are removed from the batch."""
        texts: list[list[int]] = [[] for _ in ids]
        alive = list(range(len(ids)))
        logits, state = self.begin(self.enough(ids))
        for number in range(sampling.tokens):
            scores = self.nats(logits[: len(alive)])
            chances = torch.from_numpy(luck[alive, number]).to(scores.device)
            chosen = draw(scores, chances, sampling)
            for row, token in zip(alive, chosen.tolist(), strict=True):
                texts[row].append(token)
            on = [n for n, row in enumerate(alive) if texts[row][-1] not in self.ends]
            if not on or number == sampling.tokens - 1:
                break
            if len(on) < len(alive):
                rows = self.batches.move(on)
                self.keep(self.enough(rows), state)
                chosen, alive = chosen[rows], [alive[n] for n in on]
            logits = self.step(self.enough(chosen), state)
        return texts


def draw(logits: torch.Tensor, luck: torch.Tensor, sampling: Sampling) -> torch.Tensor:
    """Choose a token for each row, given log-probabilities of shape (rows, vocabulary).

    ``luck``: random numbers of shape (rows,), uniform in [0, 1).
    """
    if sampling.temperature == 0:
        return logits.argmax(dim=1)
    chances = torch.softmax(logits.double() / sampling.temperature, dim=1)
    best = torch.sort(-chances, dim=1, stable=True)
    ordered = -best.values
    if sampling.top_k:
        ordered[:, sampling.top_k :] = 0
    before = ordered.cumsum(1) - ordered
    cut = before >= sampling.top_p * ordered.sum(1, keepdim=True)
    cut[:, 0] = False  # the most probable token is always retained
    up_to = torch.where(cut, 0, ordered).cumsum(1)
    target = (luck * up_to[:, -1]).unsqueeze(1)
    index = torch.searchsorted(up_to, target, right=True).clamp(max=logits.shape[1] - 1)
    return best.indices.gather(1, index).squeeze(1)


def _luck(prompt: str, seed: int, tokens: int) -> np.ndarray:
    """Return uniform random numbers for one prompt, of shape (tokens,)."""
    digest = hashlib.sha256(prompt.encode()).digest()[:8]
    return np.random.default_rng([seed, int.from_bytes(digest, "little")]).random(tokens)
