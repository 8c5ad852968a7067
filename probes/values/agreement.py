"""Probe ``agreement``: the log-probabilities of agreeing and disagreeing with a statement.

For every statement, frame and gender the log-probabilities of both words. Al Ali and Libovický
(2024): all pieces of a word are masked together and their log-probabilities summed.
"""

from __future__ import annotations

from itertools import chain, groupby, islice
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING

from pydantic import Field

from plumbline.builders.core.errors import UserError
from plumbline.builders.core.schema import Column, Schema
from plumbline.probes.core.shards import MODEL, Shard, Task, rows, split
from plumbline.probes.models.scorer import MASK, Fills, Scorer, ScoresContinuations
from plumbline.probes.prompts.opinions import (
    FORMS,
    GENDERS,
    METHODS,
    Asking,
    Question,
    questions,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    import pyarrow as pa

    from plumbline.probes.models.params import Model

INPUTS = ("statements",)
VERB = "fill"
PROMPT = "text"  # the column with the prompt
Told = tuple[Question, str, list[tuple[float, int]], int]  # with method, sides and unknown pieces
SHARD = 2_000  # prompts in a shard; part of the layout of the outputs

SCHEMA = Schema(
    columns=(
        Column("questionnaire", "string", "config of `statements` that the statement is of"),
        Column("scale", "string", "scale of the statement"),
        Column("id", "string", "id of the statement"),
        Column("frame", "string", "name of the frame in the params"),
        Column("gender", "category", "gender of the one gendered word", labels=GENDERS),
        Column(
            "form",
            "category",
            "plain: the statement as it stands; negated: that it is not so",
            labels=FORMS,
        ),
        Column(
            "method",
            "category",
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
        *MODEL,
    ),
    key=("questionnaire", "id", "frame", "gender", "form", "method"),
)
SCHEMAS = {"one a language": SCHEMA}


class Params(Asking):
    """Prompts of the probe."""

    version: str = Field(pattern=r"^\d+\.\d+\.\d+$", description="version of the outputs")


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


def answer(shard: Shard, task: Task, scorer: Scorer) -> Iterator[pa.Table]:
    """Yield the tables of one shard: raw facts, no statistics."""
    some = shard.among(questions(task.params, task.folders["statements"], shard.config))
    if task.model.kind == "causal":
        assert isinstance(scorer, ScoresContinuations)
        yield whole(some, scorer)
        return
    assert isinstance(scorer, Fills)
    yield from masked(some, scorer, shard.config)


def masked(prompts: Sequence[Question], scorer: Fills, language: str) -> list[pa.Table]:
    """Return output rows of some prompts, the words put at the mask, a table for each method.

    Raises
    ------
    UserError
        If the model cannot write a word.
    """
    found: dict[str, list[Told]] = {"together": [], "l2r": []}
    words_of = attrgetter("agree", "disagree")
    for words, some in groupby(sorted(prompts, key=words_of), key=words_of):
        own = list(some)
        told: list[tuple[Question, list[tuple[float, int]], int]] = []
        for method, rows_of in found.items():
            # words of one piece have nothing to mask together
            if not told or any(pieces > 1 for _, pieces in told[0][1]):
                told = _filled(own, words, scorer, language, together=method == "together")
            rows_of += [(question, method, sides, lost) for question, sides, lost in told]
    return [_table(each, scorer) for each in found.values()]


def _filled(
    asked: list[Question],
    words: tuple[str, str],
    scorer: Fills,
    language: str,
    *,
    together: bool,
) -> list[tuple[Question, list[tuple[float, int]], int]]:
    """Return the sides of each prompt and its unknown pieces."""
    found: list[tuple[Question, list[tuple[float, int]], int]] = []
    rest = iter(asked)
    for block in scorer.fill(
        [q.text for q in asked], words, 2, multi=True, together=together, language=language
    ):
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
            found.append((question, sides, int(block.unknown[i])))
    return found


def whole(prompts: Sequence[Question], scorer: ScoresContinuations) -> pa.Table:
    """Return output rows of some prompts, the probabilities those of whole texts."""
    texts = [("", q.text.replace(MASK, word)) for q in prompts for word in (q.agree, q.disagree)]
    scores = iter(scorer.logprobs(texts))
    found: list[Told] = []
    for question in prompts:
        both = list(islice(scores, 2))
        sides = [(score.logprob_nats, score.tokens) for score in both]
        found.append((question, "sequence", sides, both[0].unknown))
    return _table(found, scorer)


def _table(found: list[Told], scorer: Scorer) -> pa.Table:
    """Return rows in the order of their key, with the model."""
    names = ("agree_nats", "agree_pieces", "disagree_nats", "disagree_pieces")
    told = [
        question._asdict()
        | {"method": method, "unknown_pieces": unknown}
        | dict(zip(names, chain(*sides), strict=True))
        for question, method, sides, unknown in found
    ]
    told.sort(key=itemgetter(*SCHEMA.key))
    columns = {c.name: [row[c.name] for row in told] for c in SCHEMA.columns if c not in MODEL}
    return rows(SCHEMA, scorer, len(told), columns)
