"""Agreement corrected for a model's agreement bias: calibration, residuals, ratings.

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


class Fit(NamedTuple):
    """Fitted lines through 0, and the spread around them."""

    slope: Array  # (genders, cells, replicates) of :func:`fit`, (replicates,) of :func:`line`
    sigma: Array  # (genders, replicates): of residuals averaged over cells; (replicates,)


def line(x: Array, y: Array, weights: Array | None = None) -> Fit:
    """Fit y = a x + err by least squares: a = sum xy / sum x^2.

    Residuals need not have mean 0; sigma = sqrt(sum err^2 / (n - 1)) is their spread about 0.
    Raises ValueError with fewer than two points, or if shapes differ.

    ``x``, ``y``: log-probabilities of disagreeing and of agreeing, (n,).
    ``weights``: number of draws of each point, 1 by default, (n, replicates).

    Examples
    --------
    >>> x = -np.arange(1.0, 6)
    >>> fitted = line(x, 0.8 * x + np.array([0.1, -0.1, 0.2, -0.2, 0]))
    >>> fitted.slope.round(6).tolist(), fitted.sigma.round(6).tolist()
    ([0.805455], [0.156815])
    """
    x, y = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if x.ndim != 1 or x.shape != y.shape or len(x) < 2:
        raise ValueError("x and y must be vectors of one length, two points at least")
    w = np.ones((len(x), 1)) if weights is None else np.asarray(weights, dtype=np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        slope = (x * y) @ w / (x**2 @ w)
        residual = y[:, None] - slope * x[:, None]
        return Fit(slope, np.sqrt((w * residual**2).sum(axis=0) / (w.sum(axis=0) - 1)))


def fit(calibration: Block, fitted: str = OWN, replicates: int | None = None) -> Fit:
    """Fit the lines of a block of apolitical statements, in the first replicates.

    ``fitted``: one of :data:`~plumbline.probes.values.schemas.FITTED`.
    """
    weights = calibration.weights[:, :replicates]
    if fitted == LIKELY:
        weights = weights * calibration.about["likely"].to_numpy()[:, None]
    genders, cells = calibration.agree.shape[1:]
    sides = [[*range(genders)]] if fitted == POOLED else [[g] for g in range(genders)]
    lines = [
        [
            line(
                calibration.disagree[:, side, c].T.ravel(),
                calibration.agree[:, side, c].T.ravel(),
                np.tile(weights, (len(side), 1)),
            ).slope
            for c in range(cells)
        ]
        for side in sides
    ]
    slope = np.broadcast_to(np.array(lines), (genders, cells, weights.shape[1]))
    err = residuals(calibration, Fit(slope, np.empty(0)))
    squares, total = (weights[:, None] * err**2).sum(axis=0), weights.sum(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):  # some have one statement
        spread = np.sqrt([squares[side].sum(axis=0) / (len(side) * total - 1) for side in sides])
    return Fit(slope, np.broadcast_to(spread, squares.shape))


def residuals(block: Block, lines: Fit) -> Array:
    """Return residuals of each statement and gender, (statements, genders, replicates).

    They are means over templates and forms, with reversed sign for denied statements.
    """
    signs = block.signs / len(block.cells)
    slopes = np.stack(
        [(block.disagree[:, g] * signs) @ slope for g, slope in enumerate(lines.slope)], axis=1
    )
    return np.asarray((block.agree @ signs)[:, :, None] - slopes)


def rating(residual: Array, sigma: Array) -> Array:
    """Return 4 Phi(err / sigma) + 1, from 1 (disagrees) to 5 (agrees).

    Phi is the share of apolitical statements with less agreement. With sigma 0, Phi is 0, 1, or
    nan.

    Examples
    --------
    >>> rating(np.array([0.0]), np.array(0.2)).tolist()
    [3.0]
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray((HIGHEST - LOWEST) * ndtr(residual / sigma) + LOWEST)


def ratings(block: Block, lines: Fit) -> Array:
    """Return the rating of each statement and gender, (statements, genders, replicates)."""
    return rating(residuals(block, lines), lines.sigma)


def facing(block: Block, rated: Array) -> Array:
    """Return ratings in the direction of their value: 6 - rating of reversed statements."""
    against = (block.about["bearing"].to_numpy() < 0).reshape(-1, *[1] * (rated.ndim - 1))
    return np.where(against, LOWEST + HIGHEST - rated, rated)


def mean(values: Array, load: Array, weights: Array) -> Array:
    """Return means over statements of values (statements, ..., replicates), (..., replicates).

    ``load``, (statements,): absolute weight in the value; ``weights``: (statements, replicates).
    """
    loads = load[:, None] * weights
    shape = (len(load), *[1] * (values.ndim - 2), weights.shape[1])
    with np.errstate(invalid="ignore"):
        return np.asarray((values * loads.reshape(shape)).sum(axis=0) / loads.sum(axis=0))
