"""Intervals for proportions, their differences, rank correlations and means."""

from __future__ import annotations

from math import hypot
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri, stdtr, stdtrit

from plumbline.probes.stats.estimate import Estimate

Floats = NDArray[np.float64]

DIGITS = 10  # values that are equal after rounding to these decimals are ties


def two_sided(t: float | Floats, freedom: float | Floats) -> Floats:
    """Return the two-sided p-values of t statistics, in the same shape.

    Examples
    --------
    >>> float(two_sided(-4.303, 2).round(3))
    0.05
    """
    return np.asarray(2 * stdtr(freedom, -np.abs(t)))


def t_half_width(error: float | Floats, freedom: float | Floats, confidence: float) -> Floats:
    """Return half the width of the t interval for each standard error.

    Examples
    --------
    >>> float(t_half_width(0.5, 2, 0.95).round(4))
    2.1513
    """
    return np.asarray(stdtrit(freedom, (1 + confidence) / 2) * error)


def half_of_mean(values: Floats, confidence: float = 0.95) -> float:
    """Return half the width of the t interval for the mean of values; nan for one value.

    Examples
    --------
    >>> round(half_of_mean(np.array([1.0, 2.0, 3.0])), 6)
    2.484138
    """
    n = len(values)
    if n < 2:
        return float("nan")
    return float(t_half_width(values.std(ddof=1), n - 1, confidence) / np.sqrt(n))


def wilson(hits: float, n: int, confidence: float = 0.95) -> Estimate:
    """Estimate a proportion with Wilson's score interval.

    Parameters
    ----------
    hits, n
        Number of successes and of independent trials; ``n`` must be at least 1. If the trials have
        values between 0 and 1, and ``hits`` is their sum, the interval is conservative: binary
        values have the largest variance for a given mean.

    Examples
    --------
    Wilson (1927), JASA 22(158), p. 209-212; Newcombe (1998), Table I, 81 of 263. The result equals
    that of statsmodels' ``proportion_confint``, which takes seconds to import:

    >>> tuple(round(x, 4) for x in wilson(81, 263)[:3])
    (0.308, 0.2553, 0.3662)
    """
    if not 0 <= hits <= n or n < 1:
        raise ValueError(f"wilson: {hits} of {n} is not a proportion")
    low, high = _score_limits(np.float64(hits / n), n, confidence)
    return Estimate(hits / n, max(0.0, float(low)), min(1.0, float(high)), n)  # not nan if z is inf


def _score_limits(share: Any, n: Any, confidence: float) -> tuple[Floats, Floats]:
    """Return the limits of Wilson's score interval for shares of ``n`` trials."""
    square = float(ndtri((1 + confidence) / 2)) ** 2
    middle = (share + square / (2 * n)) / (1 + square / n)
    half = np.sqrt(square * (share * (1 - share) / n + square / (4 * n**2))) / (1 + square / n)
    return np.maximum(middle - half, 0.0), np.minimum(middle + half, 1.0)


def clustered(
    hits: Floats, trials: Floats, confidence: float = 0.95, strata: NDArray[np.int64] | None = None
) -> tuple[Floats, Floats, Floats]:
    """Return shares of clustered trials, and the limits of their intervals.

    The interval is Wilson's score interval for the effective sample size of Korn and Graubard
    (1998), Survey Methodology 24(2), p. 193-201, which is at most the number of trials; if the
    share does not vary between clusters, the number of clusters is used.

    Parameters
    ----------
    hits : (clusters, ...) array
        Number of successes in each cluster.
    trials : (clusters,) array
        Number of trials in each cluster; there must be at least one in total.
    strata : (clusters,) array, optional
        Stratum of each cluster. The share is the unweighted mean over strata; variances are summed.

    Examples
    --------
    Ten clusters of five equal trials have an effective sample size of nine, the number of df:

    >>> hits = np.array([5.0, 5, 5, 0, 0, 0, 0, 0, 0, 0])
    >>> [round(float(x), 3) for x in clustered(hits, np.full(10, 5.0))]
    [0.3, 0.102, 0.618]
    >>> [round(x, 3) for x in wilson(2.7, 9)[:3]]
    [0.3, 0.102, 0.618]
    """
    clusters, total = len(trials), trials.sum()
    inside = [np.ones(clusters, dtype=np.bool_)]
    if strata is not None:
        inside = [strata == stratum for stratum in np.unique(strata)]
    share, spread = np.zeros((2, *hits.shape[1:]))
    for part in inside:
        denominator, size = trials[part].sum(), int(part.sum())
        mean = hits[part].sum(axis=0) / denominator
        residuals = hits[part] - np.multiply.outer(trials[part], mean)
        share += mean / len(inside)
        variance = (residuals**2).sum(axis=0) / denominator**2 * size / max(1, size - 1)
        spread += variance / len(inside) ** 2
    with np.errstate(invalid="ignore", divide="ignore"):
        number = np.clip(share * (1 - share) / spread, 1.0, total)
    return share, *_score_limits(share, np.where(spread > 0, number, clusters), confidence)


def newcombe(hits: tuple[float, float], n: tuple[int, int], confidence: float = 0.95) -> Estimate:
    """Estimate the difference between two independent proportions, first minus second.

    Newcombe's hybrid score interval (his method 10) combines the two Wilson intervals. It lies
    within [-1, 1], and its width is positive even if both shares are 0.

    Parameters
    ----------
    hits, n
        Number of successes and of trials in each group, as in :func:`wilson`.

    Examples
    --------
    Newcombe (1998), Interval estimation for the difference between independent proportions,
    Statistics in Medicine 17, p. 873-890, Table II, 56 of 70 against 48 of 80. The result equals
    that of statsmodels' ``confint_proportions_2indep``:

    >>> tuple(round(x, 4) for x in newcombe((56, 48), (70, 80))[:3])
    (0.2, 0.0524, 0.3339)
    """
    first, second = (wilson(h, m, confidence) for h, m in zip(hits, n, strict=True))
    difference = first.value - second.value
    below = hypot(first.value - first.low, second.high - second.value)
    above = hypot(first.high - first.value, second.value - second.low)
    return Estimate(difference, difference - below, difference + above, sum(n))


def spearman(x: Floats, y: Floats, confidence: float = 0.95) -> Estimate:
    """Estimate the rank correlation of two arrays of n >= 4 values; ties get mean ranks.

    The interval is based on Fisher's z, with the variance (1 + rho^2 / 2) / (n - 3). The estimate
    is nan if an array is constant.

    Bonett and Wright (2000), Psychometrika 65(1), equation 3, p. 25.
    """
    if len(x) != len(y) or len(x) < 4:
        raise ValueError("spearman: arrays need the same length, at least 4")
    rho = float(_of_ranks(x, y))
    z = np.arctanh(np.clip(rho, -1 + 1e-12, 1 - 1e-12))
    half = float(ndtri((1 + confidence) / 2)) * np.sqrt((1 + rho**2 / 2) / (len(x) - 3))
    low, high = float(np.tanh(z - half)), float(np.tanh(z + half))
    return Estimate(rho, low, high, len(x))


def rank_correlations(x: Floats, y: Floats) -> Floats:
    """Return Spearman's correlation over the last axis of two arrays of shape (..., n).

    Values equal to ten decimals are ties and get mean ranks; the result is nan where an array is
    constant or contains nan.
    """
    return _of_ranks(np.round(x, DIGITS), np.round(y, DIGITS))


def _of_ranks(x: Floats, y: Floats) -> Floats:
    from scipy.stats import rankdata  # the import takes half a second

    ranks = [rankdata(values, axis=-1) for values in (x, y)]
    a, b = (part - part.mean(axis=-1, keepdims=True) for part in ranks)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray((a * b).sum(axis=-1) / np.sqrt((a**2).sum(axis=-1) * (b**2).sum(axis=-1)))


NEAR = 1e-9  # smaller standard errors are rounding errors


class Equivalence(NamedTuple):
    """Result of two one-sided tests of a mean difference."""

    mean: float
    low: float  # interval with confidence 1 - 2 level; inside the bounds if and only if p <= level
    high: float
    p: float  # the larger p of the two; nan if the mean is inside the bounds and its error is 0


def equivalence(
    mean: float, error: float, freedom: float, bound: float, level: float = 0.05
) -> Equivalence:
    """Test the equivalence of a mean difference to 0 within (-bound, bound).

    The null hypothesis, a mean outside the bounds, is tested by two one-sided t tests at ``level``.

    Parameters
    ----------
    error, freedom
        Standard error of the mean, and its degrees of freedom.
    bound
        The smallest relevant difference; it must be positive, and chosen before the data are seen.

    References
    ----------
    Schuirmann (1987), A comparison of the two one-sided tests procedure and the power approach,
    J. Pharmacokinet. Biopharm. 15(6), section 3.

    Examples
    --------
    The t statistics are 6.57 and -4.38, with 3 degrees of freedom.

    >>> round(equivalence(0.02, 0.0183, 3, 0.1).p, 3)
    0.011
    """
    if error < NEAR:
        return Equivalence(mean, mean, mean, 1.0 if abs(mean) >= bound else float("nan"))
    reach = float(stdtrit(freedom, 1 - level) * error)
    p = float(stdtr(freedom, (abs(mean) - bound) / error))
    return Equivalence(mean, mean - reach, mean + reach, p)


def mean_p(differences: Floats) -> float:
    """Return the two-sided p-value of the t test for mean 0, from at least two differences.

    Examples
    --------
    Additional sleep of Student's (1908) patients after one drug compared with another: t is 4.06.

    >>> more = np.array([1.2, 2.4, 1.3, 1.3, 0.0, 1.0, 1.8, 0.8, 4.6, 1.4])
    >>> round(mean_p(more), 5)
    0.00283
    """
    values = np.asarray(differences, dtype=np.float64)
    n = len(values)
    return t_p(float(values.mean()), values.std(ddof=1) / np.sqrt(n), n - 1)


def t_p(mean: float, error: float, freedom: float) -> float:
    """Return the two-sided p of a mean; if its error is 0, 1 for mean 0 and nan otherwise.

    Examples
    --------
    >>> t_p(0.0, 0.0, 3), t_p(0.2, 0.0, 3)
    (1.0, nan)
    """
    if error < NEAR:
        return 1.0 if abs(mean) < NEAR else float("nan")
    return float(two_sided(mean / error, freedom))
