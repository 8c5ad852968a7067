"""Linear models: categorical factors with type II tests, and one random intercept by REML."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import fdtrc

from plumbline.probes.stats.intervals import t_half_width, two_sided

Floats = NDArray[np.float64]
Integers = NDArray[np.signedinteger[Any]]

TOLERANCE = 1e-8
RATIOS = (-12.0, 8.0)  # search limits for the logarithm of the variance ratio
GRID = 121  # number of grid points for the logarithm of the ratio
FLAT = 1e-8  # smaller differences in -2 log likelihood are rounding errors


class Coefficients(NamedTuple):
    """Coefficients of a linear model, one per column of the design; nan if not estimable."""

    value: Floats
    low: Floats
    high: Floats
    p: Floats
    freedom: Floats  # degrees of freedom of t; 0 if there is no interval


class Drop(NamedTuple):
    """F test of a factor; f and p are nan if it cannot be tested."""

    f: float
    p: float
    freedom: int  # degrees of freedom of the factor
    residual: int
    error: float  # residual standard deviation of an observation


class Mixed(NamedTuple):
    """A fitted mixed model."""

    coefficients: Floats  # (columns,), one per column of the design
    between: float  # variance of the random intercepts
    residual: float  # variance of the errors


def dummies(values: Sequence[str], levels: Sequence[str]) -> Floats:
    """Return treatment coding, of shape (rows, levels - 1); the first level is the reference."""
    return np.array([[float(v == level) for level in levels[1:]] for v in values])


def estimable(design: Floats) -> NDArray[np.bool_]:
    """Return a mask of the columns of a design whose coefficients are estimable.

    A coefficient is estimable if its unit vector is a linear combination of the design's rows.
    """
    projector = np.linalg.pinv(design) @ design if len(design) else np.zeros(design.shape[1:] * 2)
    return np.isclose(np.diag(projector), 1, atol=TOLERANCE)


def least_squares(response: Floats, design: Floats, confidence: float = 0.95) -> Coefficients:
    """Fit by ordinary least squares, with intervals for independent, homoscedastic errors.

    If there are no residual degrees of freedom, intervals and p are nan. The columns of the design
    may be linearly dependent; coefficients that are not estimable are nan.
    """
    weights = np.linalg.pinv(design)
    weights[~estimable(design)] = np.nan
    squares, rank = _left(response, design)
    freedom = len(response) - rank
    se = np.sqrt((weights**2).sum(axis=1) * (squares / freedom if freedom else np.nan))
    return _limits(weights @ response, se, np.full(len(se), float(freedom)), confidence)


def jackknife(
    response: Floats, design: Floats, clusters: Sequence[str], confidence: float = 0.95
) -> Coefficients:
    """Fit by least squares, with intervals from the leave-one-cluster-out jackknife.

    The variance is the sum of the squared changes of a coefficient (CR3; HC3 if each cluster is one
    row), which is valid for heteroscedastic errors and correlation within clusters. It is divided
    by its bias for independent homoscedastic errors, a function of the design: a difference of two
    group means then has Welch's variance if the groups have equal sizes, and otherwise a slightly
    larger variance component for the smaller group. The degrees of freedom of t are those of this
    sum of squares: there are few for a coefficient that depends on few clusters, even if there are
    many other clusters. A coefficient that depends on one cluster has no interval.

    MacKinnon and White (1985), Journal of Econometrics 29(3), p. 305-325; Bell and McCaffrey
    (2002), Survey Methodology 28(2), p. 169-181, equation 4.
    """

    def weights(rows: NDArray[np.bool_]) -> Floats:
        """Return each response's weight in each coefficient, of shape (columns, rows)."""
        part = design[rows]
        result = np.zeros(design.T.shape)
        result[:, rows] = np.linalg.pinv(part)
        result[~estimable(part)] = np.nan
        return result

    labels = np.asarray(clusters)
    full = weights(np.ones(len(labels), dtype=np.bool_))
    reduced = np.array([weights(labels != label) for label in np.unique(labels)])
    moved = (reduced - full).transpose(1, 0, 2)  # (columns, clusters, rows)
    variance = ((moved @ response) ** 2).sum(axis=1)
    spread = moved @ moved.transpose(0, 2, 1)
    size = np.trace(spread, axis1=1, axis2=2)
    with np.errstate(divide="ignore", invalid="ignore"):
        freedom = size**2 / (spread**2).sum(axis=(1, 2))  # Satterthwaite's, for independent errors
        variance *= (full**2).sum(axis=1) / size
    if len(response) == np.linalg.matrix_rank(design):
        freedom[:] = np.nan
    freedom = np.where(np.isnan(variance), np.nan, freedom)
    return _limits(full @ response, np.sqrt(variance), freedom, confidence)


def drop(
    response: Floats,
    design: Floats,
    columns: Integers,
    sizes: Floats | None = None,
    within: float = 0.0,
) -> Drop:
    """Test the columns of a factor given all other columns (type II test without interactions).

    Parameters
    ----------
    sizes : (rows,) array
        Number of observations averaged in each response; None if each response is one observation.
    within
        Sum of squared deviations of the observations from the mean of their row.

    Examples
    --------
    The rows 1, 2, 3 and 6 in two groups have means 1.5 and 4.5: F = 9 / 2.5 with 1 and 2 df.

    >>> design = np.array([[1.0, 0], [1, 0], [1, 1], [1, 1]])
    >>> [round(x, 4) for x in drop(np.array([1.0, 2, 3, 6]), design, np.array([1]))]
    [3.6, 0.1982, 1, 2, 1.5811]
    """
    sizes = np.ones(len(response)) if sizes is None else sizes
    root = np.sqrt(sizes)
    scaled, parts = response * root, design * root[:, None]
    full, rank = _left(scaled, parts)
    reduced, reduced_rank = _left(scaled, np.delete(parts, columns, axis=1))
    spent, residual = rank - reduced_rank, int(sizes.sum()) - rank
    squares = full + within
    if residual < 1 or not spent or squares <= TOLERANCE**2:
        return Drop(math.nan, math.nan, spent, residual, math.nan)
    f = max(reduced - full, 0.0) / spent / (squares / residual)
    return Drop(f, float(fdtrc(spent, residual, f)), spent, residual, math.sqrt(squares / residual))


def _left(response: Floats, design: Floats) -> tuple[float, int]:
    """Return the residual sum of squares of a least-squares fit, and the rank of the design."""
    result, _, rank, _ = np.linalg.lstsq(design, response)
    return float(((response - design @ result) ** 2).sum()), int(rank)


def _limits(value: Floats, se: Floats, freedom: Floats, confidence: float) -> Coefficients:
    freedom = np.where(np.isnan(freedom) | np.isnan(se), 0.0, freedom)
    defined = np.where(freedom > 0, freedom, np.nan)
    half = t_half_width(se, defined, confidence)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(se > TOLERANCE, value / se, np.nan)
    return Coefficients(value, value - half, value + half, two_sided(ratio, defined), freedom)


def sum_groups(values: Floats, groups: Integers) -> Floats:
    """Sum the rows of each group; the result has shape (groups, columns)."""
    length = int(groups.max()) + 1
    return np.stack([np.bincount(groups, column, length) for column in values.T], axis=1)


def centred(values: Floats, groups: Integers) -> Floats:
    """Subtract the mean of its group from each row, which removes group effects.

    Examples
    --------
    >>> centred(np.array([1.0, 3.0, 10.0]), np.array([0, 0, 1])).tolist()
    [-1.0, 1.0, 0.0]
    """
    flat = values.reshape(len(values), -1)
    means = sum_groups(flat, groups) / np.maximum(np.bincount(groups), 1)[:, None]
    result = means[groups]
    return np.subtract(flat, result, out=result).reshape(values.shape)


def mixed(sums: Floats, squares: Floats, sizes: Floats, absorbed: int = 0) -> Mixed:
    """Fit response = design @ coefficients + random group intercept + error by REML.

    The inputs are sums over rows, because the rows may not fit into memory. The random intercepts
    are normal with mean 0. The design must have full rank, with a column of ones for the intercept.

    Patterson and Thompson (1971), Biometrika 58(3), p. 545-554; Laird and Ware (1982), Biometrics
    38(4), p. 963-974.

    Parameters
    ----------
    sums : (groups, columns + 1) array
        Sums of the design and, last, the response, for each group.
    squares : (columns + 1, columns + 1) array
        Sums of products of these columns.
    sizes : (groups,) array
        Number of rows in each group.
    absorbed
        Degrees of freedom already removed, for example by subtracting text means.
    """
    from scipy.optimize import brentq

    columns = len(squares) - 1
    freedom = int(sizes.sum()) - columns - absorbed

    def parts(ratio: float) -> tuple[Floats, Floats, float]:
        shrunk = squares - (sums * (ratio / (1 + ratio * sizes))[:, None]).T @ sums
        inside, right = shrunk[:columns, :columns], shrunk[:columns, columns]
        result: Floats = np.linalg.solve(inside, right).astype(np.float64)
        return inside, result, float(shrunk[columns, columns] - result @ right)

    def loss(log: float) -> float:
        """Return -2 log restricted likelihood, up to a constant."""
        ratio = float(np.exp(log))
        inside, _, rss = parts(ratio)
        spent = float(np.log1p(ratio * sizes).sum() + np.linalg.slogdet(inside)[1])
        result: float = freedom * math.log(max(rss, 1e-300)) + spent
        return result

    def slope(log: float) -> float:
        """Return the derivative of -2 log restricted likelihood with respect to the log ratio.

        Its root is accurate to machine precision. The maximum of the likelihood is accurate only to
        the square root of that precision, and differs between processors.
        """
        ratio = float(np.exp(log))
        inside, result, rss = parts(ratio)
        moved = -((sums / (1 + ratio * sizes)[:, None] ** 2).T @ sums)
        effect = np.append(-result, 1.0)
        spent = float((sizes / (1 + ratio * sizes)).sum())
        trace = float(np.trace(np.linalg.solve(inside, moved[:columns, :columns])))
        change: float = freedom * float(effect @ moved @ effect) / max(rss, 1e-300)
        return ratio * (change + spent + trace)

    # With few, unequal groups the likelihood may have two maxima: the grid selects the larger one
    # and, for a flat likelihood such as that of a single group, the smallest ratio.
    logs = np.linspace(*RATIOS, GRID)
    losses = np.array([loss(log) for log in logs])
    best = int(np.argmax(losses <= losses.min() + FLAT))
    low, high = logs[max(best - 1, 0)], logs[min(best + 1, GRID - 1)]
    inner = slope(low) < 0 < slope(high)
    ratio = float(np.exp(brentq(slope, low, high, xtol=1e-13) if inner else logs[best]))
    _, result, rss = parts(ratio)
    residual = max(rss, 0.0) / freedom
    return Mixed(result, ratio * residual, residual)
