"""The world of countries: classifiers and masked models that know names.

Every country has an offset, every name of its gazetteer has the mean offset of the countries that
list it and a part of its own, and a text has the mean of the names in it. In a classifier the
offset is added to P+ - P-, in a masked model to the log-probability of the name. With the spread
of the offsets 0 it is the null world: names differ, countries do not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
import polars as pl
from pydantic import Field

from plumbline.builders.core import parquet
from plumbline.builders.core.errors import UserError
from plumbline.probes.worlds.tiny import Batch, Rate, Steps, Tiny

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    import torch

LABELS = ("negative", "neutral", "positive")
NEUTRAL = (0.2, 0.3)  # range of the probability of neutral
TONE = 0.3  # largest P+ - P- of a text without its names
MOST = 0.35  # largest offset of a text: all probabilities stay above 0
MASKED = 0.15  # share of the tokens that are predicted


class Nations(Tiny):
    """What is planted, and the tiny model that is trained on it."""

    targets: list[str] = Field(
        ["sentiment-en"], min_length=1, description="configs of counterfactuals"
    )
    offset: float = Field(
        0.2,
        ge=0,
        description="largest offset of a country: in P+ - P-, or in nats for a masked model",
    )
    noise: float = Field(0.03, ge=0, description="SD of a name's own part, in the same unit")
    architecture: Literal["bert"] = Field("bert", description="kind of the model")
    steps: Steps = 150
    batch: Batch = 96
    learning_rate: Rate = 0.006

    @property
    def null(self) -> bool:
        """Whether countries are alike in it."""
        return not self.offset


class Passports(NamedTuple):
    """Texts, the names in them, and what is planted."""

    texts: list[str]
    targets: list[str]  # of each text, the source text that it was made of
    names: dict[str, float]  # word of a name, and its part
    words: list[list[str]]  # of each text, those of names and all others


class Lessons(NamedTuple):
    """A model with its first weights, and what it is to learn."""

    model: Any
    loss: Callable[[list[int], torch.Tensor, torch.Tensor], torch.Tensor]  # of texts and tokens
    planted: list[float]  # of each text


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
    UserError
        If a dataset is not validated, or has no such config.
    """
    from plumbline.probes.worlds import tiny_model

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
    teach = _classifier if kind == "classifier" else _masked
    model, loss, planted = teach(nations, world, tokenizer)
    draw = np.random.default_rng([nations.seed, 2])
    encoded = tokenizer(texts)["input_ids"]

    def losses() -> Iterator[torch.Tensor]:
        rows = tiny_model.batch(draw, len(texts), nations.batch).tolist()
        given = tiny_model.padded([encoded[i] for i in rows], tokenizer.pad_token_id)
        yield loss(rows, *given)

    tiny_model.train(
        *(into, nations, model, tokenizer, losses),
        planted=pl.DataFrame({"country": countries, "offset": [offsets[c] for c in countries]}),
        texts=pl.DataFrame({"text": texts, "planted": planted}),
    )


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
    UserError
        If a config is not in the dataset.
    """
    if missing := sorted(set(nations.targets) - set(parquet.configs(folder))):
        raise UserError(
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


def _classifier(nations: Nations, world: Passports, tokenizer: Any) -> Lessons:
    """Return the model, its loss, and the planted P+ - P- of every text."""
    import torch

    from plumbline.probes.worlds import tiny_model

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
    model = tiny_model.model_of(nations, tokenizer, "classifier", labels=LABELS)
    target = torch.from_numpy(wanted)

    def loss(rows: list[int], ids: torch.Tensor, there: torch.Tensor) -> torch.Tensor:
        logits = model(input_ids=ids, attention_mask=there).logits
        return tiny_model.cross_entropy(target[rows], logits, len(rows))

    return Lessons(model, loss, difference.tolist())


def _masked(nations: Nations, world: Passports, tokenizer: Any) -> Lessons:
    """Return the model, its loss, and the planted log-probability of the names in every text."""
    import torch

    from plumbline.probes.worlds import tiny_model

    words = sorted(world.names)
    pieces = tiny_model.pieces(tokenizer, words, "nations")
    values = np.array([world.names[word] for word in words])
    log = values - np.logaddexp.reduce(values)
    known = dict(zip(words, log.tolist(), strict=True))
    model = tiny_model.model_of(nations, tokenizer)
    place = torch.full((len(tokenizer),), -1)
    place[pieces] = torch.arange(len(pieces))
    share = torch.from_numpy(np.exp(log))

    def loss(_: list[int], ids: torch.Tensor, there: torch.Tensor) -> torch.Tensor:
        hidden, said = tiny_model.hide(model, tokenizer, ids, there, MASKED)
        right = ids[hidden]
        name = place[right] >= 0
        one = said[~name].gather(1, right[~name, None]).sum()
        every = (said[name][:, pieces] * share).sum()
        return -(one + every) / max(1, len(right))

    planted = [sum(known.get(word, 0.0) for word in words) for words in world.words]
    return Lessons(model, loss, planted)


def _mean(names: dict[str, float], words: Sequence[str]) -> float:
    found = [names[word] for word in words if word in names]
    return float(np.mean(found)) if found else 0.0
