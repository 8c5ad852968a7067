"""Probe ``finetuned_classifiers``: classifiers fine-tuned from each checkpoint of a model.

The model itself and every final checkpoint of its continued pretraining are fine-tuned for each
task of the dataset ``downstream``, with the same texts, settings and seeds, so that the classifiers
differ only in their pretraining. Feng et al. (2023), section 4.
"""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import polars as pl
from pydantic import Field

from plumbline.builders.core.errors import UserError
from plumbline.builders.core.schema import Column, Schema
from plumbline.builders.datasets.downstream.read import SPLITS
from plumbline.probes.core.run_probe import MODEL, Shard, Task, rows
from plumbline.probes.leaning.schemas import PLANTED
from plumbline.probes.models.params import pointer
from plumbline.probes.training import checkpoints
from plumbline.probes.training.checkpoints import Recipe

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from plumbline.probes.models.params import Model
    from plumbline.probes.models.scorer import Scorer
    from plumbline.probes.training.checkpoints import Checkpoint

INPUTS = ("downstream",)
VERB = "pseudo_logprobs"  # only masked models are fine-tuned
PROMPT = "id"
TRAINS = True  # too slow for a trial of a few seconds
PRETRAINED = True  # also run on the checkpoints of a model
WORK = Path("data/tuning")  # files of training runs in progress
NESTED = 1000  # multiplies the pretraining seed, so that each has its own fine-tuning seeds
ITSELF = "itself"  # stands for the model without further pretraining in file names
OWN = "downstream.parquet"  # file with the task of a control model

SCHEMA = Schema(
    columns=(
        *checkpoints.COLUMNS,
        Column("finetuning_seed", "int32", "random seed of the fine-tuning", minimum=0),
        Column("id", "string", "id of the text, as in `downstream`"),
        Column("label", "string", "class of the text in `downstream`"),
        Column("group", "string", "group that a control model's text is about; otherwise empty"),
        Column("class", "string", "class predicted by the classifier"),
        Column("logprob_nats", "float64", "log-probability of that class", maximum=0),
        *MODEL,
    ),
    key=(*checkpoints.KEY, "finetuning_seed", "id", "class"),
)
SCHEMAS = {"one a config of downstream, and planted": SCHEMA}


class Params(Recipe):
    """Tasks and fine-tuning settings, which all checkpoints of a model share."""

    version: str = Field(pattern=r"^\d+\.\d+\.\d+$", description="version of the outputs")
    tasks: list[str] = Field(min_length=1, description="tasks, which are configs of downstream")
    seeds: list[Annotated[int, Field(ge=0, lt=NESTED)]] = Field(
        min_length=1, description="fine-tuning seeds, used with each pretraining seed"
    )
    epochs: int = Field(10, ge=1, description="number of passes over the texts")
    batch: int = Field(16, ge=1, description="number of texts in a step")
    length: int = Field(
        512, ge=8, description="number of tokens after which a training text is truncated"
    )
    micro_batch: int = Field(
        0, ge=0, description="texts of `length` per pass, more if they are shorter; 0 for `batch`"
    )
    weight_decay: float = Field(0.1, ge=0, description="weight decay, applied to matrices only")
    periods: list[Literal["all", "before", "from"]] = Field(
        ["all", "before", "from"],
        min_length=1,
        description="periods of the checkpoints' training texts",
    )
    max_texts: int | None = Field(
        None,
        ge=2,
        description="maximum number of training texts, sampled by a hash of ids; null for all",
    )


def tasks(params: Params, model: Model, folders: dict[str, Path]) -> dict[str, Path]:
    """Return the file of each task for which a model is fine-tuned.

    Raises UserError if a task is not in the dataset or no task is in a language of the model.
    """
    files = {}
    for task in params.tasks:
        path = folders["downstream"] / f"{task}.parquet"
        if not path.is_file():
            raise UserError(
                f"probes.finetuned_classifiers.tasks: {task} is not in downstream; add it under "
                "datasets.downstream.configs, or remove it"
            )
        languages = pl.read_parquet(path, columns=["language"])["language"].unique()
        if model.among(sorted(languages)):
            files[task] = path
    name = folders[checkpoints.INPUT].name
    if (planted := pointer(name).parent / OWN).is_file():
        files[PLANTED] = planted
    if not files:
        raise UserError(
            f"models.{name}.languages: no task of probes.finetuned_classifiers is in any of them; "
            "add a language, or remove the model from assignments.finetuned_classifiers"
        )
    return files


def runs(params: Params, folders: dict[str, Path]) -> list[tuple[Checkpoint, int]]:
    """Return every final checkpoint with its fine-tuning seeds, in the order of the shards.

    A training run consists of pretraining and fine-tuning. Each pretraining seed has its own
    fine-tuning seeds, and the model itself is fine-tuned with all of them.

    Raises UserError if the stage ``pretrain`` was not run for the model.
    """
    folder = folders[checkpoints.INPUT]
    states = [
        state
        for state in checkpoints.checkpoints(folder.name, folder.parent)
        if state.last and (not state.name or state.period in params.periods)
    ]
    seeds = sorted({state.seed for state in states if state.name}) or [0]
    return [
        (state, NESTED * pretraining + finetuning)
        for state in states
        for pretraining in ([state.seed] if state.name else seeds)
        for finetuning in params.seeds
    ]


def shards(params: Params, model: Model, folders: dict[str, Path]) -> list[Shard]:
    """Return the shards of a model, one for each task and fine-tuning run.

    Raises UserError if a task is not in the dataset or the model has no checkpoints yet.
    """
    trainings = runs(params, folders)
    return [
        Shard(task, f"{state.name or ITSELF}-{seed}", number, len(trainings))
        for task in tasks(params, model, folders)
        for number, (state, seed) in enumerate(trainings)
    ]


def amount(params: Params, model: Model, folders: dict[str, Path]) -> dict[str, int]:
    """Return the number of texts that are classified in each task, over all runs."""
    number, files = len(runs(params, folders)), tasks(params, model, folders)
    return {task: number * len(examples(path, None)[1]) for task, path in files.items()}


def answer(shard: Shard, task: Task, scorer: Scorer) -> Iterator[pa.Table]:
    """Train the classifier of one shard, and yield the table of its predictions.

    Raises UserError if the learning rate is missing, a test text is too long or training fails.
    """
    from plumbline.probes.models.classifier import Classifier
    from plumbline.probes.training.train import Tuning, finetune_classifier, recipe

    params: Params = task.params
    model, folders, name = task.model, task.folders, scorer.name
    state, seed = runs(params, folders)[shard.number]
    rate = params.rate(name, "probes.finetuned_classifiers")
    settings = {field: value for field, value in params if field in Tuning._fields}
    settings |= {"learning_rate": rate, "seed": seed, "at_once": params.micro_batch}
    tuning = Tuning(**settings)
    train, test = examples(tasks(params, model, folders)[shard.config], params.max_texts)
    texts, labels = (train[name].to_list() for name in ("text", "label"))
    start = checkpoints.files(name, state, folders[checkpoints.INPUT].parent)
    revision = checkpoints.revision(state) if state.name else str(scorer.facts()["revision"])
    made = recipe(texts, labels, tuning, revision, model.dtype)[:12]
    where = WORK / f"{name}-{shard.config}-{shard.part}-{made}"
    classes = sorted(set(labels))
    numbers = [classes.index(label) for label in labels]
    trained = finetune_classifier(start, name, texts, numbers, classes, tuning, where)
    classifier = Classifier(trained.folder, name, revision, dtype=model.dtype)
    predicted = list(classifier.classify(test["text"].to_list()))
    classes_of = pl.Series("class", [text.labels for text in predicted])
    nats = pl.Series("logprob_nats", [text.logprobs_nats for text in predicted])
    table = test.select("id", "label", "group", classes_of, nats).explode("class", "logprob_nats")
    about = state.facts() | {"finetuning_seed": seed}
    yield rows(SCHEMA, classifier, len(table), about | table.to_dict(as_series=False))
    shutil.rmtree(where)  # last, so that an interrupted run does not train again


def examples(path: Path, texts: int | None) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Read the training and test texts of a task, both sorted by id.

    Raises UserError if a split is empty, or the training texts cover fewer than two classes or not
    all classes of the test texts.
    """
    frame = pl.read_parquet(path).sort("id")
    if "group" not in frame.columns:
        frame = frame.with_columns(group=pl.lit(""))
    names = {str(code): split for code, split in enumerate(SPLITS)}
    frame = frame.with_columns(pl.col("split").cast(pl.String).replace(names))
    train, test = (frame.filter(split=split) for split in ("train", "test"))
    if texts is not None and len(train) > texts:
        hashes = [hashlib.sha256(name.encode()).hexdigest() for name in train["id"]]
        train = train.sort(pl.Series(hashes)).head(texts).sort("id")
    classes, tested = set(train["label"]), set(test["label"])
    if len(classes) < 2 or not tested or tested - classes:
        raise UserError(
            f"{path}: training texts have {', '.join(sorted(classes)) or 'no class'} and test "
            f"texts {', '.join(sorted(tested)) or 'no class'}; each split must have all classes"
        )
    return train, test
