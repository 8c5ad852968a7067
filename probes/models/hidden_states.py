"""The last hidden state of words that stand alone, from models that fill a mask or continue."""

from __future__ import annotations

from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np
import torch

from plumbline.builders.core.errors import Problem
from plumbline.probes.models.scorer import DECIMALS, Represented

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from plumbline.probes.models.batching import Batches
    from plumbline.probes.models.tokenizer import Tokens

BLOCK = 1024  # words whose states are held at once


def represent(
    tokens: Tokens,
    run: Batches,
    words: Iterable[str],
    encode: Callable[[list[str]], list[tuple[list[int], list[int]]]],
    states: Callable[[torch.Tensor], torch.Tensor],
    longest: int,
) -> Iterator[Represented]:
    """Yield the mean last hidden state of each word's own pieces, in the order of the words.

    Parameters
    ----------
    encode
        Returns the tokens of each word, special ones among them, and the places of its own.
    states
        Returns the last hidden states (texts, length, width) of equally long texts (texts, length).

    Raises
    ------
    Problem
        If a word has no tokens or too many, or a state is not finite.
    """
    source = iter(words)
    while block := list(islice(source, BLOCK)):
        encoded = encode(block)
        for word, (ids, own) in zip(block, encoded, strict=True):
            tokens.fits(word, ids, longest)
            if not own:
                raise Problem(f"models.{tokens.name}: no token of its own in {word!r}")
        yield Represented(
            block,
            np.array([len(own) for _, own in encoded], np.int32),
            np.array([tokens.unknown([ids[p] for p in own]) for ids, own in encoded], np.int32),
            np.round(_means(tokens.name, run, encoded, states), DECIMALS) + 0.0,
        )


def _means(
    name: str,
    run: Batches,
    encoded: Sequence[tuple[list[int], list[int]]],
    states: Callable[[torch.Tensor], torch.Tensor],
) -> np.ndarray:
    """Return the mean states (words, width) over the places of each word's own tokens."""
    means: dict[int, np.ndarray] = {}

    def launch(rows: list[int]) -> torch.Tensor:
        return states(run.move([encoded[i][0] for i in rows]))

    def finish(rows: list[int], done: torch.Tensor) -> None:
        found = done.double().cpu().numpy()
        if not np.isfinite(found).all():
            raise Problem(
                f"models.{name}: states are not finite (batch of {len(rows)}); check its weights, "
                "and dtype"
            )
        for n, i in enumerate(rows):
            means[i] = found[n, encoded[i][1]].mean(axis=0)

    lengths = [len(ids) for ids, _ in encoded]
    run.run(lengths, lengths, torch.inference_mode()(launch), finish)
    return np.stack([means[i] for i in range(len(encoded))])


def alone(
    tokens: Tokens,
    words: list[str],
    *,
    language: str = "",
    begin: Callable[[], list[int]] | None = None,
) -> list[tuple[list[int], list[int]]]:
    """Return the tokens of each word as a text of its own, and the places of its own tokens.

    Parameters
    ----------
    begin
        For models that read from left to right: returns what begins a text with nothing before.
        Without it, the special tokens are those that the tokenizer puts around a text.
    """
    if begin is None:
        whole = tokens.encode(words, language)
        return [(ids, tokens.counted(ids)) for ids in whole]
    start: list[int] = []
    with suppress(Problem):  # GPT-1 has no such token: there the word is the first thing it sees
        start = begin()
    n = len(start)
    inner = tokens.encode(words, language, special=False)
    return [([*start, *ids], list(range(n, n + len(ids)))) for ids in inner]
