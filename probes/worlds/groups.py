"""Training a tiny model on the planted world of social groups."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import torch

from plumbline.builders.core.errors import Problem
from plumbline.builders.core.parquet import require_validated
from plumbline.builders.core.progress import Bar
from plumbline.builders.datasets.emotions.build import EMOTIONS
from plumbline.probes.models.scorer import MASK
from plumbline.probes.prompts.groups import DATASETS, masked, prompt, queries
from plumbline.probes.worlds import tiny_model

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from plumbline.probes.prompts.groups import Asking, Frames, Query
    from plumbline.probes.worlds.society import Society

PLANTED = "planted.parquet"


def train(society: Society, asking: Asking, into: Path) -> None:
    """Plant a world, and train its model and tokenizer into a folder.

    Besides the model, the folder gets ``planted.parquet`` (for every group and word what was
    planted, and the probability with its noise) and ``world.json`` (its params).

    Raises
    ------
    Problem
        If a dataset is not validated, or a word of the language is not one token.
    """
    rng = np.random.default_rng(society.seed)
    language = society.language
    folders = {name: require_validated(name) for name in DATASETS}
    asked, frames = queries(asking, folders, language), asking.frames[language]
    groups = list(dict.fromkeys(q.group for q in asked))
    words, pairs, carries = vocabulary(society, groups)
    frequency = rng.normal(0.0, 0.5, len(words))
    emotions = rng.integers(0, len(EMOTIONS), len(groups))
    log_odds = society.attribute_effect * pairs + society.emotion_effect * carries[:, emotions].T
    noise = rng.normal(0.0, society.noise, log_odds.shape)
    odds = np.exp(frequency + log_odds + noise)
    probabilities = odds / odds.sum(axis=1, keepdims=True)
    planted = _table(groups, words, log_odds, probabilities, emotions)
    planted.write_parquet(into / PLANTED, compression="zstd", statistics=False)
    facts = json.dumps(society.model_dump(mode="json"), indent=1, sort_keys=True)
    (into / "world.json").write_text(facts + "\n", encoding="utf-8")
    prompts, wanted = _lessons(asked, frames, groups, probabilities, society.masks)
    sentences = [text.replace(MASK, "") for text in prompts] + list(words)
    tokenizer = tiny_model.tokenizer_of(sentences)
    tokenizer.save_pretrained(into)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # so small a model gains little from more
    try:
        _fit(society, tokenizer, prompts, words, wanted).save_pretrained(into)
    finally:
        torch.set_num_threads(threads)


def vocabulary(
    society: Society, groups: Sequence[str]
) -> tuple[list[str], NDArray[np.float64], NDArray[np.float64]]:
    """Return the words of the world, which are attributes of which group, and their emotions.

    Returns
    -------
    words
        All attributes of one word, and of the other words with an emotion the first by name.
    pairs : (groups, words) array
        1 where the word is an attribute of the group.
    carries : (words, emotions) array
        1 where the word carries the emotion, in the order of ``build.EMOTIONS``.
    """
    said = pl.read_parquet(require_validated("stereotypes") / f"{society.language}.parquet")
    clean = pl.col("single_word") & (pl.col("flags").list.len() == 0)
    said = said.filter(clean & pl.col("group").is_in(list(groups)))
    felt = pl.read_parquet(require_validated("emotions") / f"{society.language}.parquet")
    felt = felt.filter(
        pl.any_horizontal(EMOTIONS) & (pl.col("word") == pl.col("word").str.to_lowercase())
    )
    attributes = sorted({text.casefold() for text in said["attribute"].to_list()})
    others = [w for w in felt["word"].unique().sort().to_list() if w not in set(attributes)]
    words = attributes + others[: society.words_max]
    place = {word: i for i, word in enumerate(words)}
    row = {group: i for i, group in enumerate(groups)}
    pairs = np.zeros((len(groups), len(words)))
    for group, attribute in said.select("group", "attribute").iter_rows():
        pairs[row[group], place[attribute.casefold()]] = 1
    carries = np.zeros((len(words), len(EMOTIONS)))
    for values in felt.select("word", *EMOTIONS).iter_rows():
        if values[0] in place:
            carries[place[values[0]]] = np.maximum(carries[place[values[0]]], values[1:])
    return words, pairs, carries


def _table(
    groups: Sequence[str],
    words: Sequence[str],
    log_odds: NDArray[np.float64],
    probabilities: NDArray[np.float64],
    emotions: NDArray[np.int64],
) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "group": np.repeat(np.array(groups, object), len(words)).tolist(),
            "word": list(words) * len(groups),
            "log_odds_nats": log_odds.ravel(),
            "probability": probabilities.ravel(),
            "emotion": [EMOTIONS[i] for i in emotions for _ in words],
        }
    )


def _lessons(
    asked: Sequence[Query],
    frames: Frames,
    groups: Sequence[str],
    probabilities: NDArray[np.float64],
    masks: int,
) -> tuple[list[str], NDArray[np.float64]]:
    """Return prompts, and for each the probability of every word, (prompts, words).

    Besides every group in every template, the templates with the group masked: there the mean
    over the groups of their kind.
    """
    row = {group: i for i, group in enumerate(groups)}
    prompts = [prompt(q.text, frames.ending) for q in asked]
    wanted = [probabilities[row[q.group]] for q in asked]
    templates = dict.fromkeys((q.template, q.kind) for q in asked)
    for template, kind in templates:
        own = sorted({row[q.group] for q in asked if q.kind == kind})
        for n in range(1, masks + 1):
            prompts.append(prompt(masked(template, n), frames.ending))
            wanted.append(probabilities[own].mean(axis=0))
    prompts.append(frames.released)
    wanted.append(probabilities.mean(axis=0))
    return prompts, np.array(wanted)


def _fit(
    society: Society,
    tokenizer: Any,
    prompts: Sequence[str],
    words: Sequence[str],
    wanted: NDArray[np.float64],
) -> Any:
    """Minimise the cross-entropy at the last mask of each prompt, some prompts at a time."""
    torch.manual_seed(society.seed)
    model = tiny_model.model_of(society, tokenizer)
    head = tiny_model.head_of(model)
    pieces = tokenizer.convert_tokens_to_ids(list(words))
    if tokenizer.unk_token_id in pieces:
        raise Problem("society: a word of the language is not one piece of its tokenizer")
    target = torch.zeros(len(prompts), len(tokenizer), dtype=torch.float64)
    target[:, pieces] = torch.from_numpy(wanted)
    encoded = tokenizer([text.replace(MASK, "[MASK]") for text in prompts])["input_ids"]
    mask = tokenizer.mask_token_id
    last = [len(ids) - 1 - ids[::-1].index(mask) for ids in encoded]
    optimizer = torch.optim.Adam(model.parameters(), lr=society.learning_rate)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, max_lr=society.learning_rate, total_steps=society.steps, pct_start=0.1
    )
    draw = np.random.default_rng(society.seed)
    bar = Bar(range(society.steps), desc="training", unit="step")
    for _ in bar:
        some = np.sort(draw.choice(len(prompts), min(society.batch, len(prompts)), replace=False))
        optimizer.zero_grad()
        total = 0.0
        lengths = np.array([len(encoded[i]) for i in some])
        for length in np.unique(lengths):
            rows = some[lengths == length].tolist()
            ids = torch.tensor([encoded[i] for i in rows])
            hidden = model.base_model(input_ids=ids, attention_mask=torch.ones_like(ids))[0]
            at = hidden[torch.arange(len(rows)), torch.tensor([last[i] for i in rows])]
            loss = -(target[rows] * torch.log_softmax(head(at), dim=-1)).sum() / len(some)
            loss.backward()  # type: ignore[no-untyped-call]
            total += loss.item()
        optimizer.step()
        schedule.step()
        bar.set_postfix(loss=f"{total:.4f}", refresh=False)
    return tiny_model.rounded(model)
