"""A share and its interval."""

from __future__ import annotations

from math import sqrt

from scipy.special import ndtri

from probes.stats.estimate import Estimate


def wilson(hits: int, n: int, confidence: float = 0.95) -> Estimate:
    """Estimate a proportion with Wilson's score interval.

    Parameters
    ----------
    hits, n
        Successes among independent trials; ``n`` at least 1.

    References
    ----------
    Wilson (1927), JASA 22(158), p. 209-212.

    Examples
    --------
    Newcombe (1998), Statistics in Medicine 17, Table I, 81 of 263:

    >>> tuple(round(x, 4) for x in wilson(81, 263)[:3])
    (0.308, 0.2553, 0.3662)
    """
    if not 0 <= hits <= n or n < 1:
        raise ValueError(f"{hits} of {n} is not a proportion")
    z = float(ndtri((1 + confidence) / 2))
    share = hits / n
    middle = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z * sqrt(share * (1 - share) / n + z * z / (4 * n * n)) / (1 + z * z / n)
    return Estimate(share, max(0.0, middle - half), min(1.0, middle + half), n, "Wilson score")
