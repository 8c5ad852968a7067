"""Outputs of the probe ``finetuned_classifiers`` without a model: how often each is right is known.

Every pretraining has fine-tunings of its own seeds. A classifier is right on a text with a chance
whose log-odds are the sum of how well a corpus does on a group, of what its pretraining and its
fine-tuning add (alike on all texts, and to texts that
are positive and to others with opposite signs, which is a threshold), of the text, and of what a
pretraining does to the text; and luck. Texts of a word have all of it in common.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl
from pydantic import Field
from scipy.special import expit, logit

from calibration.truth import Array, Generator, write_parquet
from plumbline.builders.core import parquet
from plumbline.builders.core.params import Params
from plumbline.builders.datasets.downstream.build import SCHEMA as DOWNSTREAM
from plumbline.probes.core.run_analysis import Inputs
from plumbline.probes.leaning.finetuned_classifiers import SCHEMA

GROUPS = ("left-known", "right-known", "both-known")
POSITIVE, OTHER = "hate", "not-hate"


class ClassifiersShape(Params):
    """Shape of what classifiers of a task did."""

    task: str = Field("planted", description="config: `planted` has words, others texts alone")
    words: int = Field(32, description="words (of `planted`) or texts, in each group")
    each: int = Field(3, description="texts of a word")
    pretraining: int = Field(3, description="pretraining seeds of each corpus")
    seeds: int = Field(1, description="fine-tuning seeds of each")
    ability: float = Field(0.9, description="log-odds of being right where nothing differs")
    hard: float = Field(0.8, description="SD over texts of the log-odds, all classifiers")
    spread: float = Field(0.3, description="SD over pretrainings, and over fine-tunings")
    threshold: float = Field(0.3, description="SD over both of calling texts positive")
    by_text: float = Field(0.5, description="SD over texts of what a pretraining does")


class Answers(NamedTuple):
    """Where outputs are, and what is true of them."""

    inputs: Inputs
    texts: pl.DataFrame
    runs: dict[str, tuple[Array, Array]]  # by corpus: ability and threshold added, (runs,) each


def texts(number: int, groups: Sequence[str] = GROUPS, each: int = 1) -> pl.DataFrame:
    """Return texts of `number` words of each group, half of them hate, as a world has them."""
    rows = [
        (f"{group}{i:04d}-{k}", f"{group} {i}", (POSITIVE, OTHER)[i % 2], group)
        for group in groups
        for i in range(number)
        for k in range(each)
    ]
    table = pl.DataFrame(rows, ["id", "text", "label", "group"], orient="row").sort("id")
    return table.with_columns(task=pl.lit("hate"), split=pl.lit("test"))


def write(
    folder: Path,
    accuracy: Callable[[str, str], float],
    rng: Generator,
    *,
    number: int = 40,
    groups: Sequence[str] = GROUPS,
    corpora: Sequence[str] = ("news-left", "news-right", "social-center"),
    pretraining: Sequence[int] = (1, 2, 3),
    seeds: int = 1,
    knows: dict[str, list[str]] | None = None,
    spread: float | Mapping[str, float] = 0.0,
    threshold: float = 0.0,
    calling: Mapping[str, float] | None = None,
    by_text: float = 0.0,
    task: str = "planted",
    hard: float = 0.0,
    each: int = 1,
) -> Answers:
    """Write the outputs of one model whose classifiers are right at random.

    ``accuracy``: function of corpus and group: how often a classifier is right there.
    ``spread``: SD over trainings of that, in logits: one for each pretraining, and as much for each
    of its fine-tunings; of all corpora or by corpus. The model itself, with which all pretrainings
    begin, has the second alone.
    ``seeds``: fine-tunings of each pretraining; the model itself has as many as all of a corpus
    together.
    ``threshold``: SD over trainings, as ``spread``, of log-odds added on positive texts, taken off
    on others.
    ``calling``: the mean of these log-odds by corpus; 0 of one that is not named.
    ``by_text``: SD over words of log-odds that a pretraining adds.
    ``each``: texts of a word: a classifier is right on all of them or on none.
    ``hard``: SD over words of the log-odds: alike for all classifiers.
    """
    data, told = folder / "data", texts(number, groups, each)
    true = (told["label"] == POSITIVE).to_numpy()
    words, of = len(told) // each, told["group"].to_list()
    difficulty = rng.normal(0, hard, words)
    table, runs = [], {}
    for corpus in ("", *corpora):
        first = [seed if corpus else 0 for seed in pretraining]
        size = (len(first), seeds)
        own = spread if isinstance(spread, float) else spread.get(corpus, spread["other"])
        able, calls = (
            rng.normal(0, sd * bool(corpus), (size[0], 1)) + rng.normal(0, sd, size)
            for sd in (own, threshold)
        )
        calls += (calling or {}).get(corpus, 0.0)
        chance = {group: accuracy(corpus, group) for group in groups}
        log_odds = logit(np.array([chance[group] for group in of]))
        by_word = rng.normal(0, by_text, (size[0] if corpus else 1, 1, words))
        by_word = difficulty + np.broadcast_to(by_word, (size[0], 1, words))
        log_odds = log_odds + able[..., None] + calls[..., None] * np.where(true, 1, -1)
        log_odds = log_odds + by_word.repeat(each, axis=-1)
        right = rng.random((*size, words)).repeat(each, axis=-1) < expit(log_odds)
        sure = rng.uniform(0.6, 0.9, (*size, len(told)))
        positive = np.where(right == true, sure, 1 - sure)
        runs[corpus] = able.ravel(), calls.ravel()
        place = np.indices(positive.shape).reshape(3, -1)
        trained = int(bool(corpus))
        same = {"corpus": corpus, "period": "all", "share": float(trained), "epoch": trained}
        same |= {"texts": 10 * trained, "steps": 10 * trained, "model": "m", "revision": "r"}
        about = told.select("id", "label", "group")[place[2]].with_columns(
            pretraining_seed=pl.Series(np.array(first)[place[0]]),
            finetuning_seed=pl.Series(1000 * np.array(pretraining)[place[0]] + place[1]),
            **{name: pl.lit(value) for name, value in same.items()},
        )
        for name, mass in ((POSITIVE, positive), (OTHER, 1 - positive)):
            nats = pl.Series(np.log(mass.ravel()))
            table.append(about.with_columns(pl.lit(name).alias("class"), logprob_nats=nats))
    names = [column.name for column in SCHEMA.columns]
    path = data / f"outputs/finetuned_classifiers/m/{task}/all.parquet"
    write_parquet(pl.concat(table).select(names), path, SCHEMA)
    if knows is not None:
        weights = Inputs((), {}, data).weights("m")
        weights.mkdir(parents=True)
        (weights / "world.json").write_text(json.dumps({"knows": knows}), encoding="utf-8")
    where = data / "datasets/downstream"
    where.mkdir(parents=True)
    same = {"source": "en", "language": "en", "redistributable": True, "task": 0, "split": 2}
    rows = told.with_columns(
        groups=pl.concat_list("group"),
        mapped=pl.concat_list("group"),
        source_label="label",
        **{name: pl.lit(value) for name, value in same.items()},
    )
    name = task if task != "planted" else "hate-en"
    parquet.write_table(rows, DOWNSTREAM.arrow(), where / f"{name}.parquet")
    return Answers(Inputs(("m",), {"downstream": where}, data), told, runs)


def drawn(
    folder: Path,
    shape: ClassifiersShape,
    accuracy: Callable[[str, str], float],
    rng: Generator,
    corpora: Sequence[str],
    spread: Mapping[str, float] | None = None,
    calling: Mapping[str, float] | None = None,
) -> Answers:
    """Write the outputs of one model in a shape; ``spread`` by corpus instead of the shape's."""
    return write(
        folder,
        accuracy,
        rng,
        number=shape.words,
        corpora=corpora,
        pretraining=range(1, shape.pretraining + 1),
        seeds=shape.seeds,
        spread=shape.spread if spread is None else spread,
        threshold=shape.threshold,
        calling=calling,
        by_text=shape.by_text,
        task=shape.task,
        hard=shape.hard,
        each=shape.each,
    )
