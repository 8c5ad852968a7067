"""Probe ``perplexity``: pseudo-log-likelihoods of texts with original and other names.

Each distinct text of ``counterfactuals`` and ``targets`` is scored in two variants: each token is
masked alone (Salazar et al. 2020), or together with the later tokens of its word (Kauf and Ivanova
2023). The classifier was fine-tuned from the masked model. Barriere and Cifuentes (2024), EMNLP.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from plumbline.builders.core.schema import Column, Schema
from plumbline.probes.core.run_probe import MODEL, rows
from plumbline.probes.models.scorer import Scorer, ScoresSentences
from plumbline.probes.nationality import texts
from plumbline.probes.nationality.texts import amount, language, shards

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from plumbline.probes.core.run_probe import Shard, Task

__all__ = ["amount", "shards"]
INPUTS = texts.INPUTS
VERB = "pseudo_logprobs"
PROMPT = "text"  # name of the column that contains the prompts

SCHEMA = Schema.keyed(
    (Column("text", "string", "exact input text; key for joins with `counterfactuals`"),),
    Column("tokens", "int32", "number of tokens in the text, excluding special tokens", minimum=1),
    Column("unknown", "int32", "number of unknown tokens in the text", minimum=0),
    Column(
        "sum_original_nats",
        "float64",
        "sum of the log-probabilities of the tokens, each masked alone",
        maximum=0,
    ),
    Column(
        "sum_l2r_nats",
        "float64",
        "sum of the log-probabilities of the tokens, each masked with the later tokens of its word",
        maximum=0,
    ),
    *MODEL,
)
SCHEMAS = {"one a config of counterfactuals": SCHEMA}


class Params(texts.Params):
    """Texts to score."""

    KEY: ClassVar = "probes.perplexity"
    SHARD: ClassVar = 5_000


def answer(shard: Shard, task: Task, scorer: Scorer) -> Iterator[pa.Table]:
    """Yield the output tables of one shard, without statistics."""
    assert isinstance(scorer, ScoresSentences)
    prompts = shard.among(task.params.prompts(task.folders, shard.config))
    alone, words = (
        list(scorer.pseudo_logprobs(prompts, method, language=language(shard.config)))
        for method in ("original", "within_word_l2r")
    )
    columns = {
        "text": prompts,
        "tokens": [score.tokens for score in alone],
        "unknown": [score.unknown for score in alone],
        "sum_original_nats": [score.logprob_nats for score in alone],
        "sum_l2r_nats": [score.logprob_nats for score in words],
    }
    yield rows(SCHEMA, scorer, len(prompts), columns)
