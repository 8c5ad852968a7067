"""Paired test of a mean difference: signs of the pairs flipped at random."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

EXACT = 14  # up to so many pairs that differ all sign patterns are gone through
BLOCK = 1_024  # sign patterns at once: bounds memory
NEAR = 1e-9  # sums as large as each other up to rounding count as equally large


def sign_flip_p(differences: NDArray[np.float64], flips: int, seed: int) -> NDArray[np.float64]:
    """Test whether paired differences are 0 on average; return two-sided p-values, (outcomes,).

    The null is that the two members of a pair may be exchanged: the sign of each difference is as
    likely one way as the other, independently of the other pairs. The p-value is the share of sign
    patterns whose sum is at least as far from 0 as the one seen.

    Parameters
    ----------
    differences : (pairs, outcomes) array
        One member of a pair minus the other, times the weight of the pair where pairs have
        weights. A pair's outcomes flip together; each outcome is tested alone. nan: the pair lacks
        that outcome.
    flips, seed
        Patterns drawn where more than ``EXACT`` pairs differ in some outcome; the pattern seen is
        then one of them, and p = (1 + hits) / (1 + flips), never 0. Else all are gone through.

    Returns
    -------
    (outcomes,) array
        1 where no pair differs.

    References
    ----------
    Fisher (1935), The Design of Experiments, section 21; Phipson and Smyth (2010), Permutation
    p-values should never be zero, Stat. Appl. Genet. Mol. Biol. 9(1), 39.

    Examples
    --------
    All three pairs differ the same way: two of the eight patterns are as extreme.

    >>> sign_flip_p(np.array([[1.0], [2.0], [3.0]]), 99, 1).tolist()
    [0.25]
    """
    values = np.nan_to_num(np.asarray(differences, dtype=np.float64))
    values = values[(values != 0).any(axis=1)]
    seen = np.abs(values.sum(axis=0)) - NEAR * np.abs(values).sum(axis=0)
    hits = np.zeros(values.shape[1])
    exact = len(values) <= EXACT
    number = 0
    for signs in _all(len(values)) if exact else _drawn(len(values), flips, seed):
        hits += (np.abs(signs @ values) >= seen).sum(axis=0)
        number += len(signs)
    p: NDArray[np.float64] = hits / number if exact else (1 + hits) / (1 + number)
    return p


def _all(pairs: int) -> Iterator[NDArray[np.float64]]:
    """Yield every pattern of signs once."""
    for start in range(0, 2**pairs, BLOCK):
        numbers = np.arange(start, min(2**pairs, start + BLOCK))[:, None]
        yield (1 - 2 * ((numbers >> np.arange(pairs)) & 1)).astype(np.float64)


def _drawn(pairs: int, flips: int, seed: int) -> Iterator[NDArray[np.float64]]:
    rng = np.random.default_rng(seed)
    for start in range(0, flips, BLOCK):
        size = min(BLOCK, flips - start)
        yield (1 - 2 * rng.integers(0, 2, (size, pairs))).astype(np.float64)
