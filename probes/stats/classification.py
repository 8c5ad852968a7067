"""Evaluation of classifiers: agreement with true labels, binary metrics and majority votes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtr

from plumbline.probes.stats.estimate import Estimate

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]
Labels = NDArray[np.int64]


class Agreement(NamedTuple):
    """Accuracy and macro-F1 of one set of predictions."""

    accuracy: Estimate
    macro_f1: Estimate


class Difference(NamedTuple):
    """Differences between two classifiers on the same texts, the first minus the second."""

    accuracy: Estimate
    macro_f1: Estimate
    p: float  # null hypothesis: equal error rates on texts that only one classifies correctly
    p_macro_f1: float  # null hypothesis: the two predictions of a text are exchangeable
    alone: tuple[int, int]  # texts that only the first, and only the second, classifies correctly


class Chance(NamedTuple):
    """Expected metrics when predictions are assigned to texts at random."""

    accuracy: float
    macro_f1: float


METRICS = ("accuracy", "balanced accuracy", "F1", "macro F1", "precision", "recall")
HALF = 0.5
NEAR = 1e-9  # tolerance around one half for means, whose rounding depends on the summation order


def agreement(
    true: Labels,
    predicted: Labels,
    *,
    confidence: float = 0.95,
    n_bootstrap: int = 2000,
    seed: int = 1,
) -> Agreement:
    """Estimate accuracy and macro-F1 with percentile bootstrap intervals over texts.

    Van Rijsbergen (1979), Information Retrieval, ch. 7; Efron (1979), Annals of Statistics 7.

    Parameters
    ----------
    true, predicted
        Class indices from 0, of shape (texts,). Each text is one cluster. Macro-F1 is the
        unweighted mean over the classes in ``true``; F1 is 0 for a class with neither true nor
        predicted texts in a replicate.

    Examples
    --------
    Six texts of three classes; only the first class is predicted correctly (F1 0.8, 0, 0):

    >>> found = agreement(np.array([0, 1, 2, 0, 1, 2]), np.array([0, 2, 1, 0, 0, 1]))
    >>> round(found.accuracy.value, 4), round(found.macro_f1.value, 4)
    (0.3333, 0.2667)
    """
    (result,) = _resampled([predicted], true, n_bootstrap, seed)
    return Agreement(*(_estimate(values, len(true), confidence) for values in result))


def chance(true: Labels, predicted: Labels) -> Chance:
    """Return the expected accuracy and macro-F1 over all permutations of the predictions.

    The frequencies of the predicted and of the true labels are fixed: the expected number of hits
    in a class is the product of its two frequencies divided by the number of texts.

    Examples
    --------
    Four texts, three of them in class 0; each class is predicted twice. The expected hits are 1.5
    (3 * 2 / 4) and 0.5; the F1 scores are 2 * 1.5 / 5 and 2 * 0.5 / 3:

    >>> found = chance(np.array([0, 0, 0, 1]), np.array([0, 1, 0, 1]))
    >>> round(found.accuracy, 4), round(found.macro_f1, 4)
    (0.5, 0.4667)
    """
    classes = int(max(true.max(), predicted.max())) + 1
    rows, columns = (np.bincount(labels, minlength=classes) for labels in (true, predicted))
    hits = rows * columns / len(true)  # computed from the marginal totals of the confusion matrix
    f1 = 2 * hits[rows > 0] / (rows + columns)[rows > 0]
    return Chance(float(hits.sum() / len(true)), float(f1.mean()))


def dealt_p(true: Labels, predicted: Labels, n_permutations: int = 2000, seed: int = 1) -> float:
    """Return the two-sided p-value of a macro-F1 from permutations of the predictions.

    The null hypothesis is that predictions are independent of the true labels, given the label
    frequencies. The p-value is the share of permutations, including the observed one, whose
    macro-F1 is at least as far from :func:`chance`.

    Examples
    --------
    Two texts in each of two classes, all correct: two of six assignments are as far from chance.

    >>> labels = np.array([0, 0, 1, 1])
    >>> round(dealt_p(labels, labels, 9999), 1)
    0.3
    """
    rng = np.random.default_rng(seed)
    classes = int(max(true.max(), predicted.max())) + 1
    observed = np.bincount(true * classes + predicted, minlength=classes**2)
    true_counts, predicted_counts = (observed.reshape(classes, -1).sum(axis) for axis in (1, 0))
    tables = np.zeros((n_permutations, classes, classes), dtype=np.int64)
    remaining = np.tile(predicted_counts, (n_permutations, 1))
    for row, number in enumerate(true_counts):
        unassigned = np.full(n_permutations, number)
        for column in range(classes):
            later = remaining[:, column + 1 :].sum(axis=1)
            tables[:, row, column] = rng.hypergeometric(remaining[:, column], later, unassigned)
            unassigned -= tables[:, row, column]
        remaining -= tables[:, row]
    tables = np.concatenate([observed[None], tables.reshape(n_permutations, -1)])
    macro_f1 = _measures(tables.astype(np.float64))[1]
    return _tail(np.abs(macro_f1 - chance(true, predicted).macro_f1))


def difference(
    true: Labels,
    first: Labels,
    second: Labels,
    *,
    confidence: float = 0.95,
    n_bootstrap: int = 2000,
    n_permutations: int = 2000,
    seed: int = 1,
) -> Difference:
    """Estimate the difference between two classifiers, the first minus the second, paired by text.

    Accuracy is tested by McNemar's (1947, Psychometrika 12) exact test: :func:`sign_p` for the
    texts that only one of the two classifies correctly. Macro-F1 is tested by approximate
    randomisation (Yeh 2000, COLING, section 3.3): the predictions of each text are swapped with
    probability 1 / 2, and the two-sided p-value is (1 + number of differences at least as large) /
    (1 + n_permutations).
    """
    pairs = zip(*_resampled([first, second], true, n_bootstrap, seed), strict=True)
    accuracy, macro_f1 = (_estimate(a - b, len(true), confidence) for a, b in pairs)
    right = first == true, second == true
    alone = int((right[0] & ~right[1]).sum()), int((~right[0] & right[1]).sum())
    distances = _randomised(true, [first, second], n_permutations, seed)
    return Difference(accuracy, macro_f1, sign_p(*alone), _tail(distances), alone)


def _randomised(true: Labels, pair: list[Labels], permutations: int, seed: int) -> Floats:
    """Return 1 + ``permutations`` absolute differences of macro-F1, the observed one first."""
    (first, second), counts, _ = _kinds(pair, true)
    draws = np.random.default_rng(seed).binomial(counts, 0.5, (permutations, len(counts)))
    moved = np.concatenate([np.zeros((1, len(counts))), draws])  # the observed order comes first
    stays = counts - moved
    pairs = (first, second), (second, first)
    macro_f1 = [_measures(stays @ a + moved @ b)[1] for a, b in pairs]
    return np.abs(macro_f1[0] - macro_f1[1])


def _tail(distances: Floats) -> float:
    """Return the share of distances that are at least as large as the first."""
    return float((distances >= distances[0] - 1e-12).mean())


def _resampled(
    predictions: list[Labels], true: Labels, bootstrap: int, seed: int
) -> list[tuple[Floats, Floats]]:
    """Return each classifier's accuracy and macro-F1, as arrays of length 1 + ``bootstrap``.

    The first value is that of the sample. The same texts are resampled for all classifiers, as
    multinomial counts of label patterns.
    """
    if not len(true) or any(len(p) != len(true) for p in predictions):
        raise ValueError("predictions and true labels must have the same length, at least 1")
    cells_of, counts, n = _kinds(predictions, true)
    draws = np.random.default_rng(seed).multinomial(n, counts / n, bootstrap)
    samples = np.concatenate([counts[None], draws]).astype(float)
    return [_measures(samples @ cell) for cell in cells_of]


def _kinds(predictions: list[Labels], true: Labels) -> tuple[list[Floats], Labels, int]:
    """Return confusion-matrix indicators and counts by label pattern, and the number of texts."""
    kinds, counts = np.unique(np.stack([true, *predictions], 1), axis=0, return_counts=True)
    classes = int(kinds.max()) + 1
    cell = np.eye(classes**2)
    return [cell[kinds[:, 0] * classes + labels] for labels in kinds.T[1:]], counts, len(true)


def _measures(tables: Floats) -> tuple[Floats, Floats]:
    """Return accuracy and macro-F1 of flat confusion matrices, of shape (tables, classes^2)."""
    classes = round(tables.shape[1] ** 0.5)
    square = tables.reshape(-1, classes, classes)
    hits = np.diagonal(square, axis1=1, axis2=2)
    total = square.sum(1) + square.sum(2)
    f1 = 2 * hits / np.where(total > 0, total, 1)
    macro = f1[:, square[0].sum(1) > 0].mean(1)
    return np.trace(square, axis1=1, axis2=2) / square.sum((1, 2)), macro


def _estimate(values: Floats, n: int, confidence: float) -> Estimate:
    tail = (1 - confidence) / 2
    low, high = np.quantile(values[1:], [tail, 1 - tail])
    return Estimate(float(values[0]), float(low), float(high), n)


def sign_p(first: int, second: int) -> float:
    """Return the exact two-sided p-value of the sign test, given the counts of both signs."""
    n = first + second
    return min(1.0, 2 * float(bdtr(min(first, second), n, 0.5))) if n else 1.0


def cells(true: Bools, predicted: Bools, weights: Floats | None = None) -> Floats:
    """Count true positives, false positives, false and true negatives, in this order.

    Parameters
    ----------
    true : (texts,)
        True for texts of the positive class.
    predicted : (runs, texts)
        True for texts that a run predicts as positive.
    weights : (texts, replicates), optional
        Weight of each text; 1 by default.
    """
    weights = np.ones((len(true), 1)) if weights is None else weights
    right, called = (kind.astype(np.float64) @ weights for kind in (predicted & true, predicted))
    positive, all_texts = true.astype(np.float64) @ weights, weights.sum(axis=0)
    missed = positive - right
    return np.stack([right, called - right, missed, all_texts - called - missed], axis=-1)


def metrics(counts: Floats) -> Floats:
    """Return the metrics :data:`METRICS`, of shape (..., 6), for counts of shape (..., 4).

    Recall, precision and F1 refer to the positive class; balanced accuracy is the mean recall of
    both classes, and macro F1 is their mean F1. A metric is nan if a class that it requires has no
    text. Balanced accuracy and macro F1 require both classes; F1, precision and recall require the
    positive class. Precision is 0 if no text is predicted as positive.

    Brodersen et al. (2010), The balanced accuracy and its posterior distribution, ICPR.

    Examples
    --------
    Six of 9 positive texts are among the 8 predicted as positive; 9 of 11 negatives are correct:

    >>> metrics(np.array([6.0, 2.0, 3.0, 9.0])).round(4).tolist()
    [0.75, 0.7424, 0.7059, 0.7442, 0.75, 0.6667]
    """
    tp, fp, fn, tn = np.moveaxis(np.asarray(counts, dtype=np.float64), -1, 0)
    with np.errstate(invalid="ignore", divide="ignore"):
        accuracy = (tp + tn) / (tp + fp + fn + tn)
        recall, specificity = tp / (tp + fn), tn / (tn + fp)  # nan if the class does not occur
        precision = np.where(tp + fp > 0, tp / (tp + fp), 0.0)
        f1, f1_negative = (2 * hits / (2 * hits + fp + fn) for hits in (tp, tn))
    precision, f1 = (np.where(np.isnan(recall), np.nan, x) for x in (precision, f1))
    macro = np.where(np.isnan(specificity), np.nan, (f1 + f1_negative) / 2)
    return np.stack([accuracy, (recall + specificity) / 2, f1, macro, precision, recall], axis=-1)


def vote(probability: Floats) -> Bools:
    """Predict texts by the majority vote of an ensemble; True is positive.

    Ties are broken by the mean probability. Kittler et al. (1998), On combining classifiers, IEEE
    TPAMI 20(3): majority vote, mean rule.

    ``probability`` has shape (..., voters, texts) and contains each voter's probability that a text
    is positive; a vote is positive if it is above one half. The result has shape (..., texts).

    Examples
    --------
    Two of three voters lean negative; a tie between two voters is decided by their mean:

    >>> [bool(vote(np.array(votes)[:, None])[0]) for votes in ([0.4, 0.4, 0.9], [0.4, 0.9])]
    [False, True]
    """
    mean: Bools = probability.mean(axis=-2) > HALF + NEAR
    lead = 2 * (probability > HALF).sum(axis=-2) - probability.shape[-2]
    return np.where(lead == 0, mean, lead > 0)
