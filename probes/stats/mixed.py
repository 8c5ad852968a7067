"""A linear mixed model with one random intercept, fitted by restricted maximum likelihood."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.stats import t as student

from plumbline.probes.stats.linear import Coefficients

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Integers = NDArray[np.int64]

RATIOS = (-12.0, 8.0)  # logarithm of the ratio of variances: where its best value is sought


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

    best = minimize_scalar(loss, bounds=RATIOS, method="bounded", options={"xatol": 1e-6})
    ratio = float(np.exp(best.x))
    inside, found, rest = parts(ratio)
    residual = max(rest, 0.0) / freedom
    se = np.sqrt(np.diag(np.linalg.inv(inside)) * residual)
    degrees = max(1, min(len(names) - columns, freedom))
    half = student.ppf((1 + confidence) / 2, degrees) * se
    there = se > 0  # a design that explains all leaves nothing to judge by
    apart = np.divide(np.abs(found), se, out=np.where(found == 0, 0.0, np.inf), where=there)
    p = 2 * student.sf(apart, degrees)
    known = Coefficients(found, found - half, found + half, p, degrees)
    return Mixed(known, ratio * residual, residual)
