"""Probe ``agreement``: log-probabilities of agreeing and disagreeing with a statement.

Both words are scored in every statement, template and gender. Al Ali and Libovický (2024) mask all
tokens of a word together and sum their log-probabilities.
"""

from __future__ import annotations

from itertools import groupby
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING, Any

import polars as pl
from pydantic import Field

from plumbline.builders.core.errors import UserError
from plumbline.builders.core.schema import Column, Schema
from plumbline.probes.core.run_probe import MODEL, Shard, Task, rows, split
from plumbline.probes.models.scorer import MASK, Fills, Scorer, ScoresContinuations
from plumbline.probes.prompts.opinions import FORMS, GENDERS, METHODS, Asking, Question, questions

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    import pyarrow as pa

    from plumbline.probes.models.params import Model

    Row = dict[str, Any]

INPUTS = ("statements",)
VERB = "fill"
PROMPT = "text"  # name of the column with the prompt
SHARD = 2_000  # number of prompts in a shard, which determines the layout of the outputs

SCHEMA = Schema(
    columns=(
        Column("questionnaire", "string", "config of `statements`"),
        Column("scale", "string", "questionnaire scale of the statement"),
        Column("id", "string", "id of the statement"),
        Column("frame", "string", "name of the template in the params"),
        Column("gender", "category", "gender of the one gendered word", labels=GENDERS),
        Column("form", "category", "plain or negated statement", labels=FORMS),
        Column(
            "method",
            "category",
            "what is scored: all tokens of the word, masked together; each token given the earlier "
            "ones, with later ones masked (l2r); or the complete text (sequence; causal models)",
            labels=METHODS,
        ),
        Column("text", "string", "the exact prompt, with a mask in place of the word"),
        Column("agree", "string", "the word that expresses agreement"),
        Column("disagree", "string", "the word that expresses disagreement"),
        Column("agree_nats", "float64", "log-probability of the word in `agree`", maximum=0),
        Column("disagree_nats", "float64", "log-probability of the word in `disagree`", maximum=0),
        Column("agree_pieces", "int32", "number of tokens summed in agree_nats", minimum=1),
        Column("disagree_pieces", "int32", "number of tokens summed in disagree_nats", minimum=1),
        Column(
            "unknown_pieces",
            "int32",
            "number of unknown tokens in the text when `agree` replaces the mask",
            minimum=0,
        ),
        *MODEL,
    ),
    key=("questionnaire", "id", "frame", "gender", "form", "method"),
)
SCHEMAS = {"one a language": SCHEMA}


class Params(Asking):
    """Prompts of the probe."""

    version: str = Field(pattern=r"^\d+\.\d+\.\d+$", description="version of the outputs")


def shards(params: Params, model: Model, folders: dict[str, Path]) -> list[Shard]:
    """Return the shards of a model, which divide its prompts in each language.

    Raises UserError if the model is neither masked nor causal or a language has no statements.
    """
    if model.kind not in ("masked", "causal"):
        raise UserError(
            f"assignments.agreement: a model of kind {model.kind} can neither fill several tokens "
            "nor score a text; remove it"
        )
    amounts = amount(params, model, folders).items()
    return [shard for language, number in amounts for shard in split(language, number, SHARD)]


def amount(params: Params, model: Model, folders: dict[str, Path]) -> dict[str, int]:
    """Return the number of prompts in each language."""
    return {
        language: len(questions(params, folders["statements"], language))
        for language in model.among(params.languages)
    }


def answer(shard: Shard, task: Task, scorer: Scorer) -> Iterator[pa.Table]:
    """Yield the output tables of one shard."""
    prompts = shard.among(questions(task.params, task.folders["statements"], shard.config))
    if task.model.kind == "causal":
        assert isinstance(scorer, ScoresContinuations)
        yield whole(prompts, scorer)
    else:
        assert isinstance(scorer, Fills)
        yield from masked(prompts, scorer, shard.config)


def masked(prompts: Sequence[Question], scorer: Fills, language: str) -> list[pa.Table]:
    """Return the output rows for the words at the mask in a batch of prompts, one table per method.

    Raises UserError if the model cannot write a word.
    """
    tables: dict[str, list[Row]] = {"together": [], "l2r": []}
    words_of = attrgetter("agree", "disagree")
    for words, group in groupby(sorted(prompts, key=words_of), key=words_of):
        batch: list[Question] = list(group)
        fills: list[tuple[dict[str, tuple[float, int]], int]] = []
        texts = [question.text for question in batch]
        for method, rows_of in tables.items():
            # both methods give the same result for single-token words
            together = method == "together"
            if together or any(pieces > 1 for _, pieces in fills[0][0].values()):
                blocks = scorer.fill(
                    texts, words, 2, multi=True, together=together, language=language
                )
                fills = [fill for block in blocks for fill in block.by_prompt()]
            for question, (sides, unknown) in zip(batch, fills, strict=True):
                if missing := [word for word in words if word not in sides]:
                    raise UserError(
                        f"models.{scorer.name}: cannot produce {missing[0]!r} as an answer; set "
                        "other words in probes.agreement.frames, or remove the language"
                    )
                rows_of.append(_row(question, method, sides, unknown))
    return [_table(rows_of, scorer) for rows_of in tables.values()]


def whole(prompts: Sequence[Question], scorer: ScoresContinuations) -> pa.Table:
    """Return the output rows for a batch of prompts, computed from scores of complete texts."""
    texts = [("", q.text.replace(MASK, word)) for q in prompts for word in (q.agree, q.disagree)]
    scores = iter(scorer.logprobs(texts))
    table = []
    for question, agree, disagree in zip(prompts, scores, scores, strict=True):
        pair = ((question.agree, agree), (question.disagree, disagree))
        sides = {word: (score.logprob_nats, score.tokens) for word, score in pair}
        table.append(_row(question, "sequence", sides, agree.unknown))
    return _table(table, scorer)


def _row(question: Question, method: str, sides: dict[str, tuple[float, int]], unknown: int) -> Row:
    """Return an output row; ``sides``: log-probability and number of tokens by word."""
    row = question._asdict() | {"method": method, "unknown_pieces": unknown}
    for name in ("agree", "disagree"):
        row[f"{name}_nats"], row[f"{name}_pieces"] = sides[row[name]]
    return row


def _table(table: list[Row], scorer: Scorer) -> pa.Table:
    """Return the table of rows, sorted by key, with facts about the model."""
    table.sort(key=itemgetter(*SCHEMA.key))
    return rows(SCHEMA, scorer, len(table), pl.DataFrame(table).to_dict(as_series=False))
