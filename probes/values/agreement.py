"""Probe ``agreement``: the log-probabilities of agreeing and disagreeing with a statement.

For every statement, frame and gender the log-probabilities of both words. Al Ali and Libovický
(2024): all pieces of a word are masked together and their log-probabilities summed.
"""

from __future__ import annotations

from itertools import groupby, islice
from typing import TYPE_CHECKING

import pyarrow as pa
from pydantic import Field

from plumbline.builders.core.errors import UserError
from plumbline.builders.core.schema import Column, Schema
from plumbline.probes.core.shards import Shard, split
from plumbline.probes.models.scorer import MASK, FillsSpans, Scorer, ScoresContinuations
from plumbline.probes.prompts.opinions import (
    FORMS,
    GENDERS,
    METHODS,
    Asking,
    Question,
    questions,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from plumbline.probes.models.params import Model

INPUTS = ("statements",)
VERB = "fill"
PROMPT = "text"  # the column with the prompt
SHARD = 2_000  # prompts in a shard; part of the layout of the outputs

SCHEMA = Schema(
    columns=(
        Column("questionnaire", "string", "config of `statements` that the statement is of"),
        Column("scale", "string", "scale of the statement"),
        Column("id", "string", "id of the statement"),
        Column("frame", "string", "name of the frame in the params"),
        Column("gender", "label", "gender of the one gendered word", labels=GENDERS),
        Column(
            "form",
            "label",
            "plain: the statement as it stands; negated: that it is not so",
            labels=FORMS,
        ),
        Column(
            "method",
            "label",
            "together: all pieces of the word masked at once; l2r: each piece with the ones before "
            "it in place and those behind it masked; sequence: the whole text, of models that read "
            "from left to right",
            labels=METHODS,
        ),
        Column("text", "string", "the exact prompt, with the mask for the word"),
        Column("agree", "string", "the word that agrees"),
        Column("disagree", "string", "the word that disagrees"),
        Column("agree_nats", "float64", "log-probability with the agreeing word", maximum=0),
        Column("disagree_nats", "float64", "log-probability with the other", maximum=0),
        Column("agree_pieces", "int32", "tokens that the first is a sum over", minimum=1),
        Column("disagree_pieces", "int32", "tokens that the second is a sum over", minimum=1),
        Column(
            "unknown_pieces",
            "int32",
            "tokens of the text, agreeing, that the model has no symbol for",
            minimum=0,
        ),
        Column("model", "string", "name of the model in params.yaml"),
        Column("revision", "string", "commit of the model on the Hub, or hash of a trained one"),
    ),
    key=("questionnaire", "id", "frame", "gender", "form", "method"),
)
SCHEMAS = {"one a language": SCHEMA}


class Params(Asking):
    """Prompts of the probe."""

    version: str = Field(pattern=r"^\d+\.\d+\.\d+$", description="version of the outputs")


def schema(_: str) -> Schema:
    """Return the schema of a config of the outputs: a language."""
    return SCHEMA


def shards(params: Params, model: Model, folders: dict[str, Path]) -> list[Shard]:
    """Return the shards of a model: its prompts in parts, per language.

    Raises
    ------
    UserError
        If the model is neither masked nor causal, or a language has no statements.
    """
    if model.kind not in ("masked", "causal"):
        raise UserError(
            f"assignments.agreement: a model of kind {model.kind} has neither a mask for several "
            "pieces nor the probability of a text; take it out"
        )
    return [
        shard
        for language, number in amount(params, model, folders).items()
        for shard in split(language, number, SHARD)
    ]


def amount(params: Params, model: Model, folders: dict[str, Path]) -> dict[str, int]:
    """Return the number of prompts in each language."""
    return {
        language: len(questions(params, folders["statements"], language))
        for language in model.among(params.languages)
    }


def answer(
    shard: Shard,
    folders: dict[str, Path],
    scorer: Scorer,
    params: Params,
    model: Model,
    _exact: Callable[[], Scorer],
) -> Iterator[pa.Table]:
    """Yield the tables of one shard: raw facts, no statistics."""
    some = shard.among(questions(params, folders["statements"], shard.config))
    if model.kind == "causal":
        assert isinstance(scorer, ScoresContinuations)
        yield whole(some, scorer)
        return
    assert isinstance(scorer, FillsSpans)
    for together in (True, False):
        yield masked(some, scorer, shard.config, together=together)


def masked(
    prompts: Sequence[Question], scorer: FillsSpans, language: str, *, together: bool
) -> pa.Table:
    """Return output rows of some prompts, the words put at the mask.

    Raises
    ------
    UserError
        If the model cannot write a word.
    """

    def words_of(question: Question) -> tuple[str, str]:
        return question.agree, question.disagree

    rows = []
    for words, some in groupby(sorted(prompts, key=words_of), key=words_of):
        own = list(some)
        blocks = scorer.fill(
            [q.text for q in own], words, 2, multi=True, together=together, language=language
        )
        rest = iter(own)
        for block in blocks:
            if lost := [word for word in words if word not in block.candidates]:
                raise UserError(
                    f"models.{scorer.name}: cannot write {lost[0]!r} as one of the answers; name "
                    "others under probes.agreement.frames, or leave the language out"
                )
            pieces = dict(zip(block.candidates, block.pieces.tolist(), strict=True))
            for i, question in enumerate(islice(rest, len(block.prompts))):
                at = [block.candidates[j] for j in block.best[i]]
                nats = dict(zip(at, block.logprobs_nats[i].tolist(), strict=True))
                sides = [(nats[word], pieces[word]) for word in words]
                method = "together" if together else "l2r"
                rows.append(_row(question, method, sides, int(block.unknown[i])))
    return _table(rows, scorer)


def whole(prompts: Sequence[Question], scorer: ScoresContinuations) -> pa.Table:
    """Return output rows of some prompts, the probabilities those of whole texts."""
    texts = [("", q.text.replace(MASK, word)) for q in prompts for word in (q.agree, q.disagree)]
    scores = iter(scorer.logprobs(texts))
    rows = []
    for question in prompts:
        both = list(islice(scores, 2))
        sides = [(score.logprob_nats, score.tokens) for score in both]
        rows.append(_row(question, "sequence", sides, both[0].unknown))
    return _table(rows, scorer)


def _row(
    question: Question, method: str, sides: list[tuple[float, int]], unknown: int
) -> dict[str, object]:
    (agree, agree_pieces), (disagree, disagree_pieces) = sides
    return question._asdict() | {
        "gender": GENDERS.index(question.gender),
        "form": FORMS.index(question.form),
        "method": METHODS.index(method),
        "agree_nats": agree,
        "disagree_nats": disagree,
        "agree_pieces": agree_pieces,
        "disagree_pieces": disagree_pieces,
        "unknown_pieces": unknown,
    }


def _table(rows: list[dict[str, object]], scorer: Scorer) -> pa.Table:
    """Return rows in the order of their key, with the model."""
    about = {name: str(scorer.facts()[name]) for name in ("model", "revision")}
    rows.sort(key=lambda r: tuple(r[name] for name in SCHEMA.key))
    return pa.Table.from_pylist([row | about for row in rows], schema=SCHEMA.arrow())
