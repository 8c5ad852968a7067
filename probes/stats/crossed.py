"""Intervals where several kinds of samples are crossed, and their variances added.

Statements, prompts and trainings: every statement stands in every prompt, to every training; texts
and trainings of either seed. Each kind is a sample of those that could have been taken.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.special import stdtr, stdtrit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

    Array = NDArray[np.float64]

METHOD = "t interval, variances of crossed samples added (Satterthwaite)"


class Part(NamedTuple):
    """What one kind of sample adds to the variance of an estimate."""

    variance: float
    df: int  # of it; 0: there is one of the kind, and nothing is known


def of_total(values: ArrayLike) -> Part:
    """Return the part of clusters whose sum is the estimate: n s^2.

    Parameters
    ----------
    values : (clusters,)
        What each adds.

    Examples
    --------
    >>> of_total([1.0, 2.0, 3.0])
    Part(variance=3.0, df=2)
    """
    own = np.asarray(values, dtype=np.float64)
    return Part(len(own) * float(own.var(ddof=1)), len(own) - 1) if len(own) > 1 else Part(0.0, 0)


def of_mean(values: ArrayLike) -> Part:
    """Return the part of levels whose mean is the estimate: s^2 / n.

    Parameters
    ----------
    values : (levels,)
        The estimate at each.

    Examples
    --------
    >>> of_mean([1.0, 2.0, 3.0]).variance.__round__(3)
    0.333
    """
    own = np.asarray(values, dtype=np.float64)
    return Part(float(own.var(ddof=1)) / len(own), len(own) - 1) if len(own) > 1 else Part(0.0, 0)


def half_width(parts: Sequence[Part], confidence: float) -> float:
    """Return half the width of the interval; nan where no kind has two or more.

    The variance is the sum over the kinds: what varies with two of them at once is counted in
    both, so the interval is rather too wide than too narrow. Its degrees of freedom are
    Satterthwaite's.

    References
    ----------
    Satterthwaite (1946), Biometrics Bulletin 2(6), p. 110-114; Cameron, Gelbach and Miller (2011),
    Robust inference with multiway clustering, J. Bus. Econ. Stat. 29(2), who take the part that is
    counted twice off again, by which the variance may come out negative.

    Examples
    --------
    With one kind this is the usual t interval: 12.706 sqrt(2 / 2).

    >>> round(half_width([of_mean([0.0, 2.0])], 0.95), 3)
    12.706
    """
    total, df = _added(parts)
    if not df:
        return 0.0 if total == 0 else total  # nan: nothing is known
    return float(stdtrit(df, (1 + confidence) / 2) * np.sqrt(total))


def two_sided_p(value: float, parts: Sequence[Part]) -> float:
    """Return the p of an estimate under a true 0 by the same t; nan where nothing is known.

    With the means of two samples as parts this is Welch's test. 0 spread is no evidence: nan.

    References
    ----------
    Welch (1947), Biometrika 34(1-2), p. 28-35.

    Examples
    --------
    >>> round(two_sided_p(2.0, [of_mean([1.0, 2.0, 3.0])]), 4)
    0.0742
    """
    total, df = _added(parts)
    return 2 * float(stdtr(df, -abs(value) / np.sqrt(total))) if df else float("nan")


def _added(parts: Sequence[Part]) -> tuple[float, float]:
    """Return the variance and Satterthwaite's degrees of freedom; 0 of those without spread."""
    known = [part for part in parts if part.df]
    if not known:
        return float("nan"), 0.0
    total = sum(part.variance for part in known)
    if total == 0:
        return 0.0, 0.0
    return total, total**2 / sum(part.variance**2 / part.df for part in known)


class Contrast(NamedTuple):
    """A mean difference over trainings; nan where they are too few to tell."""

    value: float
    low: float
    high: float
    p: float  # two-sided: 0 over all texts and all trainings


def over_trainings(
    differences: NDArray[np.float64], variance: float, texts: int, confidence: float = 0.95
) -> Contrast:
    """Estimate a difference over texts and trainings.

    Trainings are crossed, pretraining seeds by fine-tuning seeds. The variance of the mean is the
    sum of three parts: of the texts, as given; of the means by pretraining seed, over their
    number; of the means by fine-tuning seed, over theirs. What two of them share is counted twice,
    so that the sum is too large rather than too small. t with Satterthwaite's degrees of freedom.

    Parameters
    ----------
    differences : (pretraining seeds, fine-tuning seeds)
        The difference in each pair of trainings.
    variance
        Of the mean difference, over texts alone (a bootstrap's).
    texts
        How many there are.

    References
    ----------
    Satterthwaite (1946), Biometrics Bulletin 2(6); Owen (2007), The pigeonhole bootstrap,
    Ann. Appl. Stat. 1(2), on sums of crossed variances.

    Examples
    --------
    Two seeds each and no variance of texts: means 1 and 3 by the first, 2 and 2 by the second;
    s^2 / 2 = 1, one degree of freedom, t = 2.

    >>> round(over_trainings(np.array([[1.0, 1.0], [3.0, 3.0]]), 0.0, 100).p, 4)
    0.2952
    """
    value = float(differences.mean())
    parts = [(variance, max(1, texts - 1))]
    for axis in (0, 1):
        means = differences.mean(axis=1 - axis)
        n = len(means)
        parts.append((float(means.var(ddof=1)) / n if n > 1 else float("nan"), n - 1))
    return combined(value, parts, confidence)


def left_out(values: NDArray[np.float64]) -> tuple[float, int]:
    """Return the jackknife variance of an estimate, and its degrees of freedom.

    Parameters
    ----------
    values : (seeds,)
        The estimate without the trainings of each seed in turn.

    References
    ----------
    Efron and Stein (1981), The jackknife estimate of variance, Annals of Statistics 9(3).

    Examples
    --------
    Of a mean it is the usual one: of 1, 2 and 6 the means without each are 4, 3.5 and 1.5, and
    s^2 / n is 7 / 3.

    >>> round(left_out(np.array([4.0, 3.5, 1.5]))[0], 4)
    2.3333
    """
    n = len(values)
    if n < 2:
        return float("nan"), 0
    return float((n - 1) / n * ((values - values.mean()) ** 2).sum()), n - 1


def combined(value: float, parts: list[tuple[float, int]], confidence: float = 0.95) -> Contrast:
    """Estimate a value of which several variances with their degrees of freedom are added."""
    total = sum(part for part, _ in parts)
    if not np.isfinite(total) or not np.isfinite(value):
        return Contrast(value, float("nan"), float("nan"), float("nan"))
    if total <= 0:
        return Contrast(value, value, value, 1.0 if abs(value) < 1e-12 else 0.0)
    df = total**2 / sum(part**2 / free for part, free in parts)
    half = float(stdtrit(df, (1 + confidence) / 2)) * total**0.5
    p = float(2 * stdtr(df, -abs(value) / total**0.5))
    return Contrast(value, value - half, value + half, p)
