"""What adapters share: loading, log-probabilities, ranked candidates, hidden states."""

from __future__ import annotations

from functools import partial
from pickle import UnpicklingError
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from safetensors import SafetensorError
from transformers.utils.logging import disable_progress_bar

from plumbline.builders.core.errors import UserError
from plumbline.probes.models.batching import Batches, blocks, device
from plumbline.probes.models.kernels.activations import whole
from plumbline.probes.models.kernels.packed_linear import FEWEST, PAIR, pack
from plumbline.probes.models.scorer import (
    DECIMALS,
    Filled,
    Pieces,
    Predicted,
    Represented,
    Score,
    Vocabulary,
)
from plumbline.probes.models.tokenizer import Tokens, longest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

disable_progress_bar()  # type: ignore[no-untyped-call]
BROKEN = (OSError, ValueError, RuntimeError, SafetensorError, UnpicklingError)  # also: other sizes
WORDS = 1024  # whose hidden states are held at once


def pretrained(where: Path, name: str, dtype: str, auto: Any, *, pickles: bool) -> Any:
    """Load weights onto the device: without code of their own, and from pickles only on request.

    Raises
    ------
    UserError
        If they cannot be loaded as what ``auto`` loads.
    """
    load = partial(
        auto.from_pretrained,
        where,
        dtype=getattr(torch, dtype),
        use_safetensors=None if pickles else True,
        trust_remote_code=False,
        output_loading_info=True,
    )
    try:
        model, told = load()
        if any(key.startswith("lm_predictions.") for key in told["unexpected_keys"]):
            model, told = load(legacy=False)  # DeBERTa's own head: its configs do not ask for it
    except BROKEN as error:
        said = " ".join(str(error).split())[:300]
        raise UserError(
            f"models.{name}: could not be loaded from {where} ({said}); check id, revision and "
            "kind in params.yaml (safetensors are needed unless pickles is true, and no own code)"
        ) from error
    lacking = sorted(told["missing_keys"])
    if lacking:  # transformers makes them up at random, and only warns
        raise UserError(
            f"models.{name}: {where} has no weights for {lacking[0]} ({len(lacking)} missing in "
            f"{type(model).__name__}); it was not trained as that, check its kind"
        )
    return model.eval().to(device())


def enough(fewest: int, texts: int, each: int = 1) -> torch.Tensor:
    """Return the numbers of all texts, repeated until they make up rows enough.

    There are two texts at least: attention of a single one is laid out, and so computed, another
    way.

    Parameters
    ----------
    fewest
        Rows that a product must have.
    each
        Rows that one text makes.
    """
    return torch.arange(max(texts, PAIR, -(-fewest // each))) % texts


def alike(model: Any) -> int:
    """Make results on a CPU independent of the batch; return the fewest rows of a product."""
    if model.device.type != "cpu":
        return FEWEST
    whole(model)
    return pack(model)


def finite(name: str, values: torch.Tensor, dtype: str, what: str = "answers") -> torch.Tensor:
    """Return the values of a batch.

    Raises
    ------
    UserError
        If one of them is not a number or infinite.
    """
    if not torch.isfinite(values.sum()):
        way = "try dtype: float32" if dtype == "bfloat16" else "check its weights"
        raise UserError(
            f"models.{name}: {what} are not finite in {dtype} (batch of {len(values)}); {way}"
        )
    return values


def logsoftmax(name: str, logits: torch.Tensor, dtype: str) -> torch.Tensor:
    """Return log-probabilities in nats, of the shape of ``logits``, in at least float32.

    Raises
    ------
    UserError
        If one of them is not a number or infinite.
    """
    wide = logits if logits.dtype == torch.float64 else logits.float()
    return finite(name, torch.log_softmax(wide, dim=-1), dtype)


def leading(scores: torch.Tensor, top_k: int) -> torch.Tensor:
    """Return the places (rows, top_k) of the highest scores, of equal ones the first.

    ``torch.topk`` alone leaves it open which of equal ones it takes, and a stable sort of a whole
    vocabulary takes longer than a small model.
    """
    width = scores.shape[1]
    if 4 * top_k >= width or not top_k:
        return torch.sort(-scores, dim=1, stable=True).indices[:, :top_k]
    last = torch.topk(scores, top_k, dim=1).values[:, -1:]
    wanted = int((scores >= last).sum(1).max())  # with all that equal the last one
    chosen = torch.topk(scores, wanted, dim=1).indices.sort(dim=1).values
    order = torch.sort(-scores.gather(1, chosen), dim=1, stable=True).indices[:, :top_k]
    return chosen.gather(1, order)


class Adapter:
    """One model, its tokenizer and its batches."""

    auto: Any  # the class of transformers that loads it
    mask_token = ""

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
        self.name, self.revision, self.dtype = name, revision, dtype
        self.context = f"{context} " if context else ""
        self.model: Any = self.load(where, pickles=pickles)
        self.architecture = type(self.model).__name__
        self.longest = longest(self.tokens.tokenizer, self.model)
        self.fewest = alike(self.model)
        self.batches = Batches(name, self.model.device)

    def load(self, where: Path, *, pickles: bool) -> Any:
        """Return the model from a folder."""
        return pretrained(where, self.name, self.dtype, self.auto, pickles=pickles)

    def facts(self) -> dict[str, str | int]:
        """Return model, revision, architecture, size of the vocabulary, mask token, dtype."""
        return {
            "model": self.name,
            "revision": self.revision,
            "architecture": self.architecture,
            "vocabulary": len(self.tokens),
            "mask_token": self.mask_token,
            "dtype": self.dtype,
        }

    def encode(
        self, texts: Sequence[str], language: str = "", *, special: bool = True
    ) -> list[list[int]]:
        """Return the tokens of each text.

        Raises
        ------
        UserError
            If a text is too long for the model.
        """
        encoded = self.tokens.encode(texts, language, special=special)
        for text, ids in zip(texts, encoded, strict=True):
            self.tokens.fits(text, ids, self.longest)
        return encoded

    def scores(
        self, texts: Sequence[str], sums: Iterable[float], own: Sequence[Sequence[int]]
    ) -> list[Score]:
        """Return the score of each text: the sum over its ``own`` tokens, rounded."""
        return [
            Score(text, round(float(value), DECIMALS) + 0.0, len(ids), self.tokens.unknown(ids))
            for text, value, ids in zip(texts, sums, own, strict=True)
        ]

    def vocabulary(self, words: Sequence[str], language: str = "") -> Vocabulary:
        """Tell which words are one word-initial piece; see ``models.tokenizer``."""
        return self.tokens.vocabulary(words, language)

    def pieces(self, language: str = "") -> Pieces:
        """Tell what the tokens of the vocabulary are."""
        return self.tokens.pieces(language)

    def spelled(self, words: Sequence[str], language: str = "") -> dict[str, int]:
        """Tell in how many tokens each word is written, of those that can be."""
        return {word: len(tail) for word, tail in self.tokens.candidates(words, language).items()}

    def known(
        self, words: Sequence[str], language: str, *, multi: bool
    ) -> dict[str, tuple[int, ...]]:
        """Return the pieces of each candidate, those of several only where wanted."""
        found = self.tokens.candidates(words, language)
        return {word: tail for word, tail in found.items() if multi or len(tail) == 1}

    def filled(
        self,
        prompts: Sequence[str],
        encoded: Sequence[Sequence[int]],
        known: dict[str, tuple[int, ...]],
        top_k: int,
        score: Callable[[list[int]], torch.Tensor],
        sums: Callable[[], NDArray[np.float64]],
    ) -> Filled:
        """Rank candidates for a block of prompts.

        Parameters
        ----------
        known
            The pieces of each candidate.
        score
            Returns log-probabilities (rows, vocabulary) of some prompts: for words of one piece.
        sums
            Returns those, prompt by prompt, of the words of several pieces.
        """
        tails = list(known.values())
        single = [i for i, tail in enumerate(tails) if len(tail) == 1]
        several = [i for i, tail in enumerate(tails) if len(tail) > 1]
        first = self.batches.move([tails[i][0] for i in single])
        summed = sums().reshape(len(prompts), len(several)) if several else None

        def every(rows: list[int]) -> torch.Tensor:
            scores = score(rows)[:, first]
            if summed is None:
                return scores
            found = scores.new_empty(len(rows), len(tails), dtype=torch.float64)
            found[:, single] = scores.double()
            found[:, several] = torch.from_numpy(summed[rows]).to(found)
            return found

        best, values = self._ranked(encoded, min(top_k, len(known)), every)
        pieces = np.array([len(tail) for tail in tails], np.int32)
        return Filled(prompts, tuple(known), pieces, best, values, *self._sizes(encoded))

    def predicted(
        self,
        prompts: Sequence[str],
        encoded: Sequence[Sequence[int]],
        top_k: int,
        score: Callable[[list[int]], torch.Tensor],
    ) -> Predicted:
        """Rank all tokens for a block of prompts, by scores as in :meth:`filled`."""
        names = len(self.tokens)  # a head may be wider: its last columns are of no token
        best, values = self._ranked(encoded, min(top_k, names), lambda rows: score(rows)[:, :names])
        lengths, unknown = self._sizes(encoded)
        return Predicted(prompts, lengths, best, values, unknown)

    def _sizes(
        self, encoded: Sequence[Sequence[int]]
    ) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Return how many tokens each text has, and how many of them are unknown."""
        unknown = [self.tokens.unknown(ids) for ids in encoded]
        return np.array([len(ids) for ids in encoded], np.int32), np.array(unknown, np.int32)

    def _ranked(
        self,
        encoded: Sequence[Sequence[int]],
        top_k: int,
        score: Callable[[list[int]], torch.Tensor],
    ) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """Return the places (texts, top_k) of the highest scores, and the scores, rounded."""
        best = np.zeros((len(encoded), top_k), np.int32)
        values = np.zeros((len(encoded), top_k))

        def launch(rows: list[int]) -> tuple[torch.Tensor, torch.Tensor]:
            scores = torch.round(score(rows).double(), decimals=DECIMALS)
            order = leading(scores, top_k)
            return order, scores.gather(1, order)

        def finish(rows: list[int], done: tuple[torch.Tensor, torch.Tensor]) -> None:
            best[rows], values[rows] = (part.cpu().numpy() for part in done)

        lengths = [len(ids) for ids in encoded]
        self.batches.run(lengths, lengths, torch.inference_mode()(launch), finish)
        return best, values + 0.0


class Representing(Adapter):
    """A model whose last hidden states can be read: of words that stand alone."""

    def alone(self, words: list[str], language: str) -> list[tuple[list[int], list[int]]]:
        """Return the tokens of each word as a text of its own, and the places of its own ones."""
        return [(ids, self.tokens.counted(ids)) for ids in self.tokens.encode(words, language)]

    def states(self, ids: torch.Tensor, language: str = "") -> torch.Tensor:
        """Return the last hidden states (texts, length, width) of texts of one length."""
        raise NotImplementedError

    def represent(self, words: Iterable[str], *, language: str = "") -> Iterator[Represented]:
        """Yield the mean last hidden state of each word's own tokens, in the order of the words.

        Raises
        ------
        UserError
            If a word has no tokens or too many, or a state is not finite.
        """
        for block in blocks(words, WORDS):
            encoded = self.alone(block, language)
            for word, (ids, own) in zip(block, encoded, strict=True):
                self.tokens.fits(word, ids, self.longest)
                if not own:
                    raise UserError(f"models.{self.name}: no token of its own in {word!r}")
            inner = [[ids[place] for place in own] for ids, own in encoded]
            means = np.round(self._means(encoded, language), DECIMALS) + 0.0
            yield Represented(block, *self._sizes(inner), means)

    def _means(
        self, encoded: list[tuple[list[int], list[int]]], language: str
    ) -> NDArray[np.float64]:
        """Return the mean states (words, width) over the places of each word's own tokens."""
        means: dict[int, NDArray[np.float64]] = {}

        def launch(rows: list[int]) -> torch.Tensor:
            found = self.states(self.batches.move([encoded[i][0] for i in rows]), language)
            return finite(self.name, found.double(), self.dtype, "states")

        def finish(rows: list[int], done: torch.Tensor) -> None:
            found = done.cpu().numpy()
            for n, i in enumerate(rows):
                means[i] = found[n, encoded[i][1]].mean(axis=0)

        lengths = [len(ids) for ids, _ in encoded]
        self.batches.run(lengths, lengths, torch.inference_mode()(launch), finish)
        return np.stack([means[i] for i in range(len(encoded))])
