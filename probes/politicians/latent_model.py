"""A latent-variable model of words, their sentiment and gender, fitted over a grid of weights.

With p(w, g) = sum over s of p(w | s, g) p(s | g) p(g) and

    p(w | s, g)  proportional to  exp(m_w + eta_{w,s,g})
    p(s | g)     proportional to  exp(sigma_{s,g})
    p(g)         proportional to  exp(phi_g)

what is minimised is the cross-entropy of the observed shares with p(w, g), plus ``posterior`` times
the sum over words of KL(q(s | w) || p(s | w)), plus ``l1`` times the sum of all |eta|, |sigma| and
|phi|. Stańczak et al. (2023), PLoS ONE 18(11): e0277640, equations 10 to 13, after Hoyle et al.
(2019), ACL, section 3.

Everything has the words as its last axis, and is float64, so that rounded results do not depend on
the processor. All fits are one batched program in torch; each does the same arithmetic whatever it
is batched with.
"""

from __future__ import annotations

import contextlib
from math import cos, pi, sqrt
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np
import torch

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    Array = NDArray[np.float64]

BLOCK = 200_000  # deviations that are worked on at once: few enough to stay in a processor's cache
BETAS = (0.9, 0.9)  # equal: gradients shrink by orders of magnitude as the posterior term is met
EPSILON = 1e-12  # gradients are shares of probability: for rare words below the usual 1e-8


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
    penalty: Literal["proximal", "subgradient"] = "proximal"
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


def grid(l1: Sequence[float], posterior: Sequence[float]) -> tuple[Array, Array]:
    """Return all pairs of weights, (fits,) arrays; the paper's section 5 has 40."""
    one, other = np.meshgrid(l1, posterior, indexing="ij")
    return one.ravel(), other.ravel()


def begin(counts: Array, sentiments: int, seed: int, scale: float) -> Fits:
    """Return one model to start from: deviations normal with SD ``scale``, all else zero.

    They are drawn for a word and a sentiment and shared by the genders, so that genders differ
    by the data alone.

    Parameters
    ----------
    counts : (words, genders) array
    """
    words, genders = counts.shape
    drawn = np.random.default_rng(seed).normal(0.0, scale, (sentiments, 1, words))
    none = np.full(1, np.nan)
    return Fits(
        np.broadcast_to(drawn, (sentiments, genders, words))[None].copy(),
        np.zeros((1, sentiments, genders)),
        np.zeros((1, genders)),
        _background(counts[None]),
        none,
        none,
        none,
    )


def fit(
    counts: Array,
    q: Array,
    l1: Array,
    posterior: Array,
    start: Fits,
    schedule: Schedule,
) -> Fits:
    """Fit models to counts by Adam, over all the data at each step.

    ``residual`` is the sum over parameters of
    the absolute (sub)gradient that is left, divided by 1 + ``posterior`` times the number of
    words with a q: about the share of probability that still has to move.

    Parameters
    ----------
    counts : (fits or 1, words, genders) array
        How often a word was generated for a gender; every word and gender at least once.
    q : (words, sentiments) array
        q(s | w); a row of nan for a word that is in no lexicon, which has no posterior term.
    l1, posterior : (fits,) arrays
    start
        ``fits`` models, or one for all, that Adam starts from.

    References
    ----------
    Kingma and Ba (2015), Adam, ICLR, algorithm 1; Yun, Lozano and Yang (2021), Adaptive proximal
    gradient methods for structured neural networks, NeurIPS, for the step in Adam's metric.
    """
    counts = np.asarray(counts, dtype=np.float64)
    if not (np.isfinite(counts).all() and (counts >= 0).all()):
        raise ValueError("counts must be finite and not negative")
    if not ((counts.sum(axis=-1) > 0).all() and (counts.sum(axis=-2) > 0).all()):
        raise ValueError("every word and every gender needs a count above 0")
    number = len(l1)
    size = start.eta[0].size
    each = max(1, BLOCK // size)
    blocks = []
    with one_thread():
        for first in range(0, number, each):
            chosen = np.arange(first, min(first + each, number))
            part = start.take(np.minimum(chosen, len(start.phi) - 1))
            cells = counts[np.minimum(chosen, len(counts) - 1)]
            if not schedule.learn_background:
                part = part._replace(background=_background(cells))
            weights = l1[chosen], posterior[chosen]
            blocks.append(Program(cells, q, *weights, part, schedule).run())
    return Fits(*(np.concatenate(parts) for parts in zip(*blocks, strict=True)))


class Averages(NamedTuple):
    """What fits say on average over the weights, for each table of counts."""

    eta: Array  # (tables, sentiments, genders, words)
    words: Array  # (tables, genders, words): log p(w | g) - m_w, all sentiments together, nats
    sentiments: Array  # (tables, sentiments, genders): p(s | g)


def average(fits: Fits, weights: int) -> Averages:
    """Average over every ``weights`` fits in a row: those of one table of counts."""
    sentiments = torch.log_softmax(torch.from_numpy(fits.sigma), dim=1)
    m = torch.from_numpy(fits.background)[:, None, None, :]
    given = torch.log_softmax(m + torch.from_numpy(fits.eta), dim=3) + sentiments[..., None]
    words = torch.logsumexp(given, dim=1) - m[:, 0]
    parts = (fits.eta, words.numpy(), sentiments.exp().numpy())
    return Averages(*(p.reshape(-1, weights, *p.shape[1:]).mean(axis=1) for p in parts))


def refit(
    counts: Array,
    q: Array,
    l1: Array,
    posterior: Array,
    start: Fits,
    schedule: Schedule,
) -> Averages:
    """Fit all weights to each of many tables of counts: bootstrap replicates, permutations.

    Every table must go through the same start and steps as the fit that it is held against. Fits
    with a large ``posterior`` take thousands of steps to settle, as the data's part of the
    objective is then small beside the regulariser's; replicates that begin at the fit to the
    whole data and take fewer steps stay near it, and show less than half of the true spread.

    Parameters
    ----------
    counts : (tables, words, genders) array
    start
        One model for all, or as many as there are weights.
    """
    weights = len(l1)
    each = max(1, BLOCK // (weights * start.eta[0].size))
    found = []
    for first in range(0, len(counts), each):
        tables = counts[first : first + each]
        number = len(tables)
        index = np.minimum(np.arange(weights), len(start.phi) - 1)
        fits = fit(
            np.repeat(tables, weights, axis=0),
            q,
            np.tile(l1, number),
            np.tile(posterior, number),
            start.take(np.tile(index, number)),
            schedule,
        )
        found.append(average(fits, weights))
    return Averages(*(np.concatenate(parts) for parts in zip(*found, strict=True)))


def contrast(eta: Array) -> Array:
    """Return a gender's deviation less the mean of the others', genders on the last but one axis.

    Exactly opposite for two genders.
    """
    number = eta.shape[-2]
    if number == 2:
        difference: Array = eta - eta[..., ::-1, :]
        return difference
    others = (eta.sum(axis=-2, keepdims=True) - eta) / (number - 1)
    result: Array = eta - others
    return result


def permutation_p(seen: Array, permuted: Array) -> Array:
    """Two-sided p-values of :func:`contrast` under permutation of the gender labels.

    Parameters
    ----------
    seen : (...) array of deviations
    permuted : (permutations, ...) array
        From counts with the labels permuted, fitted in the same way.

    Returns
    -------
    (...) array
        (1 + number of permutations at least as extreme) / (1 + permutations); valid whether or
        not the fits have settled, as all went through the same steps.
    """
    far = np.abs(contrast(permuted)) >= np.abs(contrast(seen)) * (1 - 1e-9)
    p: Array = (1 + far.sum(axis=0)) / (1 + len(permuted))
    return p


def _background(counts: Array) -> Array:
    words = counts.sum(axis=2)
    result: Array = np.log(words / words.sum(axis=1, keepdims=True))
    return result


class Program:
    """A block of fits: parameters in one (fits, parameters) buffer, so that Adam is one pass."""

    def __init__(
        self,
        counts: Array,
        q: Array,
        l1: Array,
        posterior: Array,
        start: Fits,
        schedule: Schedule,
    ) -> None:
        self.schedule, self.learn = schedule, schedule.learn_background
        self.shape = start.eta.shape
        number = len(start.eta)
        parts = [np.reshape(part, (number, -1)) for part in start[: 4 if self.learn else 3]]
        self.cut = [part.shape[1] for part in parts]
        self.theta = torch.from_numpy(np.concatenate(parts, axis=1))
        self.gradient = torch.zeros_like(self.theta)
        self.eta, self.sigma, self.phi, *m = self._views(self.theta)
        self.m = m[0] if m else torch.from_numpy(start.background)[:, None, None]
        self.frequency = torch.exp(self.m)
        self.penalised = sum(self.cut[:3])
        self.l1 = torch.from_numpy(l1)[:, None]
        shares = counts / counts.sum(axis=(1, 2), keepdims=True)
        self.shares = torch.from_numpy(np.ascontiguousarray(shares.transpose(0, 2, 1)))
        known: NDArray[np.bool_] = ~np.isnan(q.sum(axis=1))
        self.q = torch.from_numpy(np.where(known[:, None], q, 0.0).T.copy())
        weight = torch.from_numpy(posterior)[:, None, None]
        self.pull = -weight * self.q
        self.push = weight * torch.from_numpy(known)
        self.scale = 1 + weight[:, 0, 0] * int(known.sum())
        # all that a step writes is allocated once: fresh memory costs more than the arithmetic
        self.joint, self.slope = torch.empty_like(self.eta), torch.empty_like(self.eta)
        self.by_sentiment, self.term = (torch.empty_like(self.eta[:, :, 0]) for _ in range(2))
        self.by_gender = torch.empty_like(self.eta[:, 0])
        self.by_word = torch.empty_like(self.eta[:, 0, :1])
        self.known_by_word = torch.empty_like(self.by_word)
        self.derivatives = self._views(self.gradient)

    def _views(self, flat: torch.Tensor) -> list[torch.Tensor]:
        number, sentiments, genders, words = self.shape
        eta, sigma, phi, *m = torch.split(flat, self.cut, dim=1)
        return [
            eta.view(number, sentiments, genders, words),
            sigma.view(number, sentiments, genders),
            phi,
            *(part.view(number, 1, 1, words) for part in m),
        ]

    def forward(self) -> tuple[torch.Tensor, ...]:
        """Put p(w, s, g) into ``joint``; return p(s | g), p(g) and p(s, g)."""
        joint = torch.exp(self.eta, out=self.joint)
        joint *= torch.exp(self.m) if self.learn else self.frequency
        sentiment = torch.softmax(self.sigma, dim=1)
        gender = torch.softmax(self.phi, dim=1)
        both = sentiment * gender[:, None, :]
        joint *= (both / joint.sum(dim=3))[..., None]
        return sentiment, gender, both

    def backward(self) -> None:
        """Put the gradient of the objective without the L1 term into ``gradient``.

        With D the derivative by log p(w, s, g), which is -p(w, s, g) times (observed share over
        p(w, g), plus ``posterior`` times (q(s | w) / p(w, s) - 1 / p(w))), all else follows from
        the softmaxes: e.g. by eta it is D - p(w | s, g) times the sum of D over words.
        """
        sentiment, gender, both = self.forward()
        slope, term = self.slope, self.term
        by_sentiment = _sum(self.joint, 2, self.by_sentiment)
        by_word = torch.sum(by_sentiment, dim=1, keepdim=True, out=self.by_word)
        torch.div(self.pull, by_sentiment, out=term)
        term += torch.div(self.push, by_word, out=self.known_by_word)
        fit = _sum(self.joint, 1, self.by_gender)
        torch.div(self.shares, fit, out=fit)
        torch.sub(term[:, :, None, :], fit[:, None, :, :], out=slope)
        slope *= self.joint
        total = slope.sum(dim=3)
        eta, sigma, phi, *m = self.derivatives
        torch.addcmul(slope, self.joint, (total / both)[..., None], value=-1, out=eta)
        by_gender = total.sum(dim=1)
        torch.sub(total, sentiment * by_gender[:, None, :], out=sigma)
        torch.sub(by_gender, gender * by_gender.sum(dim=1, keepdim=True), out=phi)
        if self.learn:
            torch.sum(eta, dim=(1, 2), keepdim=True, out=m[0])

    def run(self) -> Fits:
        """Take the steps of Adam, and look at where they led."""
        steps, learning_rate, penalty = self.schedule[:3]
        first, second = BETAS
        mean, square = torch.zeros_like(self.theta), torch.zeros_like(self.theta)
        scale = torch.empty_like(self.theta)
        chosen = slice(0, self.penalised)
        values, room = self.theta[:, chosen], torch.empty_like(self.theta[:, chosen])
        sparse = bool((self.l1 > 0).any())
        for step in range(1, steps + 1):
            self.backward()
            if sparse and penalty == "subgradient":
                self.gradient[:, chosen].addcmul_(self.l1, torch.sign(values))
            rate = learning_rate * (1 + cos(pi * (step - 1) / steps)) / 2
            rate *= sqrt(1 - second**step)
            mean.lerp_(self.gradient, 1 - first)
            square.mul_(second).addcmul_(self.gradient, self.gradient, value=1 - second)
            torch.add(square, EPSILON**2, out=scale).rsqrt_()
            self.theta.addcmul_(mean, scale, value=-rate / (1 - first**step))
            if sparse and penalty == "proximal":
                torch.mul(scale[:, chosen], self.l1 * rate, out=room)
                torch.minimum(values, room, out=scale[:, chosen])
                values -= torch.maximum(scale[:, chosen], room.neg_(), out=room)
        return self._outcome()

    def _outcome(self) -> Fits:
        self.backward()
        chosen = slice(0, self.penalised)
        values, slope = self.theta[:, chosen], self.gradient[:, chosen]
        at_zero = torch.relu(slope.abs() - self.l1)
        elsewhere = (slope + self.l1 * torch.sign(values)).abs()
        left = torch.where(values == 0, at_zero, elsewhere).sum(dim=1)
        left += self.gradient[:, self.penalised :].abs().sum(dim=1)
        cross = -(self.shares * torch.log(self.joint.sum(dim=1))).sum(dim=(1, 2))
        inside = self.joint.sum(dim=2)
        of_word = torch.log(inside / inside.sum(dim=1, keepdim=True))
        apart = torch.special.xlogy(self.q, self.q) - self.q * of_word
        found = (self.eta, self.sigma, self.phi, self.m[:, 0, 0], cross)
        last = (apart.sum(dim=(1, 2)), left / self.scale)
        return Fits(*(part.double().contiguous().numpy() for part in (*found, *last)))


def _sum(values: torch.Tensor, axis: int, out: torch.Tensor) -> torch.Tensor:
    """Sum over a short axis, several times as fast as by torch's own sum."""
    first, second, *others = values.unbind(axis)
    torch.add(first, second, out=out)
    for other in others:
        out += other
    return out


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """Keep torch from splitting sums among threads, which would change their last digits."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
