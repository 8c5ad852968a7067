"""Shards of a probe's outputs on Ray actors; the driver alone writes the finished ones."""

from __future__ import annotations

import contextlib
import logging
import os
import secrets
import shutil
import tempfile
import time
from collections import Counter
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from plumbline.builders.core.errors import UserError
from plumbline.probes.core.shards import Shard, Worker

os.environ["RAY_USAGE_STATS_ENABLED"] = "0"  # it would call home; must stand before the import
os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")  # its C++ part writes on our stderr

try:
    import ray
    from ray.exceptions import ObjectLostError, RayActorError, RayTaskError
except ImportError as error:
    raise UserError(
        "--runner ray needs Ray: pip install --no-deps --require-hashes --requirement "
        "requirements/cluster.txt"
    ) from error

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

T = TypeVar("T")
STORE = 1 << 30  # bytes for finished shards on their way to the driver, in a local cluster
PATIENCE_S = 6 * 3600  # in which some shard must finish
RETRIES = 3  # of a shard whose actor or node dies


class ShardActor:
    """A process with a loaded model, which computes one shard a call."""

    def __init__(self, probe: str, name: str, folder: str) -> None:
        _enter(folder)
        self.probe, self.name = probe, name
        self.worker: Worker | None = None

    def compute(self, shard: Shard) -> bytes:
        """Return a shard as a parquet file."""
        if self.worker is None:  # here, since an error in the constructor comes without its message
            self.worker = Worker(self.probe, self.name)
        return self.worker(shard)


def spread(
    probe: str, name: str, shards: Sequence[Shard], *, workers: int
) -> Iterator[tuple[Shard, bytes]]:
    """Compute shards on a pool of actors, and yield each with its bytes, in no order.

    A shard whose actor or node dies is computed again by another.

    ``workers``: the number of actors; 0 for one a GPU, or without GPUs for one a CPU but one.

    Raises UserError as raised in an actor; or if actors cannot start, or no shard finishes for
    long.
    """
    with _cluster():
        resources = ray.cluster_resources()  # type: ignore[no-untyped-call]
        gpus = int(resources.get("GPU", 0))
        number = workers or gpus or max(1, int(resources.get("CPU", 1)) - 1)
        if gpus and number > gpus:
            raise UserError(f"--workers {number}: the cluster has {gpus} GPU(s), one for each")
        remote: Any = ray.remote(num_cpus=1, num_gpus=1 if gpus else 0)(ShardActor)
        start = partial(remote.remote, probe, name, str(Path.cwd()))
        yield from _computed([start() for _ in range(min(number, len(shards)))], shards, start)


def _computed(
    idle: list[Any], shards: Sequence[Shard], start: Callable[[], Any]
) -> Iterator[tuple[Shard, bytes]]:
    """Yield shards as actors finish them; ``start`` makes an actor in place of one that died."""
    todo, running, deaths = list(shards)[::-1], dict[Any, tuple[Any, Shard]](), Counter[Shard]()
    while todo or running:
        while todo and idle:
            actor, shard = idle.pop(), todo.pop()
            running[actor.compute.remote(shard)] = actor, shard
        done, _ = ray.wait(list(running), num_returns=1, timeout=PATIENCE_S)
        if not done:
            raise UserError(f"no shard finished in {PATIENCE_S} s: no room for an actor?")
        actor, shard = running.pop(done[0])
        try:
            yield shard, ray.get(done[0])
        except RayTaskError as error:
            raise error.cause from None
        except (RayActorError, ObjectLostError) as error:
            deaths[shard] += 1
            if deaths[shard] > RETRIES:
                raise UserError(f"{shard.path()}: {str(error).splitlines()[-1]}") from None
            todo.append(shard)
            idle.append(start())
            continue
        if todo:
            idle.append(actor)
        else:
            ray.kill(actor)  # one that waits for its place may begin


def each(
    function: Callable[..., T],
    arguments: Sequence[tuple[Any, ...]],
    workers: int = 0,
    *,
    gpu: bool = False,
) -> Iterator[tuple[int, T]]:
    """Call a function with each of several arguments on the cluster, and yield what it returns.

    In no order, each with its place among the arguments. A call whose node dies is made again.

    ``workers``: calls at once; 0 for one a CPU, or a GPU where each takes one.
    ``gpu``: each takes a GPU, if the cluster has any.

    Raises Exception as raised in a call.
    """
    with _cluster():
        resources = ray.cluster_resources()  # type: ignore[no-untyped-call]
        gpus = int(resources.get("GPU", 0)) if gpu else 0
        task: Any = ray.remote(num_cpus=1, num_gpus=1 if gpus else 0)(_call)
        most = workers or gpus or int(resources.get("CPU", 1))
        todo, running = list(enumerate(arguments))[::-1], dict[Any, int]()
        while todo or running:
            while todo and len(running) < most:
                place, given = todo.pop()
                running[task.remote(str(Path.cwd()), function, given)] = place
            (done,), _ = ray.wait(list(running), num_returns=1)
            yield running.pop(done), ray.get(done)


def _call(folder: str, function: Callable[..., T], given: tuple[Any, ...]) -> T:
    _enter(folder)
    return function(*given)


def _enter(folder: str) -> None:
    os.chdir(folder)  # on a cluster, processes start where their node's raylet was started
    os.environ["PLUMBLINE_CORES"] = os.environ.get("OMP_NUM_THREADS", "1")  # its reservation


@contextlib.contextmanager
def _cluster() -> Iterator[None]:
    """Join the cluster at ``RAY_ADDRESS``, or have one on this machine for as long as needed."""
    options: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
    folder = None
    if not os.environ.get("RAY_ADDRESS"):
        os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))  # else it goes to ~/.ray
        folder = tempfile.mkdtemp(prefix="ray-", dir="/tmp")
        options |= {
            "address": "local",  # else Ray joins whatever cluster it finds on this machine
            "include_dashboard": False,
            "object_store_memory": STORE,
            "_temp_dir": folder,
        }
    saved, null = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(null, 2)  # its C++ part writes there, although it was set to be quiet
        try:
            ray.init(**options)
        finally:
            os.dup2(saved, 2)
            os.close(saved)
            os.close(null)
        yield
    finally:
        ray.shutdown()
        for _ in range(20 if folder else 0):  # its last processes may still write there
            shutil.rmtree(str(folder), ignore_errors=True)
            if not Path(str(folder)).exists():
                break
            time.sleep(0.1)
