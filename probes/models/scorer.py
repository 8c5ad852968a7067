"""The one contract behind which every language model stands."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

MASK = "<mask>"  # stands in prompts for the model's own mask token
DECIMALS = 6  # of log-probabilities: ranks are taken after rounding, ties by candidate order


class Vocabulary(NamedTuple):
    """Which words a model has as one word-initial piece."""

    ids: Mapping[str, int]  # the words it has, in the order given, and their pieces
    missing: tuple[str, ...]  # the words it lacks


class Fill(NamedTuple):
    """The best candidates for one prompt."""

    prompt: str  # exactly as the model got it
    words: tuple[str, ...]  # best first
    logprobs_nats: tuple[float, ...]  # normalised over the model's full vocabulary
    unknown: int = 0  # pieces of the prompt that the model has no symbol for


class Scorer(Protocol):
    """Few verbs, each honest about what it is."""

    def facts(self) -> dict[str, str | int]:
        """Return model, revision, vocabulary size, mask token, dtype."""
        ...

    def vocabulary(self, words: Sequence[str]) -> Vocabulary:
        """Tell which words are one word-initial piece."""
        ...

    def fill(self, prompts: Iterable[str], words: Sequence[str], top_k: int) -> Iterator[Fill]:
        """Rank candidate words at the one mask of each prompt, in the order of the prompts."""
        ...
