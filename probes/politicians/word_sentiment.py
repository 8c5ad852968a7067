"""Classifying texts by the mean sentiment of their words: how lexica are compared.

The comparison is that of Stańczak et al. (2023), Table 12, in kind: which lexicon's words tell the
labels of texts best. The rule is ours: the mean score of the words that the lexicon has, cut in
two places that are chosen on other texts.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from plumbline.probes.stats.classification import (
    Agreement,
    Chance,
    Difference,
    agreement,
    chance,
    difference,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    Labels = NDArray[np.int64]
    Floats = NDArray[np.float64]

NEGATIVE, NEUTRAL, POSITIVE = range(3)  # the labels, in TweetEval's order
PLACES = 40  # cuts tried on either side
WORD = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")


class Evaluation(NamedTuple):
    """How well one lexicon does, and by how much the first one does better."""

    lexicon: str
    words: int
    covered: float  # share of the texts with a word of it
    low: float  # texts under it are negative
    high: float  # texts over it are positive
    agreement: Agreement
    chance: Chance
    first_less_this: Difference | None  # None for the first lexicon
    less_majority: Difference


def mean_scores(texts: Sequence[str], lexicon: Mapping[str, float]) -> Floats:
    """Return the mean score of each text's words, (texts,); NaN where the lexicon has none.

    Words are runs of letters in lower case, with apostrophes and hyphens inside.

    Examples
    --------
    >>> mean_scores(["Good, but bad food!", "Nothing."], {"good": 1.0, "bad": -0.5})
    array([0.25,  nan])
    """
    found = np.full(len(texts), np.nan)
    for i, text in enumerate(texts):
        scores = [lexicon[w] for w in WORD.findall(text.lower()) if w in lexicon]
        if scores:
            found[i] = sum(scores) / len(scores)
    return found


def classify(scores: Floats, low: float, high: float) -> Labels:
    """Return negative under ``low``, positive over ``high``, else neutral; NaN is neutral."""
    return np.where(scores > high, POSITIVE, np.where(scores < low, NEGATIVE, NEUTRAL))


def cuts(scores: Floats, labels: Labels) -> tuple[float, float]:
    """Return the two cuts, at quantiles of the scores, whose classes have the best macro-F1.

    Of equally good ones the lowest is taken.
    """
    known = scores[~np.isnan(scores)]
    if not len(known):
        raise ValueError("no text has a word of the lexicon")
    places = np.unique(np.quantile(known, np.linspace(0, 1, PLACES)).round(6))
    best = (-1.0, 0.0, 0.0)
    for i, low in enumerate(places):
        for high in places[i:]:
            table = np.bincount(labels * 3 + classify(scores, low, high), minlength=9).reshape(3, 3)
            total = table.sum(0) + table.sum(1)
            f1 = float((2 * table.diagonal() / np.where(total > 0, total, 1)).mean())
            if f1 > best[0] + 1e-12:
                best = (f1, float(low), float(high))
    return best[1], best[2]


def majority(labels: Labels) -> int:
    """Return the most frequent label; of equally frequent ones the first."""
    return int(np.bincount(labels).argmax())


def evaluate(
    tuning: tuple[Sequence[str], Labels],
    testing: tuple[Sequence[str], Labels],
    lexica: Mapping[str, Mapping[str, float]],
    *,
    confidence: float = 0.95,
    bootstrap: int = 2000,
    permutations: int = 2000,
    seed: int = 1,
) -> list[Evaluation]:
    """Cut each lexicon's mean scores on the tuning texts, and classify the others.

    Parameters
    ----------
    tuning, testing
        Texts and their labels 0 negative, 1 neutral, 2 positive.
    lexica
        Score of each word, -1 to 1, per lexicon; the first one is compared with all others on the
        same texts.

    Returns
    -------
    list of Evaluation
        In the order of ``lexica``. Unit: a text. ``less_majority`` compares with giving all texts
        the most frequent label of the tuning texts.

    Raises
    ------
    ValueError
        If no tuning text has a word of a lexicon.
    """
    found: list[Evaluation] = []
    first = None
    settings: dict[str, Any] = {"confidence": confidence, "bootstrap": bootstrap, "seed": seed}
    paired = settings | {"permutations": permutations}
    same = np.full(len(testing[1]), majority(tuning[1]))
    for name, lexicon in lexica.items():
        low, high = cuts(mean_scores(tuning[0], lexicon), tuning[1])
        scores = mean_scores(testing[0], lexicon)
        guess = classify(scores, low, high)
        versus = None
        if first is None:
            first = guess
        else:
            versus = difference(testing[1], first, guess, **paired)
        found.append(
            Evaluation(
                name,
                len(lexicon),
                float((~np.isnan(scores)).mean()),
                low,
                high,
                agreement(testing[1], guess, **settings),
                chance(testing[1], guess),
                versus,
                difference(testing[1], guess, same, **paired),
            )
        )
    return found
