"""Paired tests of two classifiers on the same texts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.stats import binomtest

from plumbline.probes.stats.two_classes import METRICS, cells, metrics

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Bools = NDArray[np.bool_]
    Floats = NDArray[np.float64]

EXACT = 12  # up to so many texts that differ all exchanges are gone through
NEAR = 1e-9  # differences as large as each other up to rounding count as equally large


def mcnemar(one: Bools, other: Bools) -> float:
    """Test whether two classifiers are right equally often; return the exact two-sided p-value.

    The null is that of the texts that one of them alone has right each has half.

    Parameters
    ----------
    one, other : (texts,)
        Whether each has the text right.

    References
    ----------
    McNemar (1947), Psychometrika 12, p. 153-157; the exact form is a sign test.

    Examples
    --------
    One alone is right on nine texts, the other alone on one: 2 (1 + 10) / 2^10.

    >>> one = np.array([True] * 9 + [False] + [True] * 20)
    >>> round(mcnemar(one, np.array([False] * 9 + [True] + [True] * 20)), 6)
    0.021484
    """
    alone, lost = int((one & ~other).sum()), int((other & ~one).sum())
    return float(binomtest(alone, alone + lost).pvalue) if alone + lost else 1.0


def exchange_p(
    true: Bools,
    one: Bools,
    other: Bools,
    exchanges: int,
    seed: int,
    clusters: NDArray[np.int64] | None = None,
) -> Floats:
    """Test whether two classifiers do equally well, each trained several times.

    The null is that which is which does not matter: the predictions of both for a text may be
    exchanged, those of all runs together, each text (or cluster of texts) by itself. The statistic
    is the difference of the mean over runs of each measure.

    Parameters
    ----------
    true : (texts,)
        Whether each is of the positive class.
    one, other : (runs, texts)
        Whether each run calls it so; run by run in pairs.
    clusters : (texts,), optional
        Number of the cluster that each text is of, from 0; each is its own without.
    exchanges, seed
        Choices of clusters drawn where more than ``EXACT`` differ: the one seen is then one of
        them, and p = (1 + hits) / (1 + exchanges). Else all are gone through.

    Returns
    -------
    (6,) array
        Two-sided p-values in the order of ``two_classes.METRICS``; nan where a
        measure is.

    References
    ----------
    Yeh (2000), More accurate tests for the statistical significance of result differences,
    COLING, section 3.3; Noreen (1989), Computer-Intensive Methods for Testing Hypotheses.

    Examples
    --------
    Right on three texts of three against none: two of the eight exchanges are as extreme.

    >>> true = np.array([True, True, True])
    >>> exchange_p(true, true[None], ~true[None], 99, 1)[0]
    np.float64(0.25)
    """
    differ = np.flatnonzero((one != other).any(axis=0))
    units, unit = np.unique(differ if clusters is None else clusters[differ], return_inverse=True)
    exact = len(units) <= EXACT
    if exact:
        numbers = np.arange(2 ** len(units))[:, None]
        swapped = ((numbers >> np.arange(len(units))) & 1).astype(np.float64)
    else:
        drawn = np.random.default_rng(seed).integers(0, 2, (exchanges, len(units)))
        swapped = np.concatenate([np.zeros((1, len(units))), drawn])  # as they are first
    swapped = swapped[:, unit]
    before = [cells(true, side) for side in (one, other)]
    own, others = (cells(true[differ], side[:, differ], swapped.T) for side in (one, other))
    moved = others - own
    first, second = (metrics(before[0] + moved), metrics(before[1] - moved))
    apart = np.abs((first - second).mean(axis=0))  # (exchanges, measures)
    p = (apart >= apart[0] - NEAR).mean(axis=0)
    return np.where(np.isnan(apart[0]), np.nan, p)


__all__ = ["METRICS", "exchange_p", "mcnemar"]
