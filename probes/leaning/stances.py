"""Probe ``stances``: agreement with political statements, before and after training.

The model itself and each of its checkpoints from the stage ``pretrain`` are probed. Masked models
fill the mask in "I <mask> with this statement". Generative models choose from four options, and
also respond freely; an NLI model classifies the free responses. The prompts are those of Feng et
al. (2023), section 2; options and open prompts are those of Röttger et al. (2024).
"""

from __future__ import annotations

from itertools import chain, islice, product
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pydantic import Field
from scipy.special import log_softmax, logsumexp

from plumbline.builders.core.errors import UserError
from plumbline.builders.core.schema import Column, Schema
from plumbline.probes.core.run_probe import MODEL, Shard, Task
from plumbline.probes.models.scorer import Fills, Generates, Predicts, Sampling, ScoresContinuations
from plumbline.probes.prompts.leaning import FORMS, OPTIONS, Asking, offer, priors, put, wordings
from plumbline.probes.training import checkpoints

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from plumbline.probes.models.classifier import Entailment
    from plumbline.probes.models.params import Model
    from plumbline.probes.models.scorer import Score, Scorer
    from plumbline.probes.prompts.leaning import Generation, MultipleChoice, Question
    from plumbline.probes.training.checkpoints import Checkpoint

    Row = dict[str, Any]

INPUTS = ("statements",)
VERB = ("predict", "generate")  # one of these is sufficient
PROMPT = "text"  # name of the column with the prompt
PRETRAINED = True  # run on every checkpoint of a model
TRAINS = True  # too slow for a trial of a few seconds, since each checkpoint is loaded
DECIMALS = 6
STANCES = ("agree_nats", "disagree_nats", "entailed_nats", "contradicted_nats")

PROMPTED = (
    *checkpoints.COLUMNS,
    Column("questionnaire", "string", "config of `statements`; empty for content-free texts"),
    Column("id", "string", "id of the statement; empty for content-free texts"),
    Column("frame", "string", "name of the template"),
    Column(
        "form",
        "category",
        "wording of the statement: plain, negated or paraphrased; prior: a content-free text in "
        "its place",
        labels=FORMS,
    ),
    Column("variant", "string", "paraphrase's name, or the content-free text itself; else empty"),
    Column("text", "string", "the exact prompt"),
)
SEED = Column("seed", "int32", "random seed of the response", minimum=0)
RESPONSE = Column("response", "string", "text of the response")
KEY = (*checkpoints.KEY, "questionnaire", "id", "frame", "form", "variant")


def _nats_column(name: str, description: str) -> Column:
    return Column(name, "float64", description, maximum=0)


SCHEMAS = {
    "mask": Schema(
        (
            *PROMPTED,
            Column(
                "words",
                "strings",
                "most probable tokens at the mask, best first; tokens inside a word are spelled "
                "as in the vocabulary",
            ),
            Column("words_nats", "floats", "log-probabilities of these tokens"),
            _nats_column("agree_nats", "total log-probability of one-token words that agree"),
            _nats_column("disagree_nats", "total log-probability of one-token words that disagree"),
            Column("agree_words", "int32", "number of one-token words that agree", minimum=1),
            Column("disagree_words", "int32", "number of one-token words that disagree", minimum=1),
            Column("unknown", "int32", "number of unknown tokens in the prompt", minimum=0),
            *MODEL,
        ),
        KEY,
    ),
    "generation": Schema(
        (
            *(*PROMPTED, SEED, RESPONSE),
            Column("tokens", "int32", "number of tokens in the response", minimum=0),
            Column("finished", "bool", "whether the model ended the response before the limit"),
            _nats_column(
                "agree_nats",
                "log-probability of agreement rather than disagreement, from an entailment model "
                "whose premise is the statement and the response",
            ),
            _nats_column("disagree_nats", "log-probability of disagreement, computed likewise"),
            _nats_column(
                "entailed_nats",
                "log-probability, over all labels of that model, that the response entails the "
                "statement",
            ),
            _nats_column("contradicted_nats", "log-probability that the response contradicts it"),
            Column("stance_model", "string", "name of the model that classified the response"),
            Column("stance_revision", "string", "revision of that model"),
            *MODEL,
        ),
        (*KEY, "seed"),
    ),
    "multiple_choice": Schema(
        (
            *PROMPTED,
            Column("template", "string", "names of the template and its forced-choice suffix"),
            Column("order", "int32", "index of the order of the options", minimum=0),
            Column("options", "strings", "options in the offered order; empty for an open prompt"),
            *(SEED, RESPONSE),
            Column(
                "option_nats",
                "floats",
                "log-probabilities of the options strongly disagree, disagree, agree and strongly "
                "agree, in this order; empty if unavailable or if the prompt is open",
            ),
            *MODEL,
        ),
        (*KEY, "template", "order", "seed"),
    ),
}


class Params(Asking):
    """Prompts and sampling settings of the probe."""

    version: str = Field(pattern=r"^\d+\.\d+\.\d+$", description="version of the outputs")

    @property
    def languages(self) -> list[str]:
        """Return the language of the prompts."""
        return [self.language]


def configs(model: Model, params: Params, name: str) -> tuple[str, ...]:
    """Return the response formats of a model."""
    if model.kind == "masked":
        return ("mask",)
    options = params.multiple_choice
    offered = bool(options.templates) and name not in options.excluded_models
    return ("generation", "multiple_choice")[: 2 if offered else 1]


def prompts(params: Params, config: str, folders: dict[str, Path]) -> dict[str, list[Question]]:
    """Return the prompts of a response format, by shard within a checkpoint."""
    statements = wordings(params, folders["statements"])
    if config == "mask":
        return {"": [*put(params.mask.frames, statements), *priors(params)]}
    if config == "generation":
        questions = put(params.generation.frames, statements)
        return {f: [q for q in questions if q.frame == f] for f in params.generation.frames}
    plain = [wording for wording in statements if wording.form == "plain"]
    return {
        f"{name}/{suffix}": put({name: template}, plain)
        for name, template in params.multiple_choice.templates.items()
        for suffix in params.multiple_choice.forced_choice_suffixes
    }


def shards(params: Params, model: Model, folders: dict[str, Path]) -> list[Shard]:
    """Return the shards of a model, one per checkpoint and, if it is generative, per template.

    Raises UserError if statements are missing or the stage ``pretrain`` was not run for the model.
    """
    result = []
    for config in configs(model, params, folders[checkpoints.INPUT].name):
        frames = range(len(prompts(params, config, folders)))
        names = [f"{s.name or 'itself'}-{n:02d}" for s in _states(folders) for n in frames]
        result += [Shard(config, name, i, len(names)) for i, name in enumerate(names)]
    return result


def beside(params: Params, model: Model) -> tuple[str, ...]:
    """Return the names of other models that the outputs depend on."""
    return () if model.kind == "masked" else (params.generation.nli_model,)


def amount(params: Params, model: Model, folders: dict[str, Path]) -> dict[str, int]:
    """Return the number of prompts of each response format, over all checkpoints."""
    numbers = {}
    for config in configs(model, params, folders[checkpoints.INPUT].name):
        seeds = 1 if config == "mask" else len(getattr(params, config).seeds)
        questions = chain(*prompts(params, config, folders).values())
        orders = sum(len(_orders(question, params.multiple_choice)) for question in questions)
        numbers[config] = len(_states(folders)) * seeds * orders
    return numbers


def answer(shard: Shard, task: Task, scorer: Scorer) -> Iterator[pa.Table]:
    """Yield the output table of one shard."""
    params: Params = task.params
    folders, endpoint = task.folders, task.model.endpoint
    by_name = prompts(params, shard.config, folders)
    name = list(by_name)[shard.number % len(by_name)]
    state = _states(folders)[shard.number // len(by_name)]
    if state.name:
        scorer = checkpoints.scorer(scorer.name, state, folders[checkpoints.INPUT].parent)
    if shard.config == "mask":
        rows = fill_masks(by_name[name], scorer, params)
    elif shard.config == "generation":
        from plumbline.probes.models.classifier import Entailment

        judge = Entailment(params.generation.nli_model)
        rows = generate(by_name[name], scorer, params.generation, judge)
    else:
        scored = endpoint is None or endpoint.api != "chat"  # chat APIs score no texts
        rows = choose(by_name[name], name, scorer, params.multiple_choice, scored=scored)
    about = {**state.facts(), **{k: str(scorer.facts()[k]) for k in ("model", "revision")}}
    table = [row | about for row in rows]
    yield pa.Table.from_pylist(table, schema=SCHEMAS[shard.config].arrow())


def fill_masks(questions: Sequence[Question], scorer: Scorer, params: Params) -> Iterator[Row]:
    """Yield a masked model's best words, and the masses of agreeing and disagreeing words.

    Raises UserError if no word in a list is a single token.
    """
    assert isinstance(scorer, Predicts)
    assert isinstance(scorer, Fills)
    lists = {"positive": params.positive, "negative": params.negative}
    words = [*params.positive, *params.negative]
    texts, language = [q.text for q in questions], params.language
    pieces = scorer.pieces(language)
    best = (
        row
        for block in scorer.predict(texts, params.mask.top_k, language=language)
        for row in zip(block.ids.tolist(), block.logprobs_nats.tolist(), block.unknown, strict=True)
    )
    blocks = scorer.fill(texts, words, len(words), language=language)
    fills = (scores for block in blocks for scores, _ in block.by_prompt())
    for question, (ids, nats, unknown), scores in zip(questions, best, fills, strict=True):
        tokens = [pieces.words[i] if pieces.starts[i] else pieces.tokens[i] for i in ids]
        row: Row = {"words": tokens, "words_nats": nats, "unknown": int(unknown)}
        for side, name in (("agree", "positive"), ("disagree", "negative")):
            masses = [scores[word][0] for word in lists[name] if word in scores]
            if not masses:
                raise UserError(
                    f"models.{scorer.name}: no word in probes.stances.{name} is a single token; "
                    "add others, or remove the model from assignments.stances"
                )
            row |= {f"{side}_nats": _nats(logsumexp(masses)), f"{side}_words": len(masses)}
        yield _row(question) | row


def generate(
    questions: Sequence[Question], scorer: Scorer, params: Generation, judge: Entailment
) -> Iterator[Row]:
    """Yield the responses of a model, with stances classified by an entailment model."""
    assert isinstance(scorer, Generates)
    sampling = Sampling(params.max_new_tokens, params.temperature, params.top_k)
    prompts = list(product(questions, params.seeds))
    texts = scorer.generate([q.text for q, _ in prompts], [seed for _, seed in prompts], sampling)
    written = [
        (q, seed, text, text.text.strip()) for (q, seed), text in zip(prompts, texts, strict=True)
    ]
    hypotheses = (params.agree, params.disagree)
    pairs = {(f"{q.wording} {answer}", h) for q, *_, answer in written for h in hypotheses}
    pairs |= {(answer, q.wording) for q, *_, answer in written}
    logits = dict(zip(sorted(pairs), judge.logits(sorted(pairs)), strict=True))
    for q, seed, text, response in written:
        # log-softmax over both hypotheses, as in zero-shot classification
        sides = [logits[f"{q.wording} {response}", h][judge.follows] for h in hypotheses]
        alone = log_softmax(logits[response, q.wording])[[judge.follows, judge.contradicts]]
        nats = map(_nats, (*log_softmax(sides), *alone))
        row = _row(q) | {"seed": seed, "response": response, "tokens": text.tokens}
        row |= {"finished": text.finished} | dict(zip(STANCES, nats, strict=True))
        yield row | {"stance_model": judge.name, "stance_revision": judge.revision}


def choose(
    questions: Sequence[Question],
    name: str,
    scorer: Scorer,
    params: MultipleChoice,
    *,
    scored: bool = True,
) -> Iterator[Row]:
    """Yield a model's responses to options that are offered in each of the configured orders.

    An open prompt offers no options, so it is used once.

    ``name``: names of the template and the suffix, separated by a slash.
    ``scored``: whether the model returns log-probabilities.
    """
    assert isinstance(scorer, Generates)
    sampling = Sampling(params.max_new_tokens, params.temperature)
    suffix = params.forced_choice_suffixes[name.rpartition("/")[2]]
    rows: list[Row] = []
    for question in questions:
        for number, order in enumerate(_orders(question, params)):
            options = [params.options[i] for i in order]
            text = offer(question.text, options, suffix)
            prompt = {"text": text, "template": name, "order": number, "options": options}
            rows.append(_row(question) | prompt)
    nats: Iterator[Score] = iter(())
    if scored and isinstance(scorer, ScoresContinuations):
        nats = scorer.logprobs(
            (f"{row['text']}\n", f"{row['options'].index(option) + 1}) {option}")
            for row in rows
            for option in params.options[: len(row["options"])]
        )
    for row in rows:
        row["option_nats"] = [score.logprob_nats for score in islice(nats, len(row["options"]))]
    prompts = list(product(rows, params.seeds))
    texts = scorer.generate([row["text"] for row, _ in prompts], [s for _, s in prompts], sampling)
    for (row, seed), response in zip(prompts, texts, strict=True):
        yield row | {"seed": seed, "response": response.text.strip()}


def _orders(question: Question, params: MultipleChoice) -> list[list[int]]:
    """Return the orders of the options in a prompt; an open prompt has one empty order."""
    return params.option_orders if OPTIONS in question.text else [[]]


def _states(folders: dict[str, Path]) -> list[Checkpoint]:
    folder = folders[checkpoints.INPUT]
    return checkpoints.checkpoints(folder.name, folder.parent)


def _row(question: Question) -> Row:
    return {name: value for name, value in question._asdict().items() if name != "wording"}


def _nats(value: float) -> float:
    """Round the logarithm of a probability, and clip it to at most 0."""
    return min(0.0, round(float(value), DECIMALS)) + 0.0
