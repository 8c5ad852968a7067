"""Encoder-decoders (T5, BART): continuations scored and written by the decoder, and T5's gaps."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from transformers import AutoModelForSeq2SeqLM

from plumbline.builders.core.errors import Problem
from plumbline.probes.models import batching
from plumbline.probes.models import sampling as sample
from plumbline.probes.models.batching import Batches
from plumbline.probes.models.forward import alike, enough, logsoftmax, pretrained
from plumbline.probes.models.scorer import (
    DECIMALS,
    MASK,
    SAMPLING,
    Filled,
    Sampling,
    Score,
    Text,
    Vocabulary,
)
from plumbline.probes.models.tokenizer import Tokens, longest

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

GAP = "<extra_id_0>"  # T5's first sentinel: what stands for a gap in the input and opens its text


class Seq2Seq:
    """An encoder-decoder, and its tokenizer."""

    continues = False

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
        self.model: Any = pretrained(where, name, dtype, AutoModelForSeq2SeqLM, pickles=pickles)
        self.architecture = type(self.model).__name__
        self.longest = longest(self.tokens.tokenizer, self.model)
        self.fewest = alike(self.model)
        self.batches = Batches(name, self.model.device)
        self.name, self.revision, self.dtype = name, revision, dtype
        self.context = f"{context} " if context else ""
        self.opening = self._opening()
        self.gap = self.tokens.tokenizer.get_vocab().get(GAP)
        self.ends = sample.ends(self.model)

    def facts(self) -> dict[str, str | int]:
        """Return model, revision, architecture, size of the vocabulary, mask token, dtype."""
        return {
            "model": self.name,
            "revision": self.revision,
            "architecture": self.architecture,
            "vocabulary": len(self.tokens),
            "mask_token": GAP if self.gap is not None else "",
            "dtype": self.dtype,
        }

    def vocabulary(self, words: Sequence[str], language: str = "") -> Vocabulary:
        """Tell which words are one word-initial piece; see ``models.tokenizer``."""
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
        """Rank candidate words in the one gap of each prompt, in the order of the prompts.

        The mask becomes the first sentinel; the decoder, having written that sentinel, is asked
        for the word (Raffel et al. 2020, section 3.1.4). Words of several pieces are scored from
        left to right; neither says whether the gap holds more than the word.

        Raises
        ------
        Problem
            If the model has no sentinels, a prompt is too long or has not exactly one mask, or
            an answer is not finite.
        """
        if self.gap is None:
            raise Problem(
                f"models.{self.name}: has no {GAP}, so it cannot fill a mask as T5 does; a model "
                "with a mask of its own is kind: masked"
            )
        known = self.tokens.candidates(words, language)
        if not multi:
            known = {word: tail for word, tail in known.items() if len(tail) == 1}
        source = iter(prompts)
        while block := list(islice(source, batching.BLOCK)):
            yield self._block(block, known, min(top_k, len(known)), language)

    def _block(
        self, prompts: list[str], known: dict[str, tuple[int, ...]], top_k: int, language: str
    ) -> Filled:
        written = [self.context + prompt.replace(MASK, GAP) for prompt in prompts]
        encoded = self.tokens.encode(written, language)
        for text, ids in zip(written, encoded, strict=True):
            if ids.count(self.gap) != 1:
                raise Problem(f"models.{self.name}: not exactly one mask in {text!r}")
            self.tokens.fits(text, ids, self.longest)
        tails = list(known.values())
        if all(len(tail) == 1 for tail in tails):
            found = self._first(encoded, [tail[0] for tail in tails])
        else:
            rows = [(i, [self.gap], list(tail)) for i in range(len(prompts)) for tail in tails]
            found = self._sums(encoded, rows).reshape(len(prompts), len(tails))
        scores = np.round(found, DECIMALS)
        order = np.argsort(-scores, axis=1, kind="stable")[:, :top_k]
        return Filled(
            written,
            tuple(known),
            np.array([len(tail) for tail in tails], np.int32),
            order.astype(np.int32),
            np.take_along_axis(scores, order, 1),
            np.array([len(ids) for ids in encoded], np.int32),
            np.array([self.tokens.unknown(ids) for ids in encoded], np.int32),
        )

    def _first(self, encoded: list[list[int]], pieces: list[int]) -> np.ndarray:
        """Return log-probabilities (prompts, pieces) of the token after the sentinel."""
        found = np.zeros((len(encoded), len(pieces)))
        index = self.batches.move(pieces)

        def launch(rows: list[int]) -> torch.Tensor:
            again = enough(self.fewest, len(rows), len(self.opening) + 1)
            ids = self.batches.move([encoded[i] for i in rows])[again]
            given = self.batches.move([[*self.opening, int(self.gap or 0)]] * len(ids))
            logits = self.model(input_ids=ids, decoder_input_ids=given).logits[: len(rows), -1]
            return logsoftmax(self.name, logits, self.dtype)[:, index].double()

        def finish(rows: list[int], done: torch.Tensor) -> None:
            found[rows] = done.cpu().numpy()

        lengths = [len(ids) for ids in encoded]
        self.batches.run(lengths, lengths, torch.inference_mode()(launch), finish)
        return found

    def logprobs(self, pairs: Iterable[tuple[str, str]], *, language: str = "") -> Iterator[Score]:
        """Score each continuation by the decoder, the prefix being the encoder's input.

        A mask in the prefix becomes T5's first sentinel. The closing token is not counted, nor
        is the opening one that a model's config forces (BART's and mBART's).

        Raises
        ------
        Problem
            If a text is too long or empty, an answer is not finite, or the model must be told
            the language and is not.
        """
        self._told(language)
        source = iter(pairs)
        while block := list(islice(source, batching.BLOCK)):
            prefixes = [self.context + prefix.replace(MASK, GAP) for prefix, _ in block]
            encoded = self.tokens.encode(prefixes, language)
            rests = self.tokens.encode([rest for _, rest in block], language, special=False)
            for (_, rest), prefix, ids, tail in zip(block, prefixes, encoded, rests, strict=True):
                self.tokens.fits(prefix, ids, self.longest)
                self.tokens.fits(rest, [*self.opening[1:], *tail], self.longest)
                if not tail:
                    raise Problem(
                        f"models.{self.name}: no token to score in {rest!r} after {prefix!r}"
                    )
            sums = self._sums(encoded, [(i, [], tail) for i, tail in enumerate(rests)])
            for prefix, (_, rest), value, tail in zip(prefixes, block, sums, rests, strict=True):
                total = round(float(value), DECIMALS) + 0.0
                yield Score(f"{prefix}\t{rest}", total, len(tail), self.tokens.unknown(tail))

    def _sums(
        self, encoded: list[list[int]], rows: list[tuple[int, list[int], list[int]]]
    ) -> np.ndarray:
        """Return the log-probability (rows,) of tokens.

        Parameters
        ----------
        rows
            Of each: the number of its input, what the decoder has written, what is scored.
        """
        found = np.zeros(len(rows))

        def launch(chosen: list[int]) -> torch.Tensor:
            ids = self.batches.move([encoded[rows[r][0]] for r in chosen])
            after = [[*self.opening, *rows[r][1], *rows[r][2]] for r in chosen]
            given = self.batches.move(after)
            again = enough(self.fewest, len(chosen), min(ids.shape[1], given.shape[1] - 1))
            out = self.model(input_ids=ids[again], decoder_input_ids=given[again, :-1])
            scores = logsoftmax(self.name, out.logits[: len(chosen)], self.dtype)
            each = scores.gather(2, given[:, 1:].unsqueeze(2)).squeeze(2).double()
            return each[:, len(self.opening) - 1 + len(rows[chosen[0]][1]) :].sum(1)

        def finish(chosen: list[int], done: torch.Tensor) -> None:
            found[chosen] = done.cpu().numpy()

        shapes = [(len(encoded[i]), len(before), len(tail)) for i, before, tail in rows]
        self.batches.run(
            shapes, [sum(shape) for shape in shapes], torch.inference_mode()(launch), finish
        )
        return found

    def generate(
        self,
        prompts: Iterable[str],
        seeds: Iterable[int],
        sampling: Sampling = SAMPLING,
        *,
        language: str = "",
    ) -> Iterator[Text]:
        """Answer each prompt, in the order given; see :mod:`plumbline.probes.models.sampling`.

        Of what a model's config says on writing, the opening token that it forces is put first,
        and not counted. All else (beams, penalties, forbidden or closing tokens) is left out:
        texts are drawn from the model's own probabilities.

        Raises
        ------
        Problem
            If a prompt or the text is too long for the model, an answer is not finite, or the
            model must be told the language and is not.
        """
        self._told(language)
        source = iter(zip(prompts, seeds, strict=True))
        while block := list(islice(source, batching.BLOCK)):
            texts = [self.context + prompt.replace(MASK, GAP) for prompt, _ in block]
            encoded = self.tokens.encode(texts, language)
            for text, ids in zip(texts, encoded, strict=True):
                self.tokens.fits(text, ids, self.longest)
                self.tokens.room(text, len(self.opening) - 1, sampling.tokens, self.longest)
            yield from sample.write(self, texts, encoded, [seed for _, seed in block], sampling)

    def begin(self, ids: torch.Tensor) -> tuple[torch.Tensor, dict[str, Any]]:
        """Return logits (texts, vocabulary) for the first new token, and what to go on with."""
        state = {"encoder_outputs": self.model.get_encoder()(input_ids=ids)}
        start = self.batches.move([self.opening] * len(ids))
        out = self.model(decoder_input_ids=start, use_cache=True, **state)
        return out.logits[:, -1], {**state, "past_key_values": out.past_key_values}

    def step(self, last: torch.Tensor, state: dict[str, Any]) -> torch.Tensor:
        """Return logits (texts, vocabulary) after the tokens ``last`` (texts,)."""
        out = self.model(decoder_input_ids=last.unsqueeze(1), use_cache=True, **state)
        logits: torch.Tensor = out.logits[:, -1]
        return logits

    def keep(self, rows: torch.Tensor, state: dict[str, Any]) -> None:
        """Go on with some of the texts only."""
        state["past_key_values"].batch_select_indices(rows)
        read = state["encoder_outputs"]
        read["last_hidden_state"] = read.last_hidden_state[rows]

    def _told(self, language: str) -> None:
        """Refuse to guess a language: the last one asked would go on in silence."""
        if not language and hasattr(self.tokens.tokenizer, "src_lang"):
            raise Problem(f"models.{self.name}: must be told the language of its texts")

    def _opening(self) -> list[int]:
        """Return what the decoder begins with: its start, and what the config forces after it."""
        config, writing = self.model.config, self.model.generation_config
        start = getattr(config, "decoder_start_token_id", None)
        if start is None:
            start = writing.decoder_start_token_id
        if start is None:
            raise Problem(
                f"models.{self.name}: its config has no decoder_start_token_id, so nobody knows "
                "how its decoder begins; add it to config.json"
            )
        forced = writing.forced_bos_token_id
        return [int(start)] if forced is None else [int(start), int(forced)]
