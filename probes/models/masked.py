"""Models with a mask: encoders (BERT and its kin), XLNet, and BART's decoder at the mask.

``fill`` and ``predict`` read log-probabilities at the mask; ``pseudo_logprobs`` scores sentences;
``represent`` gives out the states of words. Every answer is that of a plain forward pass of the
model's own class; what is left out is the head where nobody looks, padding, and attention masks
that mask nothing.
"""

from __future__ import annotations

from functools import partial
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np
import torch

from plumbline.builders.core.errors import Problem
from plumbline.probes.models import batching, hidden_states, multi_token, predictions
from plumbline.probes.models.batching import Batches
from plumbline.probes.models.forward import Body, logsoftmax
from plumbline.probes.models.scorer import (
    DECIMALS,
    MASK,
    METHODS,
    Filled,
    Method,
    Pieces,
    Predicted,
    Represented,
    Score,
    Vocabulary,
)
from plumbline.probes.models.tokenizer import Tokens

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

# one mask, read by the decoder at its place: of its own text it sees only what stands before
DECODERS = ("bart", "mbart", "mvp")


class Masked:
    """A model with a mask, and its tokenizer."""

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
        if self.tokens.mask_id is None:
            raise Problem(
                f"models.{name}: has no mask token, so it is not a masked model; check its kind"
            )
        self.body = Body(where, name, dtype, self.tokens.tokenizer, pickles=pickles)
        self.batches = Batches(name, self.body.where)
        self.name, self.revision, self.dtype = name, revision, dtype
        self.context = f"{context} " if context else ""

    def facts(self) -> dict[str, str | int]:
        """Return model, revision, architecture, size of the vocabulary, mask token, dtype."""
        return {
            "model": self.name,
            "revision": self.revision,
            "architecture": self.body.architecture,
            "vocabulary": len(self.tokens),
            "mask_token": str(self.tokens.tokenizer.mask_token),
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
        together: bool = False,
        language: str = "",
    ) -> Iterator[Filled]:
        """Rank candidate words at the one mask of each prompt, in the order of the prompts.

        Parameters
        ----------
        multi
            Also rank words of several pieces: as many masks as pieces, each piece scored with
            the ones before it in place and the ones behind it masked, and the sum taken
            (within-word left-to-right). Such sums are marked by ``pieces`` above 1.
        together
            With ``multi``: score each piece with all pieces of the word masked instead.

        Raises
        ------
        Problem
            If a prompt is too long for the model, or has not exactly one mask, or the model
            answers with numbers that are not finite.
        """
        known = self.tokens.candidates(words, language)
        if not multi:
            known = {word: tail for word, tail in known.items() if len(tail) == 1}
        source = iter(prompts)
        while block := list(islice(source, batching.BLOCK)):
            written = self.tokens.masked([self.context + prompt for prompt in block])
            yield self._block(written, known, min(top_k, len(known)), language, together)

    def _block(
        self,
        prompts: list[str],
        known: dict[str, tuple[int, ...]],
        top_k: int,
        language: str,
        together: bool,
    ) -> Filled:
        """Rank the candidates for one block of prompts."""
        encoded = self.tokens.encode(prompts, language)
        mask = int(self.tokens.mask_id or 0)
        for prompt, ids in zip(prompts, encoded, strict=True):
            self.tokens.fits(prompt, ids, self.body.longest)
            if ids.count(mask) != 1:
                raise Problem(f"models.{self.name}: not exactly one mask in {prompt!r}")
        places = [ids.index(mask) for ids in encoded]
        tails = list(known.values())
        single = [i for i, tail in enumerate(tails) if len(tail) == 1]
        several = [i for i, tail in enumerate(tails) if len(tail) > 1]
        first = self.batches.move([tails[i][0] for i in single])
        read = multi_token.together if together else multi_token.sums
        sums = (
            read(self, encoded, places, [tails[i] for i in several], language) if several else None
        )
        best = np.zeros((len(prompts), top_k), np.int32)
        values = np.zeros((len(prompts), top_k))

        def launch(rows: list[int]) -> tuple[torch.Tensor, torch.Tensor]:
            ids = self.batches.move([encoded[i] for i in rows])
            logits = self.body.at(ids, self.batches.move([places[i] for i in rows]), language)
            scores = logsoftmax(self.name, logits, self.dtype)[:, first].double()
            if sums is not None:
                every = scores.new_empty(len(rows), len(tails))
                every[:, single] = scores
                every[:, several] = torch.from_numpy(sums[rows]).to(every)
                scores = every
            scores = torch.round(scores, decimals=DECIMALS)
            order = torch.sort(-scores, dim=1, stable=True).indices[:, :top_k]
            return order, scores.gather(1, order)

        def finish(rows: list[int], done: tuple[torch.Tensor, torch.Tensor]) -> None:
            best[rows] = done[0].cpu().numpy()
            values[rows] = done[1].cpu().numpy()

        lengths = [len(ids) for ids in encoded]
        self.batches.run(lengths, lengths, torch.inference_mode()(launch), finish)
        return Filled(
            prompts,
            tuple(known),
            np.array([len(tail) for tail in tails], np.int32),
            best,
            values,
            np.array(lengths, np.int32),
            np.array([self.tokens.unknown(ids) for ids in encoded], np.int32),
        )

    def pieces(self, language: str = "") -> Pieces:
        """Tell what the tokens of the vocabulary are."""
        return self.tokens.pieces(language)

    def spelled(self, words: Sequence[str], language: str = "") -> dict[str, int]:
        """Tell in how many tokens each word is written, of those that can be."""
        return {word: len(tail) for word, tail in self.tokens.candidates(words, language).items()}

    def predict(
        self, prompts: Iterable[str], top_k: int, *, language: str = ""
    ) -> Iterator[Predicted]:
        """Rank all tokens at the last mask of each prompt; the other masks stay masked.

        Raises
        ------
        Problem
            If a prompt has no mask or is too long, or an answer is not finite.
        """

        def ask(encoded: list[list[int]], rows: list[int]) -> torch.Tensor:
            ids = self.batches.move([encoded[i] for i in rows])
            masks = [[q for q, own in enumerate(encoded[i]) if own == mask] for i in rows]
            last = self.batches.move([places[-1] for places in masks])
            logits = self.body.at(ids, last, language, masks)
            return logsoftmax(self.name, logits, self.dtype)

        mask = int(self.tokens.mask_id or 0)
        own = str(self.tokens.tokenizer.mask_token)
        source = iter(prompts)
        while block := list(islice(source, batching.BLOCK)):
            written = [(self.context + prompt).replace(MASK, own) for prompt in block]
            encoded = self.tokens.encode(written, language)
            for text, ids in zip(written, encoded, strict=True):
                self.tokens.fits(text, ids, self.body.longest)
                if mask not in ids:
                    raise Problem(f"models.{self.name}: no mask in {text!r}")
            yield predictions.block(
                self.tokens, self.batches, written, encoded, partial(ask, encoded), top_k
            )

    def pseudo_logprobs(
        self, sentences: Iterable[str], method: Method = "original", *, language: str = ""
    ) -> Iterator[Score]:
        """Score whole sentences, in their order.

        ``original``: the sum over tokens of the log-probability of each, it alone masked
        (Salazar et al. 2020, eq. 1). ``within_word_l2r``: the same with the pieces behind it
        masked that belong to its word (Kauf & Ivanova 2023, section 3). ``aul``: the
        log-probability of every token in the unmasked sentence; ``aula``: each weighted by the
        attention that it gets, averaged over layers, heads and tokens (Kaneko & Bollegala 2022,
        eqs. 3 and 4, whose mean over tokens is the sum given here over ``tokens``).

        Raises
        ------
        Problem
            If a sentence is too long or empty, the method is unknown or the model cannot
            answer it, or its answers are not finite.
        """
        if method not in METHODS:
            raise Problem(f"{method!r}: no such method; there are {', '.join(METHODS)}")
        if self.body.kind in DECODERS:
            raise Problem(
                f"models.{self.name}: {self.body.architecture} has no pseudo-log-likelihood, its "
                "decoder reads a token from what stands before it alone; leave it out of this probe"
            )
        if self.body.kind == "xlnet" and method in METHODS[2:]:
            raise Problem(
                f"models.{self.name}: {method} reads each token off the unmasked sentence, and "
                f"{self.body.architecture} never sees the token that it predicts; "
                f"use {' or '.join(METHODS[:2])}"
            )
        source = iter(sentences)
        while block := list(islice(source, batching.BLOCK)):
            with self.body.attentive(method == "aula"):  # never while the caller has the word
                scores = self._score([self.context + s for s in block], method, language)
            yield from scores

    def represent(self, words: Iterable[str], *, language: str = "") -> Iterator[Represented]:
        """Give the last hidden state of each word alone; see ``models.hidden_states``."""
        return hidden_states.represent(
            self.tokens,
            self.batches,
            words,
            partial(hidden_states.alone, self.tokens, language=language),
            partial(self.body.states, language=language),
            self.body.longest,
        )

    def _score(self, sentences: list[str], method: Method, language: str) -> list[Score]:
        """Score one block."""
        encoded = self.tokens.encode(sentences, language)
        counted: list[list[int]] = []
        (head,) = self.tokens.encode([self.context.rstrip()], language, special=False)
        for text, ids in zip(sentences, encoded, strict=True):
            self.tokens.fits(text, ids, self.body.longest)
            own = self.tokens.counted(ids)
            if head:
                self.tokens.after(self.context, text, [ids[i] for i in own], head)
            counted.append(own[len(head) :])
            if not counted[-1]:
                raise Problem(f"models.{self.name}: nothing to score in {text!r}")
        ask = self._masked_copies if method in METHODS[:2] else self._unmasked
        sums = ask(sentences, encoded, counted, method, language)
        return [
            Score(
                text,
                round(float(value), DECIMALS) + 0.0,
                len(own),
                self.tokens.unknown([ids[i] for i in own]),
            )
            for text, value, ids, own in zip(sentences, sums, encoded, counted, strict=True)
        ]

    def _masked_copies(
        self,
        sentences: list[str],
        encoded: list[list[int]],
        counted: list[list[int]],
        method: Method,
        language: str,
    ) -> np.ndarray:
        """Return the sums (sentences,) over copies of each sentence, one token masked in each."""
        hidden: list[tuple[int, ...]] = []
        copies: list[tuple[int, int]] = []
        for i, own in enumerate(counted):
            words = (
                self.tokens.words(sentences[i], encoded[i], language)
                if method == "within_word_l2r"
                else None
            )
            for place in own:
                copies.append((i, place))
                behind = [q for q in own if q > place and words and words[q] == words[place]]
                hidden.append((place, *behind))
        parts = np.zeros(len(copies))

        def launch(rows: list[int]) -> torch.Tensor:
            ids = torch.tensor([encoded[copies[r][0]] for r in rows])
            places = torch.tensor([copies[r][1] for r in rows])
            true = ids[torch.arange(len(rows)), places]
            where = [(n, q) for n, r in enumerate(rows) for q in hidden[r]]
            ids[tuple(torch.tensor(where).t())] = int(self.tokens.mask_id or 0)
            masked = [hidden[r] for r in rows] if method == "within_word_l2r" else None
            logits = self.body.at(
                self.batches.move(ids), self.batches.move(places), language, masked
            )
            scores = logsoftmax(self.name, logits, self.dtype)
            return scores.gather(1, self.batches.move(true).unsqueeze(1)).squeeze(1)

        def finish(rows: list[int], done: torch.Tensor) -> None:
            parts[rows] = done.double().cpu().numpy()

        lengths = [len(encoded[i]) for i, _ in copies]
        self.batches.run(lengths, lengths, torch.inference_mode()(launch), finish)
        starts = np.cumsum([0, *(len(own) for own in counted[:-1])])
        return np.add.reduceat(parts, starts)

    def _unmasked(
        self,
        sentences: list[str],
        encoded: list[list[int]],
        counted: list[list[int]],
        method: Method,
        language: str,
    ) -> np.ndarray:
        """Return the sums (sentences,) over all tokens of the unmasked sentences."""
        sums = np.zeros(len(sentences))

        def launch(rows: list[int]) -> torch.Tensor:
            ids = self.batches.move([encoded[i] for i in rows])
            logits, attention = self.body.all(ids, language, attention=method == "aula")
            scores = logsoftmax(self.name, logits, self.dtype)
            chosen = scores.gather(2, ids.unsqueeze(2)).squeeze(2).double()
            if attention is not None:
                chosen = chosen * attention.double()
            own = torch.zeros_like(chosen)
            for n, i in enumerate(rows):
                own[n, counted[i]] = 1
            return (chosen * own).sum(1)

        def finish(rows: list[int], done: torch.Tensor) -> None:
            sums[rows] = done.cpu().numpy()

        lengths = [len(ids) for ids in encoded]
        alone = method == "aula" and self.body.where.type == "cpu"
        # attention in the open differs in its last digits with the place of a text in its batch
        shapes = range(len(encoded)) if alone else lengths
        self.batches.run(shapes, lengths, torch.inference_mode()(launch), finish)
        return sums
