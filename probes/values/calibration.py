"""A model's agreement beyond its habit of agreeing: calibration, residuals, ratings.

Al Ali and Libovický (2024): LogAgree = a LogDisagree + err over statements about nothing political,
for fixed gender; P = Phi(err / sigma) for any statement, and the rating 4 P + 1. Everything is
computed for all bootstrap replicates at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.special import ndtr

from plumbline.probes.values.schemas import LIKELY, OWN, POOLED

if TYPE_CHECKING:
    from plumbline.probes.values.responses import Array, Block

LOWEST, HIGHEST = 1.0, 5.0


class Line(NamedTuple):
    """A fitted line, and the spread around it; numbers, or arrays with one for each replicate."""

    slope: Array
    sigma: Array


class Fit(NamedTuple):
    """Lines of every gender, frame and form, and the spread of what is left."""

    slope: Array  # (genders, cells, replicates)
    sigma: Array  # (genders, replicates): of residuals averaged over cells


def line(x: Array, y: Array, weights: Array | None = None) -> Line:
    """Fit y = a x + err by least squares: a = sum xy / sum x^2.

    The residuals need not have mean 0: sigma = sqrt(sum err^2 / (n - 1)) is around 0.

    Parameters
    ----------
    x, y : (n,) arrays
        Log-probability of disagreeing, and of agreeing.
    weights : (n, replicates) array
        How often each is drawn; by default once.

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
    with np.errstate(invalid="ignore", divide="ignore"):
        slope = (x * y) @ w / (x**2 @ w)
        residual = y[:, None] - slope * x[:, None]
        sigma = np.sqrt((w * residual**2).sum(axis=0) / (w.sum(axis=0) - 1))
    found = Line(slope, sigma)
    return found if weights is not None else Line(*(part[0] for part in found))


def fit(calibration: Block, fitted: str = OWN, replicates: int | None = None) -> Fit:
    """Fit the lines of a block of statements about nothing political, in the first replicates.

    Parameters
    ----------
    fitted
        One of :data:`~plumbline.probes.values.schemas.FITTED`.
    """
    weights = calibration.drawn[:, :replicates]
    if fitted == LIKELY:
        weights = weights * calibration.about["likely"].to_numpy()[:, None]
    genders, cells = calibration.agree.shape[1:]
    sides = [[*range(genders)]] if fitted == POOLED else [[g] for g in range(genders)]
    lines = [
        [
            line(
                calibration.disagree[:, own, c].T.ravel(),
                calibration.agree[:, own, c].T.ravel(),
                np.tile(weights, (len(own), 1)),
            ).slope
            for c in range(cells)
        ]
        for own in sides
    ]
    slope = np.broadcast_to(np.array(lines), (genders, cells, weights.shape[1]))
    err = residuals(calibration, Fit(slope, np.empty(0)))
    squares, total = (weights[:, None] * err**2).sum(axis=0), weights.sum(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):  # one statement drawn, or none
        spread = np.sqrt([squares[own].sum(axis=0) / (len(own) * total - 1) for own in sides])
    return Fit(slope, np.broadcast_to(spread, squares.shape))


def residuals(block: Block, lines: Fit) -> Array:
    """Return err of each statement and gender, (statements, genders, replicates).

    The mean over frames and forms, with the sign turned where the statement is denied.
    """
    signs = block.signs / len(block.cells)
    found = np.empty((*block.agree.shape[:2], lines.slope.shape[2]))
    for g in range(found.shape[1]):
        found[:, g] = (block.agree[:, g] @ signs)[:, None]
        found[:, g] -= (block.disagree[:, g] * signs) @ lines.slope[g]
    return found


def each(block: Block, lines: Fit) -> Array:
    """Return err in each frame and form, no sign turned, (statements, genders, cells)."""
    return block.agree - lines.slope[..., 0] * block.disagree


def probability(residual: Array, sigma: Array) -> Array:
    """Return Phi(err / sigma): the share of apolitical statements that are agreed with less.

    Where sigma is 0 that is 0 or 1, and nan of no residual.
    """
    with np.errstate(invalid="ignore", divide="ignore"):
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


def ratings(block: Block, lines: Fit) -> Array:
    """Return the rating of each statement and gender, (statements, genders, replicates)."""
    return rating(probability(residuals(block, lines), lines.sigma))


def facing(block: Block, rated: Array) -> Array:
    """Return ratings in the direction of their value: reversed statements turned round."""
    against = (block.about["bearing"].to_numpy() < 0).reshape(-1, *[1] * (rated.ndim - 1))
    return np.where(against, turned(rated), rated)


def mean(values: Array, load: Array, weights: Array) -> Array:
    """Return means over statements, (..., replicates).

    Parameters
    ----------
    values : (statements, ..., replicates) array
    load : (statements,) array
        How much each bears on the value.
    weights : (statements, replicates) array
    """
    whole = load[:, None] * weights
    shape = (len(load), *[1] * (values.ndim - 2), weights.shape[1])
    with np.errstate(invalid="ignore"):
        found: Array = (values * whole.reshape(shape)).sum(axis=0) / whole.sum(axis=0)
    return found
