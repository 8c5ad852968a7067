"""Shards of a probe's outputs on a pool of Ray actors; the driver alone writes what they finish."""

from __future__ import annotations

import contextlib
import logging
import os
import secrets
import shutil
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa

from plumbline.builders.core.errors import UserError
from plumbline.probes.core.shards import Shard, Worker

os.environ["RAY_USAGE_STATS_ENABLED"] = "0"  # it would call home; must stand before the import
os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")  # its C++ part writes on our stderr

try:
    import ray
    import ray.data
    from ray.data.exceptions import ExecutionTimeoutError
    from ray.exceptions import RayActorError
except ImportError as error:
    raise UserError(
        "--runner ray needs Ray: pip install --no-deps --require-hashes --requirement "
        "requirements/cluster.txt"
    ) from error

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

T = TypeVar("T")
STORE = 1 << 30  # bytes for finished shards on their way to the driver, in a local cluster
PATIENCE = 6 * 3600  # seconds in which some shard must finish: ends one that kills its actors


class _Actor:
    """What an actor holds: the loaded model, from which it makes one shard a call."""

    def __init__(self, probe: str, name: str, folder: str) -> None:
        os.chdir(folder)  # on a cluster, actors start where their node's raylet was started
        os.environ["PLUMBLINE_CORES"] = os.environ.get("OMP_NUM_THREADS", "1")  # its reservation
        self.problem: str | None = None
        try:
            self.work = Worker(probe, name)
        except UserError as problem:
            self.problem = str(problem)

    def __call__(self, batch: pa.Table) -> pa.Table:
        (row,) = batch.to_pylist()
        body, problem = None, self.problem
        try:
            body = None if problem else self.work(Shard(*row["shard"].values()))
        except UserError as raised:  # comes back as data: Ray wraps what is raised in pages
            problem = str(raised)
        columns = {  # a table and not arrays: NumPy's bytes lose their trailing zeros
            "number": pa.array([row["number"]], pa.int64()),
            "body": pa.array([body], pa.large_binary()),
            "problem": pa.array([problem], pa.string()),
        }
        return pa.table(columns)


def spread(
    probe: str, name: str, shards: Sequence[Shard], *, workers: int
) -> Iterator[tuple[Shard, bytes]]:
    """Compute every shard on a pool of actors, and yield each with its bytes as it arrives.

    A shard whose actor or node dies is computed again by another. They come in no order.

    ``workers``: the number of actors; 0 for one a GPU, or without GPUs for one a CPU but one.

    Raises UserError as raised in an actor; or if actors cannot start, or no shard finishes for
    long.
    """
    with _cluster():
        resources = ray.cluster_resources()  # type: ignore[no-untyped-call]
        gpus = int(resources.get("GPU", 0))
        number = workers or gpus or max(1, int(resources.get("CPU", 1)) - 1)
        if gpus and number > gpus:
            raise UserError(
                f"--workers {number}: the cluster has {gpus} GPU(s), one for each worker"
            )
        left = set(range(len(shards)))
        try:
            for row in _results(probe, name, shards, min(number, len(shards)), bool(gpus)):
                if row["problem"] is not None:
                    raise UserError(row["problem"])
                left.remove(row["number"])
                yield shards[row["number"]], row["body"]
        except ExecutionTimeoutError:
            raise UserError(
                f"no shard finished in {PATIENCE} s ({len(left)} left): the cluster has no room "
                "for an actor, or a shard kills its actors (out of memory?)"
            ) from None
        except RayActorError as error:
            raise UserError(f"an actor cannot start: {str(error).splitlines()[-1]}") from None
        assert not left, left


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
        task: Any = ray.remote(num_cpus=1, num_gpus=1 if gpus else 0)(_called)
        most = workers or gpus or int(resources.get("CPU", 1))
        todo, running = list(enumerate(arguments))[::-1], dict[Any, int]()
        while todo or running:
            while todo and len(running) < most:
                place, given = todo.pop()
                running[task.remote(str(Path.cwd()), function, given)] = place
            (done,), _ = ray.wait(list(running), num_returns=1)
            yield running.pop(done), ray.get(done)


def _called(folder: str, function: Callable[..., T], given: tuple[Any, ...]) -> T:
    os.chdir(folder)  # on a cluster, tasks start where their node's raylet was started
    os.environ["PLUMBLINE_CORES"] = os.environ.get("OMP_NUM_THREADS", "1")  # its reservation
    return function(*given)


def _results(
    probe: str, name: str, shards: Sequence[Shard], workers: int, gpu: bool
) -> Iterator[dict[str, Any]]:
    """Yield the rows of what the actors return, as they arrive."""
    logging.getLogger("ray.data").setLevel(logging.CRITICAL)
    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False
    context.print_on_execution_start = False
    context.execution_no_progress_timeout_s = PATIENCE
    rows = [{"number": n, "shard": shard._asdict()} for n, shard in enumerate(shards)]
    # from_items and not a reader: read tasks need a CPU, and the actors may hold them all.
    # One block a shard, and one shard at an actor: a dead actor holds up no other shard.
    results = ray.data.from_items(rows, override_num_blocks=len(rows)).map_batches(
        _Actor,
        fn_constructor_args=(probe, name, str(Path.cwd())),
        batch_size=1,
        batch_format="pyarrow",
        compute=ray.data.ActorPoolStrategy(size=workers, max_tasks_in_flight_per_actor=1),
        num_cpus=1,
        num_gpus=1 if gpu else 0,
    )
    tables: Any = results.iter_batches(batch_size=None, batch_format="pyarrow", prefetch_batches=0)
    for table in tables:
        yield from table.to_pylist()


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
