"""The difference of two shares and its interval."""

from __future__ import annotations

from math import sqrt

from probes.stats.estimate import Estimate
from probes.stats.proportion import wilson


def newcombe(hits: int, n: int, others: int, m: int, confidence: float = 0.95) -> Estimate:
    """Estimate the difference of two independent shares, hits / n - others / m.

    Newcombe's hybrid score interval, which joins the Wilson intervals of both.

    References
    ----------
    Newcombe (1998), Interval estimation for the difference between independent proportions,
    Statistics in Medicine 17, p. 873-890, method 10.

    Examples
    --------
    Newcombe (1998), Table II, 56 of 70 against 48 of 80:

    >>> tuple(round(x, 4) for x in newcombe(56, 70, 48, 80)[:3])
    (0.2, 0.0524, 0.3339)
    """
    one, other = wilson(hits, n, confidence), wilson(others, m, confidence)
    value = one.value - other.value
    below = sqrt((one.value - one.low) ** 2 + (other.high - other.value) ** 2)
    above = sqrt((one.high - one.value) ** 2 + (other.value - other.low) ** 2)
    return Estimate(value, value - below, value + above, n + m, "Newcombe hybrid score")
