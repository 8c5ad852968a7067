"""World (control model) of politicians: the odds of words next to a name depend on its gender.

For a word w and a name with gender g,

    p(w | name)  is proportional to  exp(frequency_w + side_g * log_ratio_w / 2 + noise_{name, w})

where side is +1 for female, -1 for male and 0 for non-binary names. ``log_ratio_w`` is the planted
log-odds ratio of female to male names: the sum of a part for the sentiment of the word, a part for
its supersense, and a part for the single word. If all parts are 0, the world is a null world: names
differ, but genders do not.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import torch
from pydantic import Field

from plumbline.builders.core.errors import UserError
from plumbline.builders.core.parquet import require_validated
from plumbline.builders.datasets.lexica.build import SENTIMENTS
from plumbline.builders.datasets.politicians.person import GENDERS
from plumbline.builders.datasets.supersenses import build as supersenses
from plumbline.builders.datasets.words import build as words_dataset
from plumbline.probes.models.scorer import MASK
from plumbline.probes.politicians.recovery.truth import Planted, tastes
from plumbline.probes.prompts.politicians import bare
from worlds import tiny_model
from worlds.tiny_model import Floats, Hidden, Integers, Steps, Tiny

DATASETS = ("politicians", "words", "lexica", "supersenses")
TILT = np.array([0.5, -0.5, 0.0])  # share of the sentiment effect for each sentiment
NEUTRAL = SENTIMENTS.index("neutral")


class World(Tiny):
    """Planted effects, and settings of the tiny model that learns them."""

    language: str = Field("en", description="config of politicians and words")
    word_effect: float = Field(0.6, ge=0, description="SD of the log-ratio of single words, nats")
    sentiment_effect: float = Field(
        1.6,
        description="log-ratio of female to male names for positive words minus that for negative "
        "words (each gets half of it), nats",
    )
    supersense_effect: float = Field(
        0.6, ge=0, description="SD of the log-ratio shared by the words of a supersense, nats"
    )
    name_noise: float = Field(0.8, gt=0, description="SD of the noise for a name and a word, nats")
    words_max: int = Field(90, ge=10, description="maximum number of words per part of speech")
    sentences: int = Field(2000, ge=100, description="sentences per name and part of speech")
    hidden: Hidden = 128
    steps: Steps = 800

    @property
    def null(self) -> bool:
        """True if genders do not differ."""
        return not (self.word_effect or self.sentiment_effect or self.supersense_effect)


def plant(
    words: Sequence[str],
    sentiment: Integers,
    supersense: Sequence[str],
    world: World,
    rng: np.random.Generator,
) -> Planted:
    """Draw the frequencies and log-ratios of words; words without a class have no class effect."""
    frequency, single = rng.normal(0.0, 0.5, len(words)), rng.normal(0.0, 1.0, len(words))
    classes = sorted(set(supersense) - {""})
    effects = dict(zip(classes, rng.normal(0.0, 1.0, len(classes)), strict=True))
    log_ratio = (
        world.word_effect * single
        + world.sentiment_effect * TILT[sentiment]
        + world.supersense_effect * np.array([effects.get(name, 0.0) for name in supersense])
    )
    return Planted(tuple(words), frequency, log_ratio, sentiment, tuple(supersense))


def allot(probabilities: Floats, sentences: int) -> Integers:
    """Allocate sentences by largest remainder, so that the corpus has the planted proportions."""
    exact = probabilities * sentences
    counts = np.floor(exact).astype(np.int64)
    short = sentences - counts.sum(axis=1, keepdims=True)
    order = np.argsort(-(exact - counts), axis=1, kind="stable")
    extra = np.zeros_like(counts)
    np.put_along_axis(extra, order, np.arange(counts.shape[1]) < short, axis=1)
    return counts + extra


def meaning(
    words: Sequence[str], lemmas: Sequence[str], language: str, pos: str
) -> tuple[Integers, list[str]]:
    """Look up words in ``lexica`` and ``supersenses``, by lemma or, if that is missing, by form.

    The sentiment is the index in SENTIMENTS of the most likely one in ``lexica``, by default
    neutral. The supersense is the best class in ``supersenses``, which covers only English (the
    first by name if several are best); by default, it is empty. Raises UserError if a dataset has
    not been validated or lacks the language.
    """
    folder = require_validated("lexica")
    path = folder / f"{language}.parquet"
    if not path.is_file():
        raise UserError(
            f"{folder}: the lexicon of {language!r} is missing; add it under "
            "datasets.lexica.languages, or change the language of the world"
        )
    shares = pl.read_parquet(path, columns=["word", *(f"q_{s}" for s in SENTIMENTS)])
    likeliest = shares.drop("word").to_numpy().argmax(axis=1)
    by_word = dict(zip(shares["word"], likeliest.tolist(), strict=True))
    sentiment = [
        by_word.get(m, by_word.get(w, NEUTRAL)) for w, m in zip(words, lemmas, strict=True)
    ]
    classes: dict[str, str] = {}
    if language == supersenses.LANGUAGE:
        frame = pl.read_parquet(require_validated("supersenses") / f"{language}.parquet")
        best = frame.filter(pl.col("best"), pos=supersenses.POS.index(pos))
        first = best.group_by("lemma").agg(pl.col("supersense").min())
        classes = {lemma: supersenses.CLASSES[code] for lemma, code in first.iter_rows()}
    # the lemma comes first: "found" is a form of "find", but also a verb
    named = [classes.get(m, classes.get(w, "")) for w, m in zip(words, lemmas, strict=True)]
    return np.array(sentiment, dtype=np.int64), named


def train(world: World, into: Path) -> None:
    """Train the model and tokenizer of a world and write them into a folder.

    The folder also contains ``planted.parquet`` (the true values of each word) and ``world.json``
    (the settings).
    """
    rng = np.random.default_rng(world.seed)
    people = pl.read_parquet(
        require_validated("politicians") / f"{world.language}.parquet", columns=["name", "gender"]
    ).unique("name", keep="first", maintain_order=True)
    names, genders = people["name"].to_list(), [GENDERS[code] for code in people["gender"]]
    planted, counts, places = dict[str, Planted](), dict[str, Integers](), dict[str, str]()
    for pos, part in _vocabulary(world).items():
        meant = meaning(part["form"].to_list(), part["lemma"].to_list(), world.language, pos)
        planted[pos] = plant(part["form"].to_list(), *meant, world, rng)
        counts[pos] = allot(tastes(planted[pos], genders, world.name_noise, rng), world.sentences)
        places[pos] = words_dataset.PLACES[part["place"][0]]
    sentences = [
        bare(places[pos]).about(name).replace(MASK, word)
        for pos, truth in planted.items()
        for name, row in zip(names, counts[pos], strict=True)
        for word, count in zip(truth.words, row, strict=True)
        if count
    ]
    tokenizer = tiny_model.tokenizer_of(sentences)
    prompts = [bare(places[pos]).about(name) for pos in planted for name in names]
    model = tiny_model.model_of(world, tokenizer)
    target = torch.cat(
        [
            tiny_model.targets(tokenizer, truth.words, counts[pos] / world.sentences, "politicians")
            for pos, truth in planted.items()
        ]
    )
    # Sentences that are equal after masking are computed once and weighted by their counts, which
    # gives the gradient of the entire corpus in every step.
    rows = np.arange(len(prompts))
    losses = tiny_model.at_masks(model, tokenizer, prompts, target, lambda: rows)
    tables = []
    for pos, truth in planted.items():
        sentiments = [SENTIMENTS[i] for i in truth.sentiment]
        columns: dict[str, Any] = {"word": truth.words, "pos": pos, "sentiment": sentiments}
        columns |= {"supersense": truth.supersense, "frequency_nats": truth.frequency}
        tables.append(pl.DataFrame(columns | {"log_ratio_nats": truth.log_ratio}))
    tiny_model.train(into, world, model, tokenizer, losses, planted=pl.concat(tables))


def _vocabulary(world: World) -> dict[str, pl.DataFrame]:
    """Return the most frequent words of each part of speech, except those in both."""
    frame = pl.read_parquet(require_validated("words") / f"{world.language}.parquet")
    frame = frame.filter(pl.col("pos").n_unique().over("form") == 1)
    frame = frame.sort(["count", "form"], descending=[True, False])
    frame = frame.unique(["pos", "form"], keep="first", maintain_order=True)
    result = {}
    for code, pos in enumerate(words_dataset.POS):
        result[pos] = frame.filter(pos=code).head(world.words_max)
        if len(result[pos]) < 10:
            raise UserError(
                f"world in {world.language!r}: {len(result[pos])} {pos} in words; 10 are needed"
            )
    return result
