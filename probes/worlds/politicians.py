"""Training a tiny model on the planted world of politicians."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import torch

from plumbline.builders.core.errors import Problem
from plumbline.builders.core.parquet import require_validated
from plumbline.builders.core.progress import Bar
from plumbline.builders.datasets.politicians import build as politicians
from plumbline.builders.datasets.words import build as words_dataset
from plumbline.probes.models.scorer import MASK
from plumbline.probes.worlds import tiny_model
from plumbline.probes.worlds.language import SENTIMENTS, Planted, World, allot, plant, tastes
from plumbline.probes.worlds.meaning import meaning

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from transformers import PreTrainedTokenizerFast

PLANTED = "planted.parquet"


def train(world: World, into: Path) -> None:
    """Plant a world, and train its model and tokenizer into a folder.

    Besides the model, the folder gets ``planted.parquet`` (what is true of every word) and
    ``world.json`` (its params).
    """
    rng = np.random.default_rng(world.seed)
    people, vocabulary, places = _inputs(world)
    genders = people["gender"].to_list()
    planted: dict[str, Planted] = {}
    counts: dict[str, np.ndarray] = {}
    for pos, lemmas in vocabulary.items():
        words = list(lemmas)
        meant = meaning(words, list(lemmas.values()), world.language, pos)
        planted[pos] = plant(words, meant.sentiment, meant.supersense, world, rng)
        probabilities = tastes(planted[pos], genders, world.name_noise, rng)
        counts[pos] = allot(probabilities, world.sentences)
    said = corpus(people["name"].to_list(), planted, counts, places)
    _table(planted).write_parquet(into / PLANTED, compression="zstd", statistics=False)
    facts = json.dumps(world.model_dump(mode="json", exclude_none=True), indent=1, sort_keys=True)
    (into / "world.json").write_text(facts + "\n", encoding="utf-8")

    tokenizer = tiny_model.tokenizer_of(said["sentence"].to_list())
    tokenizer.save_pretrained(into)
    prompts = [prompt(name, places[pos]) for pos in planted for name in people["name"]]
    targets = [(pos, row) for pos in planted for row in range(len(genders))]
    threads = torch.get_num_threads()
    torch.set_num_threads(
        1
    )  # so small a model gains little from more, and loses much on a busy CPU
    try:
        _fit(world, tokenizer, prompts, targets, planted, counts).save_pretrained(into)
    finally:
        torch.set_num_threads(threads)


def prompt(name: str, place: str) -> str:
    """Return the frame of the paper: the mask before or after the bare name."""
    return f"{MASK} {name}" if place == "before" else f"{name} {MASK}"


def _inputs(world: World) -> tuple[pl.DataFrame, dict[str, dict[str, str]], dict[str, str]]:
    """Return the people, the words of each part of speech with lemmas, and where those stand."""
    people = pl.read_parquet(
        require_validated("politicians") / f"{world.language}.parquet", columns=["name", "gender"]
    )
    people = people.unique("name", keep="first", maintain_order=True)
    label = dict(enumerate(politicians.GENDERS))
    people = people.with_columns(pl.col("gender").replace_strict(label, return_dtype=pl.String))
    frame = pl.read_parquet(require_validated("words") / f"{world.language}.parquet")
    ambiguous = (
        frame.group_by("form").agg(pl.col("pos").n_unique().alias("n")).filter(pl.col("n") > 1)
    )
    frame = frame.filter(~pl.col("form").is_in(ambiguous["form"].to_list()))
    frame = frame.sort(["count", "form"], descending=[True, False])
    vocabulary: dict[str, dict[str, str]] = {}
    places: dict[str, str] = {}
    for code, pos in enumerate(words_dataset.POS):
        part = frame.filter(pl.col("pos") == code).unique("form", keep="first", maintain_order=True)
        part = part.head(world.words_max)
        if len(part) < 10:
            raise Problem(
                f"world in {world.language!r}: only {len(part)} {pos} in words; it needs 10"
            )
        vocabulary[pos] = dict(zip(part["form"], part["lemma"], strict=True))
        places[pos] = words_dataset.PLACES[part["place"][0]]
    return people, vocabulary, places


def corpus(
    names: list[str],
    planted: dict[str, Planted],
    counts: dict[str, np.ndarray],
    places: dict[str, str],
) -> pl.DataFrame:
    """Return every sentence of the language, with its count."""

    def rows() -> Iterator[tuple[str, str, str, str, int]]:
        for pos, truth in planted.items():
            for row, name in enumerate(names):
                frame = prompt(name, places[pos])
                for column, word in enumerate(truth.words):
                    if count := int(counts[pos][row, column]):
                        yield name, pos, word, frame.replace(MASK, word), count

    columns = {
        "name": pl.String,
        "pos": pl.String,
        "word": pl.String,
        "sentence": pl.String,
        "count": pl.Int64,
    }
    return pl.DataFrame(list(rows()), schema=columns, orient="row")


def _table(planted: dict[str, Planted]) -> pl.DataFrame:
    return pl.concat(
        pl.DataFrame(
            {
                "word": truth.words,
                "pos": [pos] * len(truth.words),
                "sentiment": [SENTIMENTS[i] for i in truth.sentiment],
                "supersense": truth.supersense,
                "frequency_nats": truth.frequency,
                "log_ratio_nats": truth.log_ratio,
            }
        )
        for pos, truth in planted.items()
    )


def _fit(
    world: World,
    tokenizer: PreTrainedTokenizerFast,
    prompts: list[str],
    targets: list[tuple[str, int]],
    planted: dict[str, Planted],
    counts: dict[str, np.ndarray],
) -> Any:
    """Minimise the corpus's cross-entropy, every sentence masked at its adjective or verb.

    Sentences that are alike once masked are computed once and weighted by their counts, which
    gives the gradient of the whole corpus in every step.
    """
    torch.manual_seed(world.seed if world.training_seed is None else world.training_seed)
    model = tiny_model.model_of(world, tokenizer)
    head = tiny_model.head_of(model)
    groups = tiny_model.by_length(tokenizer, prompts)
    wanted = torch.zeros(len(prompts), len(tokenizer), dtype=torch.float64)
    for i, (pos, row) in enumerate(targets):
        pieces: Any = tokenizer.convert_tokens_to_ids(list(planted[pos].words))
        if tokenizer.unk_token_id in pieces:
            raise Problem("world: a word of the language is not one piece of its tokenizer")
        wanted[i, pieces] = torch.from_numpy(counts[pos][row] / counts[pos][row].sum())
    optimizer = torch.optim.Adam(model.parameters(), lr=world.learning_rate)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, max_lr=world.learning_rate, total_steps=world.steps, pct_start=0.1
    )
    bar = Bar(range(world.steps), desc="training", unit="step")
    for _ in bar:
        optimizer.zero_grad()
        total = 0.0
        for ids, rows in groups:
            hidden = model.base_model(input_ids=ids, attention_mask=torch.ones_like(ids))[0]
            logits = head(hidden[ids == tokenizer.mask_token_id])
            loss = -(wanted[rows] * torch.log_softmax(logits, dim=-1)).sum() / len(prompts)
            loss.backward()  # type: ignore[no-untyped-call]
            total += loss.item()
        optimizer.step()
        schedule.step()
        bar.set_postfix(loss=f"{total:.4f}", refresh=False)
    return tiny_model.rounded(model)
