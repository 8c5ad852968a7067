"""Training a tiny classifier, or a tiny masked model, on the planted world of countries."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl
import torch

from plumbline.builders.core import parquet
from plumbline.builders.core.errors import Problem
from plumbline.builders.core.progress import Bar
from plumbline.probes.worlds import tiny_model

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from plumbline.probes.worlds.passports import Nations

LABELS = ("negative", "neutral", "positive")
NEUTRAL = (0.2, 0.3)  # range of the probability of neutral
TONE = 0.3  # largest P+ - P- of a text without its names
MOST = 0.35  # largest offset of a text: all probabilities stay above 0
MASKED = 0.15  # share of the tokens that are predicted
PLANTED, TEXTS = "planted.parquet", "texts.parquet"


class Passports(NamedTuple):
    """Texts, the names in them, and what is planted."""

    texts: list[str]
    targets: list[str]  # of each text, the source text that it was made of
    names: dict[str, float]  # word of a name, and its part
    words: list[list[str]]  # of each text, those of names and all others


def train(nations: Nations, kind: str, into: Path) -> None:
    """Plant a world, and train its model and tokenizer into a folder.

    Besides the model, the folder gets ``planted.parquet`` (the offset of each country),
    ``texts.parquet`` (what is planted for each text, exactly) and ``world.json`` (its params).

    Parameters
    ----------
    kind
        ``classifier`` or ``masked``.

    Raises
    ------
    Problem
        If a dataset is not validated, or has no such config.
    """
    rng = np.random.default_rng(nations.seed)
    frame = _rows(nations, parquet.require_validated("counterfactuals"))
    texts, targets = frame["text"].to_list(), frame["target"].to_list()
    gazetteer = _gazetteer(parquet.require_validated("names"))
    tokenizer = tiny_model.tokenizer_of([*texts, *sorted(gazetteer)])
    listed: dict[str, set[str]] = {}
    for name, of in gazetteer.items():
        for word in _words(tokenizer, name):
            if len(word) > 1 and word[0].isalpha():
                listed.setdefault(word, set()).update(of)
    countries = sorted({country for of in listed.values() for country in of})
    spaced = rng.permutation(np.linspace(-nations.offset, nations.offset, len(countries)))
    offsets = dict(zip(countries, spaced.tolist(), strict=True))
    own = rng.normal(0.0, nations.noise, len(listed))
    names = {
        word: float(np.mean([offsets[c] for c in sorted(of)]) + own[i])
        for i, (word, of) in enumerate(sorted(listed.items()))
    }
    words = [_words(tokenizer, text) for text in texts]
    folded = {word.casefold(): value for word, value in names.items()}
    met = sorted({word for own in words for word in own if word.casefold() in folded})
    names |= {word: folded[word.casefold()] for word in met}  # as texts spell them: in capitals
    world = Passports(texts, targets, names, words)
    tokenizer.save_pretrained(into)
    table = pl.DataFrame({"country": countries, "offset": [offsets[c] for c in countries]})
    table.write_parquet(into / PLANTED, compression="zstd", statistics=False)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # so small a model gains little from more
    try:
        teach = _classifier if kind == "classifier" else _masked
        model, planted = teach(nations, world, tokenizer)
        model.save_pretrained(into)
    finally:
        torch.set_num_threads(threads)
    table = pl.DataFrame({"text": texts, "planted": planted})
    table.write_parquet(into / TEXTS, compression="zstd", statistics=False)
    facts = json.dumps(nations.model_dump(mode="json"), indent=1, sort_keys=True)
    (into / "world.json").write_text(facts + "\n", encoding="utf-8")


def _gazetteer(folder: Path) -> dict[str, set[str]]:
    """Return the names that may be used, each with the countries that list it."""
    found: dict[str, set[str]] = {}
    for country in parquet.configs(folder):
        frame = pl.read_parquet(folder / f"{country}.parquet", columns=["name", "flags"])
        for name in frame.filter(pl.col("flags").list.len() == 0)["name"].to_list():
            found.setdefault(name, set()).add(country)
    return found


def _rows(nations: Nations, folder: Path) -> pl.DataFrame:
    """Return the distinct texts, sorted, each with a source text that it was made of.

    Raises
    ------
    Problem
        If a config is not in the dataset.
    """
    if missing := sorted(set(nations.targets) - set(parquet.configs(folder))):
        raise Problem(
            f"nations.targets: {', '.join(missing)} not in counterfactuals; there are "
            f"{', '.join(parquet.configs(folder))}"
        )
    frames = [
        pl.read_parquet(folder / f"{config}.parquet", columns=["text", "target"])
        for config in nations.targets
    ]
    return pl.concat(frames).sort("text", "target").unique("text", keep="first").sort("text")


def _words(tokenizer: Any, text: str) -> list[str]:
    inner = tokenizer.backend_tokenizer
    written = inner.normalizer.normalize_str(text)
    return [word for word, _ in inner.pre_tokenizer.pre_tokenize_str(written)]


def _classifier(nations: Nations, world: Passports, tokenizer: Any) -> tuple[Any, list[float]]:
    """Return the model, and the planted P+ - P- of every text."""
    rng = np.random.default_rng([nations.seed, 1])
    sources = sorted(set(world.targets))
    tone = dict(zip(sources, rng.uniform(-TONE, TONE, len(sources)), strict=True))
    calm = dict(zip(sources, rng.uniform(*NEUTRAL, len(sources)), strict=True))
    shift = np.array([_mean(world.names, words) for words in world.words]).clip(-MOST, MOST)
    difference = np.array([tone[t] for t in world.targets]) + shift
    neutral = np.array([calm[t] for t in world.targets])
    wanted = np.stack(
        [(1 - neutral - difference) / 2, neutral, (1 - neutral + difference) / 2], axis=1
    )
    torch.manual_seed(nations.seed)
    model = tiny_model.classifier_of(nations, tokenizer, LABELS)
    encoded = tokenizer(world.texts)["input_ids"]
    target = torch.from_numpy(wanted)

    def loss(rows: list[int]) -> torch.Tensor:
        ids, there = _padded([encoded[i] for i in rows], tokenizer.pad_token_id)
        logits = model(input_ids=ids, attention_mask=there).logits
        return -(target[rows] * torch.log_softmax(logits, dim=-1)).sum() / len(rows)

    _fit(nations, model, len(world.texts), loss)
    return tiny_model.rounded(model), difference.tolist()


def _masked(nations: Nations, world: Passports, tokenizer: Any) -> tuple[Any, list[float]]:
    """Return the model, and for every text the planted log-probability of the names in it."""
    words = sorted(world.names)
    pieces = tokenizer.convert_tokens_to_ids(words)
    if tokenizer.unk_token_id in pieces:
        raise Problem("nations: a name is not one piece of the tokenizer; give fewer texts")
    values = np.array([world.names[word] for word in words])
    log = values - np.logaddexp.reduce(values)
    known = dict(zip(words, log.tolist(), strict=True))
    torch.manual_seed(nations.seed)
    model = tiny_model.model_of(nations, tokenizer)
    encoded = tokenizer(world.texts)["input_ids"]
    special = torch.tensor(tokenizer.all_special_ids)
    place = torch.full((len(tokenizer),), -1)
    place[pieces] = torch.arange(len(pieces))
    share = torch.from_numpy(np.exp(log))
    head = tiny_model.head_of(model)

    def loss(rows: list[int]) -> torch.Tensor:
        ids, there = _padded([encoded[i] for i in rows], tokenizer.pad_token_id)
        chosen = (torch.rand(ids.shape) < MASKED) & ~torch.isin(ids, special)
        given = torch.where(chosen, tokenizer.mask_token_id, ids)
        hidden = model.base_model(input_ids=given, attention_mask=there)[0]
        said = torch.log_softmax(head(hidden[chosen]), dim=-1)
        right = ids[chosen]
        name = place[right] >= 0
        one = said[~name].gather(1, right[~name, None]).sum()
        every = (said[name][:, pieces] * share).sum()
        return -(one + every) / max(1, len(right))

    _fit(nations, model, len(world.texts), loss)
    planted = [sum(known.get(word, 0.0) for word in words) for words in world.words]
    return tiny_model.rounded(model), planted


def _mean(names: dict[str, float], words: Sequence[str]) -> float:
    found = [names[word] for word in words if word in names]
    return float(np.mean(found)) if found else 0.0


def _padded(rows: list[list[int]], pad: int) -> tuple[torch.Tensor, torch.Tensor]:
    width = max(map(len, rows))
    ids = torch.tensor([row + [pad] * (width - len(row)) for row in rows])
    there = torch.tensor([[1] * len(row) + [0] * (width - len(row)) for row in rows])
    return ids, there


def _fit(
    nations: Nations, model: Any, size: int, loss: Callable[[list[int]], torch.Tensor]
) -> None:
    """Minimise a loss over some of ``size`` rows at a time."""
    optimizer = torch.optim.Adam(model.parameters(), lr=nations.learning_rate)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, max_lr=nations.learning_rate, total_steps=nations.steps, pct_start=0.1
    )
    draw = np.random.default_rng([nations.seed, 2])
    model.train()
    bar = Bar(range(nations.steps), desc="training", unit="step")
    for _ in bar:
        some: NDArray[np.int64] = draw.choice(size, min(nations.batch, size), replace=False)
        optimizer.zero_grad()
        value = loss(np.sort(some).tolist())
        value.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        schedule.step()
        bar.set_postfix(loss=f"{value.item():.4f}", refresh=False)
