"""The planted language of a world of politicians: the odds of words beside a name, by gender.

For a word w and a name with gender g,

    p(w | name)  is proportional to  exp(frequency_w + side_g * log_ratio_w / 2 + noise_{name, w})

with side +1 for female, -1 for male and 0 for non-binary names. ``log_ratio_w`` is the planted
log-odds ratio female to male.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray

SIDES = {"male": -1.0, "female": 1.0, "non-binary": 0.0}
EFFECTS = ("word_effect", "sentiment_effect", "supersense_effect")


class World(NamedTuple):
    """Settings of a world that its truth depends on."""

    language: str
    name_noise: float
    seed: int
    sentiment_effect: float  # planted in the words, nats
    null: bool  # genders do not differ


def read_world(weights: Path) -> World:
    """Return the settings that are stored with the model of a world."""
    settings = json.loads((weights / "world.json").read_text(encoding="utf-8"))
    null = not any(settings[effect] for effect in EFFECTS)
    return World(**{key: settings[key] for key in World._fields if key != "null"}, null=null)


class Planted(NamedTuple):
    """What is true of the words of one part of speech; all arrays (words,)."""

    words: tuple[str, ...]
    frequency: NDArray[np.float64]
    log_ratio: NDArray[np.float64]
    sentiment: NDArray[np.int64]  # places in SENTIMENTS
    supersense: tuple[str, ...]  # empty where a word has none


def tastes(
    planted: Planted, genders: Sequence[str], noise: float, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Return p(word | name), an array (names, words), drawing each name's own taste."""
    sides = np.array([SIDES[g] for g in genders])[:, None]
    own = rng.normal(0.0, noise, (len(genders), len(planted.words)))
    logits = planted.frequency + sides * planted.log_ratio / 2 + own
    odds = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.asarray(odds / odds.sum(axis=1, keepdims=True))


def expected_counts(
    planted: Planted,
    shares: dict[str, float],
    noise: float,
    top_k: int,
    seed: int,
    lemmas: Sequence[int] | None = None,
) -> NDArray[np.float64]:
    """Return the expected share of lists in which a word is, for names without end.

    By simulation with 20,000 names of each gender; feed it to ``pmi.pmi`` for the true value of
    what the probe estimates, (words, genders), or (lemmas, genders).

    ``shares``: share of each gender among the names.
    ``top_k``: length of the lists, read off the planted probabilities themselves.
    ``lemmas``: of each word the number of its lemma, from 0 without gaps: a list has a lemma if it
    has one of its words.
    """
    of = np.arange(len(planted.words)) if lemmas is None else np.array(lemmas)
    rng = np.random.default_rng(seed)
    names, block = 20_000, 2_000
    counts = np.zeros((len(shares), of.max() + 1))
    for row, gender in enumerate(shares):
        for _ in range(names // block):
            drawn = tastes(planted, [gender] * block, noise, rng)
            top = np.argpartition(-drawn, top_k - 1, axis=1)[:, :top_k]
            has = np.zeros((block, counts.shape[1]), dtype=bool)
            has[np.arange(block)[:, None], of[top]] = True
            counts[row] += has.sum(axis=0)
    return counts.T * [share / names for share in shares.values()]
