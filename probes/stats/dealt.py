"""Tests of one classifier: against chance, and of a group of texts against all of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from plumbline.probes.stats.two_classes import cells, metrics

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Bools = NDArray[np.bool_]
    Floats = NDArray[np.float64]

NEAR = 1e-9  # values as large as each other up to rounding count as equally large


def chance_p(
    true: Bools,
    predicted: Bools,
    draws: int,
    seed: int,
    clusters: NDArray[np.int64] | None = None,
) -> Floats:
    """Test whether classifiers do as well as if predictions had been dealt out at random.

    The null is that texts of both classes get the same predictions: the classes are permuted among
    the texts (or clusters of texts), the predictions of all runs staying together. The statistic
    is the mean over runs.

    Parameters
    ----------
    true : (texts,)
        Whether each is of the positive class.
    predicted : (runs, texts)
        Whether each run calls it so.
    clusters : (texts,), optional
        Number of the cluster that each text is of, from 0, all of one class; each is its own
        without.

    Returns
    -------
    (6,) array
        Twice the smaller tail, the order seen counted among the ``draws`` + 1, in the order of
        :data:`plumbline.probes.stats.two_classes.METRICS`; nan where a measure is.
    """
    unit = np.arange(len(true)) if clusters is None else clusters
    dealt = _dealt(_of_units(true, unit), [np.arange(unit.max() + 1)], draws, seed)[unit]
    hits = predicted.astype(np.float64) @ dealt  # (runs, draws)
    called, positives = predicted.sum(axis=1, keepdims=True), dealt.sum(axis=0)
    counts = [hits, called - hits, positives - hits, len(true) - positives - called + hits]
    return _two_sided(metrics(np.stack(counts, axis=-1)).mean(axis=0))


def membership_p(
    true: Bools,
    predicted: Bools,
    member: Bools,
    draws: int,
    seed: int,
    clusters: NDArray[np.int64] | None = None,
) -> Floats:
    """Test whether classifiers do otherwise on a group of texts than on all texts.

    The null is that, of texts of one class, those of the group get the same predictions as the
    others: who is of the group is permuted within each class, so that a group with other shares of
    the classes is not for this alone another one. The statistic is the difference between the
    group and all texts of the mean over runs.

    Parameters
    ----------
    true : (texts,)
        Whether each is of the positive class.
    predicted : (runs, texts)
        Whether each run calls it so.
    member : (texts,)
        Whether it is of the group.
    clusters : (texts,), optional
        As in :func:`chance_p`, all of one class and in the group or not; they are permuted whole.

    Returns
    -------
    (6,) array
        Twice the smaller tail, as in :func:`chance_p`.
    """
    unit = np.arange(len(true)) if clusters is None else clusters
    positive = _of_units(true, unit)
    strata = [np.flatnonzero(positive), np.flatnonzero(~positive)]
    dealt = _dealt(_of_units(member, unit), strata, draws, seed)[unit]
    return _two_sided(metrics(cells(true, predicted, dealt)).mean(axis=0))


def _of_units(values: Bools, unit: NDArray[np.int64]) -> Bools:
    """Return the value of each unit, which its texts share."""
    found = np.zeros(unit.max() + 1, dtype=np.bool_)
    found[unit] = values
    if (found[unit] != values).any():
        raise ValueError("texts of a cluster must be of one class, and in the group or not")
    return found


def _dealt(marked: Bools, strata: list[NDArray[np.int64]], draws: int, seed: int) -> Floats:
    """Return marks as they are and permuted within strata of units, (units, 1 + draws)."""
    rng = np.random.default_rng(seed)
    found = np.zeros((len(marked), draws + 1))
    found[marked, 0] = 1
    for own in strata:
        number = int(marked[own].sum())
        places = rng.permuted(np.tile(own, (draws, 1)), axis=1)[:, :number]
        np.put_along_axis(found[:, 1:], places.T, 1, axis=0)
    return found


def _two_sided(values: Floats) -> Floats:
    """Return twice the smaller tail of the first of several values, (draws + 1, measures)."""
    tails = [(side >= side[0] - NEAR).mean(axis=0) for side in (values, -values)]
    return np.where(np.isnan(values[0]), np.nan, np.minimum(1, 2 * np.minimum(*tails)))
