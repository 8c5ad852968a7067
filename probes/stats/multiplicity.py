"""Control of errors over a family of tests: false discovery rate, family-wise error rate."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


def benjamini_hochberg(p: NDArray[np.float64]) -> NDArray[np.float64]:
    """Adjust p-values over the whole family tested.

    Parameters
    ----------
    p : (m,) array
        Raw p-values; every test of the family, the dull ones too.

    Returns
    -------
    (m,) array
        Adjusted p-values: rejecting those at or below q keeps the false discovery rate at q for
        independent or positively dependent tests.

    References
    ----------
    Benjamini and Hochberg (1995), J. R. Stat. Soc. B 57(1), procedure (1), p. 293.

    Examples
    --------
    >>> benjamini_hochberg(np.array([0.01, 0.04, 0.03, 0.5])).round(4).tolist()
    [0.04, 0.0533, 0.0533, 0.5]
    """
    p = _checked(p)
    order = np.argsort(p, kind="stable")
    scaled = p[order] * (len(p) / np.arange(1, len(p) + 1))  # in this order never below p
    adjusted = np.empty_like(scaled)
    adjusted[order] = np.minimum.accumulate(scaled[::-1])[::-1]
    return np.minimum(adjusted, 1.0)


def bonferroni(p: NDArray[np.float64]) -> NDArray[np.float64]:
    """Adjust p-values over the whole family tested, for whatever dependence of the tests.

    Parameters
    ----------
    p : (m,) array
        Raw p-values; every test of the family, the dull ones too.

    Returns
    -------
    (m,) array
        m times each, at most 1: rejecting those at or below a keeps the chance of any false
        rejection at a.

    References
    ----------
    Dunn (1961), Multiple comparisons among means, JASA 56(293), p. 52-64.

    Examples
    --------
    >>> bonferroni(np.array([0.01, 0.04, 0.03, 0.5])).round(4).tolist()
    [0.04, 0.16, 0.12, 1.0]
    """
    p = _checked(p)
    return np.minimum(p * len(p), 1.0)


def _checked(p: NDArray[np.float64]) -> NDArray[np.float64]:
    p = np.asarray(p, dtype=np.float64)
    if p.ndim != 1 or np.isnan(p).any() or (p < 0).any() or (p > 1).any():
        raise ValueError("p-values must be a vector of numbers between 0 and 1")
    return p
