"""Latent-variable model of words, sentiments and genders, fitted for a grid of weights.

With p(w, g) = sum over s of p(w | s, g) p(s | g) p(g) and

    p(w | s, g)  proportional to  exp(m_w + eta_{w,s,g})
    p(s | g)     proportional to  exp(sigma_{s,g})
    p(g)         proportional to  exp(phi_g)

the objective is the cross-entropy of the observed shares with p(w, g), plus ``posterior`` times the
sum over words of KL(q(s | w) || p(s | w)), plus ``l1`` times the sum of all |eta|, |sigma| and
|phi|. Stańczak et al. (2023), PLoS ONE 18(11): e0277640, equations 10 to 13, after Hoyle et al.
(2019), ACL, section 3.

Without ``l1``, the other two terms have a joint minimum in closed form, for any ``posterior``: p(w,
g) is as observed and p(s | w) = q. Every fit starts there (:func:`begin`).

Words are on the last axis of all arrays. Arrays are float64, so that rounded results do not depend
on the processor. Fits run in batches in torch; results do not depend on the batch.
"""

from __future__ import annotations

import contextlib
from functools import reduce
from math import cos, pi, sqrt
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    Array = NDArray[np.float64]

BLOCK = 200_000  # number of deviations in a batch, chosen to fit into the cache
BETAS = (0.9, 0.9)  # equal, since gradients shrink by orders of magnitude near the posterior
EPSILON = 1e-12  # below the usual 1e-8, since gradients of rare words are small
ROUNDS = 100  # iterations for fitting the margins of a start; errors are then below 1e-9


class Schedule(NamedTuple):
    """Settings of the fits."""

    steps: int  # steps of Adam if ``l1`` is above 0; else the start is the minimum
    learning_rate: float  # initial rate, with cosine decay to 0


class Fits(NamedTuple):
    """Fitted models, arranged along the first axis of each array."""

    eta: Array  # (fits, sentiments, genders, words): deviations
    sigma: Array  # (fits, sentiments, genders)
    phi: Array  # (fits, genders)
    background: Array  # (fits, words): m, the logarithm of the word's share
    cross_entropy: Array  # (fits,): nats
    divergence: Array  # (fits,): sum of KL(q || p) over the words that have a q, in nats
    objective: Array  # (fits,): minimised objective, in nats


def grid(l1: Sequence[float], posterior: Sequence[float]) -> tuple[Array, Array]:
    """Return all pairs of weights as two arrays of shape (fits,); the paper uses 40 pairs."""
    first, second = np.meshgrid(l1, posterior, indexing="ij")
    return first.ravel(), second.ravel()


def tilt(seed: int, scale: float, shape: tuple[int, int, int]) -> Array:
    """Draw normal interactions of sentiment and gender per word, with SD ``scale``.

    Only L1 determines the interaction: with three sentiments and two genders, a word's counts and
    its q determine 4 of its 6 deviations.

    ``shape``: numbers of sentiments, genders and words.
    """
    return np.random.default_rng(seed).normal(0.0, scale, shape)


def begin(counts: Array, q: Array, tilted: Array | None = None) -> Fits:
    """Return the minimum of the objective without the L1 term for each table of counts.

    p(w, g) is as observed, and p(s | w) is q, or the mean q for words without one. Several models
    have this property: the one in which sentiment and gender are independent given the word is
    returned, or the one nearest to ``tilted``, obtained by iterative proportional fitting. These
    terms do not determine the level of eta within a sentiment and gender. It is set so that the sum
    of |eta| is smallest: the median over words is 0.

    Parameters
    ----------
    counts : (tables, words, genders) array
    q : (words, sentiments) array
    tilted : (sentiments, genders, words) array
        From :func:`tilt`; None is equivalent to zeros.

    References
    ----------
    Deming and Stephan (1940), Ann. Math. Stat. 11, for the fitting of margins.
    """
    shares = np.ascontiguousarray((counts / counts.sum(axis=(1, 2), keepdims=True)).swapaxes(1, 2))
    words = shares.sum(axis=1)
    has_q = ~np.isnan(q).any(axis=1)
    mean = np.full((len(words), q.shape[1], 1), 1.0)
    if has_q.any():
        mean = (q[has_q].T * words[:, None, has_q]).sum(axis=2, keepdims=True)
    target = np.where(has_q, q.T, mean / mean.sum(axis=1, keepdims=True))
    joint = target[:, :, None] * shares[:, None]
    if tilted is not None:
        joint *= torch.exp(torch.from_numpy(tilted)).numpy()
        for _ in range(ROUNDS):
            by_sentiment = (target * words[:, None] / joint.sum(axis=2))[:, :, None]
            joint *= np.where(has_q, by_sentiment, 1.0)
            joint *= (shares / joint.sum(axis=1))[:, None]
    total = joint.sum(axis=3)
    background = _log(words)
    eta = _log(joint) - background[:, None, None]
    eta -= np.median(eta, axis=3, keepdims=True)
    sigma = _log(total)
    sigma -= np.median(sigma, axis=1, keepdims=True)
    phi = _log(total.sum(axis=1))
    phi -= np.median(phi, axis=1, keepdims=True)
    none = np.full(len(counts), np.nan)
    return Fits(eta, sigma, phi, background, none, none, none)


def _log(values: Array) -> Array:
    """Return logarithms computed by torch; with NumPy, the last digits depend on AVX-512.

    If fits do not converge under L1, the steps of Adam enlarge such differences to 1e-4 nats.
    """
    logarithms: Array = torch.log(torch.from_numpy(np.ascontiguousarray(values))).numpy()
    return logarithms


def fit(
    counts: Array,
    q: Array,
    l1: Array,
    posterior: Array,
    schedule: Schedule,
    tilted: Array | None = None,
) -> Fits:
    """Fit models to counts by full-batch Adam, starting from :func:`begin`.

    The L1 penalty is applied by soft-thresholding in Adam's metric after each step, so that
    deviations can be exactly 0. The metric includes the square of ``l1``, since the gradient of the
    other terms is 0 at the start. Fits without ``l1`` take no steps.

    Parameters
    ----------
    counts : (fits or 1, words, genders) array
        Number of times that a word was generated for a gender; all must be above 0.
    q : (words, sentiments) array
        q(s | w); nan for words that no lexicon contains, which have no posterior term.
    l1, posterior : (fits,) arrays
    tilted : (sentiments, genders, words) array
        Interactions for another starting point, from :func:`tilt`.

    References
    ----------
    Kingma and Ba (2015), Adam, ICLR, algorithm 1; Yun, Lozano and Yang (2021), Adaptive proximal
    gradient methods for structured neural networks, NeurIPS, for the step in Adam's metric.
    """
    counts = np.asarray(counts, dtype=np.float64)
    if not (np.isfinite(counts).all() and (counts > 0).all()):
        raise ValueError("counts must be finite and above 0; add a constant to every cell")
    counts = np.broadcast_to(counts, (len(l1), *counts.shape[1:]))
    parts, places = [], []
    with one_thread():
        for steps, chosen in ((0, l1 == 0), (schedule.steps, l1 > 0)):
            if chosen.any():
                fits = np.flatnonzero(chosen)
                start = begin(counts[fits], q, tilted)
                program = Program(counts[fits], q, l1[fits], posterior[fits], start)
                parts.append(program.run(schedule._replace(steps=steps)))
                places.append(fits)
    order = np.argsort(np.concatenate(places))
    return Fits(*(np.concatenate(part)[order] for part in zip(*parts, strict=True)))


class Averages(NamedTuple):
    """Means of fits over the weights, for each table of counts."""

    eta: Array  # (tables, sentiments, genders, words)
    words: Array  # (tables, genders, words): log p(w | g) - m_w over all sentiments, in nats
    sentiments: Array  # (tables, sentiments, genders): p(s | g)


def average(fits: Fits, weights: int) -> Averages:
    """Average fits in groups of ``weights``; each group belongs to one table of counts."""
    sentiments = torch.log_softmax(torch.from_numpy(fits.sigma), dim=1)
    m = torch.from_numpy(fits.background)[:, None, None, :]
    joint = torch.log_softmax(m + torch.from_numpy(fits.eta), dim=3) + sentiments[..., None]
    words = torch.logsumexp(joint, dim=1) - m[:, 0]
    parts = (fits.eta, words.numpy(), sentiments.exp().numpy())
    return Averages(*(p.reshape(-1, weights, *p.shape[1:]).mean(axis=1) for p in parts))


def refit(counts: Array, q: Array, l1: Array, posterior: Array, schedule: Schedule) -> Averages:
    """Fit models with all weights to each bootstrap replicate of the counts.

    Like the fit to the data, each fit starts at its minimum without ``l1``. A fit that started at
    the fit to the data would stay near it.

    Parameters
    ----------
    counts : (tables, words, genders) array
    """
    weights = len(l1)
    size = max(1, BLOCK // (weights * q.shape[1] * counts[0].size))
    blocks = []
    for first in range(0, len(counts), size):
        tables = counts[first : first + size]
        cells = np.repeat(tables, weights, axis=0)
        number = len(tables)
        fits = fit(cells, q, np.tile(l1, number), np.tile(posterior, number), schedule)
        blocks.append(average(fits, weights))
    return Averages(*(np.concatenate(parts) for parts in zip(*blocks, strict=True)))


class Program:
    """A batch of fits; a single buffer of shape (fits, parameters) makes steps fast."""

    def __init__(self, counts: Array, q: Array, l1: Array, posterior: Array, start: Fits) -> None:
        number = len(start.eta)
        parts = [np.reshape(part, (number, -1)) for part in start[:3]]
        self.theta = torch.from_numpy(np.concatenate(parts, axis=1))
        views = torch.split(self.theta, [part.shape[1] for part in parts], dim=1)
        self.eta, self.sigma, self.phi = (
            view.view(part.shape) for view, part in zip(views, start[:3], strict=True)
        )
        self.m = torch.from_numpy(start.background)
        self.l1 = torch.from_numpy(l1)[:, None]
        shares = counts / counts.sum(axis=(1, 2), keepdims=True)
        self.shares = torch.from_numpy(np.ascontiguousarray(shares.transpose(0, 2, 1)))
        has_q: NDArray[np.bool_] = ~np.isnan(q.sum(axis=1))
        self.q = torch.from_numpy(np.where(has_q[:, None], q, 0.0).T.copy())
        self.posterior = torch.from_numpy(posterior)
        self.push = self.posterior[:, None, None] * torch.from_numpy(has_q)
        self.joint = torch.empty_like(self.eta)  # allocating it in each step would be slow

    def forward(self) -> tuple[torch.Tensor, ...]:
        """Store p(w, s, g) in ``joint``; return p(s | g), p(g) and p(s, g)."""
        joint = torch.exp(self.eta, out=self.joint)
        joint *= torch.exp(self.m)[:, None, None]
        sentiment = torch.softmax(self.sigma, dim=1)
        gender = torch.softmax(self.phi, dim=1)
        product = sentiment * gender[:, None, :]
        joint *= (product / joint.sum(dim=3))[..., None]
        return sentiment, gender, product

    def gradient(self) -> torch.Tensor:
        """Return the gradient, of shape (fits, parameters), of the objective without the L1 term.

        Let D be the derivative with respect to log p(w, s, g): -p(w, s, g) times (the observed
        share over p(w, g), plus ``posterior`` times (q(s | w) / p(w, s) - 1 / p(w))). The rest
        follows from the softmaxes: the gradient with respect to eta is D - p(w | s, g) times the
        sum of D over words.
        """
        sentiment, gender, product = self.forward()
        by_sentiment = _sum(self.joint, 2)
        term = -self.posterior[:, None, None] * self.q / by_sentiment
        term += self.push / by_sentiment.sum(dim=1, keepdim=True)
        slope = term[:, :, None] - (self.shares / _sum(self.joint, 1))[:, None]
        slope *= self.joint
        total = slope.sum(dim=3)
        slope.addcmul_(self.joint, (total / product)[..., None], value=-1)
        by_gender = total.sum(dim=1)
        sigma = total - sentiment * by_gender[:, None, :]
        phi = by_gender - gender * by_gender.sum(dim=1, keepdim=True)
        return torch.cat([slope.flatten(1), sigma.flatten(1), phi], dim=1)

    def run(self, schedule: Schedule) -> Fits:
        """Run Adam, and return the result, or the starting point if its objective is lower."""
        first, second = BETAS
        values, before = self.theta, self.theta.clone()
        least = self._objective()[-1]
        mean, square = torch.zeros_like(values), torch.zeros_like(values)
        for step in range(1, schedule.steps + 1):
            gradient = self.gradient()
            rate = schedule.learning_rate * (1 + cos(pi * (step - 1) / schedule.steps)) / 2
            unbiased = 1 - second**step
            rate *= sqrt(unbiased)
            mean.lerp_(gradient, 1 - first)
            square.mul_(second).addcmul_(gradient, gradient, value=1 - second)
            scale = torch.rsqrt(square + (unbiased * self.l1**2 + EPSILON**2))
            values.addcmul_(mean, scale, value=-rate / (1 - first**step))
            room = scale * (self.l1 * rate)
            values -= torch.clamp(values, -room, room)
        worse = self._objective()[-1] > least
        values[worse] = before[worse]
        fits = (self.eta, self.sigma, self.phi, self.m, *self._objective())
        return Fits(*(part.double().contiguous().numpy() for part in fits))

    def _objective(self) -> tuple[torch.Tensor, ...]:
        """Return the cross-entropy, the divergence and the objective, each of shape (fits,)."""
        self.forward()
        cross = -(self.shares * torch.log(self.joint.sum(dim=1))).sum(dim=(1, 2))
        inside = self.joint.sum(dim=2)
        of_word = torch.log(inside / inside.sum(dim=1, keepdim=True))
        divergence = (torch.special.xlogy(self.q, self.q) - self.q * of_word).sum(dim=(1, 2))
        penalty = self.l1[:, 0] * self.theta.abs().sum(dim=1)
        return cross, divergence, cross + self.posterior * divergence + penalty


def _sum(values: torch.Tensor, axis: int) -> torch.Tensor:
    """Sum over a short axis, several times faster than ``torch.sum``."""
    return reduce(torch.add, values.unbind(axis))


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """Limit torch to one thread, since splitting sums would change their last digits."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
