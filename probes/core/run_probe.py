"""Run a probe on a model, shard by shard, and write a dataset of raw responses.

A killed run is resumed after the last complete shard and produces the same bytes if its inputs are
unchanged. How a run is executed (locally, in several processes, on a cluster, in parts) is not a
parameter of the stage, since it does not change the outputs.
"""

from __future__ import annotations

import hashlib
import importlib
import io
import json
import math
import os
import shutil
from contextlib import closing
from functools import cached_property, lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import pyarrow as pa

from plumbline.builders.core import front_matter, parquet
from plumbline.builders.core import parquet as store
from plumbline.builders.core.errors import ALONE, Bar, UserError, each
from plumbline.builders.core.params import entry, section
from plumbline.builders.core.parquet import carrying
from plumbline.builders.core.schema import Column
from plumbline.builders.core.snapshot import digest, write_bytes
from plumbline.probes import module_of
from plumbline.probes.core.assignments import stage_of
from plumbline.probes.models.load import load
from plumbline.probes.models.params import MANIFEST, VERBS, model, pointer, verbs
from plumbline.probes.training import checkpoints

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from plumbline.builders.core.schema import Schema
    from plumbline.probes.models.scorer import Scorer

OUTPUTS = Path("data/outputs")
REQUEST = "request.json"
LIBRARIES = ("torch", "transformers", "tokenizers", "pyarrow")
TRAINING = "plumbline.probes.training.train"
FEW = 4  # minimum number of shards for which starting another process saves time


class Execution(NamedTuple):
    """Execution options, which do not change the outputs."""

    runner: str = "local"  # or ray
    workers: int = 0  # processes on a cluster; 0: one per GPU, or all cores but one
    part: tuple[int, int] | None = None  # (i, n): every n-th shard, starting with the i-th


LOCAL = Execution()


def probe(probe: str, name: str, execution: Execution = LOCAL) -> Path:
    """Run a probe on one model and return the folder of its outputs.

    Raises UserError if an input is not validated, or if the model is missing or of a kind that the
    probe does not support.
    """
    task = Task(probe, name)
    path = pointer(name)
    if not path.is_file():
        raise UserError(
            f"{path}: the model is missing; run `make repro STAGE=weights@{name}` first"
        )
    final = OUTPUTS / probe / name
    shards = task.shards()
    partial = _resume(final, task, alone=execution.part is None)
    todo = [shard for shard in shards if not (partial / shard.path()).exists()]
    if execution.part:
        first, parts = execution.part
        todo = [shard for shard in todo if shards.index(shard) % parts == first - 1]
    bar = Bar(total=len(todo), desc=f"{probe} {name}", unit="shard")
    with bar, closing(_finished(task, todo, execution)) as finished:
        for index, body in finished:
            write_bytes(partial / todo[index].path(), body)  # the file is complete or absent
            bar.update()
    if execution.part:  # other parts may still be running; a run without `part` completes them
        return partial
    for unfinished in partial.rglob(".*"):
        unfinished.unlink()
    _card(partial, task)
    (partial / REQUEST).unlink()
    store.finish(final)
    return final


def _finished(task: Task, todo: list[Shard], execution: Execution) -> Generator[tuple[int, bytes]]:
    """Yield the index and bytes of each shard as soon as it is computed."""
    arguments = [(task.probe, task.name, shard) for shard in todo]
    if todo and execution.runner == "ray":
        from plumbline.probes.core.ray_runner import each as each_on_cluster

        yield from each_on_cluster(_compute, arguments, execution.workers, gpu=True)
    elif not execution.part and (number := processes(task, len(todo))) > 1:
        yield from each(_compute, arguments, number, ALONE, [TRAINING])
    elif todo:
        worker = Worker(task.probe, task.name)
        yield from ((index, worker(shard)) for index, shard in enumerate(todo))


def processes(task: Task, shards: int) -> int:
    """Return the number of processes for some shards: above 1 only if a control model is trained.

    Control models are so small that several threads do not speed up their training, so other cores
    would be idle.
    """
    trains = getattr(task.module, "TRAINS", False) and pointer(task.name).name == MANIFEST
    if not trains or shards < FEW:
        return 1
    from plumbline.probes.models.batching import cores, device

    return min(cores(), shards) if device().type == "cpu" else 1


def _compute(probe: str, name: str, shard: Shard) -> bytes:
    return _worker(probe, name)(shard)


def run_models(command: str, models: Sequence[str], preload: str) -> None:
    """Run a command of ``python -m plumbline.probes`` for each model, in parallel.

    ``preload``: name of a module that is imported once for all processes.

    Raises UserError if the command fails for any model; its error is printed to standard error.
    """
    number = min(len(models), len(os.sched_getaffinity(0)))
    calls = [(command, model) for model in models]
    statuses = dict(each(_run_model, calls, number, ALONE, [preload]))
    if failed := [model for index, model in enumerate(models) if statuses[index]]:
        raise UserError(f"{command} failed for {', '.join(failed)}: see above")


def _run_model(command: str, model: str) -> int:
    status: int = importlib.import_module("plumbline.probes.__main__").main([command, model])
    return status


def _resume(final: Path, task: Task, *, alone: bool) -> Path:
    """Return the working folder; that of a killed run is reused if its inputs were the same.

    Raises UserError if the inputs differ and other parts of the run may still write to the folder.
    """
    text, partial = json.dumps(request(task), sort_keys=True), store.partial(final)
    note = partial / REQUEST
    if alone:
        store.recover(final)
    if note.is_file() and note.read_text(encoding="utf-8") == text:
        return partial
    if alone:
        shutil.rmtree(partial, ignore_errors=True)
    elif any(partial.rglob("*.parquet")):
        raise UserError(
            f"{partial}: holds parts of a run with other params, data, code or libraries; "
            "if no job is writing to it, remove the folder and restart all parts"
        )
    partial.mkdir(parents=True, exist_ok=True)
    note.write_text(text, encoding="utf-8")
    return partial


def request(task: Task) -> dict[str, Any]:
    """Return all that determines the responses; a run is resumed only if none of it has changed."""
    top = Path(__file__).parents[1]
    study = Path(str(task.module.__file__)).parent
    code = [*top.glob("models/**/*.py"), *top.glob("prompts/*.py"), *study.glob("*.py")]
    return {
        "params": [task.params.model_dump(mode="json"), task.model.model_dump(mode="json")],
        "also": {key: entry(key) for key in getattr(task.module, "ALSO", ())},
        "inputs": task.inputs(),
        "code": sorted(hashlib.sha256(path.read_bytes()).hexdigest() for path in code),
        "libraries": {library: version(library) for library in LIBRARIES},
    }


def _card(partial: Path, task: Task) -> None:
    facts = json.loads(pointer(task.name).read_text(encoding="utf-8"))
    model = {
        "source": f"model {task.name}",
        "address": facts["id"],
        "retrieved": f"at revision {facts['revision']}",
        "licence": "as the model's own card states",
        "citation": "the model's own card",
    }
    datasets = [front_matter.source(store.DATASETS / d, f"dataset {d}") for d in task.module.INPUTS]
    configs = dict.fromkeys(shard.config for shard in task.shards())
    schemas = {config: task.schema(config) for config in configs}
    command = f"make repro STAGE={stage_of(task.probe, task.name)}"
    origin = front_matter.Origin([model, *datasets], command, task.params.version)
    front_matter.write(partial, schemas, origin, "{config}/*.parquet")


T = TypeVar("T")
MODEL = (  # last columns of every table of outputs
    Column("model", "string", "name of the model in params.yaml"),
    Column("revision", "string", "commit on the Hub, or hash that identifies a trained model"),
)


class Shard(NamedTuple):
    """One file of a probe's outputs."""

    config: str  # config of the dataset of outputs
    part: str  # file name without the extension
    number: int  # index among the shards of this config
    of: int  # number of shards of this config

    def path(self) -> str:
        """Return the path relative to the folder of the outputs."""
        return f"{self.config}/{self.part}.parquet"

    def among(self, items: Sequence[T]) -> Sequence[T]:
        """Return the items of this shard, given the items of all shards of the config."""
        return items[
            len(items) * self.number // self.of : len(items) * (self.number + 1) // self.of
        ]


def split(config: str, total: int, size: int) -> list[Shard]:
    """Split the ``total`` items of a config into shards of about ``size`` items each."""
    parts = max(1, math.ceil(total / size))
    return [Shard(config, f"{part:05d}", part, parts) for part in range(parts)]


def rows(schema: Schema, scorer: Scorer, n: int, columns: dict[str, Any]) -> pa.Table:
    """Return n rows of a probe's outputs, including the columns in :data:`MODEL`.

    ``columns``: by name, one value per row, or a single value for all rows; None denotes null.
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
    """A probe and a model, checked against params and inputs before the model is loaded."""

    def __init__(self, probe: str, name: str) -> None:
        """Read the params and locate the validated inputs.

        Raises UserError if an input is not validated, if the probe does not support the kind of the
        model, or if probe and model have no language in common.
        """
        self.probe, self.name = probe, name
        self.module: Any = importlib.import_module(module_of(probe))
        self.params: Any = section(f"probes.{probe}", self.module.Params)
        self.model = model(name)
        needed = verbs(self.module.VERB)
        if not VERBS[self.model.kind] & needed:
            kinds = ", ".join(kind for kind, supported in VERBS.items() if supported & needed)
            raise UserError(
                f"models.{name}: a model of kind {self.model.kind} cannot "
                f"{' or '.join(sorted(needed))}, as {probe} does; remove it from "
                f"assignments.{probe} (kinds that can: {kinds})"
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
        """Return the model in double precision (loaded once); ``scorer`` if that is float64."""
        return scorer if self.model.dtype == "float64" else self._double

    def shards(self) -> list[Shard]:
        """Return all shards of the outputs."""
        shards: list[Shard] = self.module.shards(self.params, self.model, self.folders)
        return shards

    def schema(self, config: str) -> Schema:
        """Return the schema of a config of the outputs: by default, the probe's first schema."""
        schemas: dict[str, Schema] = self.module.SCHEMAS
        return schemas.get(config) or next(iter(schemas.values()))

    def inputs(self) -> dict[str, str]:
        """Return the sha256 hashes of the inputs and of the model, by path.

        A further model that the probe uses (`beside`) is omitted if it is missing.
        """
        digests = {
            folder.as_posix(): parquet.fingerprint(folder)
            for dataset, folder in self.folders.items()
            if dataset != checkpoints.INPUT
        }
        other_models = getattr(self.module, "beside", None)
        models = [self.name, *(other_models(self.params, self.model) if other_models else ())]
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
        """Compute one shard, and return it as a parquet file."""
        task = self.task
        sink = io.BytesIO()
        schema = task.schema(shard.config).arrow()
        tables = task.module.answer(shard, task, self.scorer)
        parquet.write_tables(tables, carrying(schema, self.inputs), sink)
        return sink.getvalue()


_worker = lru_cache(maxsize=1)(Worker)  # each process loads its model only once
