"""Percentile intervals that are widened for few clusters."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.special import ndtr, stdtrit

if TYPE_CHECKING:
    from numpy.typing import NDArray

METHOD = "bootstrap percentile, expanded for few clusters (Poisson weights)"


def interval(draws: NDArray[np.float64], clusters: int, confidence: float) -> tuple[float, float]:
    """Return the expanded percentile interval of bootstrap replicates, nan left out.

    The bootstrap's spread is too small by sqrt((n - 1) / n), and its normal tails by those of t.
    The levels are moved outward by both.

    Parameters
    ----------
    draws : (replicates,) array
        The estimate in each replicate.
    clusters
        How many were resampled; with fewer than two the ends are nan.

    References
    ----------
    Hesterberg (2015), What teachers should know about the bootstrap, The American Statistician
    69(4), p. 379: expanded percentile intervals.

    Examples
    --------
    With many clusters these are the ordinary percentiles.

    >>> low, high = interval(np.linspace(0, 1, 1001), 1_000_000, 0.95)
    >>> round(low, 3), round(high, 3)
    (0.025, 0.975)
    """
    found = draws[np.isfinite(draws)]
    if clusters < 2 or not len(found):
        return float("nan"), float("nan")
    reach = np.sqrt(clusters / (clusters - 1)) * stdtrit(clusters - 1, (1 + confidence) / 2)
    tail = float(ndtr(-reach))
    low, high = np.quantile(found, [tail, 1 - tail])
    return float(low), float(high)
