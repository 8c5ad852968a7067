"""What a model is trained on: texts as tokens, in a file that is mapped.

Four bytes a token on the disk, in memory only what a step reads; processes on one machine share it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from plumbline.probes.models.batching import blocks
from plumbline.probes.models.tokenizer import HEAD
from plumbline.probes.training import distributed

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from plumbline.probes.models.tokenizer import Tokens

    Ids = NDArray[np.int32]

FILES = ("tokens.bin", "ends.npy")


class Rows(NamedTuple):
    """Rows of tokens, each with its special tokens; a label for each where there are classes."""

    tokens: Ids
    ends: NDArray[np.int64]  # of each row in them
    labels: NDArray[np.int64] | None = None

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Return the number of tokens of each row."""
        return np.diff(self.ends, prepend=0)

    def some(self, which: Sequence[int] | NDArray[np.int64]) -> Batch:
        """Return some of the rows."""
        begin = [int(self.ends[i - 1]) if i else 0 for i in which]
        ids = [self.tokens[b : self.ends[i]] for b, i in zip(begin, which, strict=True)]
        return Batch(ids, None if self.labels is None else self.labels[which])


class Batch(NamedTuple):
    """Rows of a step."""

    ids: list[Ids]
    labels: NDArray[np.int64] | None = None


def pieces(tokens: Tokens, texts: Sequence[str], length: int) -> Iterator[list[int]]:
    """Yield the texts as tokens, those too long in parts, each with its special tokens."""
    (whole,), (bare,) = tokens.encode([HEAD]), tokens.encode([HEAD], special=False)
    before = tokens.opening()
    after = whole[len(before) + len(bare) :]
    room = length - len(before) - len(after)
    for some in blocks(texts):
        for ids in tokens.encode(some, special=False):
            for i in range(0, len(ids), room):
                yield [*before, *ids[i : i + room], *after]


def cut(tokens: Tokens, texts: Sequence[str], length: int) -> Iterator[list[int]]:
    """Yield the texts as tokens, the end of those too long left out but for the last token."""
    for some in blocks(texts):
        for ids in tokens.encode(some):
            yield ids if len(ids) <= length else [*ids[: length - 1], ids[-1]]


def stored(rows: Iterator[list[int]], folder: Path, labels: Sequence[int] | None = None) -> Rows:
    """Write rows into a folder, in the first process, and return them mapped, in all of them."""
    tokens, ends = (folder / name for name in FILES)
    if distributed.first():
        folder.mkdir(parents=True, exist_ok=True)
        lengths = []
        with tokens.open("wb") as file:
            for ids in rows:
                lengths.append(len(ids))
                np.array(ids, dtype=np.int32).tofile(file)
        np.save(ends, np.cumsum(lengths, dtype=np.int64))
    distributed.wait()
    there = np.load(ends)
    found = np.memmap(tokens, np.int32, "r") if len(there) else np.zeros(0, np.int32)
    return Rows(found, there, None if labels is None else np.array(labels, dtype=np.int64))


def remove(folder: Path) -> None:
    """Take what :func:`stored` wrote away."""
    for name in FILES:
        (folder / name).unlink(missing_ok=True)


def within(tokens: Tokens, texts: Sequence[str], most: int) -> tuple[list[str], int]:
    """Return the first texts that have so many tokens, and how many these have.

    The last that does not fit is left out, so that no training has more.
    """
    total, kept = 0, 0
    for some in blocks(texts):
        for ids in tokens.encode(some):
            if total + len(ids) > most:
                return list(texts[:kept]), total
            total += len(ids)
            kept += 1
    return list(texts), total
