"""World (control model) of social groups: known attributes of a group are its frequent words.

For a group g and an attribute w

    p(w | g)  is proportional to  exp(frequency_w + log_odds_{g, w} + noise_{g, w})

where ``log_odds`` is the planted effect, a sum of a part for the group's attributes in the dataset
``stereotypes`` and a part for words with the emotion drawn for the group. If both parts are 0, the
world is a null world: groups differ in noise, but not in known attributes.

Two worlds may share some words, whose probabilities for all groups are then equal. A model may
also have a byte-level vocabulary that lacks some of the words, without training on prompts in which
the group is masked.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl
from pydantic import Field

from plumbline.builders.core.parquet import require_validated
from plumbline.builders.datasets.emotions.build import EMOTIONS
from plumbline.probes.models.scorer import MASK
from plumbline.probes.prompts.groups import DATASETS, Asking, masked, prompt, prompted
from worlds import tiny_model
from worlds.tiny_model import Batch, Floats, Hidden, Integers, Tiny


class Society(Tiny):
    """Planted effects, and settings of the tiny model that learns them."""

    language: str = Field("en", description="config of social_groups, stereotypes and emotions")
    attribute_effect: float = Field(
        2.0, ge=0, description="log-odds added for the attributes of a group in `stereotypes`"
    )
    emotion_effect: float = Field(
        1.0, ge=0, description="log-odds added for words that have the emotion drawn for a group"
    )
    frequency: float = Field(0.5, ge=0, description="SD of the log-frequency of words, nats")
    noise: float = Field(0.8, gt=0, description="SD of the noise for a group and a word, nats")
    words_max: int = Field(150, ge=10, description="maximum number of words other than attributes")
    masks: int = Field(4, ge=1, description="maximum number of masks in place of a group")
    common: float = Field(
        0, ge=0, le=1, description="share of words shared with the world with seed `common_seed`"
    )
    common_seed: int = Field(1, description="seed of that world; its other settings are the same")
    unwritten: float = Field(
        0, ge=0, lt=1, description="share of words split into byte-level tokens; 0: WordPiece"
    )
    hide: float = Field(
        0,
        ge=0,
        lt=1,
        description="share of tokens masked at random in training, instead of training with masked "
        "groups; 0 to train with masked groups",
    )
    hidden: Hidden = 128
    batch: Batch = 256

    @property
    def null(self) -> bool:
        """True if no effect is planted."""
        return not (self.attribute_effect or self.emotion_effect)


def train(society: Society, asking: Asking, into: Path) -> None:
    """Train the model and tokenizer of a world and write them into a folder.

    The folder also contains ``planted.parquet`` (for each group and word, the planted effect and
    the probability with noise) and ``world.json`` (the settings). Raises UserError if a dataset has
    not been validated or a word is not a single token.
    """
    language, draw = society.language, np.random.default_rng(society.seed)
    folders = {name: require_validated(name) for name in DATASETS}
    queries, frames = prompted(asking, folders, language), asking.frames[language]
    groups = list(dict.fromkeys(q.group for q in queries))
    words, pairs, carries = vocabulary(society, groups)
    drawn = truth(society, pairs, carries)
    kinds = {q.group: q.kind for q in queries}
    same_kind = np.array([[kinds[one] == kinds[other] for other in groups] for one in groups])
    priors = same_kind @ drawn.probabilities / same_kind.sum(axis=1, keepdims=True)
    row = {group: i for i, group in enumerate(groups)}
    prompts = [prompt(q.text, frames.ending) for q in queries]
    lessons = [drawn.probabilities[row[q.group]] for q in queries]
    if not society.hide:  # if the group is masked: the mean over the groups of its kind
        for template, kind in dict.fromkeys((q.template, q.kind) for q in queries):
            rows = sorted({row[q.group] for q in queries if q.kind == kind})
            for n in range(1, society.masks + 1):
                prompts.append(prompt(masked(template, n), frames.ending))
                lessons.append(drawn.probabilities[rows].mean(axis=0))
        prompts.append(frames.released)
        lessons.append(drawn.probabilities.mean(axis=0))
    texts = [text.replace(MASK, "") for text in prompts]
    if society.unwritten:
        written = draw.random(len(words)) >= society.unwritten
        texts += [f"so {word}" for word, single in zip(words, written, strict=True) if single]
        tokenizer = tiny_model.bytes_tokenizer_of(texts, words[::2])
    else:
        tokenizer = tiny_model.tokenizer_of(texts + list(words))
    model = tiny_model.model_of(society, tokenizer)
    pieces, target = tiny_model.spread(tokenizer, words, np.array(lessons))
    planted = {
        "group": [group for group in groups for _ in words],
        "word": words * len(groups),
        "log_odds_nats": drawn.log_odds.ravel(),
        "probability": drawn.probabilities.ravel().astype(np.float32),
        "prior": priors.ravel().astype(np.float32),
        "pieces": pieces * len(groups),
        "emotion": [EMOTIONS[i] for i in drawn.emotions.ravel()],
    }
    losses = tiny_model.at_masks(
        *(model, tokenizer, prompts, target),
        lambda: tiny_model.batch(draw, len(prompts), society.batch),
        hide=society.hide,
    )
    tiny_model.train(into, society, model, tokenizer, losses, planted=pl.DataFrame(planted))


class Said(NamedTuple):
    """Distributions of words for groups, arrays of shape (groups, words)."""

    emotions: Integers  # index in ``build.EMOTIONS`` of the emotion whose words are raised
    log_odds: Floats  # planted effects
    scores: Floats  # log-odds including noise and frequency

    @property
    def probabilities(self) -> Floats:
        """Return the probability of each word for each group."""
        odds = np.exp(self.scores)
        result: Floats = odds / odds.sum(axis=1, keepdims=True)
        return result


def truth(society: Society, pairs: Floats, carries: Floats) -> Said:
    """Draw a world from pairs (groups, words) and emotions (words, emotions).

    The arrays are those of :func:`vocabulary`. Words that are not shared with the other world are
    attributes of other groups, and are raised by other emotions.
    """
    rng = np.random.default_rng(society.seed)
    frequency = rng.normal(0.0, society.frequency, len(carries))
    drawn = rng.integers(0, len(EMOTIONS), len(pairs))
    if society.common:
        pairs = np.roll(pairs, 1, axis=0)
    log_odds = society.attribute_effect * pairs + society.emotion_effect * carries[:, drawn].T
    scores = frequency + log_odds + rng.normal(0.0, society.noise, log_odds.shape)
    result = Said(np.repeat(drawn[:, None], len(carries), axis=1), log_odds, scores)
    if society.common:
        first = {"seed": society.common_seed, "common": 0.0}
        other = truth(society.model_copy(update=first), np.roll(pairs, -1, axis=0), carries)
        shared = rng.permutation(len(carries))[: round(society.common * len(carries))]
        for values, theirs in zip(result, other, strict=True):
            values[:, shared] = theirs[:, shared]
    return result


def vocabulary(society: Society, groups: Sequence[str]) -> tuple[list[str], Floats, Floats]:
    """Return the words of a world, and arrays that state their groups and emotions.

    The words are all single-word attributes, followed by the first words with an emotion in
    alphabetical order. The arrays, (groups, words) and (words, emotions), are 1 for attributes of a
    group and for words with an emotion in ``build.EMOTIONS``.
    """
    table = pl.read_parquet(require_validated("stereotypes") / f"{society.language}.parquet")
    clean = pl.col("single_word") & (pl.col("flags").list.len() == 0)
    table = table.filter(clean & pl.col("group").is_in(list(groups)))
    felt = pl.read_parquet(require_validated("emotions") / f"{society.language}.parquet")
    felt = felt.filter(
        pl.any_horizontal(EMOTIONS) & (pl.col("word") == pl.col("word").str.to_lowercase())
    )
    table = table.select(
        "group", word=pl.Series([a.casefold() for a in table["attribute"]], dtype=pl.String)
    )
    attributes = table["word"].unique().sort()
    others = felt.filter(~pl.col("word").is_in(attributes.implode()))["word"].unique().sort()
    words = [*attributes, *others.head(society.words_max)]
    index = {word: i for i, word in enumerate(words)}
    pairs = np.zeros((len(groups), len(words)))
    pairs[[groups.index(g) for g in table["group"]], [index[w] for w in table["word"]]] = 1
    felt = felt.filter(pl.col("word").is_in(words))
    carries = np.zeros((len(words), len(EMOTIONS)))
    np.maximum.at(carries, [index[w] for w in felt["word"]], felt.select(EMOTIONS).to_numpy())
    return words, pairs, carries
