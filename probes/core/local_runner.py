"""Several processes on this machine, one core each.

For tiny models and long analyses: one thread computes them as fast as several, so that other cores
would wait. The processes write the same bytes as one.
"""

from __future__ import annotations

import importlib
import os
from functools import lru_cache
from typing import TYPE_CHECKING

from plumbline.builders.core.errors import UserError
from plumbline.builders.core.workers import ALONE, each

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from plumbline.probes.core.shards import Shard, Task, Worker

LONG = {  # commands whose models are run in parallel
    *("clusters", "finetuned_classifiers", "latent", "perplexity"),
    *("pretrain", "robustness", "stances", "subgroups"),
}
PROGRAM = "plumbline.probes.__main__"  # `python -m plumbline.probes`, which starts this
TINY = 40_000_000  # bytes of weights that one thread trains as fast as several: training.SMALL
FEW = 4  # shards for which another process is not worth its start


def run_models(command: str, models: Sequence[str]) -> None:
    """Run a command of ``python -m plumbline.probes`` for each model, in parallel.

    A UserError if it fails for any of them; its message is on standard error.
    """
    number = min(len(models), len(os.sched_getaffinity(0)))
    statuses = dict(each(_run_model, [(command, model) for model in models], number, ALONE))
    if failed := [model for place, model in enumerate(models) if statuses[place]]:
        raise UserError(f"{command} failed for {', '.join(failed)}: see above")


def _run_model(command: str, model: str) -> int:
    status: int = importlib.import_module(PROGRAM).main([command, model])
    return status


def processes(task: Task, shards: int) -> int:
    """Return the number of processes for some shards; more than one only for tiny trainings."""
    if not getattr(task.module, "TRAINS", False) or shards < FEW or task.model.id is None:
        return 1
    from plumbline.probes.models.batching import cores, device
    from plumbline.probes.models.load import download

    files = download(task.name, task.model).glob("*.safetensors")
    if device().type != "cpu" or not 0 < sum(path.stat().st_size for path in files) <= TINY:
        return 1
    return min(cores(), shards)


def spread(
    probe: str, name: str, shards: Sequence[Shard], number: int
) -> Iterator[tuple[Shard, bytes]]:
    """Compute shards in a number of processes, and yield each with its bytes, in no order."""
    arguments = [(probe, name, shard) for shard in shards]
    yield from ((shards[n], body) for n, body in each(_compute, arguments, number, ALONE))


def _compute(probe: str, name: str, shard: Shard) -> bytes:
    return _worker(probe, name)(shard)


@lru_cache(maxsize=1)
def _worker(probe: str, name: str) -> Worker:
    from plumbline.probes.core.shards import Worker

    return Worker(probe, name)
