"""Linear models with categorical factors: coefficients, intervals, type II tests."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.stats import t as student
from statsmodels.regression.linear_model import OLS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

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
    half = student.ppf((1 + confidence) / 2, freedom) * se
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(se > TOLERANCE, np.abs(value) / se, np.nan)
    p = 2 * student.sf(ratio, freedom)
    return Coefficients(value, value - half, value + half, p, freedom)
