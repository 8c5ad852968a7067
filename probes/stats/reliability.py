"""Reliability of an instrument: consistency and agreement.

Cases are the objects of measurement (statements, models); items or raters are the measurements
(other statements, templates, seeds). Scores are not imputed: incomplete rows are excluded.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import fdtri

from plumbline.probes.stats.estimate import Estimate

Floats = NDArray[np.float64]

LEAST = 3  # minimum number of levels of a facet
FLAT = 1e-12  # errors that are smaller relative to the scores are rounding errors
FORMS = ("ICC(1,1)", "ICC(2,1)", "ICC(3,1)", "ICC(1,k)", "ICC(2,k)", "ICC(3,k)")


def icc(ratings: Floats, confidence: float = 0.95) -> dict[str, Estimate]:
    """Return the six intraclass correlations, keyed by :data:`FORMS`.

    In forms (1, .), each target has different raters; in (2, .), all targets have the same random
    raters; in (3, .), the same fixed raters. Forms (., 1) are the reliability of one rating, forms
    (., k) that of the mean rating. Intervals are based on F distributions, as in Shrout and Fleiss.
    A form is nan if its denominator is not positive, for example if all targets have the same mean.

    Parameters
    ----------
    ratings : (targets, raters) array
        At least two targets and two raters, without missing ratings.

    References
    ----------
    Shrout and Fleiss (1979), Intraclass correlations: uses in assessing rater reliability,
    Psychological Bulletin 86(2), p. 420-428.

    Examples
    --------
    Ratings of six targets by four judges (their Table 2); Table 4 reports these values.

    >>> rows = "9 2 5 8; 6 1 3 2; 8 4 6 8; 7 1 2 6; 10 5 6 9; 6 2 4 7"
    >>> table = np.array([row.split() for row in rows.split(";")], dtype=float)
    >>> [round(form.value, 2) for form in icc(table).values()]
    [0.17, 0.29, 0.71, 0.44, 0.62, 0.91]
    """
    n, k = ratings.shape
    if min(n, k) < 2 or not np.isfinite(ratings).all():
        raise ValueError("icc: ratings need two targets, two raters and no missing values")
    mean = ratings.mean()
    targets, raters = (ratings.mean(axis=axis) - mean for axis in (1, 0))
    bms, jms = k * (targets**2).sum() / (n - 1), n * (raters**2).sum() / (k - 1)
    within = ((ratings - mean - targets[:, None]) ** 2).sum()
    wms = within / (n * (k - 1))
    residuals = ratings - mean - targets[:, None] - raters
    ems = (residuals**2).sum() / ((n - 1) * (k - 1))
    least = (FLAT * float(np.abs(ratings).max())) ** 2  # rounding error
    bms, jms, wms, ems = (0.0 if x <= least else x for x in (bms, jms, wms, ems))
    upper = (1 + confidence) / 2
    with np.errstate(divide="ignore", invalid="ignore"):
        icc1 = _ratio(bms / np.float64(wms), (n - 1, n * (k - 1)), k, upper)
        icc3 = _ratio(bms / np.float64(ems), (n - 1, (n - 1) * (k - 1)), k, upper)
        rho = _over(bms - ems, bms + (k - 1) * ems + k * (jms - ems) / n)
        icc2 = (rho, *_limits(bms, jms, ems, (n, k), rho, upper))
    single = [
        Estimate(float(rho), float(low), float(high), n) for rho, low, high in (icc1, icc2, icc3)
    ]
    averaged = [spearman_brown(form, k) for form in single]
    averaged[1] = averaged[1]._replace(value=_over(bms - ems, bms + (jms - ems) / n))
    return dict(zip(FORMS, [*single, *averaged], strict=True))


def _over(part: float, total: float) -> float:
    """Return part / total, or nan if the total is not positive."""
    return float(part / total) if total > 0 else float("nan")


def _ratio(
    f: np.float64, df: tuple[int, int], k: int, upper: float
) -> tuple[np.float64, np.float64, np.float64]:
    """Return (F - 1) / (F + k - 1) and its limits for a ratio of mean squares F; 1 if F is inf."""
    ends = (f, f / fdtri(*df, upper), f * fdtri(*df[::-1], upper))
    value, low, high = (np.where(np.isinf(end), 1.0, (end - 1) / (end + k - 1)) for end in ends)
    return np.float64(value), np.float64(low), np.float64(high)


def _limits(
    bms: float, jms: float, ems: float, shape: tuple[int, int], rho: float, upper: float
) -> tuple[float, float]:
    """Return the limits of ICC(2,1), Shrout and Fleiss (1979), p. 424."""
    n, k = shape
    if not ems or not np.isfinite(rho):
        return float("nan"), float("nan")
    f, offset = jms / ems, n * (1 + (k - 1) * rho) - k * rho
    v = (k - 1) * (n - 1) * (k * rho * f + offset) ** 2
    v /= (n - 1) * (k * rho * f) ** 2 + offset**2
    over, under = fdtri(n - 1, v, upper), fdtri(v, n - 1, upper)
    spread = k * jms + (k * n - k - n) * ems
    low = n * (bms - over * ems) / (over * spread + n * bms)
    return low, n * (under * bms - ems) / (spread + n * under * bms)


def spearman_brown(single: Estimate, times: float) -> Estimate:
    """Return the reliability of a test that is ``times`` as long; nan if the denominator is <= 0.

    Spearman (1910) and Brown (1910), British Journal of Psychology 3.
    """
    below = (1 + (times - 1) * end for end in single[:3])
    value, low, high = (
        _over(times * end, x if x > FLAT else 0.0) for end, x in zip(single[:3], below, strict=True)
    )
    return single._replace(value=value, low=low, high=high)


def alpha(scores: Floats, confidence: float = 0.95) -> Estimate:
    """Return Cronbach's alpha of scores (cases, items), with Feldt's interval; equals ICC(3,k).

    Cronbach (1951), Psychometrika 16(3), p. 299; Feldt (1965), Psychometrika 30(3).

    Examples
    --------
    Three items that differ only by constants have an alpha of 1.

    >>> alpha(np.array([[1.0, 2.0, 3.0], [2.0, 3.0, 4.0], [4.0, 5.0, 6.0]])).value
    1.0
    """
    return icc(scores, confidence)["ICC(3,k)"]
