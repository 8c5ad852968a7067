"""Probe ``perplexity``: how likely a masked model finds texts, and them with other names.

Pseudo-log-likelihoods of the texts of the dataset ``counterfactuals``, each once, in two variants:
every token masked alone (Salazar et al. 2020), and with the rest of its word masked with it (Kauf
and Ivanova 2023). The masked model is the one that a classifier was made of. Barriere and
Cifuentes (2024), EMNLP.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Literal

import pyarrow as pa
from pydantic import Field

from plumbline.builders.core.params import Params as Section
from plumbline.builders.core.schema import Column, Schema
from plumbline.probes.core.shards import split
from plumbline.probes.models.scorer import Scorer, ScoresSentences
from plumbline.probes.nationality.texts import asked_about, language, texts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from plumbline.probes.core.shards import Shard
    from plumbline.probes.models.params import Model

INPUTS = ("counterfactuals",)
VERB = "pseudo_logprobs"
PROMPT = "text"  # the column with what was asked
SHARD = 5_000  # texts in a shard; part of the layout of the outputs
BLOCK = 1_000  # texts in a table
KEY = "probes.perplexity.targets"

SCHEMA = Schema(
    columns=(
        Column("text", "string", "the text, exactly as the model got it; joins `counterfactuals`"),
        Column("tokens", "int32", "tokens of the text, special ones left out", minimum=1),
        Column("unknown", "int32", "those that the model has no symbol for", minimum=0),
        Column(
            "sum_original_nats",
            "float64",
            "sum over the tokens of the log-probability of each, it alone masked",
            maximum=0,
        ),
        Column(
            "sum_l2r_nats",
            "float64",
            "the same, with the pieces behind it masked that belong to its word",
            maximum=0,
        ),
        Column("model", "string", "name of the model in params.yaml"),
        Column("revision", "string", "commit of the model on the Hub, or hash of a trained one"),
    ),
    key=("text",),
)
SCHEMAS = {"one a config of counterfactuals": SCHEMA}


class Params(Section):
    """What is scored."""

    version: str = Field(pattern=r"^\d+\.\d+\.\d+$", description="version of the outputs")
    languages: list[str] = Field(min_length=1, description="languages of the texts")
    targets: list[str] = Field(min_length=1, description="configs of counterfactuals")
    readings: list[Literal["faithful", "corrected", "placebo"]] = Field(
        min_length=1, description="counterfactuals that are scored beside the originals"
    )


def schema(_: str) -> Schema:
    """Return the schema of a config of the outputs."""
    return SCHEMA


def amount(params: Params, model: Model, folders: dict[str, Path]) -> dict[str, int]:
    """Return the number of texts in each config that a model is asked about.

    Raises
    ------
    Problem
        If a config is not in the dataset.
    """
    folder, languages = folders["counterfactuals"], model.among(params.languages)
    wanted = asked_about(KEY, params.targets, languages, folder)
    return {config: len(_texts(params, folder, config)) for config in wanted}


def shards(params: Params, model: Model, folders: dict[str, Path]) -> list[Shard]:
    """Return what is to be asked of a model: texts in shards, per config."""
    asked = amount(params, model, folders)
    return [shard for config, n in asked.items() for shard in split(config, n, SHARD)]


def answer(
    shard: Shard,
    folders: dict[str, Path],
    scorer: Scorer,
    params: Params,
    _model: Model,
    _exact: Callable[[], Scorer],
) -> Iterator[pa.Table]:
    """Yield the tables of one shard: raw facts, no statistics."""
    assert isinstance(scorer, ScoresSentences)
    asked = shard.among(_texts(params, folders["counterfactuals"], shard.config))
    yield from run(asked, scorer, language(shard.config))


def run(asked: Sequence[str], scorer: ScoresSentences, language: str = "") -> Iterator[pa.Table]:
    """Yield output rows for some texts."""
    facts = scorer.facts()
    each = iter(asked)
    while block := list(islice(each, BLOCK)):
        alone, words = (
            list(scorer.pseudo_logprobs(block, method, language=language))
            for method in ("original", "within_word_l2r")
        )
        columns = [
            pa.array(block),
            pa.array([score.tokens for score in alone], pa.int32()),
            pa.array([score.unknown for score in alone], pa.int32()),
            pa.array([score.logprob_nats for score in alone]),
            pa.array([score.logprob_nats for score in words]),
            *(pa.repeat(pa.scalar(str(facts[name])), len(block)) for name in ("model", "revision")),
        ]
        yield pa.table(columns, schema=SCHEMA.arrow())


def _texts(params: Params, folder: Path, config: str) -> list[str]:
    return texts(folder, config, ("original", *params.readings))
