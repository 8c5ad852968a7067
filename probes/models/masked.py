"""Models with a mask: encoders (BERT and its kin), XLNet, and BART's decoder at the mask.

``fill`` and ``predict`` read log-probabilities at the mask; ``pseudo_logprobs`` scores sentences;
``represent`` returns hidden states of words. Every result is that of a plain forward pass of the
model's own class; left out are the head at places that nobody reads, padding, and attention masks
that mask nothing.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from plumbline.builders.core.errors import UserError
from plumbline.probes.models.batching import blocks
from plumbline.probes.models.forward import logsoftmax
from plumbline.probes.models.masked_forward import MaskedForward
from plumbline.probes.models.scorer import MASK, METHODS, Filled, Method, Predicted, Score

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

# one mask, read by the decoder at its place: of its own text it sees only what stands before
DECODERS = ("bart", "mbart", "mvp")
Step = tuple[int, tuple[int, ...], int]  # pieces of a word, those already in place, the one scored
Copy = tuple[tuple[int, ...], tuple[int, ...], str]  # a text, the scored place and others masked


class Masked(MaskedForward):
    """A model with a mask, and its tokenizer."""

    def __init__(self, where: Path, name: str, revision: str, **options: Any) -> None:
        super().__init__(where, name, revision, **options)
        self.scored: dict[Copy, float] = {}  # masked copies of the last sentences

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
        UserError
            If a prompt is too long for the model, or has not exactly one mask, or the model
            answers with numbers that are not finite.
        """
        known = self.known(words, language, multi=multi)
        for block in blocks(prompts):
            written = [(self.context + prompt).replace(MASK, self.mask_token) for prompt in block]
            encoded = self.encode(written, language)
            for prompt, ids in zip(written, encoded, strict=True):
                if ids.count(self.mask_id) != 1:
                    raise UserError(f"models.{self.name}: not exactly one mask in {prompt!r}")
            places = [ids.index(self.mask_id) for ids in encoded]
            score = partial(self._at_masks, encoded, [[place] for place in places], language)
            tails = [tail for tail in known.values() if len(tail) > 1]
            sums = partial(self._sums, encoded, places, tails, language, together)
            yield self.filled(written, encoded, known, top_k, score, sums)

    def _at_masks(
        self,
        encoded: list[list[int]],
        masks: list[list[int]],
        language: str,
        rows: list[int],
    ) -> torch.Tensor:
        """Return log-probabilities (rows, vocabulary) at the last mask of some texts."""
        ids = self.batches.move([encoded[i] for i in rows])
        last = self.batches.move([masks[i][-1] for i in rows])
        logits = self.at(ids, last, language, [masks[i] for i in rows])
        return logsoftmax(self.name, logits, self.dtype)

    def _sums(
        self,
        encoded: Sequence[list[int]],
        places: Sequence[int],
        tails: Sequence[tuple[int, ...]],
        language: str,
        together: bool,
    ) -> NDArray[np.float64]:
        """Return the log-probability (prompts, words) of words of several pieces at the mask.

        The mask becomes as many masks as the word has pieces. Each piece is scored with the ones
        before it in place, or where they are masked ``together`` with none, and the sum is taken.

        Parameters
        ----------
        encoded, places
            The tokens of each prompt, and where its mask is.
        tails
            The pieces of each word.
        """
        worst = max(encoded, key=len)
        text = self.tokens.tokenizer.decode(worst)
        self.tokens.fits(text, range(len(worst) + max(map(len, tails)) - 1), self.longest)

        def step(tail: tuple[int, ...], n: int) -> Step:
            return len(tail), () if together else tail[:n], n

        # words that begin alike share their first passes
        wanted: dict[Step, set[int]] = {}
        for tail in tails:
            for n, piece in enumerate(tail):
                wanted.setdefault(step(tail, n), set()).add(piece)
        steps = sorted(wanted)
        pieces = [sorted(wanted[key]) for key in steps]
        found = [np.zeros((len(encoded), len(each))) for each in pieces]
        jobs = [(i, s) for i in range(len(encoded)) for s in range(len(steps))]

        def launch(rows: list[int]) -> list[torch.Tensor]:
            texts, at, hidden = [], [], []
            for prompt, (length, begun, n) in ((jobs[r][0], steps[jobs[r][1]]) for r in rows):
                ids, place = encoded[prompt], places[prompt]
                masks = [self.mask_id] * (length - len(begun))
                texts.append([*ids[:place], *begun, *masks, *ids[place + 1 :]])
                at.append(place + n)
                hidden.append(range(place + len(begun), place + length))
            logits = self.at(self.batches.move(texts), self.batches.move(at), language, hidden)
            scores = logsoftmax(self.name, logits, self.dtype).double()
            return [scores[n, pieces[jobs[r][1]]] for n, r in enumerate(rows)]

        def finish(rows: list[int], done: list[torch.Tensor]) -> None:
            for r, values in zip(rows, done, strict=True):
                found[jobs[r][1]][jobs[r][0]] = values.cpu().numpy()

        lengths = [len(encoded[i]) + steps[s][0] - 1 for i, s in jobs]
        self.batches.run(lengths, lengths, torch.inference_mode()(launch), finish)
        number = {key: i for i, key in enumerate(steps)}
        whole = np.zeros((len(encoded), len(tails)))
        for column, tail in enumerate(tails):
            for n, piece in enumerate(tail):
                s = number[step(tail, n)]
                whole[:, column] += found[s][:, pieces[s].index(piece)]
        return whole

    def predict(
        self, prompts: Iterable[str], top_k: int, *, language: str = ""
    ) -> Iterator[Predicted]:
        """Rank all tokens at the last mask of each prompt; the other masks stay masked.

        Raises
        ------
        UserError
            If a prompt has no mask or is too long, or an answer is not finite.
        """
        for block in blocks(prompts):
            written = [(self.context + prompt).replace(MASK, self.mask_token) for prompt in block]
            encoded = self.encode(written, language)
            masks = [[p for p, own in enumerate(ids) if own == self.mask_id] for ids in encoded]
            for text, places in zip(written, masks, strict=True):
                if not places:
                    raise UserError(f"models.{self.name}: no mask in {text!r}")
            score = partial(self._at_masks, encoded, masks, language)
            yield self.predicted(written, encoded, top_k, score)

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
        UserError
            If a sentence is too long or empty, the method is unknown or the model cannot
            answer it, or its answers are not finite.
        """
        if method not in METHODS:
            raise UserError(f"{method!r}: no such method; there are {', '.join(METHODS)}")
        if self.kind in DECODERS:
            raise UserError(
                f"models.{self.name}: {self.architecture} has no pseudo-log-likelihood, its "
                "decoder reads a token from what stands before it alone; leave it out of this probe"
            )
        if self.kind == "xlnet" and method in METHODS[2:]:
            raise UserError(
                f"models.{self.name}: {method} reads each token off the unmasked sentence, and "
                f"{self.architecture} never sees the token that it predicts; "
                f"use {' or '.join(METHODS[:2])}"
            )
        for block in blocks(sentences):
            with self.attentive(method == "aula"):  # never while the caller has the word
                scores = self._score([self.context + s for s in block], method, language)
            yield from scores

    def _score(self, sentences: list[str], method: Method, language: str) -> list[Score]:
        """Score one block."""
        encoded = self.encode(sentences, language)
        counted: list[list[int]] = []
        (head,) = self.tokens.encode([self.context.rstrip()], language, special=False)
        for text, ids in zip(sentences, encoded, strict=True):
            own = self.tokens.counted(ids)
            if head:
                self.tokens.after(self.context, text, [ids[i] for i in own], head)
            counted.append(own[len(head) :])
            if not counted[-1]:
                raise UserError(f"models.{self.name}: nothing to score in {text!r}")
        ask = self._masked_copies if method in METHODS[:2] else self._unmasked
        sums = ask(sentences, encoded, counted, method, language)
        inner = [[ids[i] for i in own] for ids, own in zip(encoded, counted, strict=True)]
        return self.scores(sentences, sums, inner)

    def _masked_copies(
        self,
        sentences: list[str],
        encoded: list[list[int]],
        counted: list[list[int]],
        method: Method,
        language: str,
    ) -> np.ndarray:
        """Return the sums (sentences,) over copies of each sentence, one token masked in each.

        Both methods mask the last piece of a word alone: what one has scored, the other takes.
        """
        copies: list[Copy] = []
        for i, own in enumerate(counted):
            whole = method == "within_word_l2r"
            words = self.tokens.words(sentences[i], encoded[i], language) if whole else None
            for place in own:
                behind = [q for q in own if q > place and words and words[q] == words[place]]
                copies.append((tuple(encoded[i]), (place, *behind), language))
        new = [copy for copy in dict.fromkeys(copies) if copy not in self.scored]

        def launch(rows: list[int]) -> torch.Tensor:
            ids = torch.tensor([new[r][0] for r in rows])
            hidden = [new[r][1] for r in rows]
            places = torch.tensor([first for first, *_ in hidden])
            true = ids[torch.arange(len(rows)), places]
            where = [(n, q) for n, masked in enumerate(hidden) for q in masked]
            ids[tuple(torch.tensor(where).t())] = self.mask_id
            logits = self.at(self.batches.move(ids), self.batches.move(places), language, hidden)
            scores = logsoftmax(self.name, logits, self.dtype)
            return scores.gather(1, self.batches.move(true).unsqueeze(1)).squeeze(1)

        lengths = [len(ids) for ids, *_ in new]
        found = self.batches.collect(lengths, lengths, launch, np.zeros(len(new)))
        known = self.scored | dict(zip(new, found.tolist(), strict=True))
        self.scored = {copy: known[copy] for copy in copies}  # no more than a block's
        starts = np.cumsum([0, *(len(own) for own in counted[:-1])])
        return np.add.reduceat([known[copy] for copy in copies], starts)

    def _unmasked(
        self,
        sentences: list[str],
        encoded: list[list[int]],
        counted: list[list[int]],
        method: Method,
        language: str,
    ) -> np.ndarray:
        """Return the sums (sentences,) over all tokens of the unmasked sentences."""

        def launch(rows: list[int]) -> torch.Tensor:
            ids = self.batches.move([encoded[i] for i in rows])
            logits, attention = self.all(ids, language, attention=method == "aula")
            scores = logsoftmax(self.name, logits, self.dtype)
            chosen = scores.gather(2, ids.unsqueeze(2)).squeeze(2).double()
            if attention is not None:
                chosen = chosen * attention.double()
            own = torch.zeros_like(chosen)
            for n, i in enumerate(rows):
                own[n, counted[i]] = 1
            return (chosen * own).sum(1)

        lengths = [len(ids) for ids in encoded]
        alone = method == "aula" and self.batches.where.type == "cpu"
        # eager attention differs in its last digits with the position of a text in its batch
        shapes = range(len(encoded)) if alone else lengths
        return self.batches.collect(shapes, lengths, launch, np.zeros(len(sentences)))
