"""Drawing from a stream: the items with the smallest ranks, whatever order they come in."""

from __future__ import annotations

import hashlib
from array import array
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

LEAST = 4096  # items that are held at any rate


def rank(seed: int, name: str) -> int:
    """Return a number of 64 bits that is as good as random, and the same on every machine."""
    return int.from_bytes(hashlib.blake2b(f"{seed}/{name}".encode(), digest_size=8).digest())


class Pool:
    """The items of smallest rank whose weights come to a limit: memory does not grow with others.

    Parameters
    ----------
    limit
        The item with which the sum of weights reaches it is the last one held.
    """

    def __init__(self, limit: float) -> None:
        self.limit = limit
        self._ranks, self._digests, self._weights = array("Q"), array("Q"), array("Q")
        self._full = LEAST

    def add(self, rank: int, digest: int, weight: int) -> None:
        """Hold an item, if its rank is small enough."""
        self._ranks.append(rank)
        self._digests.append(digest)
        self._weights.append(weight)
        if len(self._ranks) >= self._full:
            self._cut()
            self._full = max(LEAST, 2 * len(self._ranks))

    def items(self) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        """Return ranks and digests of the items held, sorted."""
        self._cut()
        return tuple(np.array(a, dtype=np.uint64) for a in (self._ranks, self._digests))  # type: ignore[return-value]

    def _cut(self) -> None:
        columns = [
            np.frombuffer(a, dtype=np.uint64) if a else np.empty(0, dtype=np.uint64)
            for a in (self._ranks, self._digests, self._weights)
        ]
        order = np.lexsort((columns[1], columns[0]))
        before = np.cumsum(columns[2][order]) - columns[2][order]
        chosen = order[before < self.limit]
        self._ranks, self._digests, self._weights = (
            array("Q", column[chosen].tobytes()) for column in columns
        )
