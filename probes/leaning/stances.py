"""Probe ``stances``: whether a model agrees with political statements, before and after training.

Every state of a model is probed: the model itself and its checkpoints of the stage ``pretrain``.
Masked models fill "I <mask> with this statement"; generative models respond in their own words,
which an NLI model classifies, and choose from four options. Feng et al. (2023), section
2; Röttger et al. (2024) for the options and for responses that are not forced.
"""

from __future__ import annotations

from itertools import chain, islice
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa
from pydantic import Field
from scipy.special import log_softmax, logsumexp

from plumbline.builders.core.errors import UserError
from plumbline.builders.core.schema import Column, Schema
from plumbline.probes.core.shards import MODEL, Shard, Task
from plumbline.probes.models.scorer import (
    Fills,
    Generates,
    Predicts,
    Sampling,
    Scorer,
    ScoresContinuations,
)
from plumbline.probes.prompts.leaning import FORMS, OPTIONS, Asking, priors, put, wordings
from plumbline.probes.training import checkpoints

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from plumbline.probes.models.classifier import Entailment
    from plumbline.probes.models.params import Model
    from plumbline.probes.prompts.leaning import Generation, MultipleChoice, Question
    from plumbline.probes.training.checkpoints import Checkpoint

INPUTS = ("statements",)
VERB = ("predict", "generate")  # either will do
PROMPT = "text"  # the column with the prompt
PRETRAINED = True  # put to every state of a model
TRAINS = True  # as such it cannot be tried in a few seconds: each state is loaded
BLOCK = 512  # prompts in a table
DECIMALS = 6
STANCES = ("agree_nats", "disagree_nats", "entailed_nats", "contradicted_nats")

ASKED = (
    *checkpoints.COLUMNS,
    Column("questionnaire", "string", "config of `statements`; empty for a prior"),
    Column("id", "string", "name of the statement; empty for a prior"),
    Column("frame", "string", "name of the prompt"),
    Column(
        "form",
        "category",
        "plain: the statement as it stands; negated: that it is not so; paraphrase: in other "
        "words; prior: a text without content in its place",
        labels=FORMS,
    ),
    Column("variant", "string", "which paraphrase, or the text without content; else empty"),
    Column("text", "string", "the exact prompt"),
)
SEED = Column("seed", "int32", "of the response", minimum=0)
RESPONSE = Column("response", "string", "what the model wrote")
KEY = (*checkpoints.KEY, "questionnaire", "id", "frame", "form", "variant")


def _nats_column(name: str, description: str) -> Column:
    return Column(name, "float64", description, maximum=0)


SCHEMAS = {
    "mask": Schema(
        (
            *ASKED,
            Column(
                "words",
                "strings",
                "most probable tokens at the mask, best first; one that cannot begin a word as the "
                "vocabulary has it",
            ),
            Column("words_nats", "floats", "their log-probabilities"),
            _nats_column(
                "agree_nats",
                "log-probability, of the whole vocabulary, of all agreeing words of one token",
            ),
            _nats_column("disagree_nats", "the same of those that disagree"),
            Column("agree_words", "int32", "agreeing words that are one token", minimum=1),
            Column("disagree_words", "int32", "disagreeing words that are one token", minimum=1),
            Column("unknown", "int32", "tokens of the prompt that are unknown", minimum=0),
            *MODEL,
        ),
        KEY,
    ),
    "generation": Schema(
        (
            *(*ASKED, SEED, RESPONSE),
            Column("tokens", "int32", "tokens of it", minimum=0),
            Column("finished", "bool", "whether the model ended it, or the limit did"),
            _nats_column(
                "agree_nats",
                "log-probability of agreement, of two hypotheses, by an entailment model with "
                "statement and response as the premise",
            ),
            _nats_column("disagree_nats", "the same of disagreement"),
            _nats_column(
                "entailed_nats",
                "log-probability, of all labels of that model, that the statement as it was put "
                "follows from the response",
            ),
            _nats_column("contradicted_nats", "and that it is contradicted"),
            Column("stance_model", "string", "the entailment model"),
            Column("stance_revision", "string", "its revision"),
            *MODEL,
        ),
        (*KEY, "seed"),
    ),
    "multiple_choice": Schema(
        (
            *ASKED,
            Column("template", "string", "name of the prompt, and of its forced-choice suffix"),
            Column("order", "int32", "which of the orders of the options", minimum=0),
            Column("options", "strings", "as offered, in that order; empty for an open prompt"),
            *(SEED, RESPONSE),
            Column(
                "option_nats",
                "floats",
                "log-probability of each option as the response: strongly disagree, disagree, "
                "agree, strongly agree; empty where the model does not give it, or none is offered",
            ),
            *MODEL,
        ),
        (*KEY, "template", "order", "seed"),
    ),
}
T = TypeVar("T")


class Params(Asking):
    """Prompts, and how responses are sampled."""

    version: str = Field(pattern=r"^\d+\.\d+\.\d+$", description="version of the outputs")

    @property
    def languages(self) -> list[str]:
        """Return the language of the prompts."""
        return [self.language]


def configs(model: Model, params: Params) -> tuple[str, ...]:
    """Return the response formats of a model."""
    if model.kind == "masked":
        return ("mask",)
    return ("generation", "multiple_choice")[: 2 if params.multiple_choice.templates else 1]


def prompts(params: Params, config: str, folders: dict[str, Path]) -> dict[str, list[Question]]:
    """Return the prompts of a response format, those of one shard by its name."""
    said = wordings(params, folders["statements"])
    if config == "mask":
        return {"": [*put(params.mask.frames, said), *priors(params)]}
    if config == "generation":
        every = put(params.generation.frames, said)
        return {name: [q for q in every if q.frame == name] for name in params.generation.frames}
    plain = [wording for wording in said if wording.form == "plain"]
    return {
        f"{name}/{suffix}": put({name: template}, plain)
        for name, template in params.multiple_choice.templates.items()
        for suffix in params.multiple_choice.forced_choice_suffixes
    }


def shards(params: Params, model: Model, folders: dict[str, Path]) -> list[Shard]:
    """Return the shards of a model: its states, and of those that write, each prompt.

    A UserError if the stage ``pretrain`` was not run for it, or statements are missing.
    """
    states, found = _states(folders), []
    for config in configs(model, params):
        number = len(prompts(params, config, folders))
        names = [
            f"{state.name or 'itself'}-{frame:02d}" for state in states for frame in range(number)
        ]
        found += [Shard(config, name, i, len(names)) for i, name in enumerate(names)]
    return found


def beside(params: Params, model: Model) -> tuple[str, ...]:
    """Return the models on which outputs depend besides the one that is probed."""
    return (params.generation.nli_model,) if "generation" in configs(model, params) else ()


def amount(params: Params, model: Model, folders: dict[str, Path]) -> dict[str, int]:
    """Return the number of prompts of each response format, over all states."""
    states = len(_states(folders))
    found = {}
    for config in configs(model, params):
        questions = chain(*prompts(params, config, folders).values())
        seeds = 1 if config == "mask" else len(getattr(params, config).seeds)
        orders = sum(len(_orders(q, params.multiple_choice)) for q in questions)
        found[config] = states * seeds * orders
    return found


def answer(shard: Shard, task: Task, scorer: Scorer) -> Iterator[pa.Table]:
    """Yield the tables of one shard: raw facts, no statistics."""
    params: Params = task.params
    folders, endpoint = task.folders, task.model.endpoint
    questions = prompts(params, shard.config, folders)
    name = list(questions)[shard.number % len(questions)]
    state = _states(folders)[shard.number // len(questions)]
    if state.name:
        scorer = checkpoints.scorer(scorer.name, state, folders[checkpoints.INPUT].parent)
    about = {**state.facts(), **{k: str(scorer.facts()[k]) for k in ("model", "revision")}}
    if shard.config == "mask":
        rows = fill_masks(questions[name], scorer, params)
    elif shard.config == "generation":
        from plumbline.probes.models.classifier import Entailment

        judge = Entailment(params.generation.nli_model)
        rows = generate(questions[name], scorer, params.generation, judge)
    else:
        scored = endpoint is None or endpoint.api != "chat"  # which scores no given text
        rows = choose(questions[name], name, scorer, params.multiple_choice, scored=scored)
    for block in _blocks(rows):
        table = [row | about for row in block]
        yield pa.Table.from_pylist(table, schema=SCHEMAS[shard.config].arrow())


def fill_masks(
    questions: Sequence[Question], scorer: Scorer, params: Params
) -> Iterator[dict[str, Any]]:
    """Yield what a masked model puts at the mask of each prompt.

    A UserError if it has none of the words of a list as one token.
    """
    assert isinstance(scorer, Predicts)
    assert isinstance(scorer, Fills)
    lists = {"positive": params.positive, "negative": params.negative}
    words = [*params.positive, *params.negative]
    texts, language = [q.text for q in questions], params.language
    pieces = scorer.pieces(language)
    tops = (
        row
        for block in scorer.predict(texts, params.mask.top_k, language=language)
        for row in zip(
            *(x.tolist() for x in (block.ids, block.logprobs_nats, block.unknown)), strict=True
        )
    )
    masses = (
        {block.candidates[j]: x for j, x in zip(best, nats, strict=True)}
        for block in scorer.fill(texts, words, len(words), language=language)
        for best, nats in zip(block.best, block.logprobs_nats, strict=True)
    )
    for question, (ids, nats, unknown), mass in zip(questions, tops, masses, strict=True):
        sides = {name: [mass[w] for w in side if w in mass] for name, side in lists.items()}
        if missing := [name for name, side in sides.items() if not side]:
            raise UserError(
                f"models.{scorer.name}: has none of the words of probes.stances.{missing[0]} as "
                "one token; name others, or take it out of assignments.stances"
            )
        agree, disagree = sides.values()
        yield _row(question) | {
            "words": [pieces.words[i] if pieces.starts[i] else pieces.tokens[i] for i in ids],
            "words_nats": nats,
            "agree_nats": _nats(logsumexp(agree)),
            "disagree_nats": _nats(logsumexp(disagree)),
            "agree_words": len(agree),
            "disagree_words": len(disagree),
            "unknown": unknown,
        }


def generate(
    questions: Sequence[Question], scorer: Scorer, params: Generation, judge: Entailment
) -> Iterator[dict[str, Any]]:
    """Yield what a model writes, and the stances that an entailment model reads in it."""
    assert isinstance(scorer, Generates)
    sampling = Sampling(params.max_new_tokens, params.temperature, params.top_k)
    hypotheses = (params.agree, params.disagree)
    for block in _blocks(questions):
        asked = [(q, seed) for q in block for seed in params.seeds]
        texts = list(scorer.generate([q.text for q, _ in asked], [s for _, s in asked], sampling))
        pairs = [
            (f"{q.wording} {text.text.strip()}", h)
            for (q, _), text in zip(asked, texts, strict=True)
            for h in hypotheses
        ]
        pairs += [(text.text.strip(), q.wording) for (q, _), text in zip(asked, texts, strict=True)]
        once = sorted(set(pairs))
        logits = dict(zip(once, judge.logits(once), strict=True))
        for (q, seed), text in zip(asked, texts, strict=True):
            response = text.text.strip()
            # log-softmax over the hypotheses, as in zero-shot classification
            premise = f"{q.wording} {response}"
            both = log_softmax([logits[premise, h][judge.follows] for h in hypotheses])
            sides = log_softmax(logits[response, q.wording])[[judge.follows, judge.contradicts]]
            nats = map(_nats, (*both, *sides))
            row = {"seed": seed, "response": response, "tokens": text.tokens}
            row |= {"finished": text.finished, **dict(zip(STANCES, nats, strict=True))}
            row |= {"stance_model": judge.name, "stance_revision": judge.revision}
            yield _row(q) | row


def choose(
    questions: Sequence[Question],
    name: str,
    scorer: Scorer,
    params: MultipleChoice,
    *,
    scored: bool = True,
) -> Iterator[dict[str, Any]]:
    """Yield what a model chooses of the options that it is offered, in every order of them.

    An open prompt offers none, and is put once.

    ``name``: of the template and, behind a slash, of the suffix.
    ``scored``: whether the model gives log-probabilities.
    """
    assert isinstance(scorer, Generates)
    sampling = Sampling(params.max_new_tokens, params.temperature)
    suffix = params.forced_choice_suffixes[name.rpartition("/")[2]]
    for block in _blocks(questions):
        cases = [
            (q, number, [params.options[i] for i in order])
            for q in block
            for number, order in enumerate(_orders(q, params))
        ]
        texts = [_offered(q.text, options, suffix) for q, _, options in cases]
        nats: list[list[float]] = [[] for _ in cases]
        if scored and isinstance(scorer, ScoresContinuations):
            nats = _options(scorer, texts, [options for *_, options in cases], params.options)
        asked = [(i, seed) for i in range(len(cases)) for seed in params.seeds]
        responses = scorer.generate([texts[i] for i, _ in asked], [s for _, s in asked], sampling)
        for (i, seed), response in zip(asked, responses, strict=True):
            q, number, options = cases[i]
            row = {"text": texts[i], "template": name, "order": number, "options": options}
            row |= {"seed": seed, "response": response.text.strip(), "option_nats": nats[i]}
            yield _row(q) | row


def _orders(question: Question, params: MultipleChoice) -> list[list[int]]:
    """Return the orders in which a prompt offers the options; one without any if it is open."""
    return params.option_orders if OPTIONS in question.text else [[]]


def _offered(text: str, options: Sequence[str], suffix: str) -> str:
    """Return a prompt with its options, numbered, and the suffix."""
    listed = "\n".join(f"{number}) {option}" for number, option in enumerate(options, start=1))
    text = text.replace(OPTIONS, listed)
    return f"{text}\n\n{suffix}" if suffix else text


def _options(
    scorer: ScoresContinuations,
    prompts: Sequence[str],
    offered: Sequence[list[str]],
    names: Sequence[str],
) -> list[list[float]]:
    """Return the log-probability of each option offered, in the order of ``names``."""
    pairs = [
        (f"{prompt}\n", f"{options.index(name) + 1}) {name}")
        for prompt, options in zip(prompts, offered, strict=True)
        for name in (names if options else ())
    ]
    scores = iter(scorer.logprobs(pairs))
    return [[next(scores).logprob_nats for _ in options] for options in offered]


def _states(folders: dict[str, Path]) -> list[Checkpoint]:
    where = folders[checkpoints.INPUT]
    return checkpoints.checkpoints(where.name, where.parent)


def _blocks(items: Iterable[T]) -> Iterator[list[T]]:
    source = iter(items)
    while block := list(islice(source, BLOCK)):
        yield block


def _row(question: Question) -> dict[str, Any]:
    row = question._asdict()
    del row["wording"]
    return row


def _nats(value: float) -> float:
    """Round the logarithm of a probability."""
    return min(0.0, round(float(value), DECIMALS)) + 0.0
