"""Function calls on a Ray cluster."""

from __future__ import annotations

import contextlib
import logging
import os
import secrets
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from plumbline.builders.core.errors import UserError

os.environ["RAY_USAGE_STATS_ENABLED"] = "0"  # no telemetry; must be set before the import
os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")  # Ray's C++ code writes to standard error

try:
    import ray
    from ray.exceptions import RayError, RayTaskError
except ImportError as error:
    raise UserError(
        "--runner ray needs Ray: pip install --no-deps --require-hashes --requirement "
        "requirements/cluster.txt"
    ) from error

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

T = TypeVar("T")
STORE = 1 << 30  # bytes of a local cluster's store for results that the driver has not read yet
RETRIES = 3  # number of retries of a call whose process or node dies


def each(
    function: Callable[..., T],
    arguments: Sequence[tuple[Any, ...]],
    workers: int = 0,
    *,
    gpu: bool = False,
) -> Iterator[tuple[int, T]]:
    """Call a function with each of several arguments on the cluster, and yield the results.

    Results are yielded as calls finish, each with the index of its arguments. Processes are reused,
    so a function can cache a loaded model. A call whose process or node dies is retried.

    Parameters
    ----------
    workers
        Number of concurrent calls; 0: one per GPU or, without GPUs, one per CPU except one.
    gpu
        Whether each call reserves a GPU if the cluster has any.

    Raises
    ------
    Exception
        If a call raises one.
    UserError
        If the process of a call dies repeatedly.
    """
    with _cluster():
        resources = ray.cluster_resources()  # type: ignore[no-untyped-call]
        gpus = int(resources.get("GPU", 0)) if gpu else 0
        options = {"num_gpus": 1 if gpus else 0, "max_retries": RETRIES, "max_calls": 0}
        task: Any = ray.remote(num_cpus=1, **options)(_call)  # type: ignore[call-overload]
        most = workers or gpus or max(1, int(resources.get("CPU", 1)) - 1)
        todo, running = list(enumerate(arguments))[::-1], dict[Any, int]()
        while todo or running:
            while todo and len(running) < most:
                job, values = todo.pop()
                running[task.remote(str(Path.cwd()), function, values)] = job
            done, _ = ray.wait(list(running), num_returns=1)
            job = running.pop(done[0])
            try:
                yield job, ray.get(done[0])
            except RayTaskError as error:
                raise error.cause from None
            except RayError as error:  # arguments after the third may be thousands of texts
                raise UserError(f"{arguments[job][:3]}: {str(error).splitlines()[-1]}") from None


def _call(folder: str, function: Callable[..., T], values: tuple[Any, ...]) -> T:
    os.chdir(folder)  # worker processes start in the folder of their node's raylet
    os.environ["PLUMBLINE_CORES"] = os.environ.get("OMP_NUM_THREADS", "1")  # the reserved cores
    return function(*values)


@contextlib.contextmanager
def _cluster() -> Iterator[None]:
    """Join the cluster at ``RAY_ADDRESS``, or start a temporary one on this machine."""
    options: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
    with tempfile.TemporaryDirectory(prefix="ray-", dir="/tmp", ignore_cleanup_errors=True) as temp:
        if not os.environ.get("RAY_ADDRESS"):
            os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))  # else read from ~/.ray
            options |= {
                "address": "local",  # otherwise Ray joins any cluster that it finds on this machine
                "include_dashboard": False,
                "object_store_memory": STORE,
                "_temp_dir": temp,
            }
        try:
            ray.init(**options)
            yield
        finally:
            ray.shutdown()
            time.sleep(1)  # Ray's last processes may still be writing to the folder
