"""The parts of a probe's outputs, and the worker that computes them one after the other.

A shard is a file of the outputs. What is in it depends on the inputs alone, not on who computes
it, so a run may be spread over processes and machines, be killed and continued, and ends with the
same bytes.
"""

from __future__ import annotations

import importlib
import io
import math
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import pyarrow as pa

from plumbline.builders.core import parquet
from plumbline.builders.core.errors import UserError
from plumbline.builders.core.params import section
from plumbline.builders.core.parquet import carrying
from plumbline.builders.core.schema import Column
from plumbline.builders.core.snapshot import digest
from plumbline.probes import module_of
from plumbline.probes.models.load import load
from plumbline.probes.models.params import VERBS, model, pointer, verbs
from plumbline.probes.training import checkpoints

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from plumbline.builders.core.schema import Schema
    from plumbline.probes.models.scorer import Scorer


T = TypeVar("T")
MODEL = (  # the last columns of all outputs
    Column("model", "string", "name of the model in params.yaml"),
    Column("revision", "string", "commit of the model on the Hub, or hash of a trained one"),
)


class Shard(NamedTuple):
    """One file of a probe's outputs."""

    config: str  # of the dataset that the outputs are
    part: str  # name of the file, without its ending
    number: int  # which of
    of: int  # how many shards of this config

    def path(self) -> str:
        """Return where it is in the folder of the outputs."""
        return f"{self.config}/{self.part}.parquet"

    def among(self, items: Sequence[T]) -> Sequence[T]:
        """Return the shard's own part of what all shards of the config are about."""
        return items[
            len(items) * self.number // self.of : len(items) * (self.number + 1) // self.of
        ]


def split(config: str, total: int, size: int) -> list[Shard]:
    """Return the shards of a config about so many things, some ``size`` in each."""
    parts = max(1, math.ceil(total / size))
    return [Shard(config, f"{part:05d}", part, parts) for part in range(parts)]


def rows(schema: Schema, scorer: Scorer, n: int, columns: dict[str, Any]) -> pa.Table:
    """Return n rows of a probe's outputs; the columns of :data:`MODEL` are filled in.

    ``columns``: values by name: of each row, or one for all of them; None: null.
    """
    values = {column.name: str(scorer.facts()[column.name]) for column in MODEL} | columns
    arrow = schema.arrow()

    def column(field: pa.Field) -> pa.Array:
        value = values[field.name]
        if value is None or isinstance(value, str | int | float):
            return pa.repeat(pa.scalar(value, field.type), n)
        return pa.array(value, field.type)

    return pa.table([column(field) for field in arrow], schema=arrow)


class Task:
    """One probe on one model, checked against params and inputs; no model is loaded."""

    def __init__(self, probe: str, name: str) -> None:
        """Read the params and find the validated inputs.

        A UserError if an input is not validated, the model's kind cannot do what the probe needs,
        or the two have no language in common.
        """
        self.probe, self.name = probe, name
        self.module: Any = importlib.import_module(module_of(probe))
        self.params: Any = section(f"probes.{probe}", self.module.Params)
        self.model = model(name)
        needed = verbs(self.module.VERB)
        if not VERBS[self.model.kind] & needed:
            kinds = ", ".join(kind for kind, known in VERBS.items() if known & needed)
            raise UserError(
                f"models.{name}: a model of kind {self.model.kind} cannot "
                f"{' or '.join(sorted(needed))}, as {probe} does; drop it from assignments.{probe} "
                f"(kinds that can: {kinds})"
            )
        offered, languages = self.model.languages, getattr(self.params, "languages", None)
        if None not in (offered, languages) and not {*offered} & {*languages}:  # type: ignore[misc]
            raise UserError(f"models.{name}.languages: none of them is in probes.{probe}.languages")
        self.folders: dict[str, Path] = {
            dataset: parquet.require_validated(dataset) for dataset in self.module.INPUTS
        }
        if getattr(self.module, "PRETRAINED", False):
            self.folders[checkpoints.INPUT] = checkpoints.FOLDER / name

    @cached_property
    def _double(self) -> Scorer:
        return load(self.name, exact=True)

    def exact(self, scorer: Scorer) -> Scorer:
        """Return the model in double precision, loaded once: its scorer, if that is in it."""
        return scorer if self.model.dtype == "float64" else self._double

    def shards(self) -> list[Shard]:
        """Return all shards of the outputs."""
        shards: list[Shard] = self.module.shards(self.params, self.model, self.folders)
        return shards

    def schema(self, config: str) -> Schema:
        """Return the schema of a config of the outputs: its own, or the first of the probe's."""
        schemas: dict[str, Schema] = self.module.SCHEMAS
        return schemas.get(config) or next(iter(schemas.values()))

    def inputs(self) -> dict[str, str]:
        """Return the sha256 of the inputs and of the model, by their paths.

        A model that a probe needs besides (`beside`) may not be there: it is left out.
        """
        digests = {
            folder.as_posix(): parquet.fingerprint(folder)
            for dataset, folder in self.folders.items()
            if dataset != checkpoints.INPUT
        }
        beside = getattr(self.module, "beside", None)
        models = [self.name, *(beside(self.params, self.model) if beside else ())]
        files = [pointer(name) for name in models]
        if checkpoints.INPUT in self.folders:
            files.append(self.folders[checkpoints.INPUT] / checkpoints.LIST)
        return digests | {path.as_posix(): digest(path) for path in files if path.is_file()}


class Worker:
    """A loaded model that computes shards."""

    def __init__(self, probe: str, name: str) -> None:
        self.task = Task(probe, name)
        self.inputs = self.task.inputs()
        self.scorer = load(name)

    def __call__(self, shard: Shard) -> bytes:
        """Return one shard as a parquet file."""
        task = self.task
        sink = io.BytesIO()
        schema = task.schema(shard.config).arrow()
        writer = parquet.Writer(sink, carrying(schema, self.inputs))
        for table in task.module.answer(shard, task, self.scorer):
            writer.extend(table)
        writer.close()
        return sink.getvalue()
