"""The program that fits a block of the models of ``politicians.latent_model``, in torch.

All is float64, so that rounded results do not depend on the processor.
"""

from __future__ import annotations

import contextlib
from math import cos, pi, sqrt
from typing import TYPE_CHECKING

import numpy as np
import torch

from plumbline.probes.politicians.latent_fits import Fits

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from plumbline.probes.politicians.latent_fits import Array, Schedule

BETAS = (0.9, 0.9)  # equal: gradients shrink by orders of magnitude as the posterior term is met
EPSILON = 1e-12  # gradients are shares of probability: for rare words below the usual 1e-8


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


def averages(fits: Fits, weights: int) -> tuple[Array, ...]:
    """Return the parts of :class:`plumbline.probes.politicians.latent_model.Averages`."""
    sentiments = torch.log_softmax(torch.from_numpy(fits.sigma), dim=1)
    m = torch.from_numpy(fits.background)[:, None, None, :]
    given = torch.log_softmax(m + torch.from_numpy(fits.eta), dim=3) + sentiments[..., None]
    words = torch.logsumexp(given, dim=1) - m[:, 0]
    parts = (fits.eta, words.numpy(), sentiments.exp().numpy())
    return tuple(p.reshape(-1, weights, *p.shape[1:]).mean(axis=1) for p in parts)


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
