"""Progress bars and warnings on standard error, and processes that work for this one."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any, TypeVar

from tqdm import tqdm

from plumbline.builders.core.errors import UserError

T = TypeVar("T")
PATIENCE = 2.0  # seconds: what is done by then shows no bar
ALONE = {"PLUMBLINE_CORES": "1", "OMP_NUM_THREADS": "1"}  # of processes that have a core each


def warn(message: str) -> None:
    """Report something that does not stop a command."""
    tqdm.write(f"warning: {message}", file=sys.stderr)


class Bar(tqdm):  # type: ignore[type-arg]
    """A bar with its rate and the time left, where standard error is a terminal."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **{"delay": PATIENCE, "disable": None, **options})


@contextmanager
def during(task: str) -> Iterator[None]:
    """Name on a terminal what is being done, where it cannot be counted."""
    with Bar(desc=task, bar_format="{desc}", unit="", delay=0, leave=False):
        yield


def each(
    function: Callable[..., T],
    arguments: Sequence[tuple[Any, ...]],
    number: int,
    environment: Mapping[str, str] = MappingProxyType({}),
) -> Iterator[tuple[int, T]]:
    """Call a function with each of several arguments, in a number of new processes.

    They end with this one, however it ends: else they would wait for work for ever.

    ``environment``: variables that they have besides, set before they import what reads them.

    Yields what it returns, in no order, each with its place among the arguments.

    Raises Exception as raised in a call, and UserError if a process was killed.
    """
    from concurrent.futures import ProcessPoolExecutor, as_completed
    from concurrent.futures.process import BrokenProcessPool
    from multiprocessing import get_context

    spawn, options = get_context("spawn"), (dict(environment),)
    with ProcessPoolExecutor(number, spawn, initializer=_begin, initargs=options) as pool:
        places = {pool.submit(function, *values): n for n, values in enumerate(arguments)}
        try:
            for done in as_completed(places):
                yield places[done], done.result()
        except BrokenProcessPool as error:
            raise UserError(
                "a process that worked for this one was killed, as where memory is short; run the "
                "same command again, it continues where it can"
            ) from error
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def _begin(environment: dict[str, str]) -> None:
    from multiprocessing import parent_process

    os.environ.update(environment)
    parent = parent_process()
    assert parent is not None

    def end_with_parent() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=end_with_parent, daemon=True).start()
