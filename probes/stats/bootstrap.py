"""Bootstrap weights and permuted labels that follow from a unit's key alone.

A unit (a distinct name) has the same draws wherever it is met: in any file, in any order, in the
lists of any model and in any part of the people. So data can be read piece by piece and added up,
and what is estimated from the same names is resampled together.
"""

from __future__ import annotations

import hashlib
from math import exp, factorial
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    Bits = NDArray[np.uint64]

GRAIN = 4096  # exponential weights are whole multiples of 1 / GRAIN: sums of them are exact
# P(Poisson(1) <= k) as a share of 2^64, up to the last k at which it is below 1
POISSON = tuple(int(2**64 * sum(exp(-1) / factorial(j) for j in range(k + 1))) for k in range(17))


def keys(units: Iterable[str]) -> Bits:
    """Return a number of 64 bits for each text, an array (units,): its BLAKE2b hash.

    Two of a million different texts have the same number with a chance of 3 in 100 million.
    """
    digests = b"".join(hashlib.blake2b(text.encode(), digest_size=8).digest() for text in units)
    return np.frombuffer(digests, dtype="<u8").astype(np.uint64)


def bits(units: Bits, draws: int, seed: int) -> Bits:
    """Return uniform 64-bit numbers, an array (units, draws).

    Philox 4x64-10 in counter mode, keyed by the seed and the unit.

    References
    ----------
    Salmon et al. (2011), Parallel random numbers: as easy as 1, 2, 3, SC '11, section 4.3.
    """
    found = np.empty((len(units), draws), dtype=np.uint64)
    source = np.random.Philox(key=np.array([seed, 0], dtype=np.uint64))
    state = source.state
    for row, unit in enumerate(units):
        state["state"]["key"][1] = unit
        source.state = state
        found[row] = source.random_raw(draws)
    return found


def poisson(uniform: Bits) -> NDArray[np.float32]:
    """Return Poisson(1) weights: how often a unit is drawn in the ordinary bootstrap.

    Given their sum, the weights of all units are those of drawing so many units with replacement.
    That the sum varies does not matter to ratios of counts.

    References
    ----------
    Hanley and MacGibbon (2006), Creating non-parametric bootstrap samples using Poisson
    frequencies, Comput. Methods Programs Biomed. 83(1).
    """
    found = np.zeros(uniform.shape, dtype=np.int8)
    for limit in POISSON:
        found += uniform >= np.uint64(limit)
    return found.astype(np.float32)


def exponential(uniform: Bits) -> NDArray[np.float32]:
    """Return standard exponential weights in units of 1 / ``GRAIN``: the Bayesian bootstrap's.

    References
    ----------
    Rubin (1981), The Bayesian bootstrap, Annals of Statistics 9(1).
    """
    share = (uniform >> np.uint64(11)).astype(np.float64)
    share += 0.5
    share *= 2.0**-53
    np.log(share, out=share)
    share *= -GRAIN
    return np.rint(share, out=share).astype(np.float32)
