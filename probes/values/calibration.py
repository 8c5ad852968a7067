"""A model's agreement beyond its habit of agreeing: calibration, residuals, ratings.

Al Ali and Libovický (2024): LogAgree = a LogDisagree + err over statements about nothing political,
P = Phi(err / sigma) for any statement, and the rating 4 P + 1. Everything is computed for all
bootstrap replicates at once.
"""

from __future__ import annotations

from itertools import product, starmap
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.special import ndtr

if TYPE_CHECKING:
    from plumbline.probes.values.responses import Array, Block

LOWEST, HIGHEST = 1.0, 5.0


class Variant(NamedTuple):
    """One way to calibrate, each field as the tables have it."""

    fitted: int = 0  # in FITTED: on both genders, or on each alone
    intercept: bool = False
    spread: int = 0  # in SPREADS: sigma with n - 1, or with n


DEFAULT = Variant()
VARIANTS = tuple(starmap(Variant, product((0, 1), (False, True), (0, 1))))


class Line(NamedTuple):
    """A fitted line, and the spread around it; numbers, or arrays with one for each replicate."""

    slope: Array
    intercept: Array  # 0 where none is fitted
    sigma: Array


class Fit(NamedTuple):
    """Lines of every gender, frame and form, and the spread of what is left."""

    slope: Array  # (genders, cells, replicates)
    base: Array  # the same: intercepts
    sigma: Array  # (genders, replicates): of residuals averaged over cells


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
            slope = np.where(np.isfinite(slope), slope, np.nan)  # of one x there is none
            base = mean_y - slope * mean_x
        else:
            slope = (x * y) @ w / (x**2 @ w)
            base = np.zeros_like(slope)
        residual = y[:, None] - slope * x[:, None] - base
        sigma = np.sqrt((w * residual**2).sum(axis=0) / (total - ddof))
    found = Line(slope, base, sigma)
    return found if weights is not None else Line(*(part[0] for part in found))


def fit(calibration: Block, variant: Variant = DEFAULT, replicates: int | None = None) -> Fit:
    """Fit the lines of a block of statements about nothing political, in the first replicates."""
    weights = calibration.drawn[:, :replicates]
    genders, cells = calibration.agree.shape[1:]
    ddof = 1 - variant.spread
    sides = [[g] for g in range(genders)] if variant.fitted else [[*range(genders)]]
    lines = [
        [
            line(
                calibration.disagree[:, own, c].T.ravel(),
                calibration.agree[:, own, c].T.ravel(),
                np.tile(weights, (len(own), 1)),
                intercept=variant.intercept,
            )[:2]
            for c in range(cells)
        ]
        for own in sides
    ]
    shape = (genders, cells, weights.shape[1])
    slope, base = (np.broadcast_to(part, shape) for part in np.moveaxis(np.array(lines), 2, 0))
    err = residuals(calibration, Fit(slope, base, np.empty(0)))
    squares, total = (weights[:, None] * err**2).sum(axis=0), weights.sum(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):  # one statement drawn, or none
        spread = np.sqrt([squares[own].sum(axis=0) / (len(own) * total - ddof) for own in sides])
    return Fit(slope, base, np.broadcast_to(spread, squares.shape))


def residuals(block: Block, lines: Fit) -> Array:
    """Return err of each statement and gender, (statements, genders, replicates).

    The mean over frames and forms, with the sign turned where the statement is denied.
    """
    signs = block.signs / len(block.cells)
    found = np.empty((*block.agree.shape[:2], lines.slope.shape[2]))
    for g in range(found.shape[1]):
        found[:, g] = (block.agree[:, g] @ signs)[:, None]
        found[:, g] -= (block.disagree[:, g] * signs) @ lines.slope[g]
        found[:, g] -= signs @ lines.base[g]
    return found


def each(block: Block, lines: Fit) -> Array:
    """Return err in each frame and form, no sign turned, (statements, genders, cells)."""
    return block.agree - lines.slope[..., 0] * block.disagree - lines.base[..., 0]


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
