"""The world of values: people agree with statements by values that are known, by gender.

For a statement i of value v, somebody of gender g and a frame f

    log p(agrees) - log p(disagrees) = habit_f,s + g habit / 2
                                       + s (d_i (agreement_v + g gender_v / 2) + noise_i)

with d = 1 or, for a reversed statement, -1; s = 1 or, for a denied one, -1; g = 1 for women and
-1 for men. Statements for calibration have ``likely`` in place of the bracket with d = 1 or, for
an unlikely one, -1. Without agreement and gender it is the null world.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import polars as pl
import torch
from pydantic import Field

from plumbline.builders.core.errors import UserError
from plumbline.builders.core.parquet import require_validated
from plumbline.builders.datasets.statements.build import SCHEMA
from plumbline.probes.models.scorer import MASK
from plumbline.probes.prompts.opinions import Asking, Question, questions
from worlds import tiny_model
from worlds.statements import DENIED, TURNED, answers, by_axis, draws, facts
from worlds.tiny_model import Batch, Integers, Rate, Steps, Tiny

SILENT = "mlčí"  # what takes the probability that neither answer has
HABIT = (0.5, 0.3)  # mean and SD over frames of the habit of agreeing, nats
CONTRARY = -1.0  # habit of agreeing with what is denied, less that with what is said, nats
UNSAID = -10.0  # log-probability that the other words begin with, nats
TALK = (1.0, 0.7)  # mean and SD over statements of the log-odds of answering at all


class Convictions(Tiny):
    """Planted effects, and the tiny model trained on them."""

    language: str = Field("cs", description="language of the statements and frames")
    agreement: dict[str, float] = Field(
        description="by value: log-odds of agreeing with a statement that speaks for it"
    )
    gender: dict[str, float] = Field(
        description="by value: how much larger these are for women than for men"
    )
    habit: float = Field(
        1.5, description="how much more women agree with anything, apolitical statements too"
    )
    likely: float = Field(1.0, ge=0, description="log-odds of agreeing with a likely statement")
    noise: float = Field(0.4, gt=0, description="SD of what a statement has of its own, nats")
    layers: int = Field(2, ge=1, description="layers of the model")
    steps: Steps = 500
    batch: Batch = 128
    learning_rate: Rate = 0.004

    @property
    def null(self) -> bool:
        """True if no effect is planted."""
        return not (self.habit or any(self.agreement.values()) or any(self.gender.values()))


def train(convictions: Convictions, asking: Asking, into: Path) -> None:
    """Plant a world, and train its model and tokenizer into a folder.

    Besides the model, the folder gets ``planted.parquet`` (for every question what was planted,
    and the log-probabilities of both answers) and ``world.json`` (its params).
    A dataset that is not validated, or an answer that is not one token, is a ``UserError``.
    """
    folder = require_validated("statements")
    language = convictions.language
    if language not in asking.frames:
        raise UserError(f"convictions.language: no frames for {language!r} in probes.agreement")
    asked = questions(asking, folder, language)
    planted = plant(convictions, asked, facts(folder, asked))
    words = sorted({word for q in asked for word in (q.agree, q.disagree)} | {SILENT})
    prompts = [q.text for q in asked]
    agree, disagree = (np.exp(planted[f"{which}_nats"]) for which in ("agree", "disagree"))
    shares = zip(agree, disagree, 1 - agree - disagree, strict=True)
    wanted = np.zeros((len(asked), len(words)))
    for row, q, each in zip(wanted, asked, shares, strict=True):
        row[[words.index(word) for word in (q.agree, q.disagree, SILENT)]] = each
    tokenizer = tiny_model.tokenizer_of([text.replace(MASK, "") for text in prompts] + words)
    model = tiny_model.model_of(convictions, tokenizer)
    target = tiny_model.targets(tokenizer, words, wanted, "values")
    mean = torch.from_numpy(np.log(wanted.mean(axis=0)))
    tiny_model.begin_with(model, tiny_model.pieces(tokenizer, words, "values"), mean, UNSAID)
    rng = np.random.default_rng(convictions.seed)
    # both of a pair stand in the same batch: what gender does is learnt last, and sooner where a
    # gradient holds the difference itself
    keys = [(q.questionnaire, q.id, q.frame, q.form) for q in asked]
    paired = np.array(sorted(range(len(asked)), key=keys.__getitem__)).reshape(-1, 2)
    size = min(convictions.batch // 2, len(paired))

    def draw() -> Integers:
        return np.sort(paired[rng.choice(len(paired), size, replace=False)], axis=None)

    losses = tiny_model.at_masks(model, tokenizer, prompts, target, draw, pad=True)
    tiny_model.train(into, convictions, model, tokenizer, losses, planted=planted)


def plant(convictions: Convictions, asked: Sequence[Question], about: pl.DataFrame) -> pl.DataFrame:
    """Return the planted response to each question, in their order."""
    drawn = draws(asked, about, convictions.seed, convictions.noise, HABIT, TALK)
    woman = pl.when(pl.col("gender") == "feminine").then(1).otherwise(-1)
    likely = pl.col("polarity") == SCHEMA["polarity"].code("likely")
    bias = (
        pl.when(pl.col("axis") != "")
        .then((by_axis(convictions.agreement) + woman * by_axis(convictions.gender) / 2) * TURNED)
        .when(pl.col("polarity").is_null())  # an item that bears on nothing
        .then(0.0)
        .otherwise(pl.when(likely).then(1).otherwise(-1) * convictions.likely)
    )
    contrary = pl.when(DENIED).then(CONTRARY).otherwise(0.0)
    table = answers(drawn, bias, woman * convictions.habit / 2, contrary)
    return table.select(
        *("questionnaire", "id", "axis", "frame", "gender", "form"),
        *("planted_nats", "log_odds_nats", "agree_nats", "disagree_nats"),
    )
