"""A difference of models when other texts, and other trainings, might have been drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.stats import t as student

if TYPE_CHECKING:
    from numpy.typing import NDArray


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
    half = float(student.ppf((1 + confidence) / 2, df)) * total**0.5
    p = float(2 * student.sf(abs(value) / total**0.5, df))
    return Contrast(value, value - half, value + half, p)
