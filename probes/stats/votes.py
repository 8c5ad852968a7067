"""One classifier made of several: the class that most of them, or their mean, decide for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

VOTES = ("hard", "mean probability")
HALF = 0.5
NEAR = 1e-9  # means as near to one half as this are at it, whatever order they were summed in


def vote(probability: NDArray[np.float64], kind: str) -> NDArray[np.bool_]:
    """Return whether an ensemble calls each text positive.

    Parameters
    ----------
    probability : (voters, texts) or (..., voters, texts)
        That a text is positive, as each voter has it; one is for it above one half.
    kind
        ``hard``: the majority; where an even number of voters is split in halves the mean
        probability decides. ``mean probability``: whether the mean is above one half.

    References
    ----------
    Kittler et al. (1998), On combining classifiers, IEEE TPAMI 20(3): the mean rule and
    the majority vote.

    Examples
    --------
    Two lean against, one is sure that it is:

    >>> three = np.array([[0.4], [0.4], [0.9]])
    >>> bool(vote(three, "hard")[0]), bool(vote(three, "mean probability")[0])
    (False, True)
    """
    mean: NDArray[np.bool_] = probability.mean(axis=-2) > HALF + NEAR
    if kind == "mean probability":
        return mean
    lead = 2 * (probability > HALF).sum(axis=-2) - probability.shape[-2]
    return np.where(lead == 0, mean, lead > 0)


def majority_accuracy(accuracy: float, voters: int) -> float:
    """Return how often the majority of an odd number of independent voters is right.

    Each is right with the same probability, of two classes. For three: 3 p^2 - 2 p^3.

    References
    ----------
    Condorcet (1785), Essai sur l'application de l'analyse à la probabilité des décisions.

    Examples
    --------
    >>> round(majority_accuracy(0.7, 3), 4)
    0.784
    """
    from scipy.stats import binom

    if voters % 2 == 0:
        raise ValueError("an even number of voters may be split in halves")
    return float(binom.sf(voters // 2, voters, accuracy))
