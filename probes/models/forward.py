"""Base classes of adapters: loading, log-probabilities, ranked candidates and hidden states."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pickle import UnpicklingError
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from safetensors import SafetensorError
from transformers.utils.logging import disable_progress_bar

from plumbline.builders.core.errors import UserError
from plumbline.probes.models.batching import Batches, blocks, device
from plumbline.probes.models.kernels import FEWEST, PAIR, fuse_activations, pack
from plumbline.probes.models.scorer import DECIMALS, Filled, Predicted, Represented, Score
from plumbline.probes.models.tokenizer import Tokens, longest

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from plumbline.probes.models.kernels import HeadOnly

disable_progress_bar()  # type: ignore[no-untyped-call]
BROKEN = (OSError, ValueError, RuntimeError, SafetensorError, UnpicklingError)  # unusable weights
WORDS = 1024  # words per block of hidden states
TIE = 1e-12  # decrease of a score per index; below 1e-6 in total for a million tokens
Candidates = dict[str, tuple[int, ...]]  # the tokens of each word
Scores = Callable[[list[int]], torch.Tensor]  # log-probabilities of shape (rows, vocabulary)


def pretrained(where: Path, name: str, dtype: str, auto: Any, *, pickles: bool) -> Any:
    """Load weights onto the device, without running remote code; read pickles only on request.

    Raises UserError if ``auto`` cannot load them.
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
        model, info = load()
        if any(key.startswith("lm_predictions.") for key in info["unexpected_keys"]):
            model, info = load(legacy=False)  # DeBERTa's original head, which its config omits
    except BROKEN as error:
        reason = " ".join(str(error).split())[:300]
        raise UserError(
            f"models.{name}: could not be loaded from {where} ({reason}); check id, revision and "
            "kind in params.yaml (safetensors are needed unless pickles is true; no remote code)"
        ) from error
    if missing := sorted(info["missing_keys"]):  # transformers initialises them randomly
        raise UserError(
            f"models.{name}: {where} has no weights for {missing[0]} ({len(missing)} missing in "
            f"{type(model).__name__}); its head differs; check its kind"
        )
    return model.eval().to(device())


def leading(scores: torch.Tensor, top_k: int) -> torch.Tensor:
    """Return the indices of the highest scores, of shape (rows, top_k); ties are in index order.

    ``scores``: multiples of 1e-6 in double precision, of shape (rows, vocabulary). ``torch.topk``
    does not define the order of ties, so each score is lowered by a smaller amount that increases
    with its index.
    """
    indices = torch.arange(scores.shape[1], dtype=scores.dtype, device=scores.device)
    return torch.topk(scores - TIE * indices, top_k, dim=1).indices


class Adapter:
    """One model, its tokenizer and its batches.

    On a CPU, results do not depend on the batch: activations and products are the same for any
    number of rows that is at least ``fewest``.
    """

    auto: Any  # transformers class that loads the model
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
        self.spelled, self.pieces = tokens.spelled, tokens.pieces
        self.name, self.revision, self.dtype = name, revision, dtype
        self.context = f"{context} " if context else ""
        self.model: Any = self.load(where, pickles=pickles)
        self.architecture = type(self.model).__name__
        self.longest = longest(tokens.tokenizer, self.model)
        self.batches = Batches(name, self.model.device)
        self.fewest = FEWEST
        if self.model.device.type == "cpu":
            fuse_activations(self.model)
            self.fewest = pack(self.model)

    def load(self, where: Path, *, pickles: bool) -> Any:
        """Load the model from a folder."""
        return pretrained(where, self.name, self.dtype, self.auto, pickles=pickles)

    def facts(self) -> dict[str, str | int]:
        """Return the model's name, revision, architecture, vocabulary size, mask token, dtype."""
        return {
            "model": self.name,
            "revision": self.revision,
            "architecture": self.architecture,
            "vocabulary": len(self.tokens),
            "mask_token": self.mask_token,
            "dtype": self.dtype,
        }

    def encode(self, texts: Sequence[str], language: str = "") -> list[list[int]]:
        """Return the tokens of each text; raise UserError if a text is too long for the model."""
        encoded = self.tokens.encode(texts, language)
        for text, ids in zip(texts, encoded, strict=True):
            self.tokens.fits(text, len(ids), self.longest)
        return encoded

    def enough(self, texts: torch.Tensor, length: int = 1) -> torch.Tensor:
        """Repeat texts of ``length`` rows each until a product has its minimum number of rows.

        At least two texts are returned, since the attention of a single text has a different layout
        and result.
        """
        rows = torch.arange(max(len(texts), PAIR, -(-self.fewest // length))) % len(texts)
        return texts[rows.to(texts.device)]

    def finite(self, values: torch.Tensor, name: str = "answers") -> torch.Tensor:
        """Return the values of a batch; raise UserError if one is NaN or infinite."""
        if not torch.isfinite(values.sum()):
            way = "try dtype: float32" if self.dtype == "bfloat16" else "check its weights"
            raise UserError(
                f"models.{self.name}: {name} are not finite in {self.dtype} (batch of "
                f"{len(values)}); {way}"
            )
        return values

    def nats(self, logits: torch.Tensor) -> torch.Tensor:
        """Return log-probabilities in nats, in the shape of ``logits`` and in at least float32."""
        wide = logits if logits.dtype == torch.float64 else logits.float()
        return self.finite(torch.log_softmax(wide, dim=-1))

    def chosen(self, logits: torch.Tensor, true: torch.Tensor) -> torch.Tensor:
        """Return two numbers for each token in ``true``, as a float64 tensor.

        The result has shape (..., 2) if ``true`` has shape (...). The numbers are the token's
        log-probability in nats, and 1 if another token is more probable, else 0.
        """
        scores = self.nats(logits)
        values = scores.gather(-1, true.unsqueeze(-1)).squeeze(-1)
        return torch.stack([values.double(), (values < scores.amax(-1)).double()], dim=-1)

    def scores(
        self,
        texts: Iterable[str],
        sums: Iterable[float],
        tokens: Sequence[Sequence[int]],
        missed: Iterable[float],
    ) -> list[Score]:
        """Return the score of each text: the rounded sum over its ``tokens``.

        ``missed``: number of tokens that are not the most probable at their position.
        """
        return [
            Score(text, round(float(x), DECIMALS) + 0.0, len(ids), self.tokens.unknown(ids), not n)
            for text, x, ids, n in zip(texts, sums, tokens, missed, strict=True)
        ]

    def sizes(
        self, encoded: Sequence[Sequence[int]]
    ) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Return the number of tokens and the number of unknown tokens in each text."""
        unknown = [self.tokens.unknown(ids) for ids in encoded]
        return np.array([len(ids) for ids in encoded], np.int32), np.array(unknown, np.int32)


class Prompts(NamedTuple):
    """Prompts as model inputs, and functions that compute log-probabilities at their masks."""

    texts: list[str]
    encoded: list[list[int]]  # their tokens
    score: Scores  # returns log-probabilities of the token at the mask
    sums: Callable[[], NDArray[np.float64]]  # for words of several tokens, (prompts, words)


class Filler(Adapter):
    """A model that predicts words at a mask."""

    prepare: Callable[..., Prompts]  # arguments: prompts, language, words (None: all tokens)

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

        With ``multi``, words of several tokens (``pieces`` above 1) are ranked too, by the sum of
        their tokens' log-probabilities, each conditional on the previous tokens. Masks, ``options``
        and errors are documented in the method ``prepare`` of each kind of model. Raises UserError
        if a log-probability is not finite.
        """
        spelled = self.tokens.candidates(words, language)
        candidates = {word: tail for word, tail in spelled.items() if multi or len(tail) == 1}
        for block in blocks(prompts):
            prepared = self.prepare(block, language, candidates, **options)
            yield self._fill(prepared, candidates, top_k)

    def _fill(self, prompts: Prompts, candidates: Candidates, top_k: int) -> Filled:
        pieces = np.array([len(tail) for tail in candidates.values()], np.int32)
        single, multiple = np.flatnonzero(pieces == 1), np.flatnonzero(pieces > 1)
        first = self.batches.move([tail[0] for tail in candidates.values() if len(tail) == 1])
        sums = prompts.sums() if len(multiple) else None

        def score(rows: list[int]) -> torch.Tensor:
            scores = prompts.score(rows)[:, first]
            if sums is None:
                return scores
            combined = scores.new_empty(len(rows), len(candidates), dtype=torch.float64)
            combined[:, single] = scores.double()
            combined[:, multiple] = torch.from_numpy(sums[rows]).to(combined)
            return combined

        best, values = self._ranked(prompts.encoded, top_k, len(candidates), score)
        sizes = self.sizes(prompts.encoded)
        return Filled(prompts.texts, tuple(candidates), pieces, best, values, *sizes)

    def _ranked(
        self, encoded: Sequence[Sequence[int]], top_k: int, width: int, score: Scores
    ) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """Return the indices and rounded values of the top scores, both of shape (texts, top_k).

        ``width``: number of leading columns that are ranked.
        """
        top_k = min(top_k, width)

        def launch(rows: list[int]) -> tuple[torch.Tensor, torch.Tensor]:
            scores = torch.round(score(rows)[:, :width].double(), decimals=DECIMALS)
            order = leading(scores, top_k)
            return order, scores.gather(1, order)

        lengths = [len(ids) for ids in encoded]
        best, values = np.zeros((len(encoded), top_k), np.int32), np.zeros((len(encoded), top_k))
        for rows, done in self.batches.run(lengths, lengths, launch):
            best[rows], values[rows] = (part.cpu().numpy() for part in done)
        return best, values + 0.0


class Reader(Filler):
    """A model whose head and last hidden states can be read at chosen positions."""

    head: HeadOnly  # hook on `body`
    body: Any  # submodule whose last states the head reads
    options: Callable[[torch.Tensor, str], dict[str, Any]]  # other inputs of a forward pass

    def look(self, ids: torch.Tensor, positions: torch.Tensor, language: str = "") -> torch.Tensor:
        """Return logits of shape (texts, vocabulary) at one position of each row of ``ids``."""
        rows = self.enough(torch.arange(len(ids), device=ids.device))
        again = self.enough(ids, ids.shape[1])
        with self.head.at(rows, positions[rows]):
            out = self.model(input_ids=again, **self.options(again, language))
        logits: torch.Tensor = out.logits[: len(ids)]
        return logits.reshape(len(ids), -1)

    def states(self, ids: torch.Tensor, language: str = "") -> torch.Tensor:
        """Return the last hidden states, which the head reads, of shape (texts, length, width).

        For masked BART and mBART these are the states of the encoder, since those of the decoder
        represent the next token.
        """
        again = self.enough(ids, ids.shape[1])
        out = self.body(input_ids=again, **self.options(again, language))
        last: torch.Tensor | None = out.get("encoder_last_hidden_state")
        return (out[0] if last is None else last)[: len(ids)]

    def predict(
        self, prompts: Iterable[str], top_k: int, *, language: str = ""
    ) -> Iterator[Predicted]:
        """Rank all tokens at the last mask of each prompt, in the order of the prompts.

        Raises UserError as ``prepare`` does, or if a log-probability is not finite.
        """
        size = len(self.tokens)  # the last columns of a head may correspond to no token
        for block in blocks(prompts):
            texts, encoded, score, _ = self.prepare(block, language)
            best, values = self._ranked(encoded, top_k, size, score)
            lengths, unknown = self.sizes(encoded)
            yield Predicted(texts, lengths, best, values, unknown)

    def alone(self, words: list[str], language: str) -> list[tuple[list[int], list[int]]]:
        """Encode each word as a text; return its tokens and the positions of those in the word."""
        encoded = self.tokens.encode(words, language)
        return [
            (ids, self.tokens.counted(word, ids)) for word, ids in zip(words, encoded, strict=True)
        ]

    def represent(self, words: Iterable[str], *, language: str = "") -> Iterator[Represented]:
        """Yield each word's last hidden state, averaged over its tokens, in the order of the words.

        Raises UserError if a word has no tokens or too many, or if a state is not finite.
        """
        for block in blocks(words, WORDS):
            yield self._represent(block, language)

    def _represent(self, words: list[str], language: str) -> Represented:
        texts, inner = zip(*self.alone(words, language), strict=True)
        for word, ids, positions in zip(words, texts, inner, strict=True):
            self.tokens.fits(word, len(ids), self.longest)
            if not positions:
                raise UserError(f"models.{self.name}: no token belongs to {word!r} alone")

        def launch(rows: list[int]) -> torch.Tensor:
            states = self.states(self.batches.move([texts[i] for i in rows]), language)
            return self.finite(states.double(), "states")

        lengths = [len(ids) for ids in texts]
        states = self.batches.each(lengths, lengths, launch)
        means = [part[places].mean(axis=0) for part, places in zip(states, inner, strict=True)]
        word_ids = [[ids[i] for i in places] for ids, places in zip(texts, inner, strict=True)]
        return Represented(words, *self.sizes(word_ids), np.round(np.stack(means), DECIMALS) + 0.0)
