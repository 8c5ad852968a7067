"""How well classifiers tell two classes apart: counts of right and wrong, and measures of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Bools = NDArray[np.bool_]
    Floats = NDArray[np.float64]

METRICS = ("accuracy", "balanced accuracy", "F1", "macro F1", "precision", "recall")


def cells(true: Bools, predicted: Bools, weights: Floats | None = None) -> Floats:
    """Count texts by true and predicted class.

    Parameters
    ----------
    true : (texts,)
        Whether each is of the class that is sought, the positive one.
    predicted : (runs, texts)
        Whether each run says so.
    weights : (texts, replicates), optional
        How often each text counts; once without.

    Returns
    -------
    (runs, replicates, 4) array
        True positives, false positives, false negatives, true negatives.
    """
    weights = np.ones((len(true), 1)) if weights is None else weights
    kinds = (predicted & true, predicted & ~true, ~predicted & true, ~predicted & ~true)
    return np.stack([kind.astype(np.float64) @ weights for kind in kinds], axis=-1)


def metrics(counts: Floats) -> Floats:
    """Return the measures of :data:`METRICS` for counts, (..., 4) to (..., 6).

    Recall and precision are of the positive class, F1 their harmonic mean; balanced accuracy is
    the mean of the recalls of both classes, macro F1 of their F1. A measure is nan where a class
    that it needs has no text: both for the balanced and macro ones, the positive one for F1,
    precision and recall. Precision is 0 where no text is called positive.

    References
    ----------
    Van Rijsbergen (1979), Information Retrieval, ch. 7; Brodersen et al. (2010), The balanced
    accuracy and its posterior distribution, ICPR.

    Examples
    --------
    6 of 9 positive texts are found, among 8 that are called so; 9 of 11 others are right:

    >>> metrics(np.array([6.0, 2.0, 3.0, 9.0])).round(4).tolist()
    [0.75, 0.7424, 0.7059, 0.7442, 0.75, 0.6667]
    """
    hit, false, missed, rest = np.moveaxis(np.asarray(counts, dtype=np.float64), -1, 0)
    with np.errstate(invalid="ignore", divide="ignore"):
        accuracy = (hit + rest) / (hit + false + missed + rest)
        recall = hit / (hit + missed)
        other = rest / (rest + false)
        called = hit + false
        precision = np.where(called > 0, hit / np.where(called > 0, called, 1), 0.0)
        f1 = 2 * hit / (2 * hit + false + missed)
        f1_other = 2 * rest / (2 * rest + false + missed)
    none, no_other = hit + missed == 0, rest + false == 0
    precision, f1 = (np.where(none, np.nan, x) for x in (precision, f1))
    macro = np.where(none | no_other, np.nan, (f1 + f1_other) / 2)
    return np.stack([accuracy, (recall + other) / 2, f1, macro, precision, recall], axis=-1)
