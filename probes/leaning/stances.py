"""Probe ``leaning``: whether a model agrees with political statements, before and after training.

Every state of a model is asked: the model itself and what it became in the stage ``pretrain``.
Masked models fill "I <mask> with this statement"; models that write answer in their own words,
whose stance a model of entailment tells, and choose from four answers. Feng et al. (2023), section
2; Röttger et al. (2024) for the choices and the answers that are not forced.
"""

from __future__ import annotations

import math
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa
from pydantic import Field

from plumbline.builders.core.errors import Problem
from plumbline.builders.core.schema import Column, Schema
from plumbline.probes.core.shards import Shard
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
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from plumbline.probes.models.nli import Entailment
    from plumbline.probes.models.params import Model
    from plumbline.probes.prompts.leaning import Chosen, Question, Written
    from plumbline.probes.training.checkpoints import Checkpoint

INPUTS = ("statements",)
VERB = ("predict", "generate")  # either will do
PROMPT = "text"  # the column with what was asked
PRETRAINED = True  # asked of every state of a model
TRAINS = True  # as such it cannot be tried in a few seconds: each state is loaded
BLOCK = 512  # prompts in a table
DECIMALS = 6

ASKED = (
    *checkpoints.COLUMNS,
    Column("questionnaire", "string", "config of `statements`; empty for a prior"),
    Column("id", "string", "name of the statement; empty for a prior"),
    Column("frame", "string", "name of the prompt"),
    Column(
        "form",
        "label",
        "plain: the statement as it stands; negated: that it is not so; paraphrase: in other "
        "words; prior: a text without content in its place",
        labels=FORMS,
    ),
    Column("variant", "string", "which paraphrase, or the text without content; else empty"),
    Column("text", "string", "the prompt exactly as asked"),
)
WHO = (
    Column("model", "string", "name of the model in params.yaml"),
    Column("revision", "string", "commit of the model on the Hub, or hash of a trained one"),
)
KEY = (*checkpoints.KEY, "questionnaire", "id", "frame", "form", "variant")
FILLED = Schema(
    columns=(
        *ASKED,
        Column(
            "words",
            "strings",
            "most probable tokens at the mask, best first; one that cannot begin a word as the "
            "vocabulary has it",
        ),
        Column("words_nats", "floats", "their log-probabilities"),
        Column(
            "agree_nats",
            "float64",
            "log-probability, of the whole vocabulary, of all agreeing words that are one token",
            maximum=0,
        ),
        Column("disagree_nats", "float64", "the same of those that disagree", maximum=0),
        Column("agree_words", "int32", "agreeing words that are one token", minimum=1),
        Column("disagree_words", "int32", "disagreeing words that are one token", minimum=1),
        Column("unknown", "int32", "tokens of the prompt the model has no symbol for", minimum=0),
        *WHO,
    ),
    key=KEY,
)
WRITTEN = Schema(
    columns=(
        *ASKED,
        Column("seed", "int32", "of the answer", minimum=0),
        Column("response", "string", "what the model wrote"),
        Column("tokens", "int32", "tokens of it", minimum=0),
        Column("finished", "bool", "whether the model ended it, or the limit did"),
        Column(
            "agree_nats",
            "float64",
            "log-probability of agreement, of two hypotheses, that a model of entailment gives to "
            "the statement and the response behind it",
            maximum=0,
        ),
        Column("disagree_nats", "float64", "the same of disagreement", maximum=0),
        Column("agree_response_nats", "float64", "agreement, of the response alone", maximum=0),
        Column("disagree_response_nats", "float64", "disagreement, of it alone", maximum=0),
        Column("stance_model", "string", "the model of entailment"),
        Column("stance_revision", "string", "its revision"),
        *WHO,
    ),
    key=(*KEY, "seed"),
)
CHOSEN = Schema(
    columns=(
        *ASKED,
        Column("template", "string", "name of the prompt, and of what forces an answer"),
        Column("order", "int32", "which of the orders of the options", minimum=0),
        Column("options", "strings", "as offered, in that order; empty for an open prompt"),
        Column("seed", "int32", "of the answer", minimum=0),
        Column("response", "string", "what the model wrote"),
        Column(
            "option_nats",
            "floats",
            "log-probability of each option as the answer: strongly disagree, disagree, agree, "
            "strongly agree; empty where the model does not tell it, or none is offered",
        ),
        *WHO,
    ),
    key=(*KEY, "template", "order", "seed"),
)
T = TypeVar("T")
SCHEMAS = {"filled": FILLED, "written": WRITTEN, "chosen": CHOSEN}


class Params(Asking):
    """How is asked."""

    version: str = Field(pattern=r"^\d+\.\d+\.\d+$", description="version of the outputs")

    @property
    def languages(self) -> list[str]:
        """Return the language that is asked in."""
        return [self.language]


def schema(config: str) -> Schema:
    """Return the schema of a config of the outputs."""
    return SCHEMAS[config]


def configs(model: Model, params: Params) -> tuple[str, ...]:
    """Return how a model is asked."""
    if model.kind == "masked":
        return ("filled",)
    return ("written", "chosen") if params.chosen.templates else ("written",)


def shards(params: Params, model: Model, folders: dict[str, Path]) -> list[Shard]:
    """Return what is to be asked of a model: its states, and of those that write, each prompt.

    Raises
    ------
    Problem
        If the stage ``pretrain`` was not run for it.
    """
    states = _states(folders)
    found = []
    for config in configs(model, params):
        frames = _frames(params, config)
        found += [
            Shard(config, f"{state.name or 'itself'}-{frame:02d}", at * len(frames) + frame, n)
            for n in (len(states) * len(frames),)
            for at, state in enumerate(states)
            for frame in range(len(frames))
        ]
    return found


def beside(params: Params, model: Model) -> tuple[str, ...]:
    """Return the models on which answers depend besides the one that is asked."""
    return (params.written.stance,) if "written" in configs(model, params) else ()


def amount(params: Params, model: Model, folders: dict[str, Path]) -> dict[str, int]:
    """Return the number of prompts of each kind, over all states."""
    said = wordings(params, folders["statements"])
    plain = sum(w.form == "plain" for w in said)
    states = len(_states(folders))
    offered = sum(
        len(params.chosen.orders) if OPTIONS in template else 1
        for template in params.chosen.templates.values()
    )
    each = {
        "filled": len(put(params.filled.frames, said)) + len(priors(params)),
        "written": len(put(params.written.frames, said)) * len(params.written.seeds),
        "chosen": plain * offered * len(params.chosen.forces) * len(params.chosen.seeds),
    }
    return {config: states * each[config] for config in configs(model, params)}


def answer(
    shard: Shard,
    folders: dict[str, Path],
    scorer: Scorer,
    params: Params,
    model: Model,
    _exact: Callable[[], Scorer],
) -> Iterator[pa.Table]:
    """Yield the tables of one shard: raw facts, no statistics."""
    frames = _frames(params, shard.config)
    state = _states(folders)[shard.number // len(frames)]
    asked = scorer
    if state.name:
        asked = checkpoints.scorer(scorer.name, state, folders[checkpoints.INPUT].parent)
    said = wordings(params, folders["statements"])
    name = frames[shard.number % len(frames)]
    about = {**state.facts(), **{k: str(asked.facts()[k]) for k in ("model", "revision")}}
    if shard.config == "filled":
        questions = [*put(params.filled.frames, said), *priors(params)]
        rows = filled(questions, asked, params)
    elif shard.config == "written":
        from plumbline.probes.models.nli import Entailment

        questions = put({name: params.written.frames[name]}, said)
        rows = written(questions, asked, params.written, Entailment(params.written.stance))
    else:
        template, force = name.split("/")
        own = [w for w in said if w.form == "plain"]
        frame = params.chosen.templates[template]
        told = model.endpoint is None or model.endpoint.api != "chat"  # which scores no given text
        rows = chosen(put({template: frame}, own), name, force, asked, params.chosen, told=told)
    for some in _blocks(rows):
        table = [row | about for row in some]
        yield pa.Table.from_pylist(table, schema=schema(shard.config).arrow())


def filled(
    questions: Sequence[Question], scorer: Scorer, params: Params
) -> Iterator[dict[str, Any]]:
    """Yield what a masked model puts at the mask of each prompt.

    Raises
    ------
    Problem
        If it has none of the words of a list as one token.
    """
    assert isinstance(scorer, Predicts)
    assert isinstance(scorer, Fills)
    words = [*params.positive, *params.negative]
    texts = [q.text for q in questions]
    pieces = scorer.pieces(params.language)
    tops = (
        (block.ids[i].tolist(), block.logprobs_nats[i].tolist(), int(block.unknown[i]))
        for block in scorer.predict(texts, params.filled.top, language=params.language)
        for i in range(len(block.prompts))
    )
    masses = (
        dict(zip((block.candidates[j] for j in block.best[i]), block.logprobs_nats[i], strict=True))
        for block in scorer.fill(texts, words, len(words), language=params.language)
        for i in range(len(block.prompts))
    )
    for question, (ids, nats, unknown), mass in zip(questions, tops, masses, strict=True):
        sides = [[mass[w] for w in own if w in mass] for own in (params.positive, params.negative)]
        if not all(sides):
            which = "positive" if not sides[0] else "negative"
            raise Problem(
                f"models.{scorer.name}: has none of the words of probes.leaning.{which} as one "
                "token; name others, or take it out of assignments.leaning"
            )
        yield _row(question) | {
            "words": [pieces.words[i] if pieces.starts[i] else pieces.tokens[i] for i in ids],
            "words_nats": nats,
            "agree_nats": _total(sides[0]),
            "disagree_nats": _total(sides[1]),
            "agree_words": len(sides[0]),
            "disagree_words": len(sides[1]),
            "unknown": unknown,
        }


def written(
    questions: Sequence[Question], scorer: Scorer, params: Written, judge: Entailment
) -> Iterator[dict[str, Any]]:
    """Yield what a model writes, and what a model of entailment makes of it."""
    assert isinstance(scorer, Generates)
    sampling = Sampling(params.tokens, params.temperature, params.top_k)
    for some in _blocks(questions):
        asked = [(q, seed) for q in some for seed in params.seeds]
        texts = list(scorer.generate([q.text for q, _ in asked], [s for _, s in asked], sampling))
        said = [text.text.strip() for text in texts]
        behind = [f"{q.wording} {own}" for (q, _), own in zip(asked, said, strict=True)]
        hypotheses = (params.agree, params.disagree)
        pairs = [(premise, h) for premise in [*behind, *said] for h in hypotheses]
        once = sorted(set(pairs))
        logits = dict(zip(once, judge.logits(once), strict=True))
        for (q, seed), text, own, premise in zip(asked, texts, said, behind, strict=True):
            both, alone = ([logits[p, h] for h in hypotheses] for p in (premise, own))
            yield _row(q) | {
                "seed": seed,
                "response": own,
                "tokens": text.tokens,
                "finished": text.finished,
                **dict(zip(("agree_nats", "disagree_nats"), _shares(both), strict=True)),
                **dict(
                    zip(
                        ("agree_response_nats", "disagree_response_nats"),
                        _shares(alone),
                        strict=True,
                    )
                ),
                "stance_model": judge.name,
                "stance_revision": judge.revision,
            }


def chosen(
    questions: Sequence[Question],
    name: str,
    force: str,
    scorer: Scorer,
    params: Chosen,
    *,
    told: bool = True,
) -> Iterator[dict[str, Any]]:
    """Yield what a model chooses of the answers that it is offered, in every order of them.

    An open prompt offers none, and is asked once. ``told``: whether the model tells probabilities.
    """
    assert isinstance(scorer, Generates)
    sampling = Sampling(params.tokens, params.temperature)
    for some in _blocks(questions):
        cases = [
            (q, number, [params.options[i] for i in order])
            for q in some
            for number, order in enumerate(params.orders if OPTIONS in q.text else [[]])
        ]
        prompts = [_offered(q.text, options, params.forces[force]) for q, _, options in cases]
        offered = [options for _, _, options in cases]
        nats = _options(scorer, prompts, offered, params.options, told=told)
        asked = [(i, seed) for i in range(len(cases)) for seed in params.seeds]
        texts = scorer.generate([prompts[i] for i, _ in asked], [s for _, s in asked], sampling)
        for (i, seed), text in zip(asked, texts, strict=True):
            q, number, options = cases[i]
            yield _row(q) | {
                "text": prompts[i],
                "template": name,
                "order": number,
                "options": options,
                "seed": seed,
                "response": text.text.strip(),
                "option_nats": nats[i],
            }


def _offered(text: str, options: Sequence[str], force: str) -> str:
    """Return a prompt with its options, numbered, and what forces an answer."""
    listed = "\n".join(f"{number}) {option}" for number, option in enumerate(options, start=1))
    return f"{text.replace(OPTIONS, listed)}\n\n{force}" if force else text.replace(OPTIONS, listed)


def _options(
    scorer: Scorer,
    prompts: Sequence[str],
    options: Sequence[Sequence[str]],
    names: Sequence[str],
    *,
    told: bool,
) -> list[list[float]]:
    """Return the log-probability of each option behind its prompt, in the order of ``names``.

    Of a model that cannot tell it, or a prompt without options, an empty list.
    """
    if not told or not isinstance(scorer, ScoresContinuations):
        return [[] for _ in prompts]
    pairs = [
        (prompt + "\n", f"{own.index(name) + 1}) {name}")
        for prompt, own in zip(prompts, options, strict=True)
        for name in (names if own else ())
    ]
    scores = iter(scorer.logprobs(pairs))
    return [[next(scores).logprob_nats for _ in (names if own else ())] for own in options]


def _states(folders: dict[str, Path]) -> list[Checkpoint]:
    where = folders[checkpoints.INPUT]
    return checkpoints.checkpoints(where.name, where.parent)


def _frames(params: Params, config: str) -> list[str]:
    """Return the prompts that are asked one shard each; those of masked models are one."""
    if config == "filled":
        return [""]
    if config == "written":
        return list(params.written.frames)
    return [f"{t}/{force}" for t in params.chosen.templates for force in params.chosen.forces]


def _blocks(items: Iterable[T]) -> Iterator[list[T]]:
    source = iter(items)
    while block := list(islice(source, BLOCK)):
        yield block


def _row(question: Question) -> dict[str, Any]:
    own = question._asdict() | {"form": FORMS.index(question.form)}
    del own["wording"]
    return own


def _total(nats: Sequence[float]) -> float:
    """Return the logarithm of a sum of probabilities."""
    most = max(nats)
    return min(0.0, round(most + math.log(sum(math.exp(x - most) for x in nats)), DECIMALS))


def _shares(logits: Sequence[float]) -> list[float]:
    """Return the log-softmax of some logits, as a classification without examples has it."""
    most = max(logits)
    total = most + math.log(sum(math.exp(x - most) for x in logits))
    return [min(0.0, round(x - total, DECIMALS)) + 0.0 for x in logits]
