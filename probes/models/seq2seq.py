"""Encoder-decoder models (T5, BART): scores of continuations, and masks filled as T5 does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from transformers import AutoModelForSeq2SeqLM

from plumbline.builders.core.errors import UserError
from plumbline.probes.models.batching import blocks
from plumbline.probes.models.forward import Candidates, Filler, Prompts
from plumbline.probes.models.sampling import Writer
from plumbline.probes.models.scorer import MASK, Score
from plumbline.probes.models.tokenizer import GAP

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    import torch
    from numpy.typing import NDArray


class Seq2Seq(Filler, Writer):
    """An encoder-decoder and its tokenizer."""

    auto = AutoModelForSeq2SeqLM
    continues = False

    def __init__(self, where: Path, name: str, revision: str, **options: Any) -> None:
        super().__init__(where, name, revision, **options)
        self.opening = self._opening()
        self.gap = self.tokens.tokenizer.get_vocab().get(GAP)
        self.mask_token = GAP if self.gap is not None else ""

    def prepare(
        self, prompts: list[str], language: str, candidates: Candidates | None = None
    ) -> Prompts:
        """Prepare the prediction of words in the single gap of each prompt.

        The mask is replaced by the first sentinel, and the decoder predicts the word after that
        sentinel (Raffel et al. 2020, section 3.1.4). Words of several tokens are scored from left
        to right. The predicted text may continue after the word. Raises UserError if the model has
        no sentinels, or if a prompt is too long or does not have exactly one mask.
        """
        gap = self.gap
        if gap is None:
            raise UserError(
                f"models.{self.name}: has no {GAP}, so it cannot fill a mask as T5 does; for a "
                "model with a mask token, set kind: masked"
            )
        written, encoded = self._inputs(prompts, language)
        for text, ids in zip(written, encoded, strict=True):
            if ids.count(gap) != 1:
                raise UserError(f"models.{self.name}: not exactly one mask in {text!r}")

        def score(rows: list[int]) -> torch.Tensor:
            ids = self.enough(self.batches.move([encoded[i] for i in rows]), len(self.opening) + 1)
            start = self.batches.move([[*self.opening, gap]] * len(ids))
            out = self.model(input_ids=ids, decoder_input_ids=start)
            return self.nats(out.logits[: len(rows), -1])

        tails = [list(tail) for tail in (candidates or {}).values() if len(tail) > 1]

        def sums() -> NDArray[np.float64]:
            rows = [(i, [gap], tail) for i in range(len(prompts)) for tail in tails]
            return self._sums(encoded, rows)[:, 0].reshape(len(prompts), -1)

        return Prompts(written, encoded, score, sums)

    def logprobs(self, pairs: Iterable[tuple[str, str]], *, language: str = "") -> Iterator[Score]:
        """Score each continuation with the decoder; the encoder reads the prefix.

        A mask in the prefix is replaced by T5's first sentinel. The closing token, and an opening
        token that the config forces (BART, mBART), are not counted. Raises UserError if a text is
        too long or empty, a result is not finite, or the language is missing.
        """
        for block in blocks(pairs):
            prefixes, encoded = self._inputs([prefix for prefix, _ in block], language)
            continuations = [continuation for _, continuation in block]
            tails = self.tokens.encode(continuations, language, special=False)
            for text, prefix, tail in zip(continuations, prefixes, tails, strict=True):
                self.tokens.fits(text, len(self.opening) - 1 + len(tail), self.longest)
                if not tail:
                    raise UserError(
                        f"models.{self.name}: no token to score in {text!r} after {prefix!r}"
                    )
            sums = self._sums(encoded, [(i, [], tail) for i, tail in enumerate(tails)])
            texts = map("\t".join, zip(prefixes, continuations, strict=True))
            yield from self.scores(texts, sums[:, 0], tails, sums[:, 1])

    def _sums(
        self, encoded: list[list[int]], rows: list[tuple[int, list[int], list[int]]]
    ) -> NDArray[np.float64]:
        """Return sums of :meth:`chosen` over the scored tokens, of shape (rows, 2).

        A row consists of the index of its input, the tokens before the scored ones, and the scored
        tokens.
        """

        def launch(chosen: list[int]) -> torch.Tensor:
            inputs, written, scored = zip(*(rows[r] for r in chosen), strict=True)
            ids = self.batches.move([encoded[i] for i in inputs])
            pairs = zip(written, scored, strict=True)
            targets = self.batches.move([[*self.opening, *before, *tail] for before, tail in pairs])
            length = min(ids.shape[1], targets.shape[1] - 1)
            read, after = self.enough(ids, length), self.enough(targets[:, :-1], length)
            logits = self.model(input_ids=read, decoder_input_ids=after).logits[: len(chosen)]
            values = self.chosen(logits, targets[:, 1:])
            return values[:, len(self.opening) - 1 + len(written[0]) :].sum(1)

        shapes = [(len(encoded[i]), len(before), len(tail)) for i, before, tail in rows]
        return np.array(self.batches.each(shapes, list(map(sum, shapes)), launch))

    def opened(
        self, prompts: list[str], room: int, language: str
    ) -> tuple[list[str], list[list[int]]]:
        """Return the encoder's input for each prompt, checking that ``room`` new tokens fit."""
        texts, encoded = self._inputs(prompts, language)
        for text in texts:
            self.tokens.fits(text, len(self.opening) - 1 + room, self.longest)
        return texts, encoded

    def begin(self, ids: torch.Tensor) -> tuple[torch.Tensor, dict[str, Any]]:
        """Return logits of shape (texts, vocabulary) for the first new token, and the state."""
        state = {"encoder_outputs": self.model.get_encoder()(input_ids=ids)}
        start = self.batches.move([self.opening] * len(ids))
        out = self.model(decoder_input_ids=start, use_cache=True, **state)
        return out.logits[:, -1], {**state, "past_key_values": out.past_key_values}

    def step(self, last: torch.Tensor, state: dict[str, Any]) -> torch.Tensor:
        """Return next-token logits of shape (texts, vocabulary) for ``last``, of shape (texts,)."""
        out = self.model(decoder_input_ids=last.unsqueeze(1), use_cache=True, **state)
        logits: torch.Tensor = out.logits[:, -1]
        return logits

    def keep(self, rows: torch.Tensor, state: dict[str, Any]) -> None:
        """Retain only the selected texts in the state."""
        state["past_key_values"].batch_select_indices(rows)
        read = state["encoder_outputs"]
        read["last_hidden_state"] = read.last_hidden_state[rows]

    def _inputs(self, prompts: list[str], language: str) -> tuple[list[str], list[list[int]]]:
        """Return the encoder's input for each prompt, as text and tokens."""
        self.tokens.require_language(language)
        texts = [self.context + prompt.replace(MASK, GAP) for prompt in prompts]
        return texts, self.encode(texts, language)

    def _opening(self) -> list[int]:
        """Return the decoder's first tokens: its start token, and any that the config forces."""
        config, writing = self.model.config, self.model.generation_config
        start = getattr(config, "decoder_start_token_id", None)
        if start is None:
            start = writing.decoder_start_token_id
        if start is None:
            raise UserError(
                f"models.{self.name}: its config has no decoder_start_token_id, so it is unknown "
                "how its decoder begins; add it to config.json"
            )
        forced = writing.forced_bos_token_id
        return [int(start)] if forced is None else [int(start), int(forced)]
