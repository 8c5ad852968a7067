"""Bootstrap weights and permuted labels that follow from a unit's key alone, and their intervals.

A unit (a distinct name) has the same draws wherever it is met: in any file, in any order, in the
lists of any model and in any part of the people. So data can be read piece by piece and added up,
and what is estimated from the same names is resampled together.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from math import exp, factorial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, stdtrit

Bits = NDArray[np.uint64]
Floats = NDArray[np.float64]

METHOD = "bootstrap percentile, expanded for few clusters (Poisson weights)"
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
    """Return uniform 64-bit numbers, an array (units, draws), keyed by the seed and the unit.

    Philox 4x64-10 in counter mode: Salmon et al. (2011), Parallel random numbers: as easy as 1, 2,
    3, SC '11, section 4.3.
    """
    result = np.empty((len(units), draws), dtype=np.uint64)
    source = np.random.Philox(key=np.array([seed, 0], dtype=np.uint64))
    state = source.state
    for row, unit in enumerate(units):
        state["state"]["key"][1] = unit
        source.state = state
        result[row] = source.random_raw(draws)
    return result


def poisson(uniform: Bits) -> NDArray[np.float32]:
    """Return Poisson(1) weights: how often a unit is drawn in the ordinary bootstrap.

    Given their sum, the weights of all units are those of drawing so many units with replacement.
    That the sum varies does not matter to ratios of counts: Hanley and MacGibbon (2006), Creating
    non-parametric bootstrap samples using Poisson frequencies, Comput. Methods Programs Biomed.
    83(1).
    """
    result = np.zeros(uniform.shape, dtype=np.int8)
    for limit in POISSON:
        result += uniform >= np.uint64(limit)
    return result.astype(np.float32)


def exponential(uniform: Bits) -> NDArray[np.float32]:
    """Return standard exponential weights in units of 1 / ``GRAIN``.

    Rubin (1981), The Bayesian bootstrap, Annals of Statistics 9(1).
    """
    share = ((uniform >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53
    return np.asarray(np.rint(-GRAIN * np.log(share)), dtype=np.float32)


def interval(draws: Floats, clusters: int, confidence: float) -> tuple[float, float]:
    """Return the expanded percentile interval of bootstrap replicates, nan left out.

    The bootstrap's spread is too small by sqrt((n - 1) / n), and its normal tails by those of t.
    The levels are moved outward by both: Hesterberg (2015), What teachers should know about the
    bootstrap, The American Statistician 69(4), p. 379.

    Parameters
    ----------
    draws : (replicates,) array
        The estimate in each replicate.
    clusters
        How many were resampled; with fewer than two the ends are nan.

    Examples
    --------
    With many clusters these are the ordinary percentiles.

    >>> low, high = interval(np.linspace(0, 1, 1001), 1_000_000, 0.95)
    >>> round(low, 3), round(high, 3)
    (0.025, 0.975)
    """
    result = draws[np.isfinite(draws)]
    if clusters < 2 or not len(result):
        return float("nan"), float("nan")
    tail = expanded_tail(clusters, confidence)
    low, high = np.quantile(result, [tail, 1 - tail])
    return float(low), float(high)


def expanded_tail(clusters: int, confidence: float) -> float:
    """Return the level of the lower percentile of :func:`interval`, of two clusters at least.

    Examples
    --------
    >>> round(expanded_tail(10, 0.95), 4)
    0.0086
    """
    reach = np.sqrt(clusters / (clusters - 1)) * stdtrit(clusters - 1, (1 + confidence) / 2)
    return float(ndtr(-reach))


class Limits(NamedTuple):
    """Percentile limits, arrays of one shape."""

    low: Floats
    high: Floats


def percentiles(values: Floats, confidence: float) -> Limits:
    """Return limits over the last axis; nan is left out, and all nan gives nan.

    The order statistics just outside the percentiles, so that limits are values that were drawn.
    """
    values = np.sort(values, axis=-1)  # nan goes last
    defined = np.maximum((~np.isnan(values)).sum(axis=-1, keepdims=True), 1) - 1
    tail = (1 - confidence) / 2
    ranks = np.floor(tail * defined), np.ceil((1 - tail) * defined)
    ends = (np.take_along_axis(values, rank.astype(np.int64), axis=-1) for rank in ranks)
    return Limits(*(end[..., 0] for end in ends))
