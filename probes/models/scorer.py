"""The interface of all language models: seven methods and the types of their results.

A model has only the methods that its kind supports. For example, an encoder fills masks and returns
pseudo-log-likelihoods; a causal model fills the end of a prompt, scores continuations and
generates.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import numpy as np
    from numpy.typing import NDArray

MASK = "<mask>"  # placeholder in prompts for the model's mask token
DECIMALS = 6  # decimals of log-probabilities, which are rounded before ranking

BEST = 20  # number of most probable words that are compared

# definitions of the pseudo-log-likelihood
Method = Literal["original", "within_word_l2r", "aul", "aula"]
METHODS: tuple[Method, ...] = ("original", "within_word_l2r", "aul", "aula")


class Filled(NamedTuple):
    """The best candidates for a block of n prompts, as columns."""

    prompts: Sequence[str]  # exact model inputs
    candidates: Sequence[str]  # the ranked words
    pieces: NDArray[np.int32]  # number of tokens of each candidate, of shape (candidates,)
    best: NDArray[np.int32]  # (n, k) indices in ``candidates``, best first
    logprobs_nats: NDArray[np.float64]  # (n, k) normalised over the model's full vocabulary
    lengths: NDArray[np.int32]  # (n,) tokens per prompt, including special ones and the mask
    unknown: NDArray[np.int32]  # (n,) number of unknown tokens

    def by_prompt(self) -> Iterator[tuple[dict[str, tuple[float, int]], int]]:
        """Yield each word's log-probability and token count, and the unknown tokens, by prompt."""
        for best, nats, unknown in zip(self.best, self.logprobs_nats, self.unknown, strict=True):
            places = zip(best.tolist(), nats.tolist(), strict=True)
            yield {self.candidates[j]: (x, int(self.pieces[j])) for j, x in places}, int(unknown)


class Predicted(NamedTuple):
    """The best tokens in the full vocabulary for a block of n prompts, as columns."""

    prompts: Sequence[str]  # exact model inputs
    length: NDArray[np.int32]  # (n,) number of tokens of each prompt
    ids: NDArray[np.int32]  # (n, k) ids of tokens, best first; ties are ordered by id
    logprobs_nats: NDArray[np.float64]  # (n, k) normalised over the model's full vocabulary
    unknown: NDArray[np.int32]  # (n,) number of unknown tokens of each prompt


class Pieces(NamedTuple):
    """The tokens of a vocabulary, in the order of their ids."""

    tokens: Sequence[str]  # as written in the vocabulary
    words: Sequence[str]  # decoded, without surrounding spaces
    starts: NDArray[np.bool_]  # True if the token represents a word that follows another word
    bare: NDArray[np.int32]  # id of the token spelled exactly like the word, or -1
    unknown: int  # id of the unknown token, or -1


class Score(NamedTuple):
    """The log-probability of one text."""

    text: str  # exact model input
    logprob_nats: float  # sum over the counted tokens
    tokens: int  # number of counted tokens
    unknown: int = 0  # number of unknown tokens among them
    greedy: bool | None = None  # True if each token is the most probable one; None if unknown


class Text(NamedTuple):
    """The text that a model generated after one prompt."""

    prompt: str  # exact model input
    seed: int
    text: str  # without the prompt and without special tokens
    tokens: int  # number of generated tokens, including the closing one
    finished: bool  # True if the model ended the text before the limit


class Classes(NamedTuple):
    """The probability of every label for one text."""

    text: str
    labels: tuple[str, ...]  # in the order of the model's config
    probabilities: tuple[float, ...]
    logprobs_nats: tuple[float, ...] = ()  # logarithms of the unrounded probabilities
    tokens: int = 0  # number of tokens, including special ones


class Represented(NamedTuple):
    """Hidden states of a block of n words, each encoded alone."""

    words: Sequence[str]
    pieces: NDArray[np.int32]  # (n,) number of tokens of each word, without special ones
    unknown: NDArray[np.int32]  # (n,) number of unknown tokens among them
    states: NDArray[np.float64]  # (n, width) mean of the last hidden states of those tokens


class Sampling(NamedTuple):
    """Sampling settings; a ``temperature`` of 0 means greedy decoding."""

    tokens: int = 64  # maximum number of generated tokens
    temperature: float = 1.0
    top_k: int = 0  # tokens are sampled from the k most probable; 0: from all
    top_p: float = 1.0  # tokens are sampled from the most probable ones with this total


SAMPLING = Sampling()


class Scorer(Protocol):
    """Any model."""

    name: str

    def facts(self) -> dict[str, str | int]:
        """Return the model's name, revision, architecture, vocabulary size, mask token, dtype."""


@runtime_checkable
class Fills(Scorer, Protocol):
    """Models that fill a mask, or treat a final mask as the next word."""

    def spelled(self, words: Sequence[str], language: str = "") -> dict[str, int]:
        """Return the number of tokens of each word that the tokenizer can encode."""

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

        ``options``: options specific to one kind of model, such as ``together`` for masked models.
        """


@runtime_checkable
class Predicts(Fills, Protocol):
    """Models that rank all tokens of their vocabulary."""

    def pieces(self, language: str = "") -> Pieces:
        """Return the tokens of the vocabulary."""

    def predict(
        self, prompts: Iterable[str], top_k: int, *, language: str = ""
    ) -> Iterator[Predicted]:
        """Rank all tokens at the last mask of each prompt, in the order of the prompts."""


@runtime_checkable
class ScoresContinuations(Scorer, Protocol):
    """Models that read from left to right."""

    def logprobs(self, pairs: Iterable[tuple[str, str]]) -> Iterator[Score]:
        """Score each continuation after its prefix."""


@runtime_checkable
class ScoresSentences(Scorer, Protocol):
    """Models that read the text on both sides of a token."""

    def pseudo_logprobs(
        self,
        sentences: Iterable[str],
        method: Method = "original",
        *,
        language: str = "",
        prefixes: Iterable[str] | None = None,
    ) -> Iterator[Score]:
        """Score sentences, or the texts after a prefix; each token is scored given its context."""


@runtime_checkable
class Generates(Scorer, Protocol):
    """Models that generate text."""

    def generate(
        self, prompts: Iterable[str], seeds: Iterable[int], sampling: Sampling = SAMPLING
    ) -> Iterator[Text]:
        """Continue each prompt; random numbers depend on the prompt, not on the batch."""


@runtime_checkable
class Classifies(Scorer, Protocol):
    """Text classifiers."""

    def classify(self, texts: Iterable[str]) -> Iterator[Classes]:
        """Return the probability of every label for each text."""

    def lengths(self, words: Sequence[str], language: str = "") -> list[int]:
        """Return the number of tokens of each word when it follows another word."""


@runtime_checkable
class Represents(Scorer, Protocol):
    """Models whose hidden states can be read."""

    def represent(self, words: Iterable[str], *, language: str = "") -> Iterator[Represented]:
        """Return the last hidden state of each word, encoded alone, in order."""


def agreement(
    scorer: Fills, double: Fills, prompts: Sequence[str], words: Sequence[str], language: str
) -> tuple[float, float]:
    """Compare a model's log-probabilities with those of the same model in double precision.

    Returns
    -------
    The largest difference between a candidate's log-probabilities in nats over all prompts, and the
    mean share of the 20 best words that are also among the 20 best in double precision; (0.0, 1.0)
    if there are no prompts or words.
    """
    largest, shares = 0.0, []
    blocks = (m.fill(prompts, words, len(words), language=language) for m in (scorer, double))
    for block, exact in zip(*blocks, strict=True):
        columns = zip(block.best, block.logprobs_nats, exact.best, exact.logprobs_nats, strict=True)
        for best, values, true_best, true_values in columns:
            differences = abs(values[best.argsort()] - true_values[true_best.argsort()])
            largest = max(largest, differences.max(initial=0.0))
            top = set(true_best[:BEST].tolist())
            shares.append(len(top & set(best[:BEST].tolist())) / max(1, len(top)))
    share = sum(shares) / len(shares) if shares and words else 1.0
    return round(float(largest), DECIMALS), round(share, DECIMALS)
