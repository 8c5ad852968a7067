"""Near-duplicates: texts whose sets of word n-grams are alike, by MinHash and then exactly.

Broder (1997), On the resemblance and containment of documents: the resemblance of two texts is the
Jaccard index of their sets of shingles. MinHash signatures in bands (Leskovec, Rajaraman and
Ullman, Mining of Massive Datasets, chapter 3) find the pairs that may be alike; the index of each
such pair is then computed from the shingles themselves.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from plumbline.builders.core.snapshot import hash64

if TYPE_CHECKING:
    from numpy.typing import NDArray

WORDS = 5  # of a shingle; a shorter text is one shingle
THRESHOLD = 0.8  # Jaccard index of the shingles from which on two texts count as one
PERMUTATIONS, SEED = 128, 1  # of a MinHash signature
RECALL = 0.9999  # of pairs just at the threshold, at the least, by the bands
WORD = re.compile(r"\w+")


def shingles(text: str, words: int) -> NDArray[np.uint64]:
    """Return the runs of so many words of a text as a set, each as a hash of 64 bits, sorted.

    Words are in small letters and without punctuation. The hash is linear in the hashes of the
    words, modulo 2^64, with an odd factor for each place: two of a million runs have the same one
    once in 10^7 times.

    Examples
    --------
    >>> len(shingles("It rains, it rains.", 3)), len(shingles("It rains.", 3))
    (2, 1)
    """
    found = [_word(one) for one in WORD.findall(text.casefold())]
    length = min(words, len(found))
    hashes = np.array(found, dtype=np.uint64)
    runs = np.full(len(found) - length + 1, length, dtype=np.uint64)
    for place, factor in zip(range(length), _factors(words), strict=False):
        runs += factor * hashes[place : place + len(runs)]
    return np.unique(runs)


_word = lru_cache(maxsize=1 << 17)(hash64)  # most words of a text are among the most frequent


@lru_cache
def _factors(words: int) -> tuple[np.uint64, ...]:
    return tuple(np.uint64(_word(f"place {n}") | 1) for n in range(words))


def jaccard(a: NDArray[np.uint64], b: NDArray[np.uint64]) -> float:
    """Return the Jaccard index of two sets, each sorted and without repetitions."""
    both = len(np.intersect1d(a, b, assume_unique=True))
    return both / (len(a) + len(b) - both)


def bands(threshold: float, permutations: int) -> tuple[int, int]:
    """Return how many bands of how many rows find a pair at the threshold with :data:`RECALL`.

    A pair with Jaccard index J agrees in a band of r rows with probability J^r, and so in one of b
    bands at least with 1 - (1 - J^r)^b. The most rows that suffice make the fewest candidates.

    Examples
    --------
    >>> bands(0.8, 128)
    (25, 5)
    """
    for rows in range(permutations, 1, -1):
        number = permutations // rows
        if 1 - (1 - threshold**rows) ** number >= RECALL:
            return number, rows
    return permutations, 1


class Signer:
    """MinHash signatures under one set of permutations."""

    def __init__(self) -> None:
        from datasketch import MinHash

        self._empty = MinHash(num_perm=PERMUTATIONS, seed=SEED, hashfunc=int)

    def sign(self, text: str) -> NDArray[np.uint32]:
        """Return the signature of a text, (permutations,)."""
        signature = self._empty.copy()
        signature.update_batch((shingles(text, WORDS) >> np.uint64(32)).tolist())
        return np.asarray(signature.hashvalues, dtype=np.uint32)


def buckets(signatures: NDArray[np.uint32]) -> dict[int, list[tuple[int, int]]]:
    """Return for each text that shares a band with another its buckets, as (band, number).

    ``signatures``: (texts, permutations).
    """
    number, rows = bands(THRESHOLD, PERMUTATIONS)
    found: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
    for band in range(number):
        part = np.ascontiguousarray(signatures[:, band * rows : (band + 1) * rows])
        keys = part.view(np.dtype((np.void, part.dtype.itemsize * rows))).reshape(-1)
        _, which, count = np.unique(keys, return_inverse=True, return_counts=True)
        for text in np.flatnonzero(count[which] > 1):
            found[int(text)].append((band, int(which[text])))
    return dict(found)


class NearDuplicates(NamedTuple):
    """What a text is a near-duplicate of."""

    same: dict[int, int]  # text: the earlier one of its own corpus that stays
    leaks: dict[int, set[int]]  # text: those of other corpora that it is a near-duplicate of


def compare(
    order: Sequence[int],
    corpus: Sequence[int] | NDArray[np.uint8],
    places: dict[int, list[tuple[int, int]]],
    sets: dict[int, NDArray[np.uint64]],
) -> NearDuplicates:
    """Compare every text with those before it that stay.

    A text that is alike to an earlier one of its own corpus is a duplicate of it. A text that is
    alike to an earlier one of another corpus leaks, and so does that one: neither is typical of
    its corpus. A pair just below the threshold stays, whoever both are alike to.

    ``order``: the texts that share a bucket, as they are to be preferred.
    ``corpus``: of each text.
    ``places``, ``sets``: buckets and hashed shingles of these texts.
    """
    kept: defaultdict[tuple[int, int], list[int]] = defaultdict(list)
    same: dict[int, int] = {}
    leaks: defaultdict[int, set[int]] = defaultdict(set)
    for text in order:
        near = dict.fromkeys(other for place in places[text] for other in kept[place])
        alike = [o for o in near if jaccard(sets[text], sets[o]) >= THRESHOLD]
        others = [o for o in alike if corpus[o] != corpus[text]]
        for other in others:
            leaks[text].add(other)
            leaks[other].add(text)
        if alike and not others:
            same[text] = alike[0]
        if not alike:
            for place in places[text]:
                kept[place].append(text)
    return NearDuplicates(same, dict(leaks))
