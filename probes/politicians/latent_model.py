"""A latent-variable model of words, their sentiment and gender, fitted over a grid of weights.

With p(w, g) = sum over s of p(w | s, g) p(s | g) p(g) and

    p(w | s, g)  proportional to  exp(m_w + eta_{w,s,g})
    p(s | g)     proportional to  exp(sigma_{s,g})
    p(g)         proportional to  exp(phi_g)

what is minimised is the cross-entropy of the observed shares with p(w, g), plus ``posterior`` times
the sum over words of KL(q(s | w) || p(s | w)), plus ``l1`` times the sum of all |eta|, |sigma| and
|phi|. Stańczak et al. (2023), PLoS ONE 18(11): e0277640, equations 10 to 13, after Hoyle et al.
(2019), ACL, section 3.

Everything has the words as its last axis. All fits are one batched program
(``politicians.latent_program``); each does the same arithmetic whatever it is batched with.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from plumbline.probes.politicians.latent_fits import Fits, Schedule

if TYPE_CHECKING:
    from collections.abc import Sequence

    from plumbline.probes.politicians.latent_fits import Array

L1 = (0.0, 1e-5, 1e-4, 1e-3, 1e-2)
POSTERIOR = (1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0, 100.0)
BLOCK = 200_000  # deviations that are worked on at once: few enough to stay in a processor's cache


def grid(l1: Sequence[float] = L1, posterior: Sequence[float] = POSTERIOR) -> tuple[Array, Array]:
    """Return all pairs of weights, (fits,) arrays; as it stands the 40 of the paper's section 5."""
    one, other = np.meshgrid(l1, posterior, indexing="ij")
    return one.ravel(), other.ravel()


def begin(counts: Array, sentiments: int, seed: int, scale: float) -> Fits:
    """Return one model to start from: deviations normal with SD ``scale``, all else zero.

    They are drawn for a word and a sentiment and shared by the genders, so that nothing but the
    data tells genders apart.

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
    from plumbline.probes.politicians.latent_program import Program, one_thread

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
    from plumbline.probes.politicians.latent_program import averages

    return Averages(*averages(fits, weights))


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


def percentiles(draws: Array, confidence: float) -> tuple[Array, Array]:
    """Return the lower and the upper limit over the first axis."""
    tail = (1 - confidence) / 2
    low, high = np.quantile(draws, [tail, 1 - tail], axis=0)
    return low, high


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
