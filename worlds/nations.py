"""World (control models) of countries: classifiers and masked models with known effects of names.

Every country has an offset. The offset of a name is the mean over the countries that list it, plus
noise, and that of a text is the mean over its names. A classifier adds the offset to P+ - P-, a
masked model to the log-probability of the name. If all offsets are 0, the world is a null world:
names differ, but countries do not.

Two further effects on P+ - P- of a classifier are possible: names of some countries have several
tokens, each of which adds to it, and names have effects with opposite signs in two halves of the
source texts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import polars as pl
import torch
from pydantic import Field

from plumbline.builders.core import parquet
from plumbline.builders.core.errors import UserError
from worlds import tiny_model
from worlds.tiny_model import Batch, Floats, Rate, Steps, Tiny

Lessons = tuple[Any, Callable[[list[int], torch.Tensor, torch.Tensor], torch.Tensor], Any]

LABELS = ("negative", "neutral", "positive")
NEUTRAL = (0.2, 0.3)  # range of the probability of the class neutral
TONE = 0.2  # maximum P+ - P- of a text without its names
MOST = 0.45  # maximum offset of a text, so that all probabilities are positive
MASKED = 0.15  # share of predicted tokens
SHORTEST = 3  # minimum number of letters in a split name


class Nations(Tiny):
    """Planted effects, and settings of the tiny model that learns them."""

    targets: list[str] = Field(
        ["sentiment-en"], min_length=1, description="configs of counterfactuals"
    )
    offset: float = Field(
        0.2,
        ge=0,
        description="maximum offset of a country, in P+ - P- or, for a masked model, nats",
    )
    noise: float = Field(0.03, ge=0, description="SD of noise of names, in the unit of `offset`")
    cut: float = Field(
        0.0,
        ge=0,
        le=1,
        description="for a classifier, share of names in every second country that are split into  "
        "several tokens",
    )
    per_token: float = Field(
        0.0, description="for a classifier, effect on P+ - P- of each further token of a name"
    )
    by_text: float = Field(
        0.0,
        ge=0,
        description="for a classifier, SD of effects of names on P+ - P- that change sign between  "
        "the halves of the texts",
    )
    architecture: Literal["bert"] = Field("bert", description="architecture of the model")
    steps: Steps = 150
    batch: Batch = 96
    learning_rate: Rate = 0.006

    @property
    def null(self) -> bool:
        """True if countries do not differ."""
        return not self.offset


def train(nations: Nations, kind: str, into: Path) -> None:
    """Train the model and tokenizer of a world and write them into a folder.

    The folder also contains ``planted.parquet`` (the offset of each country), ``texts.parquet``
    (the exact planted value of each text, and the part of it that the tokens of names add) and
    ``world.json`` (the settings). ``kind`` is ``classifier`` or ``masked``. Raises UserError if a
    dataset has not been validated or lacks a config.
    """
    rng = np.random.default_rng(nations.seed)
    texts, targets = _rows(nations, parquet.require_validated("counterfactuals"))
    gazetteer = _gazetteer(parquet.require_validated("names"))
    tokenizer = tiny_model.tokenizer_of([*texts, *sorted(gazetteer)])
    listing: dict[str, set[str]] = {}
    for name, where in gazetteer.items():
        for word in _words(tokenizer, name):
            if len(word) > 1 and word[0].isalpha():
                listing.setdefault(word, set()).update(where)
    countries = sorted(set().union(*listing.values()))
    if nations.cut:
        cut = _cut(nations, listing, countries)
        tokenizer = tiny_model.tokenizer_of([*texts, *sorted(gazetteer)], cut=cut)
    spaced = rng.permutation(np.linspace(-nations.offset, nations.offset, len(countries)))
    offsets = dict(zip(countries, spaced.tolist(), strict=True))
    noise = rng.normal(0.0, nations.noise, len(listing)).tolist()
    names = {
        word: float(np.mean([offsets[c] for c in sorted(listing[word])])) + part
        for word, part in zip(sorted(listing), noise, strict=True)
    }
    words = [_words(tokenizer, text) for text in texts]
    folded = {word.casefold(): value for word, value in names.items()}
    met = sorted({word for text in words for word in text if word.casefold() in folded})
    names |= {word: folded[word.casefold()] for word in met}  # as the name is spelled in texts
    longer = np.zeros(len(texts))
    if kind == "classifier":
        extra = {name: len(tokenizer.tokenize(name)) - 1 for name in names}
        longer += [nations.per_token * sum(extra.get(word, 0) for word in text) for text in words]
        model, loss, planted = _classifier(nations, tokenizer, targets, names, words, longer)
    else:
        model, loss, planted = _masked(nations, tokenizer, names, words)
    draw = np.random.default_rng([nations.seed, 2])
    encoded = tokenizer(texts)["input_ids"]

    def losses() -> Iterator[torch.Tensor]:
        rows = tiny_model.batch(draw, len(texts), nations.batch).tolist()
        yield loss(rows, *tiny_model.padded([encoded[i] for i in rows], tokenizer.pad_token_id))

    tiny_model.train(
        *(into, nations, model, tokenizer, losses),
        planted=pl.DataFrame({"country": countries, "offset": list(offsets.values())}),
        texts=pl.DataFrame({"text": texts, "planted": planted, "of_tokens": longer}),
    )


def _gazetteer(folder: Path) -> dict[str, set[str]]:
    """Return the usable names, and the countries that list each of them."""
    result: dict[str, set[str]] = {}
    for country in parquet.configs(folder):
        frame = pl.read_parquet(folder / f"{country}.parquet", columns=["name", "flags"])
        for name in frame.filter(pl.col("flags").list.len() == 0)["name"]:
            result.setdefault(name, set()).add(country)
    return result


def _rows(nations: Nations, folder: Path) -> tuple[list[str], list[str]]:
    """Return the distinct texts, sorted, and a source text for each of them."""
    configs = parquet.configs(folder)
    if missing := sorted(set(nations.targets) - set(configs)):
        absent = f"{', '.join(missing)} not in counterfactuals"
        raise UserError(f"nations.targets: {absent}; available: {', '.join(configs)}")
    paths = [folder / f"{config}.parquet" for config in nations.targets]
    rows = pl.concat(pl.read_parquet(path, columns=["text", "target"]) for path in paths)
    rows = rows.group_by("text").agg(pl.col("target").min()).sort("text")
    return rows["text"].to_list(), rows["target"].to_list()


def _words(tokenizer: Any, text: str) -> list[str]:
    inner = tokenizer.backend_tokenizer
    written = inner.normalizer.normalize_str(text)
    return [word for word, _ in inner.pre_tokenizer.pre_tokenize_str(written)]


def _cut(nations: Nations, listing: Mapping[str, set[str]], countries: Sequence[str]) -> set[str]:
    """Draw the names to be split from every second country, in a random order of the countries."""
    rng = np.random.default_rng([nations.seed, 3])
    chosen = set(rng.permutation(countries)[::2].tolist())
    result = set()
    for word in sorted(listing):
        share = nations.cut * len(listing[word] & chosen) / len(listing[word])
        if rng.random() < share and len(word) >= SHORTEST:
            result |= {word, word.upper()}
    return result


def _classifier(
    nations: Nations,
    tokenizer: Any,
    targets: Sequence[str],
    names: Mapping[str, float],
    words: Sequence[list[str]],
    longer: Floats,
) -> Lessons:
    """Return the model, its loss, and the planted P+ - P- of each text."""
    rng = np.random.default_rng([nations.seed, 1])
    sources, source = np.unique(targets, return_inverse=True)
    tone = rng.uniform(-TONE, TONE, len(sources))[source]
    neutral = rng.uniform(*NEUTRAL, len(sources))[source]

    def mean(parts: Mapping[str, float]) -> Floats:
        """Return the mean effect of the names in each text, an array of shape (texts,)."""
        met = [[parts[word] for word in text if word in names] for text in words]
        return np.array([np.mean(text) if text else 0.0 for text in met])

    signs = rng.permutation(np.arange(len(sources)) % 2 * 2 - 1)[source]
    drawn = dict(zip(sorted(names), rng.normal(0.0, nations.by_text, len(names)), strict=True))
    shift = (mean(names) + signs * mean(drawn) + longer).clip(-MOST, MOST)
    difference = tone + shift
    wanted = [(1 - neutral - difference) / 2, neutral, (1 - neutral + difference) / 2]
    model = tiny_model.model_of(nations, tokenizer, "classifier", labels=LABELS)
    target = torch.from_numpy(np.stack(wanted, axis=1))

    def loss(rows: list[int], ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        logits = model(input_ids=ids, attention_mask=mask).logits
        return tiny_model.cross_entropy(target[rows], logits, len(rows))

    return model, loss, difference


def _masked(
    nations: Nations, tokenizer: Any, names: Mapping[str, float], words: Sequence[list[str]]
) -> Lessons:
    """Return the model, its loss, and the planted log-probability of the names in each text."""
    spelled = sorted(names)
    pieces = tiny_model.pieces(tokenizer, spelled, "nations")
    values = np.array([names[word] for word in spelled])
    log = values - np.logaddexp.reduce(values)
    log_shares = dict(zip(spelled, log.tolist(), strict=True))
    model = tiny_model.model_of(nations, tokenizer)
    named, share = torch.tensor(pieces), torch.from_numpy(np.exp(log))

    def loss(_: list[int], ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        hidden, logs = tiny_model.hide(model, tokenizer, ids, mask, MASKED)
        right = ids[hidden]
        name = torch.isin(right, named)
        one = logs[~name].gather(1, right[~name, None]).sum()
        soft = (logs[name][:, pieces] * share).sum()
        return -(one + soft) / max(1, len(right))

    return model, loss, [sum(log_shares.get(word, 0.0) for word in text) for text in words]
