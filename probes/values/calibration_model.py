"""A model's agreement beyond its habit of agreeing: calibration, ratings, and percentiles.

Al Ali and Libovický (2024): LogAgree = a LogDisagree + err over statements about nothing political,
P = Phi(err / sigma) for any statement, and the rating 4 P + 1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.special import ndtr

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

LOWEST, HIGHEST = 1.0, 5.0


class Line(NamedTuple):
    """A fitted line, and the spread around it; numbers, or arrays with one for each replicate."""

    slope: Array
    intercept: Array  # 0 where none is fitted
    sigma: Array


def line(
    x: Array, y: Array, weights: Array | None = None, *, intercept: bool = False, ddof: int = 1
) -> Line:
    """Fit y = a x + err, or y = a x + b + err, by least squares.

    Without intercept a = sum xy / sum x^2, and the residuals need not have mean 0:
    sigma = sqrt(sum err^2 / (n - ddof)) is around 0 in either case.

    Parameters
    ----------
    x, y : (n,) arrays
        Log-probability of disagreeing, and of agreeing.
    weights : (n, replicates) array
        How often each is drawn; by default once.
    ddof
        1 for the sample's standard deviation, 0 for n in its place.

    Returns
    -------
    Line
        Arrays (replicates,); numbers without weights.

    Raises
    ------
    ValueError
        If there are fewer than two points, or the arrays do not fit each other.

    Examples
    --------
    >>> x = -np.arange(1.0, 6)
    >>> found = line(x, 0.8 * x + np.array([0.1, -0.1, 0.2, -0.2, 0]))
    >>> round(float(found.slope), 6), round(float(found.sigma), 6)
    (0.805455, 0.156815)
    """
    x, y = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if x.ndim != 1 or x.shape != y.shape or len(x) < 2:
        raise ValueError("x and y must be vectors of one length, two points at least")
    w = np.ones((len(x), 1)) if weights is None else np.asarray(weights, dtype=np.float64)
    total = w.sum(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        if intercept:
            mean_x, mean_y = x @ w / total, y @ w / total
            slope = ((x * y) @ w / total - mean_x * mean_y) / (x**2 @ w / total - mean_x**2)
            base = mean_y - slope * mean_x
        else:
            slope = (x * y) @ w / (x**2 @ w)
            base = np.zeros_like(slope)
        residual = y[:, None] - slope * x[:, None] - base
        sigma = np.sqrt((w * residual**2).sum(axis=0) / (total - ddof))
    found = Line(slope, base, sigma)
    return found if weights is not None else Line(*(part[0] for part in found))


def probability(residual: Array, sigma: Array) -> Array:
    """Return Phi(err / sigma): the share of apolitical statements that are agreed with less."""
    return np.asarray(ndtr(np.asarray(residual) / sigma), dtype=np.float64)


def rating(p: Array) -> Array:
    """Return 4 P + 1, from 1, disagrees, to 5, agrees.

    Examples
    --------
    >>> rating(probability(np.array([0.0]), np.array(0.2))).tolist()
    [3.0]
    """
    return np.asarray((HIGHEST - LOWEST) * np.asarray(p) + LOWEST, dtype=np.float64)


def turned(ratings: Array) -> Array:
    """Return the ratings of statements that speak against their value: 6 - rating."""
    return np.asarray(LOWEST + HIGHEST - np.asarray(ratings), dtype=np.float64)


def percentile_tails(value: float, answers: Array) -> float:
    """Return twice the smaller of the shares of answers strictly below and strictly above.

    1 at a median that nobody shares, 0 outside all answers and where all others say the same.

    Examples
    --------
    >>> [percentile_tails(3.2, np.arange(1, 6)), percentile_tails(2.5, np.arange(1, 5))]
    [0.8, 1.0]
    >>> percentile_tails(3, np.full(9, 3))
    0.0
    """
    answers = _answers(answers)
    return 2 * float(min((answers < value).mean(), (answers > value).mean()))


def percentile_distance(value: float, answers: Array) -> float:
    """Return the share of answers that are strictly farther from their median than a value.

    Examples
    --------
    >>> [percentile_distance(3.2, np.arange(1, 6)), percentile_distance(2.5, np.arange(1, 5))]
    [0.8, 1.0]
    >>> percentile_distance(3, np.full(9, 3))
    0.0
    """
    answers = _answers(answers)
    middle = float(np.median(answers))
    return float((np.abs(answers - middle) > abs(value - middle)).mean())


def _answers(answers: Array) -> Array:
    found = np.asarray(answers, dtype=np.float64)
    if found.ndim != 1 or not len(found):
        raise ValueError("needs a vector of answers")
    return found
