"""Near-duplicates: texts with similar sets of word n-grams, found with MinHash and then verified.

Broder (1997), On the resemblance and containment of documents: the resemblance of two texts is the
Jaccard index of their sets of shingles. MinHash signatures in bands (Leskovec, Rajaraman and
Ullman, Mining of Massive Datasets, chapter 3) find candidate pairs; the index of each pair is
then computed from the shingles.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from plumbline.builders.core.snapshot import hash64

if TYPE_CHECKING:
    from numpy.typing import NDArray

WORDS = 5  # words per shingle; a shorter text is one shingle
THRESHOLD = 0.8  # minimum Jaccard index of the shingles of near-duplicates
PERMUTATIONS, SEED = 128, 1  # number of MinHash permutations, and their seed
# A pair with Jaccard index J agrees in at least one of 25 bands of 5 rows with probability
# 1 - (1 - J^5)^25, which is .9999 at the threshold.
BANDS, ROWS = 25, 5
WORD = re.compile(r"\w+")


def shingles(text: str) -> NDArray[np.uint64]:
    """Return the sorted 64-bit hashes of the distinct runs of :data:`WORDS` words in a text.

    Words are lower-cased, and punctuation is ignored.

    Examples
    --------
    >>> len(shingles("It rains, it rains, it rains.")), len(shingles("It rains."))
    (2, 1)
    """
    words = WORD.findall(text.casefold())
    starts = range(max(1, len(words) - WORDS + 1))
    runs = {hash64(" ".join(words[start : start + WORDS])) for start in starts}
    return np.array(sorted(runs), dtype=np.uint64)


def jaccard(a: NDArray[np.uint64], b: NDArray[np.uint64]) -> float:
    """Return the Jaccard index of two sorted sets."""
    shared = len(np.intersect1d(a, b, assume_unique=True))
    return shared / (len(a) + len(b) - shared)


def buckets(texts: Iterable[str]) -> dict[int, list[tuple[int, int]]]:
    """Return the buckets, (band, number) pairs, of each text that shares a bucket with another."""
    from datasketch import MinHash

    sets = ((shingles(text) >> np.uint64(32)).tolist() for text in texts)
    hashes = MinHash.generator(sets, num_perm=PERMUTATIONS, seed=SEED, hashfunc=int)
    signatures = np.stack([signature.hashvalues.astype(np.uint32) for signature in hashes])
    places: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
    for band in range(BANDS):
        part = signatures[:, band * ROWS : (band + 1) * ROWS]
        _, which, count = np.unique(part, axis=0, return_inverse=True, return_counts=True)
        for text in np.flatnonzero(count[which] > 1):
            places[int(text)].append((band, int(which[text])))
    return dict(places)


class NearDuplicates(NamedTuple):
    """Pairs of near-duplicates, within and across corpora."""

    duplicates: dict[int, int]  # text -> the retained earlier text in its corpus
    leaks: dict[int, set[int]]  # text -> its near-duplicates in other corpora


def compare(texts: Sequence[str], corpus: Sequence[Hashable]) -> NearDuplicates:
    """Compare each text with the earlier texts that were retained.

    A near-duplicate of an earlier text in the same corpus is a duplicate. Near-duplicates in
    different corpora are both leaks, since neither is typical of its corpus. Similarity is not
    transitive: a text that is similar only to a duplicate is retained.

    ``texts``: texts in order of preference.
    ``corpus``: name of the corpus of each text.
    """
    places = buckets(texts)
    sets = {text: shingles(texts[text]) for text in places}
    earlier: defaultdict[tuple[int, int], list[int]] = defaultdict(list)
    duplicates: dict[int, int] = {}
    leaks: defaultdict[int, set[int]] = defaultdict(set)
    for text in sorted(places):
        near = dict.fromkeys(match for bucket in places[text] for match in earlier[bucket])
        similar = [o for o in near if jaccard(sets[text], sets[o]) >= THRESHOLD]
        elsewhere = [o for o in similar if corpus[o] != corpus[text]]
        for match in elsewhere:
            leaks[text].add(match)
            leaks[match].add(text)
        if similar and not elsewhere:
            duplicates[text] = similar[0]
        if not similar:
            for bucket in places[text]:
                earlier[bucket].append(text)
    return NearDuplicates(duplicates, dict(leaks))
