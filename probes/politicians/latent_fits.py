"""Fitted latent-variable models of words, and how they are fitted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

Penalty = Literal["proximal", "subgradient"]


class Schedule(NamedTuple):
    """How models are fitted.

    ``penalty``: ``proximal`` is soft-thresholding after each step, in Adam's own metric, so that
    a deviation that does not pay is exactly 0. ``subgradient``: the sign is part of the gradient,
    as the paper seems to have it (its text gives no more than "Adam"); nothing is then exactly 0.
    ``learn_background``: fit m as well, without penalty, instead of keeping the log frequency of
    the words.
    """

    steps: int
    learning_rate: float  # at first; it falls to 0 along half a cosine
    penalty: Penalty = "proximal"
    learn_background: bool = False


class Fits(NamedTuple):
    """Fitted models, one along each first axis."""

    eta: Array  # (fits, sentiments, genders, words): deviations
    sigma: Array  # (fits, sentiments, genders)
    phi: Array  # (fits, genders)
    background: Array  # (fits, words): m
    cross_entropy: Array  # (fits,): nats
    divergence: Array  # (fits,): the sum of KL(q || p) over words with a q, nats
    residual: Array  # (fits,): distance from a stationary point, see :func:`fit`

    def take(self, index: NDArray[np.int64]) -> Fits:
        """Return some of the fits."""
        return Fits(*(part[index] for part in self))
