"""Params of training stages, and the saved checkpoints (states) that later stages use.

``data/pretrained/MODEL`` contains ``checkpoints.json``, which lists the saved checkpoints, and a
folder of files for each of them. The original model is the first checkpoint.
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
INPUT = "pretrained"  # key of the checkpoints among the input folders of a probe
PERIODS = ("all", "before", "from")
COLUMNS = (
    Column("corpus", "string", "training corpus (config of `corpora`); empty: original model"),
    Column(
        "period",
        "category",
        "period of the texts: all, before 2017-01-20, or from that day on",
        labels=PERIODS,
    ),
    Column("share", "float64", "share of texts used; 0: original model", minimum=0, maximum=1),
    Column("pretraining_seed", "int32", "seed of the training run and its texts", minimum=0),
    Column("epoch", "int32", "completed passes over the texts", minimum=0),
    Column("texts", "int32", "number of training texts", minimum=0),
    Column("steps", "int32", "completed training steps", minimum=0),
)
KEY = ("corpus", "period", "share", "pretraining_seed", "epoch")

OTHER = "other"
Beta = Annotated[float, Field(ge=0, lt=1)]


class Rates(Params):
    """Learning rates, by model."""

    learning_rate: dict[str, Annotated[float, Field(gt=0)]] = Field(
        description=f"maximum learning rate, by model or for `{OTHER}`"
    )

    def rate(self, name: str, section: str) -> float:
        """Return a model's learning rate; raise UserError if ``section`` lists none."""
        rate = self.learning_rate.get(name, self.learning_rate.get(OTHER))
        if rate is None:
            raise UserError(f"{section}.learning_rate: no entry for {name} or {OTHER}")
        return rate


class Recipe(Rates):
    """Training settings shared by all training stages."""

    optimizer: Literal["adamw", "adam", "radam"] = Field(
        "adamw", description="adamw decouples weight decay; the others add it to the gradient"
    )
    precision: Literal["float32", "bfloat16"] = Field(
        "float32",
        description="precision of matrix products; weights are always float32; float32 uses TF32 "
        "on GPUs that support it",
    )
    warmup: float = Field(
        0.06, ge=0, lt=1, description="share of steps in which the learning rate rises"
    )
    betas: tuple[Beta, Beta] = Field((0.9, 0.98), description="betas of the optimizer")
    epsilon: float = Field(1e-6, gt=0, description="epsilon of the optimizer")


class Checkpoint(NamedTuple):
    """A saved checkpoint (state) of a model."""

    name: str  # folder name; empty for the original model
    corpus: str
    period: str
    share: float
    seed: int
    epoch: int
    texts: int
    steps: int
    last: bool  # True for the final checkpoint of a training run
    files: dict[str, str]  # sha256 by file name
    recipe: str = ""  # hash of the training run's model, texts, settings and code

    def facts(self) -> dict[str, object]:
        """Return the values of the columns in :data:`COLUMNS`."""
        names = [column.name for column in COLUMNS]
        return dict(zip(names, self[1:8], strict=True))


ITSELF = Checkpoint("", "", "all", 0.0, 0, 0, 0, 0, True, {})


def checkpoints(name: str, folder: Path = FOLDER) -> list[Checkpoint]:
    """Return a model's checkpoints: the original model, then others ordered by :data:`KEY`.

    Raises UserError if the stage ``pretrain`` has not been run for the model.
    """
    path = folder / name / LIST
    if not path.is_file():
        raise UserError(f"{path}: missing; run `make repro STAGE=pretrain@{name}` first")
    states = [Checkpoint(**entry) for entry in json.loads(path.read_text(encoding="utf-8"))]
    return [ITSELF, *sorted(states, key=lambda state: state[1:6])]


def scorer(name: str, checkpoint: Checkpoint, folder: Path = FOLDER) -> Scorer:
    """Load a checkpoint of a model."""
    if not checkpoint.name:
        return load(name)
    params, where = model(name), files(name, checkpoint, folder)
    options = {"dtype": params.dtype, "context": params.context}
    trained: Scorer = adapter(params.kind)(where, name, revision(checkpoint), **options)
    return trained


def files(name: str, checkpoint: Checkpoint, folder: Path = FOLDER) -> Path:
    """Return the folder with the files of a model's checkpoint.

    Raises UserError if a file has changed since training.
    """
    if not checkpoint.name:
        return download(name, model(name))
    where = folder / name / checkpoint.name
    if path := changed(where, checkpoint.files):
        raise UserError(
            f"{path}: differs from its hash in {LIST}; train again with "
            f"`make repro STAGE='--force pretrain@{name}'`"
        )
    return where


def revision(checkpoint: Checkpoint) -> str:
    """Return the hash that identifies a trained checkpoint in outputs.

    It is a hash of the recipe, since the last bits of the weights differ between processors.
    """
    made: object = [checkpoint.recipe, checkpoint.name] if checkpoint.recipe else checkpoint.files
    return hashlib.sha256(json.dumps(made, sort_keys=True).encode()).hexdigest()[:40]
