"""A classifier made of a masked model and texts with labels, as TweetEval lays them out."""

from __future__ import annotations

import hashlib
import json
import shutil
from importlib.metadata import version
from pathlib import Path

from pydantic import Field

from plumbline.builders.core.errors import UserError
from plumbline.builders.core.params import Params
from plumbline.builders.core.snapshot import digest

WORK = Path("data/tuning")  # of trainings under way


class Examples(Params):
    """Labelled texts: a line each."""

    texts: str = Field(min_length=1, description="file of texts")
    labels: str = Field(min_length=1, description="file of the numbers of their classes")


class Labelled(Params):
    """Of which model the classifier is made, on what, and how."""

    start: str = Field(min_length=1, description="folder of the masked model that it is made of")
    examples: list[Examples] = Field(min_length=1, description="labelled texts to train on")
    mapping: str = Field(min_length=1, description="file of the numbers and names of the classes")
    epochs: int = Field(3, ge=1, description="times that every text is read")
    batch: int = Field(16, ge=1, description="texts in a step")
    length: int = Field(128, ge=8, description="tokens of a text at most; the rest is cut")
    learning_rate: float = Field(gt=0, description="highest learning rate of AdamW")
    seed: int = Field(1, ge=0, description="of the training")


def train(name: str, params: Labelled, into: Path) -> None:
    """Train a classifier as params say, and put its files into a folder.

    A file that is missing or not as it should be, or a model that cannot be trained so, is a
    ``UserError``.
    """
    from plumbline.probes.training.train import Tuning, finetune_classifier

    texts, labels, classes = examples(params)
    tuning = Tuning(params.learning_rate, params.epochs, params.batch, params.length, params.seed)
    start = Path(params.start)
    if not start.is_dir():
        raise UserError(f"{name}.start: no folder {start}")
    files = {path.name: digest(path) for path in sorted(start.iterdir()) if path.is_file()}
    told = json.dumps([params.model_dump(mode="json"), texts, labels, files, version("torch")])
    where = WORK / f"{name}-{hashlib.sha256(told.encode()).hexdigest()[:12]}"
    done = finetune_classifier(start, name, texts, labels, classes, tuning, where)
    for path in sorted(done.folder.iterdir()):
        shutil.copyfile(path, into / path.name)
    shutil.rmtree(where)


def examples(params: Labelled) -> tuple[list[str], list[int], list[str]]:
    """Read texts, the number of each one's class, and the classes, as TweetEval lays them out.

    A file that is missing, or files that do not fit together, are a ``UserError``.
    """
    texts: list[str] = []
    labels: list[int] = []
    mapping = [line.split("\t") for line in _lines(params.mapping) if line.strip()]
    if any(len(row) < 2 or not row[0].isdigit() for row in mapping):
        raise UserError(f"{params.mapping}: a line is not of a number, a tab and a class")
    classes = [row[1].strip() for row in sorted(mapping, key=lambda row: int(row[0]))]
    for part in params.examples:
        some, numbers = _lines(part.texts), [x.strip() for x in _lines(part.labels) if x.strip()]
        if len(some) != len(numbers):
            raise UserError(f"{part.texts}: {len(some)} texts, but {len(numbers)} labels")
        if wrong := [x for x in numbers if not x.isdigit() or int(x) >= len(classes)]:
            raise UserError(f"{part.labels}: {wrong[0]!r} is no class of {params.mapping}")
        texts += some
        labels += [int(x) for x in numbers]
    return texts, labels, classes


def _lines(path: str) -> list[str]:
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(
            f"{path}: could not be read ({error}); check the path in the params"
        ) from error
    return text.removesuffix("\n").split("\n")
