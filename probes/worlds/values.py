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

from plumbline.builders.core.errors import Problem
from plumbline.builders.core.parquet import require_validated
from plumbline.builders.datasets.statements.build import SCHEMA
from plumbline.probes.models.scorer import MASK
from plumbline.probes.prompts.opinions import questions
from plumbline.probes.worlds.tiny import Batch, Rate, Steps, Tiny

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    import torch
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
    Problem
        If the dataset is not validated, or an answer is not one token.
    """
    import torch

    from plumbline.probes.worlds import fit, tiny_model

    folder = require_validated("statements")
    language = convictions.language
    if language not in asking.frames:
        raise Problem(f"convictions.language: no frames for {language!r} in probes.agreement")
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
    torch.manual_seed(convictions.seed)
    model = tiny_model.model_of(convictions, tokenizer)
    head = tiny_model.head_of(model)
    target = fit.targets(tokenizer, words, wanted, "values")
    mean = torch.from_numpy(np.log(wanted.mean(axis=0)))
    fit.begin_with(model, fit.pieces(tokenizer, words, "values"), mean, UNSAID)
    encoded = tokenizer(fit.masked(prompts), padding=True, return_tensors="pt")
    ids, seen = encoded["input_ids"], encoded["attention_mask"]
    at = (ids == tokenizer.mask_token_id).int().argmax(dim=1)
    draw = np.random.default_rng(convictions.seed)
    paired = pairs(asked)
    size = min(convictions.batch // 2, len(paired))

    def losses() -> Iterator[torch.Tensor]:
        # both of a pair stand in the same batch: what gender does is learnt last, and sooner where
        # a gradient holds the difference itself
        some = torch.from_numpy(np.sort(paired[draw.choice(len(paired), size, False)], axis=None))
        longest = int(seen[some].sum(dim=1).max())
        hidden = model.base_model(
            input_ids=ids[some, :longest], attention_mask=seen[some, :longest]
        )[0]
        scores = head(hidden[torch.arange(len(some)), at[some]])
        yield fit.cross_entropy(target[some], scores, len(some))

    fit.save(into, fit.fit(convictions, model, losses), tokenizer, convictions, planted=planted)


def facts(folder: Path, asked: Sequence[Question]) -> dict[tuple[str, str], dict[str, Any]]:
    """Return axis, reversal and polarity of each statement, by questionnaire and id."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for config in sorted({q.questionnaire for q in asked}):
        for row in pl.read_parquet(folder / f"{config}.parquet").sort("id", "axis").to_dicts():
            found.setdefault((config, row["id"]), row)
    return found


def plant(
    convictions: Convictions,
    asked: Sequence[Question],
    about: dict[tuple[str, str], dict[str, Any]],
) -> pl.DataFrame:
    """Return what is planted for each question, in their order."""
    rng = np.random.default_rng(convictions.seed)
    frames = sorted({q.frame for q in asked})
    habit = dict(zip(frames, rng.normal(*HABIT, len(frames)), strict=True))
    own = {
        key: (rng.normal(0, convictions.noise), rng.normal(*TALK))
        for key in sorted({(q.questionnaire, q.id) for q in asked})
    }
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
        answered = -np.logaddexp(0, -talk)
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
                "agree_nats": answered - np.logaddexp(0, -odds),
                "disagree_nats": answered - np.logaddexp(0, odds),
            }
        )
    return pl.DataFrame(rows)


def pairs(asked: Sequence[Question]) -> NDArray[np.int64]:
    """Return the places of questions that differ in nothing but gender, (n, 2)."""
    rows: dict[tuple[str, ...], list[int]] = {}
    for row, q in enumerate(asked):
        rows.setdefault((q.questionnaire, q.id, q.frame, q.form), []).append(row)
    return np.array([rows[key] for key in sorted(rows)])
