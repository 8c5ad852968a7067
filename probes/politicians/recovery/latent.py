"""Recovery of ``latent``: words by gender and sentiment.

The order of words by gender needs no sentiment: without the posterior term, or with another
lexicon, it is the same. What sentiments are is held against what was planted by itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from plumbline.builders.datasets.lexica.build import SENTIMENTS
from plumbline.builders.datasets.words.build import POS
from plumbline.probes.controls.recovery import signs
from plumbline.probes.politicians.recovery.control import (
    CODES,
    FEMALE,
    LARGE,
    MALE,
    Control,
    contrast,
)
from plumbline.probes.stats.estimate import Estimate
from plumbline.probes.stats.intervals import wilson

if TYPE_CHECKING:
    from numpy.typing import NDArray

HEAVY, LIGHT = 1.0, 1e-3  # least weight of the posterior term that is met, most of L1 beside it


def latent_rows(control: Control) -> None:
    """Add how words, tilts and discoveries of the latent model go with what was planted."""
    latent, words = control.read("latent"), control.truth.words
    if latent.is_empty():
        return
    if not control.null:
        both = pl.concat(
            contrast(part).join(words.filter(pl.col("pos") == POS[pos]), on="word")
            for (pos,), part in control.read("latent", "words").group_by("pos", maintain_order=True)
        )
        control.relation(both, "log p(w|g), female less male")
    for row in control.read("latent", "tilt").iter_rows(named=True):
        title = "log-ratio female to male of p(positive|g), less that of p(negative|g)"
        null = f"{control.truth.world.sentiment_effect:.3f}: planted in the words"
        control.copy(row, f"{POS[row['pos']]}: {title}", null)
    parts = {
        int(pos): (part, words.filter(pl.col("pos") == POS[int(pos)]))
        for (pos,), part in latent.group_by("pos", maintain_order=True)
    }
    shares = control.read("latent", "shares")
    meant = np.concatenate(
        [_meant(part, shares.filter(pos=pos), own) for pos, (part, own) in parts.items()]
    )
    title = "share of words whose most probable sentiment is the planted one"
    level, chance = control.params.confidence, 1 / len(SENTIMENTS)
    control.add(wilson(int(meant.sum()), len(meant), level), title, "word", f"{chance:.3f}: chance")
    if not control.null:
        sums = [_sums(shares.filter(pos=pos), own) for pos, (_, own) in parts.items()]
        true, value = np.concatenate(sums, axis=1)
        large = np.abs(true) >= LARGE
        title = (
            f"share of differences of p(s|g) of at least {LARGE:g} whose sign is the planted one"
        )
        unit = "part of speech and sentiment"
        if large.any():
            control.add(signs(true[large], value[large], level), title, unit, "0.5: coin")
    fits = control.read("latent", "fits").drop_nulls("kl_word")
    fits = fits.filter(pl.col("posterior") >= HEAVY, pl.col("l1") <= LIGHT)
    if len(fits):
        most = float(fits["kl_word"].to_numpy().max())
        title = (
            f"most KL(q(s|w) || p(s|w)) a word, posterior at least {HEAVY:g}, l1 at most {LIGHT:g}"
        )
        found = Estimate(most, np.nan, np.nan, len(fits), "none: of all fits")
        control.add(found, title, "fit", "0: the lexicon's")
    null = "at most this: nominal" if control.null else "no nominal value: many are planted"
    for column, limit in (("p_bh", control.params.false_discovery_rate), ("p", 0.05)):
        control.discoveries(latent[column], limit, "word, sentiment and gender", null)


def _meant(part: pl.DataFrame, shares: pl.DataFrame, words: pl.DataFrame) -> NDArray[np.bool_]:
    """Return whether the sentiment that is most probable of a word is the planted one, (words,).

    p(w, s) is the sum over genders of p(g) p(s | g) p(w | s, g), by the deviations that are told,
    means over the weights.
    """
    part = part.sort("word", "sentiment", "gender")
    genders = part["gender"].unique().sort().to_list()
    names = part["word"].unique(maintain_order=True).to_list()
    eta = part["value"].to_numpy().reshape(len(names), len(SENTIMENTS), len(genders))
    counts = part.filter(sentiment=0).sort("word", "gender")["count"].to_numpy()
    counts = counts.reshape(len(names), len(genders)).astype(np.float64)
    of_gender = shares.sort("sentiment", "gender")["value"].to_numpy()
    joint = np.exp(eta) * counts.sum(axis=1)[:, None, None]
    joint *= of_gender.reshape(len(SENTIMENTS), len(genders)) / joint.sum(axis=0)
    likeliest = (joint * counts.sum(axis=0)).sum(axis=2).argmax(axis=1)
    planted = dict(words.select("word", "sentiment").iter_rows())
    pairs = zip(names, likeliest.tolist(), strict=True)
    return np.array([CODES[planted[word]] == code for word, code in pairs if word in planted])


def _sums(shares: pl.DataFrame, words: pl.DataFrame) -> NDArray[np.float64]:
    """Return differences of p(s | g), female less male, planted and measured, (2, sentiments).

    What is planted is the sum of the planted probabilities of words.
    """
    ratio, frequency = (words[f"{name}_nats"].to_numpy() for name in ("log_ratio", "frequency"))
    codes = words["sentiment"].replace_strict(CODES).to_numpy()
    planted, found = np.zeros(len(SENTIMENTS)), np.zeros(len(SENTIMENTS))
    for gender, sign in ((FEMALE, 1), (MALE, -1)):
        odds = np.exp(frequency + sign * ratio / 2)
        planted += sign * np.bincount(codes, odds / odds.sum(), len(SENTIMENTS))
        own = shares.filter(gender=gender).sort("sentiment")["value"].to_numpy()
        found += sign * own
    return np.stack([planted, found])
