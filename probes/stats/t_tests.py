"""t tests of a mean: against 0, and of its equivalence with 0."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtr, stdtrit

from plumbline.probes.stats.intervals import two_sided

Floats = NDArray[np.float64]

NEAR = 1e-9  # standard errors below are rounding


class Equivalence(NamedTuple):
    """What two one-sided tests say of a mean difference."""

    mean: float
    low: float  # the interval of confidence 1 - 2 level: inside the bounds if p is at most level
    high: float
    p: float  # the larger of the two; nan inside the bounds without spread, which is no evidence
    n: int


def equivalence(
    mean: float,
    error: float,
    n: int,
    bound: float,
    level: float = 0.05,
    freedom: float | None = None,
) -> Equivalence:
    """Test whether a mean of n differences lies strictly between -bound and bound.

    The null is that it does not: two one-sided t tests at ``level`` each.

    Parameters
    ----------
    error
        Standard error of the mean.
    bound
        The smallest difference that would matter, above 0 and chosen before looking.
    freedom
        Degrees of freedom of the error; n - 1 if not given.

    References
    ----------
    Schuirmann (1987), A comparison of the two one-sided tests procedure and the power approach,
    J. Pharmacokinet. Biopharm. 15(6), section 3.

    Examples
    --------
    t = 6.57 and -4.38 on 3 degrees of freedom.

    >>> round(equivalence(0.02, 0.0183, 4, 0.1).p, 3)
    0.011
    """
    df = n - 1 if freedom is None else freedom
    if error < NEAR:
        nothing = 1.0 if abs(mean) >= bound else float("nan")
        return Equivalence(mean, mean, mean, nothing, n)
    reach = float(stdtrit(df, 1 - level) * error)
    p = float(stdtr(df, (abs(mean) - bound) / error))
    return Equivalence(mean, mean - reach, mean + reach, p, n)


def mean_p(differences: Floats) -> float:
    """Return the two-sided p of the t test that a mean is 0; differences (n,), two at least.

    Examples
    --------
    The sleep of Student's patients (1908), more after one drug than after the other: t = 4.06.

    >>> more = np.array([1.2, 2.4, 1.3, 1.3, 0.0, 1.0, 1.8, 0.8, 4.6, 1.4])
    >>> round(mean_p(more), 5)
    0.00283
    """
    values = np.asarray(differences, dtype=np.float64)
    n = len(values)
    return t_p(float(values.mean()), values.std(ddof=1) / np.sqrt(n), n - 1)


def t_p(mean: float, error: float, freedom: float) -> float:
    """Return the two-sided p of a mean with a standard error: nan without spread, 1 if it is 0 too.

    Examples
    --------
    >>> t_p(0.0, 0.0, 3), t_p(0.2, 0.0, 3)
    (1.0, nan)
    """
    if error < NEAR:
        return 1.0 if abs(mean) < NEAR else float("nan")
    return float(two_sided(mean / error, freedom))
