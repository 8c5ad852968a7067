"""Bootstrap weights that depend only on a unit's key and a seed, and percentile intervals.

A unit (a distinct name) gets the same draws in every file, ordering, model and subset of people.
Data can therefore be read and summed in parts, and estimates based on the same names are resampled
together.
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
GRAIN = 4096  # exponential weights are multiples of 1 / GRAIN, so that sums are exact
# P(Poisson(1) <= k) times 2^64, up to the last k where the probability is below 1
POISSON = tuple(int(2**64 * sum(exp(-1) / factorial(j) for j in range(k + 1))) for k in range(17))


def keys(units: Iterable[str]) -> Bits:
    """Return the 64-bit BLAKE2b hash of each text, as an array of shape (units,).

    The probability of a collision among a million distinct texts is 3 in 100 million.
    """
    digests = b"".join(hashlib.blake2b(text.encode(), digest_size=8).digest() for text in units)
    return np.frombuffer(digests, dtype="<u8").astype(np.uint64)


def bits(units: Bits, draws: int, seed: int) -> Bits:
    """Return uniform 64-bit numbers of shape (units, draws) that depend only on seed and unit.

    The generator is Philox 4x64-10 in counter mode: Salmon et al. (2011), Parallel random numbers:
    as easy as 1, 2, 3, SC '11, section 4.3.
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
    """Return Poisson(1) weights: the frequencies of units in the ordinary bootstrap.

    Conditional on their sum, the weights are multinomial, as in sampling with replacement. The
    random sum does not affect ratios of counts: Hanley and MacGibbon (2006), Creating
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
    """Return the expanded percentile interval of bootstrap replicates; nan values are ignored.

    The percentiles are moved outward, because the bootstrap's standard error is too small by a
    factor of sqrt((n - 1) / n), and because it uses normal instead of t quantiles: Hesterberg
    (2015), What teachers should know about the bootstrap, The American Statistician 69(4), p. 379.

    Parameters
    ----------
    draws : (replicates,) array
        The estimate in each replicate.
    clusters
        Number of resampled clusters; with fewer than two, the limits are nan.

    Examples
    --------
    With many clusters, the limits are the ordinary percentiles.

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
    """Return the level of the lower percentile of :func:`interval`, for at least two clusters.

    Examples
    --------
    >>> round(expanded_tail(10, 0.95), 4)
    0.0086
    """
    reach = np.sqrt(clusters / (clusters - 1)) * stdtrit(clusters - 1, (1 + confidence) / 2)
    return float(ndtr(-reach))


class Limits(NamedTuple):
    """Lower and upper percentile limits, as arrays of the same shape."""

    low: Floats
    high: Floats


def percentiles(values: Floats, confidence: float) -> Limits:
    """Return limits over the last axis; nan values are ignored unless all are nan.

    The limits are the order statistics just outside the percentiles, that is, observed values.
    """
    values = np.sort(values, axis=-1)  # nan sorts last
    defined = np.maximum((~np.isnan(values)).sum(axis=-1, keepdims=True), 1) - 1
    tail = (1 - confidence) / 2
    ranks = np.floor(tail * defined), np.ceil((1 - tail) * defined)
    ends = (np.take_along_axis(values, rank.astype(np.int64), axis=-1) for rank in ranks)
    return Limits(*(end[..., 0] for end in ends))


def correlation(x: Floats, y: Floats, weights: Floats) -> Floats:
    """Return Pearson's r of arrays of shape (n,), with weights of shape (n, replicates)."""
    with np.errstate(invalid="ignore", divide="ignore"):
        mx, my, xx, yy, xy = (
            v @ weights / weights.sum(axis=0) for v in (x, y, x * x, y * y, x * y)
        )
        draws = (xy - mx * my) / np.sqrt((xx - mx**2) * (yy - my**2))
    return np.asarray(np.clip(draws, -1, 1), dtype=np.float64)
