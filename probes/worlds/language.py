"""A small artificial language in which names occur with words whose odds depend on gender.

For a word w and a name with gender g,

    p(w | name)  is proportional to  exp(frequency_w + side_g * log_ratio_w / 2 + noise_{name, w})

with side +1 for female, -1 for male and 0 for non-binary names. ``log_ratio_w`` is the planted
log-odds ratio female to male: a part common to all words of a sentiment, a part common to all of a
supersense, and a part of the word's own. With all parts 0 it is the null world: names differ,
genders do not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np
from pydantic import Field

from plumbline.builders.core.params import Params

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

SENTIMENTS = ("positive", "negative", "neutral")
TILT = np.array([0.5, -0.5, 0.0])  # share of the sentiment effect that each of them has
SIDES = {"male": -1.0, "female": 1.0, "non-binary": 0.0}


class World(Params):
    """What is planted, and the tiny model that is trained on it."""

    language: str = Field("en", description="config of politicians and words that it is made of")
    seed: int = Field(1, description="of the language, the corpus and the training")
    training_seed: int | None = Field(
        None, description="of the training alone: another model of the same language and corpus"
    )
    word_effect: float = Field(0.6, ge=0, description="SD of the log-ratio of single words, nats")
    sentiment_effect: float = Field(
        1.6,
        description="log-ratio female to male of positive words, minus that of negative ones: "
        "half of it is added or taken, nats",
    )
    supersense_effect: float = Field(
        0.6, ge=0, description="SD of the log-ratio that all words of a supersense share, nats"
    )
    name_noise: float = Field(0.8, gt=0, description="SD of a name's own taste for a word, nats")
    words_max: int = Field(90, ge=10, description="most words of a part of speech in the language")
    sentences: int = Field(2000, ge=100, description="sentences for a name and a part of speech")
    architecture: Literal["bert", "albert"] = Field("bert", description="kind of the model")
    layers: int = Field(1, ge=1, description="layers of the model")
    hidden: int = Field(128, ge=8, description="width of the model")
    steps: int = Field(800, ge=1, description="training steps, each over the whole corpus")
    learning_rate: float = Field(0.003, gt=0, description="highest learning rate of Adam")

    @property
    def null(self) -> bool:
        """Whether genders do not differ in it."""
        return not (self.word_effect or self.sentiment_effect or self.supersense_effect)


class Planted(NamedTuple):
    """What is true of the words of one part of speech; all arrays (words,)."""

    words: tuple[str, ...]
    frequency: NDArray[np.float64]
    log_ratio: NDArray[np.float64]
    sentiment: NDArray[np.int64]  # places in SENTIMENTS
    supersense: tuple[str, ...]  # empty where a word has none


def plant(
    words: Sequence[str],
    sentiment: NDArray[np.int64],
    supersense: Sequence[str],
    world: World,
    rng: np.random.Generator,
) -> Planted:
    """Draw frequencies and log-ratios for some words.

    Parameters
    ----------
    sentiment : (words,) array
        Places in :data:`SENTIMENTS`; with :attr:`World.sentiment_effect` it tilts the log-ratio.
    supersense
        The class of each word; words without one get no such effect.
    """
    n = len(words)
    frequency = rng.normal(0.0, 0.5, n)
    own = rng.normal(0.0, 1.0, n)
    classes = sorted({name for name in supersense if name})
    effects = dict(zip(classes, rng.normal(0.0, 1.0, len(classes)), strict=True))
    shared = np.array([effects.get(name, 0.0) for name in supersense])
    log_ratio = (
        world.word_effect * own
        + world.sentiment_effect * TILT[sentiment]
        + world.supersense_effect * shared
    )
    return Planted(tuple(words), frequency, log_ratio, sentiment, tuple(supersense))


def tastes(
    planted: Planted, genders: Sequence[str], noise: float, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Return p(word | name), an array (names, words), drawing each name's own taste."""
    sides = np.array([SIDES[g] for g in genders])[:, None]
    own = rng.normal(0.0, noise, (len(genders), len(planted.words)))
    logits = planted.frequency + sides * planted.log_ratio / 2 + own
    odds = np.exp(logits - logits.max(axis=1, keepdims=True))
    probabilities: NDArray[np.float64] = odds / odds.sum(axis=1, keepdims=True)
    return probabilities


def allot(probabilities: NDArray[np.float64], sentences: int) -> NDArray[np.int64]:
    """Share out sentences by largest remainder: the corpus says just what was planted."""
    exact = probabilities * sentences
    counts = np.floor(exact).astype(np.int64)
    short = sentences - counts.sum(axis=1)
    order = np.argsort(-(exact - counts), axis=1, kind="stable")
    for row, missing in enumerate(short):
        counts[row, order[row, :missing]] += 1
    return counts


def expected_counts(
    planted: Planted, shares: dict[str, float], noise: float, top_k: int, seed: int
) -> NDArray[np.float64]:
    """Return the expected share of lists in which a word is, for names without end.

    Parameters
    ----------
    shares
        Share of each gender among the names.
    top_k
        Length of the lists, read off the planted probabilities themselves.

    Returns
    -------
    (words, genders) array
        By simulation with 20,000 names of each gender; feed it to ``pmi.pmi`` for
        the true value of what the probe estimates.
    """
    rng = np.random.default_rng(seed)
    names, block = 20_000, 2_000
    counts = np.zeros((len(planted.words), len(shares)))
    for column, (gender, share) in enumerate(shares.items()):
        for _ in range(names // block):
            drawn = tastes(planted, [gender] * block, noise, rng)
            top = np.argpartition(-drawn, top_k - 1, axis=1)[:, :top_k]
            counts[:, column] += np.bincount(top.ravel(), minlength=len(planted.words))
        counts[:, column] *= share / names
    return counts
