"""What a run would take, before it runs: prompts, space, hours.

Hours are the number of prompts times the measured seconds of a batch: small shards of each
language are computed and written on the device at hand, as the run would do it. For a study that
is not fetched yet both come from assumed sizes; a test holds that the numbers of prompts agree.
There, a token takes two operations a weight, and six in training.
"""

from __future__ import annotations

import importlib
import os
import shutil
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from pydantic import Field, ValidationError

from plumbline.builders.core.errors import UserError
from plumbline.builders.core.params import Params as Section
from plumbline.builders.core.params import read
from plumbline.builders.core.progress import Bar
from plumbline.probes import PROBES, module_of
from plumbline.probes.commands.check_params import lacks_commit
from plumbline.probes.core.assignments import assigned_models
from plumbline.probes.core.shards import Shard, Task, Worker
from plumbline.probes.models.params import Model, pointer, worlds
from plumbline.probes.politicians.associations import POS
from plumbline.probes.prompts.leaning import OPTIONS
from plumbline.probes.prompts.opinions import FORMS, GENDERS
from plumbline.probes.stereotypes.after_training import runs
from plumbline.probes.training import pretrain, recipe

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

TRAINS = "TRAINS"  # in modules of probes that cannot be tried for a few seconds
BRING = "make repro STAGE=weights@"
NAMES = 100  # prompts in one step of a trial, about
MODULES: dict[str, Any] = {probe: importlib.import_module(module_of(probe)) for probe in PROBES}
TRAINED = ("pretrain", "after_training", "finetuned_classifiers")
HYPOTHESES = 4  # of agreeing and disagreeing, behind two premises each
PERIODS = {"all": 1.0, "before": 0.5, "from": 0.5}  # share of the texts


class Plan(NamedTuple):
    """What one probe takes with one model; None where the model is not there yet."""

    probe: str
    model: str
    prompts: int
    gigabytes: float | None  # of outputs
    hours: float | None  # on this device


def plans(seconds: float, only: str | None = None) -> Iterator[Plan]:
    """Yield what every probe would take with every model that it names.

    ``seconds``: how long to try each, at least.
    ``only``: one model instead of those that the probes name.
    """
    every = [(p, name) for p in PROBES for name in assigned_models(p) if only in (None, name)]
    if only and not every:
        raise UserError(f"{only}: no probe is assigned to it; name it under assignments")
    for probe, name in Bar(every, desc="plan", unit="model"):
        yield plan(probe, name, seconds)


def plan(probe: str, name: str, seconds: float) -> Plan:
    """Return what one probe would take with one model.

    A UserError if an input is not validated, or the model cannot be loaded, or not do what it
    needs.
    """
    task = Task(probe, name)
    amounts: dict[str, int] = task.module.amount(task.params, task.model, task.folders)
    prompts = sum(amounts.values())
    if TRAINS in vars(task.module) or not pointer(name).is_file():
        return Plan(probe, name, prompts, None, None)
    worker: Any = Worker(probe, name)
    size, spent = 0.0, 0.0
    for config, amount in amounts.items():
        share, written, took = _trial(worker, config, amount, seconds / len(amounts))
        size += written / share
        spent += took / share
    return Plan(probe, name, prompts, size / 1e9, spent / 3600)


def _trial(worker: Any, config: str, prompts: int, seconds: float) -> tuple[float, int, float]:
    """Compute small shards of a config; return their share of all, bytes and seconds."""
    of = max(1, prompts // NAMES)
    size, shards, took = 0, 0, 0.0
    for number in range(of):
        start = time.perf_counter()
        body = worker(Shard(config, "trial", number, of))
        took += time.perf_counter() - start
        size, shards = size + len(body), shards + 1
        if number == 0 and of > 1:  # the first one warms up
            size, shards, took = 0, 0, 0.0
            continue
        if took >= seconds:
            break
    return shards / of, size, took


def table(found: list[Plan]) -> str:
    """Return the plans as a Markdown table."""
    lines = [
        "| probe | model | prompts | outputs, GB | hours on this device |",
        "|---|---|---:|---:|---:|",
    ]
    for p in found:
        if p.hours is None:
            there = pointer(p.model).is_file()
            why = "not tried: it trains" if there else f"bring it first: {BRING}{p.model}"
            rest = f" | {why} |"
        else:
            rest = f"{p.gigabytes:.3f} | {p.hours:.2f} |"
        lines.append(f"| {p.probe} | {p.model} | {p.prompts:,} | {rest}")
    return "\n".join(lines)


class Device(Section):
    """What computes."""

    name: str = Field(description="what the table calls it")
    tflops: float = Field(gt=0, description="operations a second that it really does, in 10^12")


class Parts(Section):
    """Texts of a task."""

    train: int = Field(ge=1, description="to train on")
    test: int = Field(ge=1, description="to classify")


class Sizes(Section):
    """How much there would be of everything."""

    device: Device
    names: dict[str, int] = Field(description="distinct names of people, by language")
    words: dict[str, int] = Field(description="distinct forms, by language")
    groups: int = Field(ge=1, description="social groups")
    statements: dict[str, int] = Field(description="distinct statements, by config")
    texts: dict[str, int] = Field(description="distinct ones, by config of targets")
    originals: dict[str, int] = Field(description="texts with a person, by config of targets")
    replaced: dict[str, float] = Field(description="share of them, by reading")
    countries: int = Field(ge=1, description="with enough names, where the params name none")
    downstream: dict[str, Parts] = Field(description="by config")
    articles: int = Field(ge=1, description="of an outlet")
    words_of_an_article: int = Field(ge=1, description="in the mean")
    tokens_of_a_word: float = Field(gt=0, description="in the mean")
    length: dict[str, float] = Field(description="tokens of one prompt, by probe")
    pieces: int = Field(ge=2, description="of both answers of agreement, a pass for each")
    bytes: dict[str, tuple[float, float]] = Field(description="of a row, and rows of a prompt")
    weights: dict[str, tuple[float, float]] = Field(
        description="millions in the layers and in the embeddings, by model"
    )


class Study:
    """Params of a whole study, and the sizes that are assumed."""

    def __init__(self, tree: dict[str, Any], sizes: Sizes) -> None:
        self.tree, self.sizes = tree, sizes
        self.models = {
            name: Model.model_validate(
                {**given, "revision": "0" * 40} if lacks_commit(given) else given
            )
            for name, given in (tree.get("models") or {}).items()
        } | worlds()
        self.probes = {
            name: module.Params.model_validate(tree["probes"][name])
            for name, module in MODULES.items()
        }
        self.training = pretrain.Params.model_validate(tree["training"]["pretrain"])
        self.questionnaires = tree["sources"]["statements"]["questionnaires"]

    def prompts(self, probe: str, name: str) -> int:
        """Return the number of prompts to a model, as the probe's own ``amount`` counts them."""
        count: Callable[[Any, str, Model], int] = getattr(self, f"_{probe}")
        return count(self.probes[probe], name, self.models[name])

    def trainings(self, name: str) -> int:
        """Return how many classifiers are fine-tuned from a model in its states."""
        own = self.probes["finetuned_classifiers"]
        states = self.states(name, tuple(own.periods)) - 1
        itself = len(self.training.seeds) if states else 1
        return (states + itself) * len(own.seeds)

    def states(self, name: str, periods: tuple[str, ...] | None = None) -> int:
        """Return the states of a model: itself, and one for each training that is kept."""
        own = self.training
        kept = own.epochs if own.save == "each" and periods is None else 1
        number = sum(periods is None or period in periods for period in own.periods)
        corpora = own.corpora.get(name, own.corpora.get(recipe.OTHER, []))
        return 1 + len(corpora) * number * len(own.shares) * len(own.seeds) * kept

    def _associations(self, params: Any, _: str, model: Model) -> int:
        names = sum(self.sizes.names[code] for code in model.among(params.languages))
        return len(POS) * len(params.frame_names(model)) * names

    def _representations(self, params: Any, _: str, model: Model) -> int:
        return sum(self.sizes.words[code] for code in model.among(params.languages))

    def _completions(self, params: Any, _: str, model: Model) -> int:
        languages = model.among(list(params.frames))
        most = (max(map(len, params.frames[code].templates.values())) for code in languages)
        return self.sizes.groups * sum(most)

    def _after_training(self, params: Any, name: str, _: Model) -> int:
        return len(runs(params)) * self.prompts("completions", name)

    def _classification(self, params: Any, _: str, __: Model) -> int:
        """Return the texts and their copies with other names."""
        sizes, given = self.sizes, self.tree["derived"]["counterfactuals"]
        names = {
            "faithful": len(given.get("genders", ["male", "female"]))
            * given["replacements"]
            * sizes.replaced["faithful"],
            "corrected": given["replacements"] * sizes.replaced["corrected"],
            "placebo": given["placebos"] * sizes.replaced["corrected"],
        }
        countries = len(given.get("countries", [])) or sizes.countries
        each: float = 1 + countries * sum(names[reading] for reading in params.readings)
        people, every = (
            sum(of.get(config, 0) for config in params.targets)
            for of in (sizes.originals, sizes.texts)
        )
        return round(each * people) + (every - people if params.unchanged else 0)

    _perplexity = _classification

    def _agreement(self, params: Any, _: str, model: Model) -> int:
        each = len(GENDERS) * len(FORMS)
        return sum(
            each * len(params.frames[code].frames) * self.sizes.statements[config]
            for code in model.among(params.languages)
            for config in self.tree["datasets"]["statements"]["configs"]
            if self.questionnaires[config]["language"] == code
        )

    def _stances(self, params: Any, name: str, model: Model) -> int:
        said = sum(self.sizes.statements[config] for config in params.questionnaires)
        reworded = said * len(params.paraphrases)  # in the first prompt alone
        masks = len(params.mask.frames) * (2 * said + len(params.mask.calibration_inputs))
        written = len(params.generation.frames) * 2 * said + reworded
        choice = params.multiple_choice
        orders = sum(
            len(choice.option_orders) if OPTIONS in template else 1
            for template in choice.templates.values()
        )
        chosen = orders * len(choice.forced_choice_suffixes) * said * len(choice.seeds)
        each = masks + reworded, written * len(params.generation.seeds) + chosen
        return self.states(name) * each[model.kind != "masked"]

    def _finetuned_classifiers(self, params: Any, name: str, _: Model) -> int:
        tested = sum(self.sizes.downstream[task].test for task in params.tasks)
        return self.trainings(name) * tested


def assumed_plans(tree: dict[str, Any], sizes: Sizes) -> Iterator[Plan]:
    """Yield what every probe, and every training, would take with every model.

    A UserError if the sizes lack a model that is assigned.
    """
    study = Study(tree, sizes)
    rate = sizes.device.tflops * 1e12 * 3600
    for probe in MODULES:
        for name in sorted(tree["assignments"][probe]):
            prompts = study.prompts(probe, name)
            size, rows = sizes.bytes[probe]
            space = prompts * size * rows / 1e9
            yield Plan(probe, name, prompts, space, _work(study, probe, name, prompts) / rate)
    for name in sorted(tree["assignments"]["stances"]):
        if trainings := study.states(name) - 1:
            work = 6e6 * sum(_weights(study, name)) * _pretraining(study, name)
            space = trainings * 4e-3 * sum(_weights(study, name))
            yield Plan("pretrain", name, trainings, space, work / rate)


def _work(study: Study, probe: str, name: str, prompts: int) -> float:
    """Return the operations of a probe with a model."""
    sizes = study.sizes
    tokens = prompts * sizes.length[probe]
    written = study.probes["stances"].generation
    if study.models[name].kind == "remote":
        return 0.0
    inner, outer = _weights(study, name)
    if probe == "perplexity":
        # each token masked alone, and again with those of its word behind it, where there are any
        passes = sizes.length[probe] * (2 - 1 / sizes.tokens_of_a_word)
        return 2e6 * tokens * passes * inner
    work = 2e6 * tokens * inner
    if probe == "agreement":
        return sizes.pieces * (work + 2e6 * prompts * outer)
    if probe == "stances" and study.models[name].kind != "masked":
        tokens += prompts * written.max_new_tokens
        judged = HYPOTHESES * prompts * (sizes.length[probe] + written.max_new_tokens)
        work = 2e6 * (tokens * inner + prompts * written.max_new_tokens * outer)
        work += 2e6 * judged * _weights(study, written.nli_model)[0]
    elif probe not in ("classification", "finetuned_classifiers", "representations"):
        work += 2e6 * prompts * outer  # the head, where the mask is
    if probe == "after_training":
        own = study.probes[probe]
        words = sizes.articles * sizes.words_of_an_article * own.epochs
        times = sum(share for _, share, _ in runs(own))
        work += 6e6 * (inner + 0.15 * outer) * times * words * sizes.tokens_of_a_word
    if probe == "finetuned_classifiers":
        own = study.probes[probe]
        texts = sum(sizes.downstream[task].train for task in own.tasks) * own.epochs
        work += 6e6 * inner * study.trainings(name) * texts * sizes.length[probe]
    return work


def _pretraining(study: Study, name: str) -> float:
    """Return the tokens that a model reads in all of its trainings."""
    own = study.training
    times = len(own.seeds) * sum(own.shares) * own.epochs
    if own.max_tokens:
        return float(own.max_tokens * len(own.corpora[name]) * len(own.periods) * times)
    sides = study.tree["derived"]["corpora"]["sizes"]
    words = sum(sides[corpus] for corpus in own.corpora[name])
    times *= sum(PERIODS[period] for period in own.periods)
    return float(words * study.sizes.tokens_of_a_word * times)


def _weights(study: Study, name: str) -> tuple[float, float]:
    if name not in study.sizes.weights:
        raise UserError(f"weights.{name}: not there; add its millions of weights to the sizes")
    return study.sizes.weights[name]


def summary(found: list[Plan], sizes: Sizes) -> str:
    """Return the sums over all plans in sentences."""
    prompts = sum(p.prompts for p in found if p.probe != "pretrain")
    space, hours = sum(p.gigabytes or 0 for p in found), sum(p.hours or 0 for p in found)
    weights = 4e-3 * sum(map(sum, sizes.weights.values()))
    return (
        f"In all {prompts:,} prompts, {space:,.0f} GB of outputs and trained states, "
        f"{weights:,.0f} GB of weights from the Hub; {hours:,.0f} hours on {sizes.device.name}."
    )


def trainings(tree: dict[str, Any]) -> str:
    """Return in sentences how much the trainings on corpora read, and which are tested."""
    own = pretrain.Params.model_validate(tree["training"]["pretrain"])
    most = tree["analysis"]["compass"]["max_size_difference"]
    told = f"Trainings whose steps differ by more than {most:.0%} are not tested against each other"
    if not (own.max_tokens and own.batch_tokens):
        return f"{told}: without max_tokens and batch_tokens steps go by the length of the texts."
    steps = -(-own.max_tokens // own.batch_tokens) * own.epochs
    return (
        f"Each training on a corpus reads {own.max_tokens:,} tokens {own.epochs} times in about "
        f"{steps:,} steps, of every corpus and period alike. {told}."
    )


class Room(NamedTuple):
    """Room that a run needs, or that there is, GB."""

    disk: float
    memory: float


def needed(found: list[Plan], sizes: Sizes) -> Room:
    """Return what plans need at most.

    DVC keeps a copy of what is written; weights lie once, in the cache of the Hub's client. A
    training has the weights, their gradients and two moments in float32.
    """
    written = sum(p.gigabytes or 0 for p in found)
    weights = {p.model: sum(sizes.weights.get(p.model, ())) for p in found}
    trained = [weights[p.model] for p in found if p.probe in TRAINED]
    return Room(2 * written + 4e-3 * sum(weights.values()), 16e-3 * max(trained, default=0))


def here(folder: Path = Path()) -> Room:
    """Return the free space of a folder's disk, and the memory of this machine."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return Room(shutil.disk_usage(folder).free / 1e9, memory / 1e9)


def lacking(need: Room, have: Room) -> str:
    """Return a sentence on what is needed, with what lacks here, if anything does."""
    told = f"At most {need.disk:,.0f} GB of disk, DVC's copies included, and"
    told += f" {need.memory:,.0f} GB of memory for the largest training; "
    told += f"here are {have.disk:,.0f} GB free and {have.memory:,.0f} GB of memory"
    less = [what for what in Room._fields if getattr(need, what) > getattr(have, what)]
    return told + (f": too little {' and '.join(less)}." if less else ".")


def fits(found: list[Plan], sizes: Sizes) -> None:
    """Raise a UserError if this machine has less room than plans need."""
    need, have = needed(found, sizes), here()
    if need.disk > have.disk or need.memory > have.memory:
        raise UserError(
            f"{lacking(need, have)} Take models out of `assignments`, run on a larger machine, or "
            "a cluster; `make full ROOM=any` runs all the same, and ends where the disk is full"
        )


def sizes_in(path: Path) -> Sizes:
    """Return the sizes that a file assumes.

    A UserError if it is not a file of sizes.
    """
    try:
        return Sizes.model_validate(read(path))
    except ValidationError as error:
        wrong = error.errors(include_url=False)[0]
        where = ".".join(map(str, wrong["loc"]))
        raise UserError(f"{path}: {where}: {wrong['msg']}; see params/full-sizes.yaml") from error
