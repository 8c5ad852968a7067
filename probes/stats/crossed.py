"""Intervals where several kinds of samples are crossed, and their variances added.

Statements, prompts and trainings: every statement stands in every prompt, to every training; texts
and trainings of either seed. Each kind is a sample of those that could have been taken. The
variance is the sum over the kinds: what varies with two of them at once is counted in both, so
that intervals are rather too wide than too narrow. t has Satterthwaite's degrees of freedom.

Satterthwaite (1946), Biometrics Bulletin 2(6), p. 110-114; Owen (2007), The pigeonhole bootstrap,
Ann. Appl. Stat. 1(2); Cameron, Gelbach and Miller (2011), Robust inference with multiway
clustering, J. Bus. Econ. Stat. 29(2), who take the part that is counted twice off again, by which
the variance may come out negative.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.special import stdtr, stdtrit

from plumbline.probes.stats.t_tests import t_p

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

FEW = 5  # trainings, of which two sides have their variance pooled
METHOD = "t interval, variances of crossed samples added (Satterthwaite)"


class Part(NamedTuple):
    """What one kind of sample adds to the variance of an estimate."""

    variance: float
    df: int  # of it; 0: there is one of the kind, and nothing is known


class Contrast(NamedTuple):
    """A mean difference over trainings; nan where they are too few to tell."""

    value: float
    low: float
    high: float
    p: float  # two-sided: 0 over all texts and all trainings


def of_mean(values: ArrayLike) -> Part:
    """Return the part of levels, (levels,), whose mean is the estimate: s^2 / n.

    Examples
    --------
    >>> of_mean([1.0, 2.0, 3.0]).variance.__round__(3)
    0.333
    """
    own = np.asarray(values, dtype=np.float64)
    return Part(float(own.var(ddof=1)) / len(own), len(own) - 1) if len(own) > 1 else Part(0.0, 0)


def of_total(values: ArrayLike) -> Part:
    """Return the part of clusters, (clusters,), whose sum is the estimate: n s^2."""
    return of_mean(len(np.asarray(values)) * np.asarray(values, dtype=np.float64))


def of_difference(one: ArrayLike, other: ArrayLike) -> list[Part]:
    """Return the parts of the difference of two means.

    From five levels on each side by itself, which is Welch's test. Of fewer that are equally many
    the variances are pooled, as Student has it: with three Welch's test rejects a true null in
    .033 at .05, and finds 3 SD in .68; Student's in .048 (.062 where one SD is twice the other,
    .075 where it is three times), and finds them in .78.

    Examples
    --------
    >>> [part.df for part in of_difference([1.0, 2.0, 3.0], [1.0, 2.0, 4.0])]
    [4]
    """
    parts = [of_mean(one), of_mean(other)]
    if parts[0].df == parts[1].df and 0 < parts[0].df + 1 < FEW:
        return [Part(parts[0].variance + parts[1].variance, 2 * parts[0].df)]
    return parts


def left_out(values: NDArray[np.float64]) -> Part:
    """Return the jackknife's part: ``values`` (seeds,) are the estimate without each seed in turn.

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
        return Part(float("nan"), 0)
    return Part(float((n - 1) / n * ((values - values.mean()) ** 2).sum()), n - 1)


def half_width(parts: Sequence[Part], confidence: float) -> float:
    """Return half the width of the interval; nan where no kind has two or more.

    Examples
    --------
    With one kind this is the usual t interval: 12.706 sqrt(2 / 2).

    >>> round(half_width([of_mean([0.0, 2.0])], 0.95), 3)
    12.706
    """
    total, df = _added([part for part in parts if part.df])
    return float(stdtrit(df, (1 + confidence) / 2) * np.sqrt(total)) if df else total


def two_sided_p(value: float, parts: Sequence[Part]) -> float:
    """Return the p of an estimate under a true 0 by the same t; nan where nothing is known.

    With the means of two samples as parts this is Welch's test (Welch 1947, Biometrika 34(1-2), p.
    28-35). 0 spread is no evidence: nan.

    Examples
    --------
    >>> round(two_sided_p(2.0, [of_mean([1.0, 2.0, 3.0])]), 4)
    0.0742
    """
    total, df = _added([part for part in parts if part.df])
    return 2 * float(stdtr(df, -abs(value) / np.sqrt(total))) if df else float("nan")


def over_trainings(
    differences: NDArray[np.float64],
    variance: float,
    texts: int,
    confidence: float = 0.95,
    *,
    own: float = 0.0,
) -> Contrast:
    """Estimate a difference over texts and trainings, pretraining crossed with fine-tuning seeds.

    What is in two of the three variances is taken off once (Cameron, Gelbach and Miller 2011): what
    a pretraining does to texts, and what each pair of seeds has of its own. With the sum of the
    three the test rejects a true null in .01 to .03 at .05, by simulation; without these parts in
    .04 to .06, up to .1 where fine-tuning seeds differ more than pretrainings, and are two.

    Parameters
    ----------
    differences : (pretraining seeds, fine-tuning seeds)
        The difference in each pair of trainings.
    variance
        Of the mean difference, over texts alone (a bootstrap's).
    texts
        How many there are.
    own
        Part of ``variance`` that pretrainings have each by itself; see :func:`own_part`.

    Examples
    --------
    Two seeds each and no variance of texts: means 1 and 3 by the first, 2 and 2 by the second;
    s^2 / 2 = 1, one degree of freedom, t = 2.

    >>> round(over_trainings(np.array([[1.0, 1.0], [3.0, 3.0]]), 0.0, 100).p, 4)
    0.2952
    """
    seeds = [of_mean(differences.mean(axis=1 - axis)) for axis in (0, 1)]
    parts = [Part(variance, max(1, texts - 1)), *seeds]
    return combined(float(differences.mean()), parts, confidence, own + left_over(differences))


def own_part(drawn: NDArray[np.float64]) -> float:
    """Return what pretrainings have each by itself of the variance over texts of their mean.

    nan where fewer than two replicates have a number in all of them: then nothing is known of it.

    Parameters
    ----------
    drawn : (pretraining seeds, replicates)
        Bootstraps over texts, the same texts for all.

    Examples
    --------
    Two that have nothing in common, each of variance 1: all of the variance of the mean, 1 / 2.

    >>> round(own_part(np.array([[1.0, 1.0, -1.0, -1.0], [1.0, -1.0, 1.0, -1.0]]) * 0.75**0.5), 6)
    0.5
    """
    drawn = drawn[:, np.isfinite(drawn).all(axis=0)]  # a class that no drawn text is of has no F1
    seeds, replicates = drawn.shape
    if seeds < 2:
        return 0.0
    if replicates < 2:
        return float("nan")
    each, mean = drawn.var(axis=1, ddof=1).mean(), drawn.mean(axis=0).var(ddof=1)
    found: float = max(0.0, (float(each) - float(mean)) / (seeds - 1))
    return found


def left_over(differences: NDArray[np.float64]) -> float:
    """Return the variance of the mean that neither seeds of rows nor of columns explain.

    Examples
    --------
    >>> left_over(np.array([[1.0, 0.0], [0.0, 1.0]]))
    0.25
    """
    rows, columns = differences.shape
    if min(rows, columns) < 2:
        return 0.0
    left = differences - differences.mean(axis=1, keepdims=True)
    left = left - left.mean(axis=0, keepdims=True)
    return float((left**2).sum() / ((rows - 1) * (columns - 1) * rows * columns))


def combined(
    value: float, parts: Sequence[tuple[float, int]], confidence: float = 0.95, twice: float = 0.0
) -> Contrast:
    """Estimate a value of which several parts are added, all of which must be known.

    ``twice`` is the variance that is in two of them; no more than the largest one is left.
    """
    total, df = _added([Part(*part) for part in parts])
    total = max(total - twice, *(variance for variance, _ in parts)) if twice else total
    if not np.isfinite(total) or not np.isfinite(value) or not all(free for _, free in parts):
        return Contrast(value, float("nan"), float("nan"), float("nan"))
    if not df:
        return Contrast(value, value, value, t_p(value, 0.0, 1))
    half = float(stdtrit(df, (1 + confidence) / 2)) * total**0.5
    return Contrast(value, value - half, value + half, t_p(value, total**0.5, df))


def _added(parts: Sequence[Part]) -> tuple[float, float]:
    """Return variance (nan of no parts) and Satterthwaite's degrees of freedom; 0 of no spread."""
    total = sum(part.variance for part in parts) if parts else float("nan")
    spread = sum(part.variance**2 / part.df for part in parts if part.df)
    return total, (total**2 / spread if spread else 0.0)
