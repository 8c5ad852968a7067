"""Paired test of equivalence: two one-sided tests against a bound."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.special import stdtr, stdtrit

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Equivalence(NamedTuple):
    """What two one-sided tests say of a mean difference."""

    mean: float
    low: float  # the interval of confidence 1 - 2 level: inside the bounds if p is at most level
    high: float
    p: float  # the larger of the two
    p_difference: float  # two-sided, of the t test against 0
    n: int


def tost(differences: NDArray[np.float64], bound: float, level: float = 0.05) -> Equivalence:
    """Test whether a mean difference lies strictly between -bound and bound.

    The null is that it does not: |mean| >= bound. Two one-sided t tests over pairs, which are
    taken as independent draws from a normal distribution.

    Parameters
    ----------
    differences : (pairs,) array
        One member of each pair minus the other.
    bound
        The smallest difference that would matter, chosen before looking.
    level
        Of each test.

    Raises
    ------
    ValueError
        If there are fewer than two pairs, or the bound is not positive.

    References
    ----------
    Schuirmann (1987), A comparison of the two one-sided tests procedure and the power approach,
    J. Pharmacokinet. Biopharm. 15(6), section 3.

    Examples
    --------
    Mean 0.02, standard error 0.0183, bound 0.1: t = 6.57 and -4.38 on 3 degrees of freedom.

    >>> found = tost(np.array([-0.02, 0.0, 0.04, 0.06]), 0.1)
    >>> round(found.mean, 3), round(found.p, 4)
    (0.02, 0.011)
    """
    values = np.asarray(differences, dtype=np.float64)
    if values.ndim != 1 or len(values) < 2:
        raise ValueError("needs a vector of two differences at least")
    if not bound > 0:
        raise ValueError("the bound must be positive")
    n, mean = len(values), float(values.mean())
    error = float(values.std(ddof=1)) / np.sqrt(n)
    if error == 0:
        return Equivalence(mean, mean, mean, float(abs(mean) >= bound), float(mean == 0), n)
    above, below = (mean + bound) / error, (mean - bound) / error
    p = max(float(stdtr(n - 1, -above)), float(stdtr(n - 1, below)))
    reach = float(stdtrit(n - 1, 1 - level)) * error
    apart = 2 * float(stdtr(n - 1, -abs(mean / error)))
    return Equivalence(mean, mean - reach, mean + reach, p, apart, n)
