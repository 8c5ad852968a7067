"""Params of all trainings, and the states of continued pretraining that later stages probe.

``data/pretrained/MODEL`` holds ``checkpoints.json``, a list with an entry for every state that was
kept, and a folder with the files of each. The model itself, untouched, is the first state of all.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple

from pydantic import Field

from plumbline.builders.core.errors import UserError
from plumbline.builders.core.params import Params
from plumbline.builders.core.schema import Column
from plumbline.probes.models.load import adapter, changed, download, load
from plumbline.probes.models.params import model

if TYPE_CHECKING:
    from plumbline.probes.models.scorer import Scorer

FOLDER = Path("data/pretrained")
LIST = "checkpoints.json"
INPUT = "pretrained"  # among the folders that a probe of states reads
PERIODS = ("all", "before", "from")
COLUMNS = (
    Column("corpus", "string", "config of `corpora` it was trained on further; empty: the model"),
    Column(
        "period",
        "category",
        "texts trained on: all; before, and from 2017-01-20 on",
        labels=PERIODS,
    ),
    Column("share", "float64", "part of these texts; 0: the model itself", minimum=0, maximum=1),
    Column("pretraining_seed", "int32", "of that training and its choice of texts", minimum=0),
    Column("epoch", "int32", "times that it had read them", minimum=0),
    Column("texts", "int32", "texts that it was trained on", minimum=0),
    Column("steps", "int32", "steps of the training so far", minimum=0),
)
KEY = ("corpus", "period", "share", "pretraining_seed", "epoch")

OTHER = "other"
Beta = Annotated[float, Field(ge=0, lt=1)]


class Rates(Params):
    """How fast models are trained."""

    learning_rate: dict[str, Annotated[float, Field(gt=0)]] = Field(
        description=f"highest learning rate, by model or for `{OTHER}`"
    )

    def rate(self, name: str, section: str) -> float:
        """Return the learning rate of a model; none for it is a UserError with the section."""
        rate = self.learning_rate.get(name, self.learning_rate.get(OTHER))
        if rate is None:
            raise UserError(f"{section}.learning_rate: none for {name}, nor for {OTHER}")
        return rate


class Recipe(Rates):
    """How models are trained with any of the optimizers."""

    optimizer: Literal["adamw", "adam", "radam"] = Field(
        "adamw", description="whose weight decay is AdamW's, or part of the gradient"
    )
    precision: Literal["float32", "bfloat16"] = Field(
        "float32",
        description="of products, weights being float32: float32 (TF32 on a GPU that has it), or "
        "bfloat16",
    )
    warmup: float = Field(
        0.06, ge=0, lt=1, description="share of the steps in which the learning rate rises"
    )
    betas: tuple[Beta, Beta] = Field((0.9, 0.98), description="of the optimizer")
    epsilon: float = Field(1e-6, gt=0, description="of the optimizer")


class Checkpoint(NamedTuple):
    """A state of a model."""

    name: str  # of its folder; empty for the model itself
    corpus: str
    period: str
    share: float
    seed: int
    epoch: int
    texts: int
    steps: int
    last: bool  # whether the training ended with it
    files: dict[str, str]  # their sha256
    recipe: str = ""  # hash of model, texts, settings and code that it was made with

    def facts(self) -> dict[str, object]:
        """Return the values of :data:`COLUMNS`."""
        names = [column.name for column in COLUMNS]
        return dict(zip(names, self[1:8], strict=True))


ITSELF = Checkpoint("", "", "all", 0.0, 0, 0, 0, 0, True, {})


def checkpoints(name: str, folder: Path = FOLDER) -> list[Checkpoint]:
    """Return the states of a model, itself first, the others in the order of :data:`KEY`.

    A UserError if the stage ``pretrain`` was not run for it.
    """
    path = folder / name / LIST
    if not path.is_file():
        raise UserError(f"{path}: not there; run `make repro STAGE=pretrain@{name}` first")
    states = [Checkpoint(**entry) for entry in json.loads(path.read_text(encoding="utf-8"))]
    return [ITSELF, *sorted(states, key=lambda state: state[1:6])]


def scorer(name: str, checkpoint: Checkpoint, folder: Path = FOLDER) -> Scorer:
    """Load a model in one of its states, from :func:`files`."""
    if not checkpoint.name:
        return load(name)
    params, where = model(name), files(name, checkpoint, folder)
    options = {"dtype": params.dtype, "context": params.context}
    trained: Scorer = adapter(params.kind)(where, name, revision(checkpoint), **options)
    return trained


def files(name: str, checkpoint: Checkpoint, folder: Path = FOLDER) -> Path:
    """Return the folder with the files of a model in one of its states.

    A file that is not as it was when the training ended is a UserError.
    """
    if not checkpoint.name:
        return download(name, model(name))
    where = folder / name / checkpoint.name
    if path := changed(where, checkpoint.files):
        raise UserError(
            f"{path}: not the file that {LIST} names; train again with "
            f"`make repro STAGE='--force pretrain@{name}'`"
        )
    return where


def revision(checkpoint: Checkpoint) -> str:
    """Return the hash by which outputs name a state that is not the model itself.

    It stands for how the state was made: the last bits of its weights differ between processors.
    """
    made: object = [checkpoint.recipe, checkpoint.name] if checkpoint.recipe else checkpoint.files
    return hashlib.sha256(json.dumps(made, sort_keys=True).encode()).hexdigest()[:40]
