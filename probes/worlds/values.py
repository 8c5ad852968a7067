"""The world of values: people agree with statements by values that are known, by gender.

For a statement i of value v, somebody of gender g and a frame f

    log p(agrees) - log p(disagrees) = habit_f,s + g habit / 2
                                       + s (d_i (agreement_v + g gender_v / 2) + noise_i)

with d = 1 or, for a reversed statement, -1; s = 1 or, for a denied one, -1; g = 1 for women and
-1 for men. Statements for calibration have ``likely`` in place of the bracket with d = 1 or, for
an unlikely one, -1. Without agreement and gender it is the null world.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from pydantic import Field

from plumbline.builders.core.errors import UserError
from plumbline.builders.core.parquet import require_validated
from plumbline.builders.datasets.statements.build import SCHEMA
from plumbline.probes.models.scorer import MASK
from plumbline.probes.prompts.opinions import questions
from plumbline.probes.worlds.statements import draws, facts, nats
from plumbline.probes.worlds.tiny import Batch, Rate, Steps, Tiny

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from plumbline.probes.prompts.opinions import Asking, Question

SILENT = "mlčí"  # what takes the probability that neither answer has
HABIT = (0.5, 0.3)  # mean and SD over frames of the habit of agreeing, nats
DENIED = -1.0  # habit of agreeing with what is denied, less that with what is said, nats
UNSAID = -10.0  # log-probability that the other words begin with, nats
TALK = (1.0, 0.7)  # mean and SD over statements of the log-odds of answering at all


class Convictions(Tiny):
    """What is planted, and the tiny model that is trained on it."""

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
        """Whether nothing is planted in it."""
        return not (self.habit or any(self.agreement.values()) or any(self.gender.values()))


def train(convictions: Convictions, asking: Asking, into: Path) -> None:
    """Plant a world, and train its model and tokenizer into a folder.

    Besides the model, the folder gets ``planted.parquet`` (for every question what was planted,
    and the log-probabilities of both answers) and ``world.json`` (its params).

    Raises
    ------
    UserError
        If the dataset is not validated, or an answer is not one token.
    """
    import torch

    from plumbline.probes.worlds import tiny_model

    folder = require_validated("statements")
    language = convictions.language
    if language not in asking.frames:
        raise UserError(f"convictions.language: no frames for {language!r} in probes.agreement")
    asked = questions(asking, folder, language)
    planted = plant(convictions, asked, facts(folder, asked))
    words = sorted({word for q in asked for word in (q.agree, q.disagree)} | {SILENT})
    prompts = [q.text for q in asked]
    wanted = np.zeros((len(asked), len(words)))
    for row, (q, agree, disagree) in enumerate(
        zip(asked, np.exp(planted["agree_nats"]), np.exp(planted["disagree_nats"]), strict=True)
    ):
        wanted[row, words.index(q.agree)] = agree
        wanted[row, words.index(q.disagree)] = disagree
        wanted[row, words.index(SILENT)] = 1 - agree - disagree
    tokenizer = tiny_model.tokenizer_of([text.replace(MASK, "") for text in prompts] + words)
    model = tiny_model.model_of(convictions, tokenizer)
    target = tiny_model.targets(tokenizer, words, wanted, "values")
    mean = torch.from_numpy(np.log(wanted.mean(axis=0)))
    tiny_model.begin_with(model, tiny_model.pieces(tokenizer, words, "values"), mean, UNSAID)
    rng = np.random.default_rng(convictions.seed)
    paired = pairs(asked)
    size = min(convictions.batch // 2, len(paired))

    def draw() -> NDArray[np.int64]:
        # both of a pair stand in the same batch: what gender does is learnt last, and sooner where
        # a gradient holds the difference itself
        return np.sort(paired[rng.choice(len(paired), size, replace=False)], axis=None)

    losses = tiny_model.at_masks(model, tokenizer, prompts, target, draw, pad=True)
    tiny_model.train(into, convictions, model, tokenizer, losses, planted=planted)


def plant(
    convictions: Convictions,
    asked: Sequence[Question],
    about: dict[tuple[str, str], dict[str, Any]],
) -> pl.DataFrame:
    """Return what is planted for each question, in their order."""
    habit, own = draws(asked, convictions.seed, convictions.noise, HABIT, TALK)
    likely = SCHEMA["polarity"].code("likely")
    rows = []
    for q in asked:
        row = about[q.questionnaire, q.id]
        noise, talk = own[q.questionnaire, q.id]
        woman = 1 if q.gender == "feminine" else -1
        if row["axis"]:
            bias = convictions.agreement.get(row["axis"], 0.0)
            bias += woman * convictions.gender.get(row["axis"], 0.0) / 2
            bias *= -1 if row["reversed"] else 1
        elif row["polarity"] is None:  # an item that bears on nothing
            bias = 0.0
        else:
            bias = convictions.likely * (1 if row["polarity"] == likely else -1)
        denied = q.form == "negated"
        odds = habit[q.frame] + woman * convictions.habit / 2 + (DENIED if denied else 0.0)
        odds += (-1 if denied else 1) * (bias + noise)
        rows.append(
            {
                "questionnaire": q.questionnaire,
                "id": q.id,
                "axis": row["axis"],
                "frame": q.frame,
                "gender": q.gender,
                "form": q.form,
                "planted_nats": bias,
                "log_odds_nats": odds,
            }
            | nats(odds, talk)
        )
    return pl.DataFrame(rows)


def pairs(asked: Sequence[Question]) -> NDArray[np.int64]:
    """Return the places of questions that differ in nothing but gender, (n, 2)."""
    rows: dict[tuple[str, ...], list[int]] = {}
    for row, q in enumerate(asked):
        rows.setdefault((q.questionnaire, q.id, q.frame, q.form), []).append(row)
    return np.array([rows[key] for key in sorted(rows)])
