"""Probe ``agreement``: whether a model rather lets somebody agree with a statement or disagree.

For every statement, frame and gender the log-probabilities of both words. Al Ali and Libovický
(2024): all pieces of a word are masked together and their log-probabilities summed.
"""

from __future__ import annotations

import math
from itertools import groupby, islice
from typing import TYPE_CHECKING

import pyarrow as pa
from pydantic import Field

from plumbline.builders.core.errors import Problem
from plumbline.builders.core.schema import Column, Schema
from plumbline.probes.core.shards import Shard
from plumbline.probes.models.scorer import MASK, FillsSpans, Score, Scorer, ScoresContinuations
from plumbline.probes.prompts.opinions import FORMS, GENDERS, Asking, Question, questions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from plumbline.probes.models.params import Model

INPUTS = ("statements",)
VERB = "fill"
PROMPT = "text"  # the column with what was asked
SHARD = 2_000  # questions in a shard; part of the layout of the outputs
METHODS = ("together", "l2r", "sequence")

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
        Column("text", "string", "the text exactly as asked, with the mask for the word"),
        Column("agree", "string", "the word that agrees"),
        Column("disagree", "string", "the word that does not"),
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
    """How is asked."""

    version: str = Field(pattern=r"^\d+\.\d+\.\d+$", description="version of the outputs")


def schema(_: str) -> Schema:
    """Return the schema of a config of the outputs: a language."""
    return SCHEMA


def shards(params: Params, model: Model, folders: dict[str, Path]) -> list[Shard]:
    """Return what is to be asked of a model: questions in shards, per language.

    Raises
    ------
    Problem
        If the model is neither masked nor causal, or a language has no statements.
    """
    if model.kind not in ("masked", "causal"):
        raise Problem(
            f"asked.agreement: a model of kind {model.kind} has neither a mask for several pieces "
            "nor the probability of a text; take it out"
        )
    found = []
    for language, number in amount(params, model, folders).items():
        parts = max(1, math.ceil(number / SHARD))
        found += [Shard(language, f"{part:05d}", part, parts) for part in range(parts)]
    return found


def amount(params: Params, model: Model, folders: dict[str, Path]) -> dict[str, int]:
    """Return the number of questions in each language."""
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
    asked = questions(params, folders["statements"], shard.config)
    start, stop = (len(asked) * n // shard.of for n in (shard.number, shard.number + 1))
    own = asked[start:stop]
    if model.kind == "causal":
        assert isinstance(scorer, ScoresContinuations)
        yield whole(own, scorer)
        return
    assert isinstance(scorer, FillsSpans)
    for together in (True, False):
        yield masked(own, scorer, shard.config, together=together)


def masked(
    asked: Sequence[Question], scorer: FillsSpans, language: str, *, together: bool
) -> pa.Table:
    """Return output rows of some questions, the words put at the mask.

    Raises
    ------
    Problem
        If the model cannot write a word.
    """
    rows = []
    by_words = sorted(asked, key=lambda q: (q.agree, q.disagree))
    for words, some in groupby(by_words, key=lambda q: (q.agree, q.disagree)):
        own = list(some)
        blocks = scorer.fill(
            [q.text for q in own], words, 2, multi=True, together=together, language=language
        )
        rest = iter(own)
        for block in blocks:
            if lost := [word for word in words if word not in block.candidates]:
                raise Problem(
                    f"models.{scorer.name}: cannot write {lost[0]!r} as one of the answers; name "
                    "others under probes.agreement.frames, or leave the language out"
                )
            for i, question in enumerate(islice(rest, len(block.prompts))):
                at = [block.candidates[j] for j in block.best[i]]
                values = dict(zip(at, block.logprobs_nats[i].tolist(), strict=True))
                pieces = dict(zip(block.candidates, block.pieces.tolist(), strict=True))
                rows.append(
                    _row(question, "together" if together else "l2r")
                    | {
                        "agree_nats": values[words[0]],
                        "disagree_nats": values[words[1]],
                        "agree_pieces": pieces[words[0]],
                        "disagree_pieces": pieces[words[1]],
                        "unknown_pieces": int(block.unknown[i]),
                    }
                )
    return _table(rows, scorer)


def whole(asked: Sequence[Question], scorer: ScoresContinuations) -> pa.Table:
    """Return output rows of some questions, the probabilities those of whole texts."""
    texts = [("", q.text.replace(MASK, word)) for q in asked for word in (q.agree, q.disagree)]
    scores = iter(scorer.logprobs(texts))
    rows = []
    for question in asked:
        agree, disagree = islice(scores, 2)
        rows.append(_row(question, "sequence") | _sums(agree, disagree))
    return _table(rows, scorer)


def _sums(agree: Score, disagree: Score) -> dict[str, float]:
    return {
        "agree_nats": agree.logprob_nats,
        "disagree_nats": disagree.logprob_nats,
        "agree_pieces": agree.tokens,
        "disagree_pieces": disagree.tokens,
        "unknown_pieces": agree.unknown,
    }


def _row(question: Question, method: str) -> dict[str, object]:
    return question._asdict() | {
        "gender": GENDERS.index(question.gender),
        "form": FORMS.index(question.form),
        "method": METHODS.index(method),
    }


def _table(rows: list[dict[str, object]], scorer: Scorer) -> pa.Table:
    """Return rows in the order of their key, with what model answered."""
    facts = scorer.facts()
    about = {name: str(facts[name]) for name in ("model", "revision")}
    rows.sort(key=lambda r: tuple(r[name] for name in SCHEMA.key))
    return pa.Table.from_pylist([row | about for row in rows], schema=SCHEMA.arrow())
