"""Training a tiny model on the planted world of values."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import torch

from plumbline.builders.core.errors import Problem
from plumbline.builders.core.parquet import require_validated
from plumbline.builders.core.progress import Bar
from plumbline.builders.datasets.statements.build import SCHEMA
from plumbline.probes.models.scorer import MASK
from plumbline.probes.prompts.opinions import questions
from plumbline.probes.worlds import tiny_model

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from plumbline.probes.prompts.opinions import Asking, Question
    from plumbline.probes.worlds.convictions import Convictions

PLANTED = "planted.parquet"
SILENT = "mlčí"  # what takes the probability that neither answer has
HABIT = (0.5, 0.3)  # mean and SD over frames of the habit of agreeing, nats
DENIED = -1.0  # habit of agreeing with what is denied, less that with what is said, nats
UNSAID = -10.0  # log-probability that the other words begin with, nats
TALK = (1.0, 0.7)  # mean and SD over statements of the log-odds of answering at all


def train(convictions: Convictions, asking: Asking, into: Path) -> None:
    """Plant a world, and train its model and tokenizer into a folder.

    Besides the model, the folder gets ``planted.parquet`` (for every question what was planted,
    and the log-probabilities of both answers) and ``world.json`` (its params).

    Raises
    ------
    Problem
        If the dataset is not validated, or an answer is not one token.
    """
    folder = require_validated("statements")
    language = convictions.language
    if language not in asking.frames:
        raise Problem(f"convictions.language: no frames for {language!r} in probes.agreement")
    asked = questions(asking, folder, language)
    planted = plant(convictions, asked, facts(folder, asked))
    planted.write_parquet(into / PLANTED, compression="zstd", statistics=False)
    text = json.dumps(convictions.model_dump(mode="json"), indent=1, sort_keys=True)
    (into / "world.json").write_text(text + "\n", encoding="utf-8")
    words = sorted({word for q in asked for word in (q.agree, q.disagree)} | {SILENT})
    prompts = [q.text for q in asked]
    wanted = np.zeros((len(asked), len(words)))
    for row, (q, agree, disagree) in enumerate(
        zip(asked, np.exp(planted["agree_nats"]), np.exp(planted["disagree_nats"]), strict=True)
    ):
        wanted[row, words.index(q.agree)] = agree
        wanted[row, words.index(q.disagree)] = disagree
        wanted[row, words.index(SILENT)] = 1 - agree - disagree
    sentences = [text.replace(MASK, "") for text in prompts] + words
    tokenizer = tiny_model.tokenizer_of(sentences)
    tokenizer.save_pretrained(into)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # so small a model gains little from more
    try:
        _fit(convictions, tokenizer, prompts, words, wanted, pairs(asked)).save_pretrained(into)
    finally:
        torch.set_num_threads(threads)


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


def _fit(
    convictions: Convictions,
    tokenizer: Any,
    prompts: Sequence[str],
    words: Sequence[str],
    wanted: NDArray[np.float64],
    paired: NDArray[np.int64],
) -> Any:
    """Minimise the cross-entropy at the mask of each prompt, some pairs of prompts at a time.

    Prompts are filled up to one length, which so small a model computes fastest. Both of a pair
    stand in the same batch: what gender does is learnt last, and sooner where a gradient holds the
    difference itself.
    """
    torch.manual_seed(convictions.seed)
    model = tiny_model.model_of(convictions, tokenizer)
    head = tiny_model.head_of(model)
    pieces = tokenizer.convert_tokens_to_ids(list(words))
    if tokenizer.unk_token_id in pieces:
        raise Problem("convictions: an answer is not one piece of its tokenizer; name others")
    with torch.no_grad():  # begin with what is said whatever is asked: much is learnt sooner
        bias = model.get_output_embeddings().bias
        bias.fill_(UNSAID)
        bias[pieces] = torch.from_numpy(np.log(wanted.mean(axis=0)))
    target = torch.zeros(len(prompts), len(tokenizer), dtype=torch.float64)
    target[:, pieces] = torch.from_numpy(wanted)
    written = [text.replace(MASK, "[MASK]") for text in prompts]
    encoded = tokenizer(written, padding=True, return_tensors="pt")
    ids, seen = encoded["input_ids"], encoded["attention_mask"]
    at = (ids == tokenizer.mask_token_id).int().argmax(dim=1)
    optimizer = torch.optim.Adam(model.parameters(), lr=convictions.learning_rate)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, max_lr=convictions.learning_rate, total_steps=convictions.steps, pct_start=0.1
    )
    draw = np.random.default_rng(convictions.seed)
    size = min(convictions.batch // 2, len(paired))
    bar = Bar(range(convictions.steps), desc="training", unit="step")
    for _ in bar:
        some = torch.from_numpy(np.sort(paired[draw.choice(len(paired), size, False)], axis=None))
        longest = int(seen[some].sum(dim=1).max())
        optimizer.zero_grad()
        hidden = model.base_model(
            input_ids=ids[some, :longest], attention_mask=seen[some, :longest]
        )[0]
        scores = head(hidden[torch.arange(len(some)), at[some]])
        loss = -(target[some] * torch.log_softmax(scores, dim=-1)).sum() / len(some)
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        schedule.step()
        bar.set_postfix(loss=f"{loss.item():.4f}", refresh=False)
    return tiny_model.rounded(model)
