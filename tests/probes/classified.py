"""Outputs of classifiers that are right as often as one says, written as files."""

import json
from typing import NamedTuple

import numpy as np
import polars as pl

from plumbline.builders.core import parquet
from plumbline.builders.datasets.downstream.build import SCHEMA as DOWNSTREAM
from plumbline.probes.core.run_analysis import Inputs
from plumbline.probes.leaning.finetuned_classifiers import SCHEMA

GROUPS = ("left-known", "right-known", "both-known")
KNOWS = {"news-left": ["left-known", "both-known"], "news-right": ["right-known", "both-known"]}


class Answers(NamedTuple):
    """Where outputs are, and what is true of them."""

    inputs: Inputs
    texts: pl.DataFrame


def texts(number, groups=GROUPS, each=1):
    """Return texts of `number` words of each group, half of them hate, as a world has them."""
    rows = [
        {"id": f"{group}{i:04d}-{k}", "text": f"{group} {i}", "label": ("hate", "not-hate")[i % 2]}
        | {"task": "hate", "split": "test", "group": group}
        for group in groups
        for i in range(number)
        for k in range(each)
    ]
    return pl.DataFrame(rows).sort("id")


def outputs(
    folder,
    accuracy,
    *,
    number=40,
    groups=GROUPS,
    corpora=("news-left", "news-right", "social-center"),
    pretraining=(1, 2, 3),
    seeds=(1, 2, 3),
    seed=1,
    knows=None,
    spread=0.0,
    task="planted",
    hard=0.0,
    each=1,
):
    """Write the outputs of one model whose classifiers are right at random.

    Parameters
    ----------
    accuracy
        Function of corpus and group: how often a classifier is right there.
    spread
        SD over trainings of that, in logits: one for each pretraining, and as much for each of its
        fine-tunings.
    each
        Texts of a word: a classifier is right on all of them or on none.
    hard
        SD over texts of that, in logits: alike for all classifiers.
    """
    print("seed", seed)
    rng = np.random.default_rng(seed)
    data = folder / "data"
    told = texts(number, groups, each)
    true = (told["label"] == "hate").to_numpy()
    difficulty = rng.normal(0, hard, len(told))
    rows = []
    for corpus in ("", *corpora):
        for first in pretraining if corpus else (0,):
            by_first = rng.normal(0, spread)
            for second in seeds:
                shift = by_first + rng.normal(0, spread)
                chance = np.array([accuracy(corpus, group) for group in told["group"]])
                logit = np.log(chance / (1 - chance)) + shift + difficulty
                luck = rng.random(len(told) // each).repeat(each)
                right = luck < 1 / (1 + np.exp(-logit))
                sure = rng.uniform(0.6, 0.9, len(told))
                hate = np.where(right == true, sure, 1 - sure)
                about = {"corpus": corpus, "period": 0, "share": float(bool(corpus))}
                about |= {
                    "pretraining_seed": first,
                    "epoch": int(bool(corpus)),
                    "texts": 10 * bool(corpus),
                }
                about |= {"steps": 10, "finetuning_seed": second, "model": "m", "revision": "r"}
                for name, value in (("hate", hate), ("not-hate", 1 - hate)):
                    rows.append(
                        told.select("id", "label", "group").with_columns(
                            pl.lit(name).alias("class"),
                            pl.Series("logprob_nats", np.log(value)),
                            *(pl.lit(v).alias(k) for k, v in about.items()),
                        )
                    )
    path = data / f"outputs/finetuned_classifiers/m/{task}"
    path.mkdir(parents=True)
    names = [column.name for column in SCHEMA.columns]
    pl.concat(rows).select(names).write_parquet(path / "all.parquet")
    if knows is not None:
        weights = Inputs((), {}, data).weights("m")
        weights.mkdir(parents=True)
        (weights / "world.json").write_text(json.dumps({"knows": knows}))
    where = data / "datasets/downstream"
    where.mkdir(parents=True)
    same = {"groups": pl.concat_list("group"), "mapped": pl.concat_list("group")}
    same |= {"source": pl.lit("en"), "language": pl.lit("en"), "source_label": pl.col("label")}
    same |= {"redistributable": pl.lit(value=True), "task": pl.lit(0), "split": pl.lit(2)}
    parquet.write_table(told.with_columns(**same), DOWNSTREAM.arrow(), where / "hate-en.parquet")
    return Answers(Inputs(("m",), {"downstream": where}, data), told)
