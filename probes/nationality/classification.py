"""Probe ``classification``: what a classifier says of texts, and of them with other names.

Every text of the dataset ``counterfactuals`` is classified once, however many rows it stands in;
and it is told into how many tokens the model cuts the names, which goes with how rare they are.
Barriere and Cifuentes (2024).
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

import polars as pl
import pyarrow as pa
from pydantic import Field

from plumbline.builders.core import parquet
from plumbline.builders.core.params import Params as Section
from plumbline.builders.core.schema import Column, Schema
from plumbline.builders.readers.name_lists import KINDS
from plumbline.probes.core.shards import Shard, split
from plumbline.probes.models.scorer import Classifies, Scorer
from plumbline.probes.nationality.texts import asked_about, texts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from plumbline.probes.models.params import Model

INPUTS = ("counterfactuals", "names")
VERB = "classify"
PROMPT = "text"  # the column with what was asked
SHARD = 20_000  # texts in a shard; part of the layout of the outputs
BLOCK = 2_000  # texts in a table
PIECES = "pieces"
KEY = "probes.classification.targets"

SCHEMA = Schema(
    columns=(
        Column("text", "string", "the text, exactly as the model got it; joins `counterfactuals`"),
        Column("class", "string", "label, as the model's config names it"),
        Column("logprob_nats", "float64", "log-probability of the label", maximum=0),
        Column("tokens", "int32", "tokens of the text, special ones included", minimum=1),
        Column("model", "string", "name of the model in params.yaml"),
        Column("revision", "string", "commit of the model on the Hub, or hash of a trained one"),
    ),
    key=("text", "class"),
)
HAVE = Schema(
    columns=(
        Column("country", "string", "config of `names`"),
        Column("kind", "label", "first name of men, of women, or last name", labels=KINDS),
        Column("name", "string", "a name that may be used"),
        Column("tokens", "int32", "tokens of the name behind another word", minimum=0),
        Column("model", "string", "name of the model in params.yaml"),
        Column("revision", "string", "commit of the model on the Hub, or hash of a trained one"),
    ),
    key=("country", "kind", "name"),
)
SCHEMAS = {"one a config of counterfactuals": SCHEMA, PIECES: HAVE}


class Params(Section):
    """What is classified."""

    version: str = Field(pattern=r"^\d+\.\d+\.\d+$", description="version of the outputs")
    languages: list[str] = Field(min_length=1, description="languages of the texts")
    targets: list[str] = Field(min_length=1, description="configs of counterfactuals")


def schema(config: str) -> Schema:
    """Return the schema of a config of the outputs: of `counterfactuals`, or ``pieces``."""
    return HAVE if config == PIECES else SCHEMA


def amount(params: Params, model: Model, folders: dict[str, Path]) -> dict[str, int]:
    """Return the number of texts in each config that a model is asked about.

    Raises
    ------
    Problem
        If a config is not in the dataset.
    """
    folder, languages = folders["counterfactuals"], model.among(params.languages)
    wanted = asked_about(KEY, params.targets, languages, folder)
    return {config: len(texts(folder, config)) for config in wanted}


def shards(params: Params, model: Model, folders: dict[str, Path]) -> list[Shard]:
    """Return what is to be asked of a model: texts in shards, and one for each country's names."""
    countries = parquet.configs(folders["names"])
    return [
        *(s for c, n in amount(params, model, folders).items() for s in split(c, n, SHARD)),
        *(Shard(PIECES, country, i, len(countries)) for i, country in enumerate(countries)),
    ]


def answer(
    shard: Shard,
    folders: dict[str, Path],
    scorer: Scorer,
    _params: Params,
    _model: Model,
    _exact: Callable[[], Scorer],
) -> Iterator[pa.Table]:
    """Yield the tables of one shard: raw facts, no statistics."""
    assert isinstance(scorer, Classifies)
    if shard.config == PIECES:
        yield _pieces(scorer, shard.part, folders["names"] / f"{shard.part}.parquet")
        return
    yield from run(shard.among(texts(folders["counterfactuals"], shard.config)), scorer)


def run(asked: Sequence[str], scorer: Classifies) -> Iterator[pa.Table]:
    """Yield output rows for some texts, a row for each class."""
    facts = scorer.facts()
    found = scorer.classify(asked)
    while block := list(islice(found, BLOCK)):
        labels = len(block[0].labels)
        n = len(block) * labels
        columns = [
            pa.array([each.text for each in block for _ in range(labels)]),
            pa.array([label for each in block for label in each.labels]),
            pa.array([value for each in block for value in each.logprobs_nats]),
            pa.array([each.tokens for each in block for _ in range(labels)], pa.int32()),
            *(pa.repeat(pa.scalar(str(facts[name])), n) for name in ("model", "revision")),
        ]
        yield pa.table(columns, schema=SCHEMA.arrow())


def _pieces(scorer: Classifies, country: str, path: Path) -> pa.Table:
    """Return how many tokens each name of a country has that may be used."""
    names = pl.read_parquet(path).filter(pl.col("flags").list.len() == 0).sort("kind", "name")
    facts = scorer.facts()
    columns = [
        pa.repeat(pa.scalar(country), len(names)),
        pa.array(names["kind"].to_list(), pa.int64()),
        pa.array(names["name"].to_list(), pa.string()),
        pa.array(scorer.lengths(names["name"].to_list()), pa.int32()),
        *(pa.repeat(pa.scalar(str(facts[name])), len(names)) for name in ("model", "revision")),
    ]
    return pa.table(columns, schema=HAVE.arrow())
