"""What adapters share: loading, log-probabilities, ranked candidates, hidden states."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import repeat
from pickle import UnpicklingError
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from safetensors import SafetensorError
from transformers.utils.logging import disable_progress_bar

from plumbline.builders.core.errors import UserError
from plumbline.probes.models.batching import Batches, blocks, device
from plumbline.probes.models.kernels.packed_linear import FEWEST, PAIR, pack, pad_activations
from plumbline.probes.models.scorer import DECIMALS, Filled, Predicted, Represented, Score
from plumbline.probes.models.tokenizer import Tokens, longest

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from plumbline.probes.models.kernels.head_only import Gate

disable_progress_bar()  # type: ignore[no-untyped-call]
BROKEN = (OSError, ValueError, RuntimeError, SafetensorError, UnpicklingError)  # also: other sizes
WORDS = 1024  # whose hidden states are held at once
Known = dict[str, tuple[int, ...]]  # candidates, and the pieces of each
Scores = Callable[[list[int]], torch.Tensor]  # log-probabilities (rows, vocabulary) of some texts


def pretrained(where: Path, name: str, dtype: str, auto: Any, *, pickles: bool) -> Any:
    """Load weights onto the device: without code of their own, and from pickles only on request.

    A UserError where they cannot be loaded as what ``auto`` loads.
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
    """One model, its tokenizer and its batches.

    On a CPU no result depends on the batch: activations and products are those of any number of
    rows from ``fewest`` on.
    """

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
        self.tokens = tokens = Tokens(where, name)
        self.vocabulary, self.pieces = tokens.vocabulary, tokens.pieces
        self.spelled = tokens.spelled
        self.name, self.revision, self.dtype = name, revision, dtype
        self.context = f"{context} " if context else ""
        self.model: Any = self.load(where, pickles=pickles)
        self.architecture = type(self.model).__name__
        self.longest = longest(self.tokens.tokenizer, self.model)
        self.batches = Batches(name, self.model.device)
        self.fewest = FEWEST
        if self.model.device.type == "cpu":
            pad_activations(self.model)
            self.fewest = pack(self.model)

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

    def encode(self, texts: Sequence[str], language: str = "") -> list[list[int]]:
        """Return the tokens of each text, none too long for the model."""
        encoded = self.tokens.encode(texts, language)
        for text, ids in zip(texts, encoded, strict=True):
            self.tokens.fits(text, ids, self.longest)
        return encoded

    def enough(self, texts: torch.Tensor, each: int = 1) -> torch.Tensor:
        """Return texts, repeated until they, of so many rows ``each``, are enough for a product.

        There are two at least: attention of a single one is laid out, and so computed, another way.
        """
        rows = torch.arange(max(len(texts), PAIR, -(-self.fewest // each))) % len(texts)
        return texts[rows.to(texts.device)]

    def finite(self, values: torch.Tensor, what: str = "answers") -> torch.Tensor:
        """Return the values of a batch; one that is not a number or infinite is a UserError."""
        if not torch.isfinite(values.sum()):
            way = "try dtype: float32" if self.dtype == "bfloat16" else "check its weights"
            raise UserError(
                f"models.{self.name}: {what} are not finite in {self.dtype} (batch of "
                f"{len(values)}); {way}"
            )
        return values

    def nats(self, logits: torch.Tensor) -> torch.Tensor:
        """Return log-probabilities in nats, of the shape of ``logits``, in at least float32."""
        wide = logits if logits.dtype == torch.float64 else logits.float()
        return self.finite(torch.log_softmax(wide, dim=-1))

    def chosen(self, logits: torch.Tensor, true: torch.Tensor) -> torch.Tensor:
        """Return two numbers (..., 2) for each of the tokens ``true`` (...), in double precision.

        Its log-probability in nats, and 1 where another token is more probable, else 0.
        """
        scores = self.nats(logits)
        own = scores.gather(-1, true.unsqueeze(-1)).squeeze(-1)
        return torch.stack([own.double(), (own < scores.amax(-1)).double()], dim=-1)

    def scores(
        self,
        texts: Iterable[str],
        sums: Iterable[float],
        own: Sequence[Sequence[int]],
        missed: Iterable[float] | None = None,
    ) -> list[Score]:
        """Return the score of each text: the sum over its ``own`` tokens, rounded.

        ``missed`` is how many of them are not the most probable at their place, where it is known.
        """
        greedy = repeat(None) if missed is None else (not count for count in missed)
        return [
            Score(text, round(float(value), DECIMALS) + 0.0, len(ids), unknown, best)
            for text, value, ids, unknown, best in zip(
                texts, sums, own, map(self.tokens.unknown, own), greedy, strict=missed is not None
            )
        ]

    def _sizes(
        self, encoded: Sequence[Sequence[int]]
    ) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Return how many tokens each text has, and how many of them are unknown."""
        unknown = [self.tokens.unknown(ids) for ids in encoded]
        return np.array([len(ids) for ids in encoded], np.int32), np.array(unknown, np.int32)


class Asked(NamedTuple):
    """Prompts as a model gets them, and what it answers at their masks."""

    texts: list[str]
    encoded: list[list[int]]  # their tokens
    score: Scores  # gives log-probabilities of the token at the mask
    sums: Callable[[], NDArray[np.float64]]  # those (prompts, words) of words of several pieces


class Filler(Adapter):
    """A model that can be asked for the words at a mask."""

    asked: Callable[..., Asked]  # of prompts, their language, and words or None for any token

    def fill(
        self,
        prompts: Iterable[str],
        words: Sequence[str],
        top_k: int,
        *,
        multi: bool = False,
        language: str = "",
        **options: Any,
    ) -> Iterator[Filled]:
        """Rank candidate words at the one mask of each prompt, in the order of the prompts.

        With ``multi`` also words of several pieces, which are marked by ``pieces`` above 1: by the
        sum over the pieces, each after those before it. What a kind of model makes of a mask, its
        ``options`` and what is a UserError are told in its own ``asked``; and an answer that is not
        finite is one.
        """
        found = self.tokens.candidates(words, language)
        known = {word: tail for word, tail in found.items() if multi or len(tail) == 1}
        pieces = np.array([len(tail) for tail in known.values()], np.int32)
        single, several = np.flatnonzero(pieces == 1), np.flatnonzero(pieces > 1)
        first = self.batches.move([tail[0] for tail in known.values() if len(tail) == 1])

        def every(score: Scores, summed: NDArray[np.float64], rows: list[int]) -> torch.Tensor:
            scores = score(rows)[:, first]
            if not len(several):
                return scores
            found = scores.new_empty(len(rows), len(known), dtype=torch.float64)
            found[:, single] = scores.double()
            found[:, several] = torch.from_numpy(summed[rows]).to(found)
            return found

        for block in blocks(prompts):
            texts, encoded, score, sums = self.asked(block, language, known, **options)
            summed = (sums() if len(several) else np.zeros(0)).reshape(len(texts), len(several))
            scores = partial(every, score, summed)
            best, values = self._ranked(encoded, min(top_k, len(known)), scores)
            yield Filled(texts, tuple(known), pieces, best, values, *self._sizes(encoded))

    def _ranked(
        self, encoded: Sequence[Sequence[int]], top_k: int, score: Scores
    ) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """Return the places (texts, top_k) of the highest scores, and the scores, rounded."""

        def launch(rows: list[int]) -> tuple[torch.Tensor, torch.Tensor]:
            scores = torch.round(score(rows).double(), decimals=DECIMALS)
            order = leading(scores, top_k)
            return order, scores.gather(1, order)

        def finish(rows: list[int], done: tuple[torch.Tensor, torch.Tensor]) -> None:
            best[rows], values[rows] = (part.cpu().numpy() for part in done)

        lengths = [len(ids) for ids in encoded]
        best, values = np.zeros((len(encoded), top_k), np.int32), np.zeros((len(encoded), top_k))
        self.batches.run(lengths, lengths, launch, finish)
        return best, values + 0.0


class Reader(Filler):
    """A model whose head and last hidden states can be read at chosen places."""

    gate: Gate  # around the part whose last states the head reads
    body: Any  # that part
    options: Callable[[torch.Tensor, str], dict[str, Any]]  # of a forward pass, besides tokens

    def look(
        self,
        ids: torch.Tensor,
        places: torch.Tensor,
        language: str = "",
        rows: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """Return the logits (places, vocabulary) of texts (texts, length) at some places.

        One of each text, or of the texts that ``rows`` numbers, (places,).
        """
        rows = torch.arange(len(ids), device=ids.device) if rows is None else rows
        wanted = self.enough(torch.arange(len(rows), device=ids.device))
        again = self.enough(ids, ids.shape[1])
        with self.gate.at(rows[wanted], places[wanted]):
            out = self.model(input_ids=again, **self.options(again, language))
        logits: torch.Tensor = out.logits[: len(rows)]
        return logits.reshape(len(rows), -1)

    def states(self, ids: torch.Tensor, language: str = "") -> torch.Tensor:
        """Return the last hidden states (texts, length, width), those that a head would read.

        Masked BART's and mBART's are the encoder's: their decoder's stand for the token to come.
        """
        again = self.enough(ids, ids.shape[1])
        out = self.body(input_ids=again, **self.options(again, language))
        last = out.get("encoder_last_hidden_state")
        found: torch.Tensor = out[0] if last is None else last
        return found[: len(ids)]

    def predict(
        self, prompts: Iterable[str], top_k: int, *, language: str = ""
    ) -> Iterator[Predicted]:
        """Rank all tokens at the last mask of each prompt, in the order of the prompts.

        What is a UserError is told in ``asked``; and an answer that is not finite is one.
        """
        names = len(self.tokens)  # a head may be wider: its last columns are of no token
        for block in blocks(prompts):
            texts, encoded, score, _ = self.asked(block, language)
            narrow = partial(_columns, score, names)
            best, values = self._ranked(encoded, min(top_k, names), narrow)
            lengths, unknown = self._sizes(encoded)
            yield Predicted(texts, lengths, best, values, unknown)

    def alone(self, words: list[str], language: str) -> list[tuple[list[int], list[int]]]:
        """Return the tokens of each word as a text of its own, and the places of its own ones."""
        return [(ids, self.tokens.counted(ids)) for ids in self.tokens.encode(words, language)]

    def represent(self, words: Iterable[str], *, language: str = "") -> Iterator[Represented]:
        """Yield the mean last hidden state of each word's own tokens, in the order of the words.

        A word that has no tokens or too many, or a state that is not finite is a UserError.
        """
        for block in blocks(words, WORDS):
            yield self._represent(block, language)

    def _represent(self, words: list[str], language: str) -> Represented:
        texts, own = zip(*self.alone(words, language), strict=True)
        for word, ids, places in zip(words, texts, own, strict=True):
            self.tokens.fits(word, ids, self.longest)
            if not places:
                raise UserError(f"models.{self.name}: no token of its own in {word!r}")

        def launch(rows: list[int]) -> torch.Tensor:
            found = self.states(self.batches.move([texts[i] for i in rows]), language)
            return self.finite(found.double(), "states")

        lengths = [len(ids) for ids in texts]
        states = self.batches.each(lengths, lengths, launch)
        means = [found[places].mean(axis=0) for found, places in zip(states, own, strict=True)]
        inner = [[ids[i] for i in places] for ids, places in zip(texts, own, strict=True)]
        return Represented(words, *self._sizes(inner), np.round(np.stack(means), DECIMALS) + 0.0)


def _columns(score: Scores, number: int, rows: list[int]) -> torch.Tensor:
    return score(rows)[:, :number]
