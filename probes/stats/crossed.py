"""Interval of a total over statements, each asked in several ways of a model trained several times.

Statements, prompts and trainings are crossed: every statement stands in every prompt, to every
training. Each of the three is a sample of those that could have been taken.
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
