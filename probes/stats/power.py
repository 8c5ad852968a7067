"""Exact power of tests of counts, and the effects that they find."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import bdtr, bdtrik, gammaln, xlog1py, xlogy

if TYPE_CHECKING:
    from numpy.typing import NDArray

SPREAD = 7  # standard deviations of a count beyond which it has no probability worth counting
STEPS = 22  # of a bisection


def sign_power(apart: float, differing: float, n: int, level: float = 0.05) -> float:
    """Return the power of McNemar's exact test of two shares of n pairs.

    The pairs that differ are binomial, and so are those among them that differ one way, whose
    share is (1 + apart / differing) / 2: Miettinen (1968), The matched pairs design in the case of
    all-or-none responses, Biometrics 24(2). The test is conditional on how many differ, its power
    is not.

    Parameters
    ----------
    apart
        Difference of the shares.
    differing
        Probability that a pair differs, at least ``apart``.
    n
        Number of pairs.

    Examples
    --------
    Six pairs, all of which differ one way: p is 2 / 2^6.

    >>> round(sign_power(1.0, 1.0, 6), 6), sign_power(1.0, 1.0, 5)
    (1.0, 0.0)
    """
    mean, spread = n * differing, SPREAD * np.sqrt(n * differing * (1 - differing)) + 1
    first, last = max(0, int(mean - spread)), min(n, int(mean + spread) + 1)
    pairs, few = np.arange(first, last + 1), _few(n, level)[first : last + 1]
    choose = gammaln(n + 1) - gammaln(pairs + 1) - gammaln(n - pairs + 1)
    mass = np.exp(choose + xlogy(pairs, differing) + xlog1py(n - pairs, -differing))
    share = (1 + apart / differing) / 2
    tails = [bdtr(np.maximum(few, 0), pairs, x) for x in (share, 1 - share)]
    return float((mass * np.where(few >= 0, tails[0] + tails[1], 0.0)).sum())


@lru_cache(8)
def _few(n: int, level: float) -> NDArray[np.float64]:
    """Return how many of 0 to n pairs may differ the other way where p is at most the level."""
    pairs = np.arange(n + 1)
    with np.errstate(invalid="ignore"):
        most = np.floor(np.nan_to_num(bdtrik(level / 2, pairs, 0.5), nan=-1.0))
    few: NDArray[np.float64] = np.minimum(most + 1, pairs)  # the inverse may be one off
    while (much := (few >= 0) & (bdtr(np.maximum(few, 0), pairs, 0.5) > level / 2)).any():
        few[much] -= 1
    return few


def sign_detectable(one: int, other: int, n: int, level: float = 0.05, power: float = 0.8) -> float:
    """Return the difference of two shares that McNemar's exact test finds with this power.

    Only the difference of the two probabilities that a pair differs one way moves; their product
    stays that of the counts, one half added to each. Of counts the logarithm of the product and the
    difference are uncorrelated (orthogonal parameters: Cox and Reid 1987, J. R. Stat. Soc. B
    49(1)). With their sum held instead, as where the interval is taken for it, data that
    understate an effect promise to find it: at the effect told .64 to .7 are then found of 60
    pairs.

    Parameters
    ----------
    one, other
        Pairs that differ one way and the other way, of n.

    Returns
    -------
    float
        Infinite where even n pairs that all differ one way would be too few.

    Examples
    --------
    Of 60 texts 10 are right with one alone and 5 with the other. With as many that differ at any
    difference, and without regard to steps of p, 2.8 (15 / 60 / 60)^.5 = .181 would be enough.

    >>> round(sign_detectable(10, 5, 60), 3)
    0.211
    """
    product = (one + 0.5) * (other + 0.5) / n**2

    def found(apart: float) -> float:
        return sign_power(apart, min(1.0, (apart**2 + 4 * product) ** 0.5), n, level)

    low, high = 0.0, 1.0
    if found(high) < power:
        return float("inf")
    for _ in range(STEPS):
        middle = (low + high) / 2
        low, high = (low, middle) if found(middle) >= power else (middle, high)
    return high
