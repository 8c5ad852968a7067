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
RATIOS = (-12.0, 8.0)  # logarithm of the ratio of variances: limits of the search
GRID = 121  # logarithms of the ratio at which the likelihood is looked at
FLAT = 1e-8  # differences of -2 log likelihood that are rounding


class Coefficients(NamedTuple):
    """Coefficients of a linear model; all arrays (columns,), nan where there is no such number."""

    value: Floats
    low: Floats
    high: Floats
    p: Floats
    freedom: Floats  # degrees of freedom of t; 0 where there is no interval


class Drop(NamedTuple):
    """The F test of a factor; f and p are nan where it cannot be tested."""

    f: float
    p: float
    freedom: int  # of the factor
    residual: int
    error: float  # residual standard deviation of an observation


class Mixed(NamedTuple):
    """A fitted model."""

    coefficients: Floats  # (columns,) of the design
    between: float  # variance of the random intercepts
    residual: float  # variance of the errors


def dummies(values: Sequence[str], levels: Sequence[str]) -> Floats:
    """Return treatment coding, (rows, levels - 1); the first level is the reference."""
    return np.array([[float(v == level) for level in levels[1:]] for v in values])


def estimable(design: Floats) -> NDArray[np.bool_]:
    """Return which coefficients the rows of a design determine, (columns,).

    A coefficient is determined if its unit vector is a combination of rows.
    """
    projector = np.linalg.pinv(design) @ design if len(design) else np.zeros(design.shape[1:] * 2)
    return np.isclose(np.diag(projector), 1, atol=TOLERANCE)


def least_squares(response: Floats, design: Floats, confidence: float = 0.95) -> Coefficients:
    """Fit by ordinary least squares, with intervals that hold for independent, equal errors.

    Without residual degrees of freedom there are values, but neither intervals nor p. A design
    (rows, columns) may have columns that the others determine: their coefficients are nan.
    """
    fitted, spanning = _fitted(response, design)
    value, se = np.full((2, design.shape[1]), np.nan)
    value[spanning] = fitted.params
    value[~estimable(design)] = np.nan
    if freedom := int(fitted.df_resid):
        se[spanning] = fitted.bse
    return _limits(value, se, np.where(np.isnan(se), 0.0, freedom), confidence)


def jackknife(
    response: Floats, design: Floats, clusters: Sequence[str], confidence: float = 0.95
) -> Coefficients:
    """Fit by least squares, with intervals by leaving out one cluster after the other.

    The variance is the sum of the squared changes of a coefficient (CR3; HC3 where each cluster is
    one row), which holds for errors that are unequal, and alike within a cluster. For independent
    equal errors that sum is too large by a factor that follows from the design, and is divided by
    it: the difference of the means of two groups of one size then has Welch's variance; of two
    sizes the part of the smaller is a little larger than Welch's. The degrees of freedom of t are
    those of this sum of squares, few for a coefficient that hangs on few clusters, however many
    others there are. A coefficient that rests on one cluster has no interval.

    MacKinnon and White (1985), Journal of Econometrics 29(3), p. 305-325; Bell and McCaffrey
    (2002), Survey Methodology 28(2), p. 169-181, equation 4.
    """

    def weights(rows: NDArray[np.bool_]) -> Floats:
        """Return by what the responses of all rows are weighted, (columns, rows)."""
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
        freedom = size**2 / (spread**2).sum(axis=(1, 2))  # Satterthwaite, errors independent
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
    """Test the columns of a factor given all others: without interactions, type II.

    Parameters
    ----------
    sizes : (rows,) array
        How many observations each response is the mean of; None: each is one.
    within
        Sum of the squares of observations about the mean of their row.

    Examples
    --------
    Four rows 1, 2, 3, 6 of two groups: means 1.5 and 4.5, F = 9 / 2.5 on 1 and 2 degrees.

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
    """Return the sum of squares that a design leaves, and its rank."""
    result, _, rank, _ = np.linalg.lstsq(design, response)
    return float(((response - design @ result) ** 2).sum()), int(rank)


def _fitted(response: Floats, design: Floats) -> tuple[Any, list[int]]:
    """Fit the columns that span the design, each independent of those before it; return both."""
    from statsmodels.regression.linear_model import OLS  # seconds to import

    spanning: list[int] = []
    for column in range(design.shape[1]):
        if np.linalg.matrix_rank(design[:, [*spanning, column]]) > len(spanning):
            spanning.append(column)
    return OLS(response, design[:, spanning]).fit(), spanning


def _limits(value: Floats, se: Floats, freedom: Floats, confidence: float) -> Coefficients:
    freedom = np.where(np.isnan(freedom) | np.isnan(se), 0.0, freedom)
    defined = np.where(freedom > 0, freedom, np.nan)
    half = t_half_width(se, defined, confidence)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(se > TOLERANCE, value / se, np.nan)
    return Coefficients(value, value - half, value + half, two_sided(ratio, defined), freedom)


def sum_groups(values: Floats, groups: Integers) -> Floats:
    """Add up the rows of each group, (rows, columns) to (groups, columns)."""
    length = int(groups.max()) + 1
    return np.stack([np.bincount(groups, column, length) for column in values.T], axis=1)


def centred(values: Floats, groups: Integers) -> Floats:
    """Take the mean of its group off each row, (rows, ...): what groups have in common is gone.

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
    """Fit response = design times coefficients + an intercept of each group + error, by REML.

    Of sums over rows, which may be too many to be held at once. The intercepts are drawn from a
    normal distribution with mean 0. The design (rows, columns) is of full rank, with a column of
    ones where there is to be a common intercept.

    Patterson and Thompson (1971), Biometrika 58(3), p. 545-554; Laird and Ware (1982), Biometrics
    38(4), p. 963-974.

    Parameters
    ----------
    sums : (groups, columns + 1) array
        Of the design and the response behind it, of each group.
    squares : (columns + 1, columns + 1) array
        Of products of these.
    sizes : (groups,) array
        Rows of each group.
    absorbed
        Degrees of freedom that were taken off before, such as the means of texts.
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
        """Return -2 log of the restricted likelihood, up to a constant."""
        ratio = float(np.exp(log))
        inside, _, rss = parts(ratio)
        spent = float(np.log1p(ratio * sizes).sum() + np.linalg.slogdet(inside)[1])
        result: float = freedom * math.log(max(rss, 1e-300)) + spent
        return result

    def slope(log: float) -> float:
        """Return how -2 log of the restricted likelihood changes with the logarithm of the ratio.

        Its root is known to the last digit; where the likelihood is largest itself, to the square
        root of that, which differs between processors.
        """
        ratio = float(np.exp(log))
        inside, result, rss = parts(ratio)
        moved = -((sums / (1 + ratio * sizes)[:, None] ** 2).T @ sums)
        effect = np.append(-result, 1.0)
        spent = float((sizes / (1 + ratio * sizes)).sum())
        trace = float(np.trace(np.linalg.solve(inside, moved[:columns, :columns])))
        change: float = freedom * float(effect @ moved @ effect) / max(rss, 1e-300)
        return ratio * (change + spent + trace)

    # Of few, unequal groups the likelihood may have two maxima: the grid says which is the larger,
    # and of a likelihood that is flat, as that of a single group, the least ratio is taken.
    logs = np.linspace(*RATIOS, GRID)
    losses = np.array([loss(log) for log in logs])
    best = int(np.argmax(losses <= losses.min() + FLAT))
    low, high = logs[max(best - 1, 0)], logs[min(best + 1, GRID - 1)]
    inner = slope(low) < 0 < slope(high)
    ratio = float(np.exp(brentq(slope, low, high, xtol=1e-13) if inner else logs[best]))
    _, result, rss = parts(ratio)
    residual = max(rss, 0.0) / freedom
    return Mixed(result, ratio * residual, residual)
