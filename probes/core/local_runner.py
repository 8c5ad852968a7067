"""Shards of a tiny model that is trained for each of them, on a process a core.

One thread trains such a model as fast as several, so that other cores would wait.
"""

from __future__ import annotations

from concurrent.futures import as_completed
from functools import lru_cache
from typing import TYPE_CHECKING

from plumbline.builders.core.masking import masked_work
from plumbline.builders.core.workers import ALONE, pool

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from plumbline.probes.core.shards import Shard, Task, Worker

TINY = 40_000_000  # bytes of weights that one thread trains as fast as several
FEW = 4  # shards for which another process is not worth its start


def processes(task: Task, shards: int) -> int:
    """Return on how many processes so many shards are made; 1: in this one."""
    if not getattr(task.module, "TRAINS", False) or shards < FEW:
        return 1
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
    with pool(number, ALONE) as working:
        waiting = {working.submit(_made, probe, name, shard): shard for shard in shards}
        try:
            for done in as_completed(waiting):
                yield waiting[done], done.result()
        finally:
            working.shutdown(wait=False, cancel_futures=True)


@masked_work()
def _made(probe: str, name: str, shard: Shard) -> bytes:
    return _worker(probe, name)(shard)


@lru_cache(maxsize=1)
def _worker(probe: str, name: str) -> Worker:
    from plumbline.probes.core.imports import lean

    lean()
    from plumbline.probes.core.shards import Worker

    return Worker(probe, name)
