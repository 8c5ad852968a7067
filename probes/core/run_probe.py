"""Running a probe over a model, shard by shard, into a loadable dataset of raw responses.

A shard that is written is done: a run that was killed continues with the next one, and ends with
the same bytes, as long as the inputs are the same. How a run is executed (here, on a cluster, in
parts) is no parameter of its stage, since it does not change a byte.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from contextlib import closing
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from plumbline.builders.core import front_matter
from plumbline.builders.core import parquet as store
from plumbline.builders.core.errors import UserError
from plumbline.builders.core.params import entry
from plumbline.builders.core.progress import Bar
from plumbline.builders.core.snapshot import write_bytes
from plumbline.probes.core import local_runner
from plumbline.probes.core.assignments import stage_of
from plumbline.probes.core.shards import Shard, Task, Worker
from plumbline.probes.models.params import pointer

if TYPE_CHECKING:
    from collections.abc import Generator

OUTPUTS = Path("data/outputs")
REQUEST = "request.json"
LIBRARIES = ("torch", "transformers", "tokenizers", "pyarrow")


class Execution(NamedTuple):
    """How a run is executed; none of it changes what is written."""

    runner: str = "local"  # or ray
    workers: int = 0  # on a cluster; 0 for one a GPU, or all cores but one
    part: tuple[int, int] | None = None  # (i, n): only every n-th shard, from the i-th on


LOCAL = Execution()


def probe(probe: str, name: str, execution: Execution = LOCAL) -> Path:
    """Run a probe on one model and return the folder of its outputs.

    A UserError if an input is not validated, or the model is not there or cannot do what is needed.
    """
    task = Task(probe, name)
    path = pointer(name)
    if not path.is_file():
        raise UserError(
            f"{path}: the model is not there; run `make repro STAGE=weights@{name}` first"
        )
    final = OUTPUTS / probe / name
    shards = task.shards()
    partial = _resume(final, task, alone=execution.part is None)
    todo = [shard for shard in shards if not (partial / shard.path()).exists()]
    if execution.part:
        first, of = execution.part
        todo = [shard for shard in todo if shards.index(shard) % of == first - 1]
    bar = Bar(total=len(todo), desc=f"{probe} {name}", unit="shard")
    with bar, closing(_finished(task, todo, execution)) as finished:
        for shard, body in finished:
            write_bytes(partial / shard.path(), body)  # whole or not at all
            bar.update()
    if execution.part:  # others may still be writing: the command without a part finishes
        return partial
    for unfinished in partial.rglob(".*"):
        unfinished.unlink()
    _card(partial, task)
    (partial / REQUEST).unlink()
    store.finish(final)
    return final


def _finished(
    task: Task, todo: list[Shard], execution: Execution
) -> Generator[tuple[Shard, bytes]]:
    """Yield shards as they are finished, each with its bytes."""
    if todo and execution.runner == "ray":
        from plumbline.probes.core.ray_runner import spread

        yield from spread(task.probe, task.name, todo, workers=execution.workers)
    elif not execution.part and (number := local_runner.processes(task, len(todo))) > 1:
        yield from local_runner.spread(task.probe, task.name, todo, number)
    elif todo:
        worker = Worker(task.probe, task.name)
        yield from ((shard, worker(shard)) for shard in todo)


def _resume(final: Path, task: Task, *, alone: bool) -> Path:
    """Return the working folder: that of a killed run, if its inputs were the same.

    A UserError if they were others, and other parts of the run may be at work there.
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
            "remove it if no job is at work there, and start all parts again"
        )
    partial.mkdir(parents=True, exist_ok=True)
    note.write_text(text, encoding="utf-8")
    return partial


def request(task: Task) -> dict[str, Any]:
    """Return all that the responses depend on: what a run must share with the one it continues."""
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
    model_source = {
        "source": f"model {task.name}",
        "address": facts["id"],
        "retrieved": f"at revision {facts['revision']}",
        "licence": "as the model's own card states",
        "citation": "the model's own card",
    }
    inputs = [
        front_matter.source(store.DATASETS / dataset, f"dataset {dataset}")
        for dataset in task.module.INPUTS
    ]
    configs = dict.fromkeys(shard.config for shard in task.shards())
    schemas = {config: task.schema(config) for config in configs}
    command = f"make repro STAGE={stage_of(task.probe, task.name)}"
    origin = front_matter.Origin([model_source, *inputs], command, task.params.version)
    front_matter.write(partial, schemas, origin, "{config}/*.parquet")
