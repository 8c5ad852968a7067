"""World (control model) of values: agreement with statements depends on values and on gender.

For a statement i of value v, a person of gender g and a template f

    log p(agrees) - log p(disagrees) = habit_f,s + g habit / 2
                                       + s (d_i (agreement_v + g gender_v / 2) + noise_i)

where d is -1 for reversed statements and 1 otherwise, s is -1 for negated ones and 1 otherwise, and
g is 1 for women and -1 for men. For calibration statements, ``likely`` replaces the inner bracket,
and d is -1 for unlikely ones. Without agreement, gender and habit, it is a null world.
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

SILENT = "mlčí"  # word that receives the remaining probability
HABIT = (0.5, 0.3)  # mean and SD over templates of the habit of agreeing, nats
CONTRARY = -1.0  # habit of agreeing with negated statements minus that for plain ones, nats
UNSAID = -10.0  # initial log-probability of all other words, nats
TALK = (1.0, 0.7)  # mean and SD over statements of the log-odds of an answer


class Convictions(Tiny):
    """Planted effects, and settings of the tiny model that learns them."""

    language: str = Field("cs", description="language of the statements and templates")
    agreement: dict[str, float] = Field(
        description="by value, log-odds of agreement with a statement in its favour"
    )
    gender: dict[str, float] = Field(
        description="by value, difference of these log-odds, women minus men"
    )
    habit: float = Field(
        1.5, description="log-odds of agreement with any statement, women minus men"
    )
    likely: float = Field(1.0, ge=0, description="log-odds of agreement with a likely statement")
    noise: float = Field(0.4, gt=0, description="SD of the noise of statements, nats")
    layers: int = Field(2, ge=1, description="number of layers")
    steps: Steps = 500
    batch: Batch = 128
    learning_rate: Rate = 0.004

    @property
    def null(self) -> bool:
        """True if no effect is planted."""
        return not (self.habit or any(self.agreement.values()) or any(self.gender.values()))


def train(convictions: Convictions, asking: Asking, into: Path) -> None:
    """Train the model and tokenizer of a world and write them into a folder.

    The folder also contains ``planted.parquet`` (the planted effect and the log-probabilities of
    both answers for each question) and ``world.json`` (the settings). Raises UserError if a dataset
    has not been validated or an answer is not a single token.
    """
    folder = require_validated("statements")
    language = convictions.language
    if language not in asking.frames:
        raise UserError(f"convictions.language: no templates in {language!r} in probes.agreement")
    queries = questions(asking, folder, language)
    planted = plant(convictions, queries, facts(folder, queries))
    words = sorted({word for q in queries for word in (q.agree, q.disagree)} | {SILENT})
    prompts = [q.text for q in queries]
    agree, disagree = (np.exp(planted[f"{which}_nats"]) for which in ("agree", "disagree"))
    shares = zip(agree, disagree, 1 - agree - disagree, strict=True)
    wanted = np.zeros((len(queries), len(words)))
    for row, q, values in zip(wanted, queries, shares, strict=True):
        row[[words.index(word) for word in (q.agree, q.disagree, SILENT)]] = values
    tokenizer = tiny_model.tokenizer_of([text.replace(MASK, "") for text in prompts] + words)
    model = tiny_model.model_of(convictions, tokenizer)
    target = tiny_model.targets(tokenizer, words, wanted, "values")
    mean = torch.from_numpy(np.log(wanted.mean(axis=0)))
    tiny_model.begin_with(model, tiny_model.pieces(tokenizer, words, "values"), mean, UNSAID)
    rng = np.random.default_rng(convictions.seed)
    # Both prompts of a pair are in the same batch: the effect of gender is learnt last, and faster
    # if a gradient contains the difference.
    keys = [(q.questionnaire, q.id, q.frame, q.form) for q in queries]
    paired = np.array(sorted(range(len(queries)), key=keys.__getitem__)).reshape(-1, 2)
    size = min(convictions.batch // 2, len(paired))

    def draw() -> Integers:
        return np.sort(paired[rng.choice(len(paired), size, replace=False)], axis=None)

    losses = tiny_model.at_masks(model, tokenizer, prompts, target, draw, pad=True)
    tiny_model.train(into, convictions, model, tokenizer, losses, planted=planted)


def plant(
    convictions: Convictions, queries: Sequence[Question], items: pl.DataFrame
) -> pl.DataFrame:
    """Return the planted response to each question, in the order of the questions."""
    drawn = draws(queries, items, convictions.seed, convictions.noise, HABIT, TALK)
    woman = pl.when(pl.col("gender") == "feminine").then(1).otherwise(-1)
    likely = pl.col("polarity") == SCHEMA["polarity"].code("likely")
    bias = (
        pl.when(pl.col("axis") != "")
        .then((by_axis(convictions.agreement) + woman * by_axis(convictions.gender) / 2) * TURNED)
        .when(pl.col("polarity").is_null())  # the item has neither value nor polarity
        .then(0.0)
        .otherwise(pl.when(likely).then(1).otherwise(-1) * convictions.likely)
    )
    contrary = pl.when(DENIED).then(CONTRARY).otherwise(0.0)
    table = answers(drawn, bias, woman * convictions.habit / 2, contrary)
    return table.select(
        *("questionnaire", "id", "axis", "frame", "gender", "form"),
        *("planted_nats", "log_odds_nats", "agree_nats", "disagree_nats"),
    )
