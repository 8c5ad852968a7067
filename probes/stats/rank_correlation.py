"""Spearman's rank correlation and its interval."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.special import ndtri
from scipy.stats import rankdata

from plumbline.probes.stats.estimate import Estimate

if TYPE_CHECKING:
    from numpy.typing import NDArray


def spearman(x: NDArray[np.float64], y: NDArray[np.float64], confidence: float = 0.95) -> Estimate:
    """Estimate the rank correlation of two (n,) arrays, n at least 4, ties at mean ranks.

    The interval is Fisher's z with the variance (1 + rho^2 / 2) / (n - 3). All is nan where one of
    the arrays does not vary.

    References
    ----------
    Bonett and Wright (2000), Psychometrika 65(1), equation 3, p. 25.
    """
    if len(x) != len(y) or len(x) < 4:
        raise ValueError("needs two arrays of the same length, at least 4")
    with np.errstate(invalid="ignore"):
        rho = float(np.corrcoef(rankdata(x), rankdata(y))[0, 1])
    z = np.arctanh(np.clip(rho, -1 + 1e-12, 1 - 1e-12))
    half = float(ndtri((1 + confidence) / 2)) * np.sqrt((1 + rho**2 / 2) / (len(x) - 3))
    low, high = float(np.tanh(z - half)), float(np.tanh(z + half))
    return Estimate(rho, low, high, len(x), "Fisher z, Bonett and Wright variance")
