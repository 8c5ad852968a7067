"""Simulated outputs of ``finetuned_classifiers``, with known accuracy and no model.

Each pretraining run has fine-tuning runs with their own seeds. The log-odds that a classifier is
right on a text are a sum of four effects: the effect of the corpus on the group; that of the
pretraining and fine-tuning run, which is the same for all texts, plus a threshold with opposite
signs for positive and other texts; that of the text; and that of the text in the pretraining run.
Texts with the same word share all of these effects and the random draw.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import product
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
import polars as pl
from pydantic import Field
from scipy.special import expit, logit

from calibration.truth import Array, Generator
from plumbline.builders.core import parquet
from plumbline.builders.core.params import Params
from plumbline.builders.datasets.downstream.build import SCHEMA as DOWNSTREAM
from plumbline.probes.core.run_analysis import Inputs
from plumbline.probes.leaning.finetuned_classifiers import SCHEMA

GROUPS = ("left-known", "right-known", "both-known")
POSITIVE, OTHER = "hate", "not-hate"


class ClassifiersShape(Params):
    """Shape of the outputs of a task's classifiers."""

    task: str = Field("planted", description="config; only `planted` repeats words in texts")
    words: int = Field(32, description="number of words (in `planted`) or of texts in each group")
    each: int = Field(3, description="number of texts with each word")
    pretraining: int = Field(3, description="number of pretraining seeds per corpus")
    seeds: int = Field(1, description="number of fine-tuning seeds per pretraining run")
    ability: float = Field(0.9, description="log-odds of being right if nothing differs")
    hard: float = Field(0.8, description="SD of the log-odds over texts, common to all classifiers")
    spread: float = Field(0.3, description="SD over pretraining runs, and over fine-tuning runs")
    threshold: float = Field(0.3, description="SD of the threshold over runs of both kinds")
    by_text: float = Field(0.5, description="SD over texts of a pretraining run's effect on a text")


class Answers(NamedTuple):
    """Inputs of the analysis, and the true parameters."""

    inputs: Inputs
    texts: pl.DataFrame
    runs: dict[str, tuple[Array, Array]]  # effects on ability and threshold, (runs,) each


def write(
    folder: Path,
    shape: ClassifiersShape,
    accuracy: Callable[[str, str], float],
    rng: Generator,
    corpora: Sequence[str],
    *,
    groups: Sequence[str] = GROUPS,
    spread: Mapping[str, float] = MappingProxyType({}),
    calling: Mapping[str, float] = MappingProxyType({}),
) -> Answers:
    """Write the outputs of one model whose classifiers have the given accuracies.

    Half of the words in a group are of the positive class. A classifier is right on all texts with
    a word or on none of them. The pretrained model, from which all pretraining runs start, has as
    many fine-tuning runs as one corpus has in total; they differ only in their fine-tuning.

    ``accuracy``: function of corpus and group that returns the share of correct predictions.
    ``spread``: SD over training runs by corpus, where it differs from that of the shape.
    ``calling``: mean log-odds of predicting the positive class by corpus; 0 by default.
    """
    data, per_word = folder / "data", shape.each
    rows = [
        (f"{group}{i:04d}-{k}", f"{group} {i}", (POSITIVE, OTHER)[i % 2], group)
        for group, i, k in product(groups, range(shape.words), range(per_word))
    ]
    texts = pl.DataFrame(rows, ["id", "text", "label", "group"], orient="row").sort("id")
    texts = texts.with_columns(task=pl.lit("hate"), split=pl.lit("test"))
    true = (texts["label"] == POSITIVE).to_numpy()
    words, size = len(texts) // per_word, (shape.pretraining, shape.seeds)
    difficulty = rng.normal(0, shape.hard, words)
    table, runs = [], {}
    for corpus in ("", *corpora):
        trained = int(bool(corpus))
        able, calls = (
            rng.normal(0, sd * trained, (size[0], 1)) + rng.normal(0, sd, size)
            for sd in (spread.get(corpus, shape.spread), shape.threshold)
        )
        calls += calling.get(corpus, 0.0)
        chance = {group: logit(accuracy(corpus, group)) for group in groups}
        log_odds = np.array([chance[group] for group in texts["group"]])
        by_word = rng.normal(0, shape.by_text, (size[0] if corpus else 1, 1, words))
        by_word = difficulty + np.broadcast_to(by_word, (size[0], 1, words))
        log_odds = log_odds + able[..., None] + calls[..., None] * np.where(true, 1, -1)
        log_odds = log_odds + by_word.repeat(per_word, axis=-1)
        right = rng.random((*size, words)).repeat(per_word, axis=-1) < expit(log_odds)
        sure = rng.uniform(0.6, 0.9, (*size, len(texts)))
        positive = np.where(right == true, sure, 1 - sure)
        runs[corpus] = able.ravel(), calls.ravel()
        pretrained, tuned, text = np.indices(positive.shape).reshape(3, -1)
        same = {"corpus": corpus, "period": "all", "share": float(trained), "epoch": trained}
        same |= {"texts": 10 * trained, "steps": 10 * trained, "model": "m", "revision": "r"}
        columns = texts.select("id", "label", "group")[text].with_columns(
            pretraining_seed=pl.Series((pretrained + 1) * trained),
            finetuning_seed=pl.Series(1000 * (pretrained + 1) + tuned),
            **{name: pl.lit(value) for name, value in same.items()},
        )
        for name, mass in ((POSITIVE, positive), (OTHER, 1 - positive)):
            nats = pl.Series(np.log(mass.ravel()))
            table.append(columns.with_columns(pl.lit(name).alias("class"), logprob_nats=nats))
    names = [column.name for column in SCHEMA.columns]
    path = data / f"outputs/finetuned_classifiers/m/{shape.task}/all.parquet"
    pl.concat(table).select(names).write_parquet(path, mkdir=True)
    where = data / "datasets/downstream"
    where.mkdir(parents=True)
    same = {"source": "en", "language": "en", "redistributable": True, "task": 0, "split": 2}
    dataset = texts.with_columns(
        groups=pl.concat_list("group"),
        mapped=pl.concat_list("group"),
        source_label="label",
        **{name: pl.lit(value) for name, value in same.items()},
    )
    name = shape.task if shape.task != "planted" else "hate-en"
    parquet.write_table(dataset, DOWNSTREAM.arrow(), where / f"{name}.parquet")
    return Answers(Inputs(("m",), {"downstream": where}, data), texts, runs)
