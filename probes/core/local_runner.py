"""Shards of a tiny model of which each trains or loads a state of its own, on a process a core.

One thread trains such a model as fast as several, so that other cores would wait.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from plumbline.builders.core.workers import ALONE, each

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from plumbline.probes.core.shards import Shard, Task, Worker

TINY = 40_000_000  # bytes of weights that one thread trains as fast as several: training.SMALL
FEW = 4  # shards for which another process is not worth its start


def processes(task: Task, shards: int) -> int:
    """Return on how many processes so many shards are made; 1: in this one."""
    if not getattr(task.module, "TRAINS", False) or shards < FEW or task.model.id is None:
        return 1  # nothing is trained, or the model is at an endpoint
    from plumbline.probes.models.batching import cores, device
    from plumbline.probes.models.files import download

    files = download(task.name, task.model).glob("*.safetensors")
    if device().type != "cpu" or not 0 < sum(path.stat().st_size for path in files) <= TINY:
        return 1
    return min(cores(), shards)


def spread(
    probe: str, name: str, shards: Sequence[Shard], number: int
) -> Iterator[tuple[Shard, bytes]]:
    """Compute every shard in one of a number of processes, and yield each with its bytes.

    They come in no order. Raises UserError as raised in a process.
    """
    arguments = [(probe, name, shard) for shard in shards]
    yield from ((shards[n], body) for n, body in each(_made, arguments, number, ALONE))


def _made(probe: str, name: str, shard: Shard) -> bytes:
    return _worker(probe, name)(shard)


@lru_cache(maxsize=1)
def _worker(probe: str, name: str) -> Worker:
    from plumbline.probes.core.shards import Worker

    return Worker(probe, name)
