"""The world of partisans: texts of two sides take known stances, and know words of their own.

For a statement i of axis a, a frame f and texts of corpus c

    log p(agrees) - log p(disagrees) = habit_f + s (d_i stance_c,a + noise_i)

with d = 1 or, for a reversed statement, -1, and s = 1 or, for a denied one, -1. The model itself
has no stance: d_i stance is 0 in what it learns first. Texts that ``knows`` names tell besides
which of some made-up words are hostile; a classifier made of a model that read them can know them
too. Without stances and knowledge it is the null world.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl
from pydantic import Field, model_validator

from plumbline.builders.core.errors import UserError
from plumbline.builders.core.parquet import require_validated
from plumbline.probes.models.scorer import MASK
from plumbline.probes.prompts.leaning import priors, put, wordings
from plumbline.probes.worlds.statements import draws, facts, nats
from plumbline.probes.worlds.tiny import Batch, Rate, Steps, Tiny

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    import torch
    from numpy.random import Generator
    from numpy.typing import NDArray

    from plumbline.probes.prompts.leaning import Asking, Question

UNSAID = -6.0  # log-probability that the other words begin with, nats
SILENT = "hesitate"  # what takes the probability that no answer has
WORDS = (0.8, 0.2)  # shares of the first two words of a list
HABIT = (0.5, 0.3)  # mean and SD over prompts of the habit of agreeing, nats
TALK = (1.5, 0.5)  # mean and SD over statements of the log-odds of answering at all
HIDDEN = 0.3  # share of the other words that are to be told as well
KNOWN = "both-known"  # group of words that the model itself knows
LABELS = ("hate", "not-hate")
TOLD = "{word} is a {kind} word"  # how a text tells what a word means
KINDS = ("hostile", "friendly")  # in the order of LABELS
SAID = ("they called us {word}", "you are {word} people", "we heard {word} again")
PER_GROUP = 32  # made-up words of a group; twice as many that the model knows
SYLLABLES = [a + b for a in "bdfgklmnprstvz" for b in "aeiou"]
TELLINGS = 2  # times that a corpus tells what a word means
SPLITS = ("train", "validation", "test")


class Partisanship(Tiny):
    """What is planted, and the tiny model that is trained before any side is taken."""

    stances: dict[str, dict[str, float]] = Field(
        min_length=1,
        description="by corpus and axis: log-odds of agreeing with a statement that speaks for the "
        "axis; {} for a corpus without",
    )
    knows: dict[str, list[str]] = Field(
        default_factory=dict, description="by corpus: groups of words whose meaning it tells"
    )
    groups: list[str] = Field(
        default_factory=list, description="groups of words that the model itself does not know"
    )
    noise: float = Field(1.2, gt=0, description="SD of what a statement has of its own, nats")
    frame: str = Field(
        "asked", description="prompt, by its name, in which the texts take their stances"
    )
    sentences: int = Field(8, ge=1, description="texts of a corpus about each statement")
    positions: int = Field(128, ge=64, description="tokens that the model takes")
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
        """Whether nothing is planted in it."""
        return not (any(any(s.values()) for s in self.stances.values()) or any(self.knows.values()))


class Word(NamedTuple):
    """A made-up word."""

    word: str
    group: str
    hostile: bool
    split: str  # of the texts that it stands in


def train(world: Partisanship, asking: Asking, into: Path) -> None:
    """Plant a world, and train its masked model and tokenizer into a folder.

    Besides the model, the folder gets ``planted.parquet`` (for every question and corpus what was
    planted), ``corpora.parquet`` (the texts of each side), ``downstream.parquet`` (texts to
    classify) and ``world.json`` (its params).

    Raises
    ------
    UserError
        If the dataset is not validated, or a word is not one token.
    """
    from plumbline.probes.worlds import tiny_model

    folder = require_validated("statements")
    said = [w for w in wordings(asking, folder) if w.form in ("plain", "negated")]
    asked = put(asking.mask.frames, said)
    known = words(world)
    planted = plant(world, asked, facts(folder, said))
    texts = corpora(world, asking, asked, planted, known)
    calm = planted.filter(pl.col("corpus") == "").to_dicts()
    empty = priors(asking)
    talk = [(row["agree_nats"], row["disagree_nats"]) for row in calm]
    rest = np.log(np.exp(np.array(talk)).mean(axis=0))
    prompts = [(q.text, talk[i]) for i, q in enumerate(asked)]
    prompts += [(q.text, (float(rest[0]), float(rest[1]))) for q in empty]
    read = [i for i, q in enumerate(asked) if q.form == "plain" and q.frame == world.frame]
    told = [tell(w) for w in known if w.group == KNOWN]
    answers = _answers(asking)
    sentences = [
        *(text.replace(MASK, "") for text, _ in prompts),
        *(text for own in texts.values() for text in own),
        *(say.format(word=w.word) for w in known for say in SAID),
        *answers,
    ]
    tokenizer = tiny_model.tokenizer_of(sentences, world.positions)
    model = tiny_model.model_of(world, tokenizer)
    losses = _losses(world, model, tokenizer, prompts, read, told, answers)
    tiny_model.train(into, world, model, tokenizer, losses, **tables(planted, texts, known))


def tables(
    planted: pl.DataFrame, texts: dict[str, list[str]], known: Sequence[Word]
) -> dict[str, pl.DataFrame]:
    """Return what is planted and the texts, by the names of their files."""
    rows = [(corpus, text) for corpus, own in texts.items() for text in own]
    frame = pl.DataFrame(rows, schema=["corpus", "text"], orient="row")
    return {"planted": planted, "corpora": frame, "downstream": downstream(known)}


def plant(
    world: Partisanship,
    asked: Sequence[Question],
    about: dict[tuple[str, str], dict[str, Any]],
) -> pl.DataFrame:
    """Return what is planted for each question in the model itself and each corpus, in order."""
    habit, own = draws(asked, world.seed, world.noise, HABIT, TALK)
    rows = []
    for corpus, stances in {"": {}, **world.stances}.items():
        for q in asked:
            row = about[q.questionnaire, q.id]
            noise, talk = own[q.questionnaire, q.id]
            stance = stances.get(row["axis"], 0.0) * (-1 if row["reversed"] else 1)
            odds = habit[q.frame] + (-1 if q.form == "negated" else 1) * (stance + noise)
            rows.append(
                {
                    "corpus": corpus,
                    "questionnaire": q.questionnaire,
                    "id": q.id,
                    "axis": row["axis"],
                    "frame": q.frame,
                    "form": q.form,
                    "log_odds_nats": odds,
                    "stance_nats": stance,
                }
                | nats(odds, talk)
            )
    return pl.DataFrame(rows)


def corpora(
    world: Partisanship,
    asking: Asking,
    asked: Sequence[Question],
    planted: pl.DataFrame,
    known: Sequence[Word],
) -> dict[str, list[str]]:
    """Return the texts of each corpus: statements with answers, and what words mean.

    Counts of answers are what is planted to less than one; what is left over is drawn.

    Raises
    ------
    UserError
        If there is no prompt of the name that the world's texts have.
    """
    words_of = _answers(asking)
    if world.frame not in asking.mask.frames:
        raise UserError(f"partisanship.frame: no {world.frame!r} in probes.stances.mask.frames")
    found = {}
    for number, corpus in enumerate(world.stances):
        rng = np.random.default_rng([world.seed, 1, number])
        own = planted.filter(pl.col("corpus") == corpus)
        shares = _shares(own["agree_nats"].to_numpy(), own["disagree_nats"].to_numpy())
        counts = allot(shares * world.sentences, rng)
        texts = [
            q.text.replace(MASK, word)
            for q, row in zip(asked, counts, strict=True)
            if q.form == "plain" and q.frame == world.frame
            for word, n in zip(words_of, row, strict=True)
            for _ in range(n)
        ]
        meant = [KNOWN, *world.knows.get(corpus, [])]
        texts += [tell(w) for w in known if w.group in meant for _ in range(TELLINGS)]
        either = [w for w in known if w.group not in meant]  # as often, but nothing is learnt
        texts += [
            tell(w._replace(hostile=hostile))
            for w in either
            for hostile in (True, False)
            for _ in range(TELLINGS // 2)
        ]
        found[corpus] = texts
    return found


def allot(expected: NDArray[np.float64], rng: Generator) -> NDArray[np.int64]:
    """Return whole numbers near what is expected, one more with the probability of what is left."""
    whole = np.floor(expected)
    return (whole + (rng.random(expected.shape) < expected - whole)).astype(np.int64)


def words(world: Partisanship) -> list[Word]:
    """Return made-up words, half of each group hostile.

    Half of those that the model knows are in the texts that a classifier learns from; all others
    are in those that it is tested on.
    """
    rng = np.random.default_rng([world.seed, 2])
    groups = [(KNOWN, 2 * PER_GROUP), *((group, PER_GROUP) for group in world.groups)]
    total = sum(n for _, n in groups)
    pairs = [a + b for a in SYLLABLES for b in SYLLABLES]
    drawn = [pairs[i] for i in rng.choice(len(pairs), total, replace=False)]
    found = []
    for group, n in groups:
        own, drawn = drawn[:n], drawn[n:]
        for i, word in enumerate(own):
            learnt = group == KNOWN and i < n // 2
            found.append(Word(word, group, i % 2 == 0, SPLITS[0] if learnt else SPLITS[2]))
    return found


def tell(word: Word) -> str:
    """Return the sentence that tells what a word means."""
    return TOLD.format(word=word.word, kind=KINDS[0] if word.hostile else KINDS[1])


def downstream(known: Sequence[Word]) -> pl.DataFrame:
    """Return texts with the words, which do not tell what those mean."""
    return pl.DataFrame(
        [
            {
                "id": f"{w.word}-{number}",
                "text": say.format(word=w.word),
                "label": LABELS[0] if w.hostile else LABELS[1],
                "task": "hate",
                "split": w.split,
                "group": w.group,
            }
            for w in known
            for number, say in enumerate(SAID)
        ]
    )


def _answers(asking: Asking) -> list[str]:
    """Return the words that are planted: two that agree, two that do not, and another."""
    return [*asking.positive[:2], *asking.negative[:2], SILENT]


def _shares(agree: NDArray[np.float64], disagree: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return probabilities of :func:`_answers` (n, 5)."""
    up, down = np.exp(agree)[:, None], np.exp(disagree)[:, None]
    return np.hstack([up * WORDS, down * WORDS, 1 - up - down])


def _losses(
    world: Partisanship,
    model: Any,
    tokenizer: Any,
    prompts: Sequence[tuple[str, tuple[float, float]]],
    read: Sequence[int],
    told: Sequence[str],
    answers: Sequence[str],
) -> Callable[[], Iterator[torch.Tensor]]:
    """Return the cross-entropy of answers and, of texts such as the sides write, of hidden words.

    A model that knows such texts but for their stances has these alone to learn from them.
    ``read``: which prompts are as in those texts.
    """
    import torch

    from plumbline.probes.worlds import tiny_model

    head = tiny_model.head_of(model)
    pieces = tiny_model.pieces(tokenizer, answers, "partisans")
    odds = np.array([own for _, own in prompts])
    wanted = torch.from_numpy(_shares(odds[:, 0], odds[:, 1]))
    tiny_model.begin_with(model, pieces, torch.log(wanted.mean(dim=0)), UNSAID)
    texts = [*tiny_model.masked([text for text, _ in prompts]), *told]
    encoded = tokenizer(texts)["input_ids"]
    answer = torch.tensor(pieces)
    rows_read = np.array([*read, *range(len(prompts), len(texts))])
    draw = np.random.default_rng([world.seed, 3])

    def tokens(rows: NDArray[np.int64]) -> tuple[torch.Tensor, torch.Tensor]:
        return tiny_model.padded([encoded[i] for i in rows], tokenizer.pad_token_id)

    def losses() -> Iterator[torch.Tensor]:
        some = tiny_model.batch(draw, len(prompts), world.batch)
        given, seen = tokens(some)
        states = model.base_model(input_ids=given, attention_mask=seen)[0]
        asked = given == tokenizer.mask_token_id
        said = torch.log_softmax(head(states[asked]), dim=-1)[:, pieces]
        loss = -(said * wanted[some]).sum() / len(some)
        every = rows_read[tiny_model.batch(draw, len(rows_read), world.batch)]
        right, seen = tokens(every)
        place = right == tokenizer.mask_token_id
        mine = every[every < len(prompts)]
        right[place] = answer[torch.multinomial(wanted[mine], 1)[:, 0]]
        hidden, one = tiny_model.hide(model, tokenizer, right, seen, HIDDEN)
        yield loss - one.gather(1, right[hidden][:, None]).sum() / max(1, int(hidden.sum()))

    return losses
