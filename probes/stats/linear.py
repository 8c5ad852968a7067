"""Linear models: categorical factors with type II tests, and one random intercept by REML."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.special import stdtr, stdtrit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Integers = NDArray[np.int64]

TOLERANCE = 1e-8


class Coefficients(NamedTuple):
    """Coefficients of a linear model; all arrays (columns,), nan where there is no such number."""

    value: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    p: NDArray[np.float64]
    freedom: int  # degrees of freedom of t


class Drop(NamedTuple):
    """The F test of a factor; f and p are nan where it cannot be tested."""

    f: float
    p: float
    freedom: int  # of the factor
    residual: int


def dummies(values: Sequence[str], levels: Sequence[str]) -> NDArray[np.float64]:
    """Return treatment coding, (rows, levels - 1); the first level is the reference.

    Examples
    --------
    >>> dummies(["a", "b", "c"], ["b", "a", "c"]).tolist()
    [[1.0, 0.0], [0.0, 0.0], [0.0, 1.0]]
    """
    return np.array([[float(v == level) for level in levels[1:]] for v in values])


def estimable(design: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return which coefficients the rows of a design determine, (columns,).

    A coefficient is determined if its unit vector is a combination of rows.
    """
    if not len(design):
        return np.zeros(design.shape[1], dtype=np.bool_)
    projector = np.linalg.pinv(design) @ design
    result: NDArray[np.bool_] = np.isclose(np.diag(projector), 1, atol=TOLERANCE)
    return result


def least_squares(
    response: NDArray[np.float64], design: NDArray[np.float64], confidence: float = 0.95
) -> Coefficients:
    """Fit by ordinary least squares, with intervals that hold for independent, equal errors.

    Parameters
    ----------
    response : (rows,) array
    design : (rows, columns) array
        May have columns that the others determine: their coefficients are nan.

    Returns
    -------
    Coefficients
        Without residual degrees of freedom there are values, but neither intervals nor p.
    """
    there = estimable(design)
    kept = _independent(design)
    from statsmodels.regression.linear_model import OLS  # seconds to import

    fitted = OLS(response, design[:, kept]).fit()
    freedom = int(fitted.df_resid)
    value, se = (np.full(design.shape[1], np.nan) for _ in range(2))
    value[kept] = fitted.params
    value[~there] = np.nan
    if freedom < 1:
        return Coefficients(value, se, se, se, 0)
    se[kept] = fitted.bse
    return _limits(value, se, freedom, confidence)


def jackknife(
    response: NDArray[np.float64],
    design: NDArray[np.float64],
    clusters: Sequence[str],
    confidence: float = 0.95,
) -> Coefficients:
    """Fit by least squares, with intervals by leaving out one cluster after the other.

    The variance is the sum of the squared changes of a coefficient (CR3), which holds for errors
    that are unequal, and alike within a cluster; where each cluster is one row it is HC3. t has one
    degree of freedom fewer than there are clusters, and no more than the residual ones. A
    coefficient that rests on one cluster has no interval.

    References
    ----------
    MacKinnon and White (1985), Journal of Econometrics 29(3), p. 305-325; Bell and McCaffrey
    (2002), Survey Methodology 28(2), p. 169-181.
    """
    there = estimable(design)
    value = np.where(there, np.linalg.pinv(design) @ response, np.nan)
    variance = np.zeros(len(value))
    labels = np.asarray(clusters)
    number = len(np.unique(labels))
    for label in np.unique(labels):
        rest = labels != label
        kept = np.where(
            estimable(design[rest]),
            np.linalg.pinv(design[rest]) @ response[rest],
            np.nan,
        )
        variance += (kept - value) ** 2
    rank = int(np.linalg.matrix_rank(design))
    freedom = min(number - 1, len(response) - rank)
    if freedom < 1:
        none = np.full(len(value), np.nan)
        return Coefficients(value, none, none, none, 0)
    return _limits(value, np.sqrt(variance), freedom, confidence)


def drop(
    response: NDArray[np.float64], design: NDArray[np.float64], columns: NDArray[np.int64]
) -> Drop:
    """Test the columns of a factor given all others: without interactions, type II.

    Examples
    --------
    Four rows 1, 2, 3, 6 of two groups: means 1.5 and 4.5, F = 9 / 2.5 on 1 and 2 degrees.

    >>> design = np.array([[1.0, 0], [1, 0], [1, 1], [1, 1]])
    >>> [round(x, 4) for x in drop(np.array([1.0, 2, 3, 6]), design, np.array([1]))]
    [3.6, 0.1982, 1, 2]
    """
    from statsmodels.regression.linear_model import OLS  # seconds to import

    rest = np.delete(design, columns, axis=1)
    full, lesser = (OLS(response, part[:, _independent(part)]).fit() for part in (design, rest))
    rank, lower = int(full.df_model + full.k_constant), int(lesser.df_model + lesser.k_constant)
    residual = len(response) - rank
    if residual < 1 or rank == lower or full.ssr <= TOLERANCE**2:
        return Drop(float("nan"), float("nan"), rank - lower, residual)
    f, p, _ = full.compare_f_test(lesser)
    return Drop(float(f), float(p), rank - lower, residual)


def _independent(design: NDArray[np.float64]) -> list[int]:
    """Return columns that span the design, each independent of those before it."""
    kept: list[int] = []
    for column in range(design.shape[1]):
        if np.linalg.matrix_rank(design[:, [*kept, column]]) > len(kept):
            kept.append(column)
    return kept


def _limits(
    value: NDArray[np.float64], se: NDArray[np.float64], freedom: int, confidence: float
) -> Coefficients:
    half = stdtrit(freedom, (1 + confidence) / 2) * se
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(se > TOLERANCE, np.abs(value) / se, np.nan)
    p = 2 * stdtr(freedom, -ratio)
    return Coefficients(value, value - half, value + half, p, freedom)


RATIOS = (-12.0, 8.0)  # logarithm of the ratio of variances: limits of the search


class Mixed(NamedTuple):
    """A fitted model."""

    coefficients: Coefficients  # of the columns of the design
    between: float  # variance of the random intercepts
    residual: float  # variance of the errors


def centred(values: Floats, groups: Integers) -> Floats:
    """Take the mean of its group off each row: what groups have in common is gone.

    Parameters
    ----------
    values : (rows, ...) array
    groups : (rows,) array

    Examples
    --------
    >>> centred(np.array([1.0, 3.0, 10.0]), np.array([0, 0, 1])).tolist()
    [-1.0, 1.0, 0.0]
    """
    counts = np.bincount(groups)
    flat = values.reshape(len(values), -1)
    sums = np.zeros((len(counts), flat.shape[1]))
    np.add.at(sums, groups, flat)
    result: Floats = (flat - (sums / np.maximum(counts, 1)[:, None])[groups]).reshape(values.shape)
    return result


def mixed(
    response: Floats,
    design: Floats,
    groups: Integers,
    confidence: float = 0.95,
    absorbed: int = 0,
) -> Mixed:
    """Fit response = design times coefficients + an intercept of each group + error.

    Parameters
    ----------
    response : (rows,) array
    design : (rows, columns) array
        Of full rank; with a column of ones where there is to be a common intercept.
    groups : (rows,) array
        Units whose intercepts are drawn from a normal distribution with mean 0: names.
    absorbed
        Degrees of freedom that were taken off before, such as the means of texts.

    Returns
    -------
    Mixed
        t has as many degrees of freedom as there are groups more than columns, at least one:
        coefficients of what varies between groups have no more.

    References
    ----------
    Patterson and Thompson (1971), Biometrika 58(3), p. 545-554; Laird and Ware (1982), Biometrics
    38(4), p. 963-974.
    """
    from scipy.optimize import brentq, minimize_scalar

    names, groups = np.unique(groups, return_inverse=True)
    sizes = np.bincount(groups).astype(np.float64)
    both = np.column_stack([design, response])
    sums = np.zeros((len(names), both.shape[1]))
    np.add.at(sums, groups, both)
    squares = both.T @ both
    columns = design.shape[1]
    freedom = len(response) - columns - absorbed

    def parts(ratio: float) -> tuple[Floats, Floats, float]:
        shrunk = squares - (sums * (ratio / (1 + ratio * sizes))[:, None]).T @ sums
        inside = shrunk[:columns, :columns]
        found: Floats = np.linalg.solve(inside, shrunk[:columns, columns]).astype(np.float64)
        return inside, found, float(shrunk[columns, columns] - found @ shrunk[:columns, columns])

    def loss(log: float) -> float:
        ratio = float(np.exp(log))
        inside, _, rest = parts(ratio)
        determinant = float(np.linalg.slogdet(inside)[1])
        spent = float(np.log1p(ratio * sizes).sum())
        found: float = freedom * math.log(max(rest, 1e-300)) + spent + determinant
        return found

    def slope(log: float) -> float:
        ratio = float(np.exp(log))
        inside, found, rest = parts(ratio)
        moved = -((sums / (1 + ratio * sizes)[:, None] ** 2).T @ sums)
        effect = np.append(-found, 1.0)
        spent = float((sizes / (1 + ratio * sizes)).sum())
        trace = float(np.trace(np.linalg.solve(inside, moved[:columns, :columns])))
        change: float = freedom * float(effect @ moved @ effect) / max(rest, 1e-300)
        return ratio * (change + spent + trace)

    best = float(minimize_scalar(loss, bounds=RATIOS, method="bounded", options={"xatol": 1e-6}).x)
    # A minimum is known to the root of the last digit only, which differs between processors; the
    # root of the slope is known to the digit.
    around = (max(best - 1e-3, RATIOS[0]), min(best + 1e-3, RATIOS[1]))
    if slope(around[0]) < 0 < slope(around[1]):
        best = float(brentq(slope, *around, xtol=1e-13))
    ratio = float(np.exp(best))
    inside, found, rest = parts(ratio)
    residual = max(rest, 0.0) / freedom
    se = np.sqrt(np.diag(np.linalg.inv(inside)) * residual)
    degrees = max(1, min(len(names) - columns, freedom))
    half = stdtrit(degrees, (1 + confidence) / 2) * se
    there = se > 0  # a design that explains all leaves nothing to judge by
    apart = np.divide(np.abs(found), se, out=np.where(found == 0, 0.0, np.inf), where=there)
    p = 2 * stdtr(degrees, -apart)
    known = Coefficients(found, found - half, found + half, p, degrees)
    return Mixed(known, ratio * residual, residual)
