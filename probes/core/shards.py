"""The parts of a probe's outputs, and the worker that computes them one after the other.

A shard is a file of the outputs. What is in it depends on the inputs alone, not on who computes
it, so a run may be spread over processes and machines, be killed and continued, and ends with the
same bytes.
"""

from __future__ import annotations

import importlib
import io
import math
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from plumbline.builders.core import parquet
from plumbline.builders.core.errors import Problem
from plumbline.builders.core.inputs import carrying
from plumbline.builders.core.params import section
from plumbline.builders.core.snapshot import digest
from plumbline.probes import module_of
from plumbline.probes.models.load import load
from plumbline.probes.models.params import VERBS, model, pointer, verbs
from plumbline.probes.training import checkpoints

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from plumbline.probes.models.scorer import Scorer


T = TypeVar("T")


class Shard(NamedTuple):
    """One file of a probe's outputs."""

    config: str  # of the dataset that the outputs are
    part: str  # name of the file, without its ending
    number: int  # which of
    of: int  # how many shards of this config

    def path(self) -> str:
        """Return where it is in the folder of the outputs."""
        return f"{self.config}/{self.part}.parquet"

    def among(self, every: Sequence[T]) -> Sequence[T]:
        """Return the shard's own part of what all shards of the config are about."""
        return every[
            len(every) * self.number // self.of : len(every) * (self.number + 1) // self.of
        ]


def split(config: str, total: int, size: int) -> list[Shard]:
    """Return the shards of a config about so many things, some ``size`` in each."""
    parts = max(1, math.ceil(total / size))
    return [Shard(config, f"{part:05d}", part, parts) for part in range(parts)]


class Task:
    """What one probe asks of one model, checked against params and inputs; no model is loaded."""

    def __init__(self, probe: str, name: str) -> None:
        """Read the params and find the validated inputs.

        Raises
        ------
        Problem
            If an input is not validated, the model's kind cannot be asked so, or no language is
            left to ask it in.
        """
        self.probe, self.name = probe, name
        self.module: Any = importlib.import_module(module_of(probe))
        self.params: Any = section(f"probes.{probe}", self.module.Params)
        self.model = model(name)
        wanted = verbs(self.module.VERB)
        if not VERBS[self.model.kind] & wanted:
            kinds = ", ".join(kind for kind, known in VERBS.items() if known & wanted)
            raise Problem(
                f"models.{name}: a model of kind {self.model.kind} cannot be asked to "
                f"{' or '.join(sorted(wanted))}, as {probe} does; drop it from assignments.{probe} "
                f"(kinds that can: {kinds})"
            )
        only, asked = self.model.languages, getattr(self.params, "languages", None)
        if only is not None and asked is not None and not set(only) & set(asked):
            raise Problem(f"models.{name}.languages: none of them is in probes.{probe}.languages")
        self.folders: dict[str, Path] = {
            dataset: parquet.require_validated(dataset) for dataset in self.module.INPUTS
        }
        if getattr(self.module, "PRETRAINED", False):
            self.folders[checkpoints.INPUT] = checkpoints.FOLDER / name

    def shards(self) -> list[Shard]:
        """Return all shards of the outputs."""
        found: list[Shard] = self.module.shards(self.params, self.model, self.folders)
        return found

    def inputs(self) -> dict[str, str]:
        """Return the sha256 of everything that is asked, and that answers, by its path.

        What else a probe asks (`beside`) may not have been brought: such a model is left out.
        """
        found = {
            folder.as_posix(): parquet.fingerprint(folder)
            for dataset, folder in self.folders.items()
            if dataset != checkpoints.INPUT
        }
        beside = getattr(self.module, "beside", None)
        models = [self.name, *(beside(self.params, self.model) if beside else ())]
        files = [pointer(name) for name in models]
        if checkpoints.INPUT in self.folders:
            files.append(self.folders[checkpoints.INPUT] / checkpoints.LIST)
        return found | {path.as_posix(): digest(path) for path in files if path.is_file()}


class Worker:
    """A loaded model that computes shards."""

    def __init__(self, probe: str, name: str) -> None:
        self.task = Task(probe, name)
        self.inputs = self.task.inputs()
        self.scorer = load(name)
        self._double: Scorer | None = None

    def __call__(self, shard: Shard) -> bytes:
        """Return one shard as a parquet file."""
        task = self.task
        sink = io.BytesIO()
        schema = task.module.schema(shard.config).arrow()
        writer = parquet.Writer(sink, carrying(schema, self.inputs))
        for table in task.module.answer(
            shard, task.folders, self.scorer, task.params, task.model, self._exact
        ):
            writer.extend(table)
        writer.close()
        return sink.getvalue()

    def _exact(self) -> Scorer:
        """Return the model in double precision."""
        if self.task.model.dtype == "float64":
            return self.scorer
        if self._double is None:
            self._double = load(self.task.name, exact=True)
        return self._double
