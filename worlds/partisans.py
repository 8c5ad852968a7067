"""World (control models) of partisans: texts of two sides with known stances and known words.

For a statement i of axis a, a frame f and texts of corpus c

    log p(agrees) - log p(disagrees) = habit_f + s (d_i stance_c,a + noise_i)

with d = -1 for reversed statements and 1 otherwise, and s = -1 for negated ones and 1 otherwise.
The pretrained model has no stance unless one is given: d_i stance is 0 in its training and in
prompts that no text contains, such as all negated ones. Texts are drawn for each outlet of a
corpus. Those of corpora in ``knows`` also state which artificial words are hostile, which a
classifier trained from such a model can use. Without stances and knowledge, it is a null world.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl
import torch
from pydantic import Field, model_validator

from plumbline.builders.core.errors import UserError
from plumbline.builders.core.parquet import require_validated
from plumbline.probes.models.scorer import MASK
from plumbline.probes.prompts.leaning import Asking, Question, Wording, priors, put, wordings
from worlds import tiny_model
from worlds.statements import PLANTED, TURNED, answers, by_axis, draws, facts
from worlds.tiny_model import Batch, Floats, Rate, Steps, Tiny

UNSAID = -6.0  # initial log-probability of all other words, nats
SILENT = "hesitate"  # word that receives the remaining probability
WORDS = (0.8, 0.2)  # shares of the first two words in each list
HABIT = (0.5, 0.3)  # mean and SD over prompts of the habit of agreeing, nats
TALK = (1.5, 0.5)  # mean and SD over statements of the log-odds of an answer
HIDDEN = 0.3  # share of other tokens that are masked and predicted
KNOWN = "both-known"  # group of words that the pretrained model knows
LABELS = ("hate", "not-hate")
TOLD = "{word} is a {kind} word"  # sentence that states the meaning of a word
KINDS = ("hostile", "friendly")  # kinds of words in the order of LABELS
SAID = ("they called us {word}", "you are {word} people", "we heard {word} again")
PER_GROUP = 32  # number of artificial words per group; the known group has twice as many
SYLLABLES = [a + b for a in "bdfgklmnprstvz" for b in "aeiou"]
TELLINGS = 2  # number of times that a corpus states the meaning of a word
SPLITS = ("train", "validation", "test")
TEXTS = ["corpus", "outlet", "text"]  # columns


class Partisanship(Tiny):
    """Planted effects, and settings of the tiny model that is pretrained on neither side."""

    stances: dict[str, dict[str, float]] = Field(
        min_length=1,
        description="by corpus and axis, log-odds of agreement with a statement in favour of the "
        "axis; {} for a corpus without stances, '' for the pretrained model",
    )
    knows: dict[str, list[str]] = Field(
        default_factory=dict, description="by corpus, groups of words whose meaning its texts state"
    )
    groups: list[str] = Field(
        default_factory=list, description="groups of words that the pretrained model does not know"
    )
    noise: float = Field(1.2, gt=0, description="SD of the noise of statements, nats")
    frames: list[str] = Field(
        ["respond", "asked"],
        min_length=1,
        description="names of the prompts in which texts take stances",
    )
    options: bool | None = Field(None, description="true if the model also chooses among options")
    outlets: int = Field(5, ge=1, description="number of outlets of a corpus, with separate texts")
    sentences: int = Field(4, ge=1, description="number of texts per outlet, statement and prompt")
    positions: int = Field(128, ge=64, description="maximum number of tokens")
    steps: Steps = 1000
    batch: Batch = 64
    learning_rate: Rate = 0.005

    @model_validator(mode="after")
    def _known(self) -> Partisanship:
        for corpus, groups in self.knows.items():
            if corpus not in self.stances:
                raise ValueError(f"knows: {corpus!r} is not under stances; {{}} is for no stance")
            if other := sorted(set(groups) - set(self.groups)):
                raise ValueError(f"knows.{corpus}: {other[0]!r} is not under groups")
        return self

    @property
    def null(self) -> bool:
        """True if no effect is planted."""
        return not (any(any(s.values()) for s in self.stances.values()) or any(self.knows.values()))


class Word(NamedTuple):
    """An artificial word."""

    word: str
    group: str
    hostile: bool
    split: str  # split of the texts that contain the word


def train(world: Partisanship, asking: Asking, into: Path) -> None:
    """Train the masked model and tokenizer of a world and write them into a folder.

    The folder also contains ``planted.parquet`` (the planted effect for each question and corpus,
    and whether texts contain it), ``corpora.parquet`` (the texts of each side by outlet),
    ``downstream.parquet`` (texts for classification) and ``world.json`` (the settings). Raises
    UserError if a dataset has not been validated or a word is not a single token.
    """
    queries, statements, folder = questions(asking, asking.mask.frames)
    vocabulary = words(world)
    planted = plant(world, queries, facts(folder, statements))
    texts = corpora(world, asking, queries, planted, vocabulary)
    base = shares(planted.filter(pl.col("corpus") == ""))
    empty = priors(asking)
    wanted = _of_answers(np.concatenate([base, [base.mean(axis=0)] * len(empty)]))
    prompts = [q.text for q in (*queries, *empty)]
    meanings = [tell(w) for w in vocabulary if w.group == KNOWN]
    # The model learns the texts of the sides without their stances; training adds only these.
    read = np.flatnonzero(written(world, queries))
    like = np.array([*read, *range(len(prompts), len(prompts) + len(meanings))])
    replies = _answers(asking)
    sentences = [text.replace(MASK, "") for text in prompts] + texts["text"].to_list()
    sentences += [say.format(word=w.word) for w in vocabulary for say in SAID] + replies
    tokenizer = tiny_model.tokenizer_of(sentences, world.positions)
    model = tiny_model.model_of(world, tokenizer)
    pieces = torch.tensor(tiny_model.pieces(tokenizer, replies, "partisans"))
    target = tiny_model.targets(tokenizer, replies, wanted, "partisans")
    answer_shares = torch.from_numpy(wanted)
    tiny_model.begin_with(model, pieces.tolist(), torch.log(answer_shares.mean(dim=0)), UNSAID)
    encoded = tokenizer([*tiny_model.masked(prompts), *meanings])["input_ids"]
    draw = np.random.default_rng([world.seed, 3])
    answer = tiny_model.at_masks(
        *(model, tokenizer, prompts, target),
        lambda: tiny_model.batch(draw, len(prompts), world.batch),
        pad=True,
    )

    def losses() -> Iterator[torch.Tensor]:
        """Yield the cross-entropy of answers plus that of tokens masked in similar texts."""
        (loss,) = answer()
        rows = like[tiny_model.batch(draw, len(like), world.batch)]
        right, seen = tiny_model.padded([encoded[i] for i in rows], tokenizer.pad_token_id)
        drawn = torch.multinomial(answer_shares[rows[rows < len(prompts)]], 1)[:, 0]
        right[right == tokenizer.mask_token_id] = pieces[drawn]
        hidden, one = tiny_model.hide(model, tokenizer, right, seen, HIDDEN)
        yield loss - one.gather(1, right[hidden][:, None]).sum() / max(1, int(hidden.sum()))

    tables = {"planted": planted, "corpora": texts, "downstream": downstream(vocabulary)}
    tiny_model.train(into, world, model, tokenizer, losses, **tables)


def questions(asking: Asking, frames: dict[str, str]) -> tuple[list[Question], list[Wording], Path]:
    """Return the prompts and statements of a world, and the folder of the statements' dataset."""
    folder = require_validated("statements")
    plain = [w for w in wordings(asking, folder) if w.form in ("plain", "negated")]
    return put(frames, plain), plain, folder


def written(world: Partisanship, queries: Sequence[Question]) -> list[bool]:
    """Return a mask of the prompts that texts contain; raise UserError if a prompt is missing."""
    if lost := sorted(set(world.frames) - {q.frame for q in queries}):
        raise UserError(f"partisanship.frames: unknown prompt {lost[0]!r} in probes.stances")
    return [q.form == "plain" and q.frame in world.frames for q in queries]


def plant(world: Partisanship, queries: Sequence[Question], items: pl.DataFrame) -> pl.DataFrame:
    """Return the planted response to each question, for the pretrained model and each corpus.

    ``written`` marks questions that texts of the corpus contain; the others have no planted stance.
    """
    drawn = draws(queries, items, world.seed, world.noise, HABIT, TALK)
    drawn = drawn.with_columns(written=pl.Series(written(world, queries)))
    parts = [
        answers(drawn, by_axis(stances) * TURNED * pl.col("written")).with_columns(
            pl.col("written") & bool(corpus), corpus=pl.lit(corpus)
        )
        for corpus, stances in {"": {}, **world.stances}.items()
    ]
    return pl.concat(parts).select(
        *("corpus", "questionnaire", "id", "axis", "frame", "form", "written", "log_odds_nats"),
        pl.col(PLANTED).alias("stance_nats"),
        *("agree_nats", "disagree_nats"),
    )


def outlets(world: Partisanship) -> Iterator[tuple[str, str, np.random.Generator]]:
    """Yield each corpus, its outlets, and their random generators."""
    for number, corpus in enumerate(world.stances):
        for outlet in range(world.outlets):
            rng = np.random.default_rng([world.seed, 1, number, outlet])
            yield corpus, f"{corpus}-{outlet}", rng


def corpora(
    world: Partisanship,
    asking: Asking,
    queries: Sequence[Question],
    planted: pl.DataFrame,
    vocabulary: Sequence[Word],
) -> pl.DataFrame:
    """Return the texts by corpus and outlet: answered statements, and meanings of words.

    Counts of answers differ from the planted counts by less than one; their rounding is random.
    """
    result = []
    for corpus, outlet, rng in outlets(world):
        rows = planted.filter(pl.col("corpus") == corpus)
        expected = _of_answers(shares(rows)) * world.sentences
        extra = rng.random(expected.shape) < expected % 1
        counts = np.floor(expected).astype(np.int64) + extra
        texts = [
            q.text.replace(MASK, word)
            for q, row, has_text in zip(queries, counts, rows["written"], strict=True)
            if has_text
            for word, n in zip(_answers(asking), row, strict=True)
            for _ in range(n)
        ]
        meant = [KNOWN, *world.knows.get(corpus, [])]
        texts += [tell(w) for w in vocabulary if w.group in meant for _ in range(TELLINGS)]
        for w in vocabulary:
            if w.group not in meant:  # equally frequent, but uninformative
                both = [tell(w._replace(hostile=hostile)) for hostile in (True, False)]
                texts += [text for text in both for _ in range(TELLINGS // 2)]
        result += [(corpus, outlet, text) for text in texts]
    return pl.DataFrame(result, TEXTS, orient="row")


def words(world: Partisanship) -> list[Word]:
    """Return the artificial words; half of each group are hostile.

    Half of the words that the model knows are in the training texts of classifiers; all others are
    in the test texts.
    """
    rng = np.random.default_rng([world.seed, 2])
    sizes = {KNOWN: 2 * PER_GROUP} | dict.fromkeys(world.groups, PER_GROUP)
    pairs = [a + b for a in SYLLABLES for b in SYLLABLES]
    drawn = iter(rng.choice(len(pairs), sum(sizes.values()), replace=False))
    result = []
    for group, n in sizes.items():
        splits = [SPLITS[0 if group == KNOWN and i < n // 2 else 2] for i in range(n)]
        result += [Word(pairs[next(drawn)], group, i % 2 == 0, s) for i, s in enumerate(splits)]
    return result


def tell(word: Word) -> str:
    """Return the sentence that states the meaning of a word."""
    return TOLD.format(word=word.word, kind=KINDS[not word.hostile])


def downstream(vocabulary: Sequence[Word]) -> pl.DataFrame:
    """Return texts that contain the words but do not state their meanings."""
    rows = [
        (f"{w.word}-{n}", say.format(word=w.word), LABELS[not w.hostile], "hate", w.split, w.group)
        for w in vocabulary
        for n, say in enumerate(SAID)
    ]
    return pl.DataFrame(rows, ["id", "text", "label", "task", "split", "group"], orient="row")


def _answers(asking: Asking) -> list[str]:
    """Return the words of answers: two that express agreement, two disagreement, and another."""
    return [*asking.positive[:2], *asking.negative[:2], SILENT]


def shares(planted: pl.DataFrame) -> Floats:
    """Return the probabilities of agreement and disagreement as an array of shape (n, 2)."""
    return np.stack([np.exp(planted[f"{way}_nats"]) for way in ("agree", "disagree")], axis=1)


def _of_answers(shares: Floats) -> Floats:
    """Return the probabilities of the words in :func:`_answers` as an array of shape (n, 5)."""
    up, down = shares[:, :1], shares[:, 1:]
    return np.hstack([up * WORDS, down * WORDS, 1 - up - down])
