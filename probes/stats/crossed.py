"""Intervals where several kinds of samples are crossed, and their variances added.

Statements and trainings: every statement is put to every training; texts and trainings. Each kind
is a sample of those that could have been taken. The variance is the sum over the kinds: what varies
with two of them at once is counted in both, so that intervals are rather too wide than too narrow,
or taken off once where it is known. t has Satterthwaite's degrees of freedom.

Satterthwaite (1946), Biometrics Bulletin 2(6), p. 110-114; Owen (2007), The pigeonhole bootstrap,
Ann. Appl. Stat. 1(2); Cameron, Gelbach and Miller (2011), Robust inference with multiway
clustering, J. Bus. Econ. Stat. 29(2), who take the part that is counted twice off again, by which
the variance may come out negative.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from plumbline.probes.stats.intervals import t_half_width, t_p

Floats = NDArray[np.float64]


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
    error: float = float("nan")  # standard error that p is told by
    df: float = float("nan")  # degrees of freedom of it


def of_mean(values: Sequence[float] | Floats) -> Part:
    """Return the part of levels, (levels,), whose mean is the estimate: s^2 / n.

    Examples
    --------
    >>> of_mean([1.0, 2.0, 3.0]).variance.__round__(3)
    0.333
    """
    n = len(values)
    return (
        Part(float(np.var(values, dtype=np.float64, ddof=1)) / n, n - 1) if n > 1 else Part(0.0, 0)
    )


def of_total(values: Sequence[float] | Floats) -> Part:
    """Return the part of clusters, (clusters,), whose sum is the estimate: n s^2."""
    return of_mean(len(np.asarray(values)) * np.asarray(values, dtype=np.float64))


def of_difference(*sides: Sequence[float] | Floats) -> list[Part]:
    """Return the parts of the difference of two means, or of one of differences, of four.

    Of equally many on each side the variances are pooled, as Student has it; else each is by
    itself, which is Welch's test (Welch 1947, Biometrika 34(1-2), p. 28-35). With 3, 5 and 10 of
    each a true null is rejected in .049, .049 and .050 at .05 (Welch .033, .043, .049), and where
    one SD is twice the other in .061, .059 and .055; 1.5 SD are found in .29, .55 and .89.

    Examples
    --------
    >>> [part.df for part in of_difference([1.0, 2.0, 3.0], [1.0, 2.0, 4.0])]
    [4]
    """
    parts = [of_mean(side) for side in sides]
    if len({part.df for part in parts}) == 1:
        return [Part(sum(part.variance for part in parts), sum(part.df for part in parts))]
    return parts


def left_out(values: Floats) -> Part:
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


def estimated(
    value: float, parts: Sequence[Part], confidence: float = 0.95, twice: float = 0.0
) -> Contrast:
    """Estimate a value whose variance is the sum of several parts, by t (Satterthwaite).

    Kinds of which there is one are left out; nan where there is no other. Without spread the
    interval is the value, and there is no p but that of 0, which is 1.

    Parameters
    ----------
    twice
        Variance that is in two of the parts; no more than the largest one is left. Degrees of
        freedom are of what is left: with those of the whole sum a true null is rejected in up to
        .10 with three trainings, and .08 with five.

    Examples
    --------
    With one kind this is the usual t interval: 12.706 sqrt(2 / 2).

    >>> round(estimated(1.0, [of_mean([0.0, 2.0])]).high, 3)
    13.706
    >>> round(estimated(2.0, [of_mean([1.0, 2.0, 3.0])]).p, 4)
    0.0742
    """
    estimable = [part for part in parts if part.df]
    total = sum(part.variance for part in estimable) if estimable else float("nan")
    spread = sum(part.variance**2 / part.df for part in estimable)
    if not np.isfinite([total, value]).all():
        return Contrast(value, float("nan"), float("nan"), float("nan"))
    if not spread:
        return Contrast(value, value, value, t_p(value, 0.0, 1), 0.0)
    variance = max(total - twice, *(part.variance for part in estimable), 0.0)
    df, se = variance**2 / spread, variance**0.5
    half = float(t_half_width(se, df, confidence))
    return Contrast(value, value - half, value + half, t_p(value, se, df), se, df)


def over_trainings(
    differences: Floats,
    variance: float,
    texts: int,
    confidence: float = 0.95,
    *,
    overlap: float = 0.0,
) -> Contrast:
    """Estimate a difference over texts and trainings; nan with one training.

    Parameters
    ----------
    differences : (trainings,)
        The difference in each, pretraining and fine-tuning together.
    variance
        Of the mean difference, over texts alone (a bootstrap's).
    texts
        How many there are.
    own
        Part of ``variance`` that trainings have each by itself, which is in that over trainings
        too; see :func:`own_part`.

    Examples
    --------
    Trainings with 1 and 3, and no variance of texts: s^2 / 2 = 1, one degree of freedom, t = 2.

    >>> round(over_trainings(np.array([1.0, 3.0]), 0.0, 100).p, 4)
    0.2952
    """
    parts = [Part(variance, max(1, texts - 1)), of_mean(differences)]
    value = float(differences.mean())
    return estimated(value, parts if parts[1].df else [], confidence, overlap)


def own_part(bootstraps: Floats) -> float:
    """Return what trainings have each by itself of the variance over texts of their mean.

    nan where fewer than two replicates have a number in all of them: then nothing is known of it.

    Parameters
    ----------
    drawn : (trainings, replicates)
        Bootstraps over texts, the same texts for all.

    Examples
    --------
    Two that have nothing in common, each of variance 1: all of the variance of the mean, 1 / 2.

    >>> round(own_part(np.array([[1.0, 1.0, -1.0, -1.0], [1.0, -1.0, 1.0, -1.0]]) * 0.75**0.5), 6)
    0.5
    """
    # F1 is undefined for a class without a resampled text
    bootstraps = bootstraps[:, np.isfinite(bootstraps).all(axis=0)]
    seeds, replicates = bootstraps.shape
    if seeds < 2:
        return 0.0
    if replicates < 2:
        return float("nan")
    separate, joint = bootstraps.var(axis=1, ddof=1).mean(), bootstraps.mean(axis=0).var(ddof=1)
    result: float = max(0.0, (float(separate) - float(joint)) / (seeds - 1))
    return result
