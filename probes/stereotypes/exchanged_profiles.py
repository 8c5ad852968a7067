"""Paired test of two similarities: profiles exchanged between two descriptions, group by group."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from plumbline.probes.stereotypes.similarity import LEAST, NEAR, cosines, standard

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Array = NDArray[np.float64]

EXACT = 10  # up to so many groups all patterns are gone through: each is a ranking
SUMS = 2**14  # so many sums of patterns of several are all gone through
HELD = 2_000_000  # similarities at once: bounds memory


class Exchanged(NamedTuple):
    """The difference of two similarities, and what it is after exchanges."""

    seen: float
    drawn: Array  # (patterns,)
    exact: bool  # every pattern once, the one seen among them; else drawn ones, without it

    def p(self) -> float:
        """Return the two-sided p: the share of patterns that differ as much as what is seen."""
        hits = int((np.abs(self.drawn) >= abs(self.seen) - NEAR).sum())
        if self.exact:
            return hits / len(self.drawn)
        return (1 + hits) / (1 + len(self.drawn))


def exchanged(
    base: Array, one: Array, other: Array, swaps: int, seed: Sequence[int], *, diagonal: bool
) -> Exchanged:
    """Compare how alike two descriptions are to a third, and exchange their profiles.

    The statistic is the mean over trainings of ``rsa(base, one) - rsa(base, other)``. The null is
    that the two profiles of a group may be exchanged, independently of the other groups: a group's
    profiles of all trainings go over together, and both similarities are computed anew. So it is a
    test for any number of groups, though their rows of similarities depend on each other: with n
    groups no p is below 2 / 2^n, as all exchanged and none are one split.

    Parameters
    ----------
    base : (groups, dimensions) array
    one, other : (trainings, groups, dimensions) arrays
    swaps, seed
        Patterns drawn where there are more than ``EXACT`` groups; else all are gone through.
    diagonal
        See ``similarity.rsa``. A pattern that leaves a row without variation counts as
        no difference.

    Returns
    -------
    Exchanged
        All 0 with fewer than three groups.

    References
    ----------
    Fisher (1935), The Design of Experiments, section 21; Phipson and Smyth (2010), Stat. Appl.
    Genet. Mol. Biol. 9(1), 39.

    Examples
    --------
    Of three groups the eight patterns are four splits, each both ways.

    >>> rng = np.random.default_rng(1)
    >>> base, one, other = rng.random((3, 4)), rng.random((1, 3, 4)), rng.random((1, 3, 4))
    >>> found = exchanged(base, one, other, 99, [1], diagonal=False)
    >>> len(found.drawn), found.p() >= 0.25
    (8, True)
    """
    n = len(base)
    if n < LEAST:
        return Exchanged(0.0, np.zeros(1), exact=True)
    exact = n <= EXACT
    if exact:
        patterns = (np.arange(2**n)[:, None] >> np.arange(n)) & 1
    else:
        drawn = np.random.default_rng(seed).integers(0, 2, (swaps, n))
        patterns = np.concatenate([np.zeros((1, n), dtype=np.int64), drawn])
    first = standard(cosines(base), diagonal=diagonal)
    total = np.zeros(len(patterns))
    for a, b in zip(one, other, strict=True):
        similar = cosines(np.concatenate([a, b]))
        alike = _alike(first, similar, patterns, diagonal=diagonal)
        reverse = (
            _alike(first, similar, 1 - patterns, diagonal=diagonal) if not exact else alike[::-1]
        )
        total += alike - reverse
    found: Array = np.nan_to_num(total / len(one))
    return Exchanged(float(found[0]), found if exact else found[1:], exact)


def together(parts: Sequence[Exchanged], sizes: Sequence[int], swaps: int, seed: int) -> Exchanged:
    """Return the weighted mean of several, whose groups are exchanged independently.

    Exact where each is and all have at most ``SUMS`` patterns; else ``swaps`` are drawn, of each
    part from its own.
    """
    weights = np.array(sizes) / sum(sizes)
    seen = float(weights @ [part.seen for part in parts])
    scaled = [w * part.drawn for w, part in zip(weights, parts, strict=True)]
    number = int(np.prod([float(len(part.drawn)) for part in parts]))
    if all(part.exact for part in parts) and number <= SUMS:
        return Exchanged(seen, reduce(lambda x, y: np.add.outer(x, y).ravel(), scaled), exact=True)
    rng = np.random.default_rng(seed)
    drawn = [
        own[rng.integers(0, len(own), swaps)] if part.exact else own
        for own, part in zip(scaled, parts, strict=True)
    ]
    return Exchanged(seen, np.sum(drawn, axis=0), exact=False)


def _alike(first: Array, similar: Array, patterns: NDArray[np.int64], *, diagonal: bool) -> Array:
    """Return the similarity to ``first`` after each pattern, (patterns,).

    Parameters
    ----------
    first : (groups, groups) array
        Standard ranks, see :func:`plumbline.probes.stereotypes.similarity.standard`.
    similar : (2 groups, 2 groups) array
        Cosines of all profiles of both descriptions.
    """
    n = len(first)
    found = np.empty(len(patterns))
    size = max(1, HELD // n**2)
    for start in range(0, len(patterns), size):
        rows = np.arange(n) + n * patterns[start : start + size]
        mixed = standard(similar[rows[:, :, None], rows[:, None, :]], diagonal=diagonal)
        found[start : start + size] = np.einsum("ij,bij->b", first, mixed) / n
    return found
