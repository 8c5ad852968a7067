"""Probe ``classification``: a classifier's predictions for texts with original and other names.

Every distinct text of ``counterfactuals`` and ``targets`` is classified once. The tokens of all
names are counted, since rare names consist of more tokens. Barriere and Cifuentes (2024).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import polars as pl

from plumbline.builders.core import parquet
from plumbline.builders.core.schema import Column, Schema
from plumbline.builders.readers.name_lists import KINDS
from plumbline.probes.core.run_probe import MODEL, Shard, Task, rows
from plumbline.probes.models.scorer import Classifies, Scorer
from plumbline.probes.nationality import texts
from plumbline.probes.nationality.texts import amount

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import pyarrow as pa

    from plumbline.probes.models.params import Model

__all__ = ["amount"]
INPUTS = (*texts.INPUTS, "names")
VERB = "classify"
PROMPT = "text"  # name of the column that contains the prompts
PIECES = "pieces"

SCHEMA = Schema.keyed(
    (
        Column("text", "string", "exact input text; key for joins with `counterfactuals`"),
        Column("class", "string", "class label, as in the model's configuration"),
    ),
    Column("logprob_nats", "float64", "log-probability of the label", maximum=0),
    Column("tokens", "int32", "number of tokens in the text, including special tokens", minimum=1),
    *MODEL,
)
HAVE = Schema.keyed(
    (
        Column("country", "string", "config of `names`"),
        Column("kind", "category", "men's or women's first name, or last name", labels=KINDS),
        Column("name", "string", "name that may occur in counterfactuals"),
    ),
    Column("tokens", "int32", "number of tokens of the name after another word", minimum=0),
    *MODEL,
)
SCHEMAS = {"one a config of counterfactuals": SCHEMA, PIECES: HAVE}


class Params(texts.Params):
    """Texts to classify."""

    KEY: ClassVar = "probes.classification"
    SHARD: ClassVar = 20_000


def shards(params: Params, model: Model, folders: dict[str, Path]) -> list[Shard]:
    """Return the shards, which contain the texts of each config and the names of each country."""
    countries = parquet.configs(folders["names"])
    names = [Shard(PIECES, country, i, len(countries)) for i, country in enumerate(countries)]
    return texts.shards(params, model, folders) + names


def answer(shard: Shard, task: Task, scorer: Scorer) -> Iterator[pa.Table]:
    """Yield the output tables of one shard, without statistics."""
    assert isinstance(scorer, Classifies)
    if shard.config == PIECES:  # count the tokens of each candidate name
        names = pl.read_parquet(task.folders["names"] / f"{shard.part}.parquet")
        names = names.filter(pl.col("flags").list.len() == 0).sort("kind", "name")
        names = names.with_columns(pl.col("kind").replace_strict(range(len(KINDS)), KINDS))
        have = names.select("kind", "name").to_dict(as_series=False) | {"country": shard.part}
        have["tokens"] = scorer.lengths(have["name"])
        yield rows(HAVE, scorer, len(names), have)
        return
    results = list(scorer.classify(shard.among(task.params.prompts(task.folders, shard.config))))
    columns: dict[str, list[Any]] = {
        "text": [result.text for result in results for _ in result.labels],
        "class": [label for result in results for label in result.labels],
        "logprob_nats": [value for result in results for value in result.logprobs_nats],
        "tokens": [result.tokens for result in results for _ in result.labels],
    }
    yield rows(SCHEMA, scorer, len(columns["text"]), columns)
