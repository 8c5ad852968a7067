"""Calibration, residuals and ratings of blocks of answers, for all bootstrap replicates at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from plumbline.probes.values.calibration_model import Line, line, probability, rating, turned

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from plumbline.probes.values.responses import Block

    Array = NDArray[np.float64]


class Variant(NamedTuple):
    """How is calibrated."""

    pooled: bool  # over genders; else each alone
    intercept: bool
    ddof: int


DEFAULT = Variant(pooled=True, intercept=False, ddof=1)
VARIANTS = tuple(
    Variant(pooled, intercept, ddof)
    for pooled in (True, False)
    for intercept in (False, True)
    for ddof in (1, 0)
)


class Fit(NamedTuple):
    """Lines of every gender and way of asking, and the spread of what is left."""

    slope: Array  # (genders, cells, replicates)
    base: Array  # the same: intercepts
    sigma: Array  # (genders, replicates): of residuals averaged over cells


def fit(calibration: Block, weights: Array, variant: Variant = DEFAULT) -> Fit:
    """Fit the lines of a block of statements about nothing political.

    Parameters
    ----------
    weights : (statements, replicates) array
    """
    genders, cells = calibration.agree.shape[1:]
    slope = np.empty((genders, cells, weights.shape[1]))
    base = np.empty_like(slope)
    for g in range(genders):
        for c in range(cells):
            found = _line(calibration, weights, variant, g, c)
            slope[g, c], base[g, c] = found.slope, found.intercept
    lines = Fit(slope, base, np.empty(0))
    squares = (weights[:, None] * residuals(calibration, lines) ** 2).sum(axis=0)
    total = weights.sum(axis=0)
    if variant.pooled:
        spread = squares.sum(axis=0) / (genders * total - variant.ddof)
        sigma = np.broadcast_to(np.sqrt(spread), squares.shape)
    else:
        sigma = np.sqrt(squares / (total - variant.ddof))
    return Fit(slope, base, sigma)


def _line(block: Block, weights: Array, variant: Variant, g: int, c: int) -> Line:
    if not variant.pooled:
        x, y, w = block.disagree[:, g, c], block.agree[:, g, c], weights
    else:
        x, y = block.disagree[:, :, c].T.ravel(), block.agree[:, :, c].T.ravel()
        w = np.tile(weights, (block.agree.shape[1], 1))
    return line(x, y, w, intercept=variant.intercept, ddof=variant.ddof)


def residuals(block: Block, lines: Fit) -> Array:
    """Return err of each statement and gender, (statements, genders, replicates).

    The mean over ways of asking, with the sign turned where the statement is denied.
    """
    signs = block.signs() / len(block.cells)
    found = np.empty((*block.agree.shape[:2], lines.slope.shape[2]))
    for g in range(found.shape[1]):
        found[:, g] = (block.agree[:, g] @ signs)[:, None]
        found[:, g] -= (block.disagree[:, g] * signs) @ lines.slope[g]
        found[:, g] -= signs @ lines.base[g]
    return found


def each(block: Block, lines: Fit) -> Array:
    """Return err in each way of asking, no sign turned, (statements, genders, cells)."""
    return block.agree - lines.slope[..., 0] * block.disagree - lines.base[..., 0]


def ratings(block: Block, lines: Fit) -> Array:
    """Return the rating of each statement and gender, (statements, genders, replicates)."""
    return rating(probability(residuals(block, lines), lines.sigma))


def facing(block: Block, rated: Array) -> Array:
    """Return ratings in the direction of their value: reversed statements turned round."""
    against = block.about["reversed"].to_numpy() ^ (block.about["weight"].to_numpy() < 0)
    shape = (-1, *[1] * (rated.ndim - 1))
    return np.where(against.reshape(shape), turned(rated), rated)


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
