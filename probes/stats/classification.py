"""How well predicted labels agree with the true ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.stats import binomtest

from plumbline.probes.stats.estimate import Estimate

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Labels = NDArray[np.int64]
    Floats = NDArray[np.float64]


class Agreement(NamedTuple):
    """Accuracy and macro-F1 of one set of predictions."""

    accuracy: Estimate
    macro_f1: Estimate


class Difference(NamedTuple):
    """How much better one classifier is than another on the same texts."""

    accuracy: Estimate
    macro_f1: Estimate
    p: float  # McNemar's exact, two-sided: both err equally often where only one of them errs
    p_macro_f1: float  # of macro-F1, approximate randomisation: which is which does not matter


class Chance(NamedTuple):
    """What predictions would reach if they were dealt out to the texts at random."""

    accuracy: float
    macro_f1: float


def agreement(
    true: Labels,
    predicted: Labels,
    *,
    confidence: float = 0.95,
    bootstrap: int = 2000,
    seed: int = 1,
) -> Agreement:
    """Estimate accuracy and macro-F1 with percentile bootstrap intervals over texts.

    Parameters
    ----------
    true, predicted
        (texts,) class indices from 0. A text is the cluster unit. F1 of a class is 0 where it is
        neither true nor predicted but some other class is; macro-F1 is the plain mean over the
        classes that are true anywhere in ``true``.

    References
    ----------
    Van Rijsbergen (1979), Information Retrieval, ch. 7; Efron (1979), Annals of Statistics 7.

    Examples
    --------
    Six texts of three classes, right on the first class only (F1 0.8, 0, 0):

    >>> found = agreement(np.array([0, 1, 2, 0, 1, 2]), np.array([0, 2, 1, 0, 0, 1]))
    >>> round(found.accuracy.value, 4), round(found.macro_f1.value, 4)
    (0.3333, 0.2667)
    """
    tables = _tables([predicted], true, bootstrap, seed)[0]
    return Agreement(
        _estimate(_accuracy(tables), len(true), confidence),
        _estimate(_macro_f1(tables), len(true), confidence),
    )


def chance(true: Labels, predicted: Labels) -> Chance:
    """Return the expected accuracy and macro-F1 over all orders of the predictions.

    Exact: the frequencies of predicted and of true labels stay as they are, so that the expected
    hits of a class are the product of its two frequencies over the number of texts.

    Examples
    --------
    Four texts, three of them of class 0; the guesses are two of each. Expected hits: 3 * 2 / 4 and
    1 * 2 / 4; F1: 2 * 1.5 / 5 and 2 * 0.5 / 3:

    >>> found = chance(np.array([0, 0, 0, 1]), np.array([0, 1, 0, 1]))
    >>> round(found.accuracy, 4), round(found.macro_f1, 4)
    (0.5, 0.4667)
    """
    classes = int(max(true.max(), predicted.max())) + 1
    have, given = (np.bincount(labels, minlength=classes) for labels in (true, predicted))
    hits = have * given / len(true)
    f1 = 2 * hits[have > 0] / (have + given)[have > 0]
    return Chance(float(hits.sum() / len(true)), float(f1.mean()))


def difference(
    true: Labels,
    one: Labels,
    other: Labels,
    *,
    confidence: float = 0.95,
    bootstrap: int = 2000,
    permutations: int = 2000,
    seed: int = 1,
) -> Difference:
    """Estimate by how much ``one`` beats ``other``, paired by text.

    Accuracy is tested with McNemar's exact test; macro-F1 by approximate randomisation: the two
    predictions of each text are swapped with probability one half, and the p-value is
    (1 + number of differences at least as large) / (1 + permutations), two-sided.

    References
    ----------
    McNemar (1947), Psychometrika 12; the exact form is a sign test of the texts that one alone
    gets right. Yeh (2000), More accurate tests for the statistical significance of result
    differences, COLING, section 3.3; Noreen (1989), Computer-Intensive Methods for Testing
    Hypotheses.
    """
    first, second = _tables([one, other], true, bootstrap, seed)
    alone = int(((one == true) & (other != true)).sum())
    lost = int(((one != true) & (other == true)).sum())
    p = float(binomtest(alone, alone + lost).pvalue) if alone + lost else 1.0
    return Difference(
        _estimate(_accuracy(first) - _accuracy(second), len(true), confidence),
        _estimate(_macro_f1(first) - _macro_f1(second), len(true), confidence),
        p,
        _randomised(true, one, other, permutations, seed),
    )


def _randomised(true: Labels, one: Labels, other: Labels, permutations: int, seed: int) -> float:
    """Return the p-value of the difference in macro-F1; texts of one kind are swapped at once."""
    kinds, counts = np.unique(np.stack([true, one, other], axis=1), axis=0, return_counts=True)
    draws = np.random.default_rng(seed).binomial(counts, 0.5, (permutations, len(counts)))
    swapped = np.concatenate([np.zeros((1, len(counts))), draws])  # as they are first
    classes = int(kinds.max()) + 1
    first, second = np.zeros((2, len(swapped), classes, classes))
    for kind, count, moved in zip(kinds, counts, swapped.T, strict=True):
        for table, stays, comes in ((first, 1, 2), (second, 2, 1)):
            table[:, kind[0], kind[stays]] += count - moved
            table[:, kind[0], kind[comes]] += moved
    apart = np.abs(_macro_f1(first) - _macro_f1(second))
    return float((apart >= apart[0] - 1e-12).mean())


def _tables(predictions: list[Labels], true: Labels, bootstrap: int, seed: int) -> list[Floats]:
    """Return the confusion of each prediction, (1 + bootstrap, classes, classes), sample first.

    Texts are resampled as multinomial counts of their kinds, the same texts for all predictions.
    """
    if not len(true) or any(len(p) != len(true) for p in predictions):
        raise ValueError("as many predictions as texts, and at least one, are needed")
    classes = int(max(true.max(), *(p.max() for p in predictions))) + 1
    kinds, of_text = np.unique(np.stack([true, *predictions], axis=1), axis=0, return_inverse=True)
    counts = np.bincount(of_text.reshape(-1), minlength=len(kinds))
    draws = np.random.default_rng(seed).multinomial(len(true), counts / len(true), bootstrap)
    every = np.concatenate([counts[None], draws]).astype(float)
    found = []
    for column in range(1, kinds.shape[1]):
        table = np.zeros((len(every), classes, classes))
        for kind, number in zip(kinds, every.T, strict=True):
            table[:, kind[0], kind[column]] += number
        found.append(table)
    return found


def _accuracy(tables: Floats) -> Floats:
    return np.trace(tables, axis1=1, axis2=2) / tables.sum((1, 2))  # type: ignore[no-any-return]


def _macro_f1(tables: Floats) -> Floats:
    hits = np.diagonal(tables, axis1=1, axis2=2)
    total = tables.sum(1) + tables.sum(2)
    f1 = 2 * hits / np.where(total > 0, total, 1)
    return np.asarray(f1[:, tables[0].sum(1) > 0].mean(1))


def _estimate(values: Floats, n: int, confidence: float) -> Estimate:
    tail = (1 - confidence) / 2
    low, high = np.quantile(values[1:], [tail, 1 - tail])
    return Estimate(float(values[0]), float(low), float(high), n, "percentile bootstrap over texts")
