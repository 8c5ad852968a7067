"""Processes that work for this one, on one machine."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context, parent_process
from types import MappingProxyType
from typing import Any, TypeVar

from plumbline.builders.core.errors import UserError

T = TypeVar("T")
ALONE = {"PLUMBLINE_CORES": "1", "OMP_NUM_THREADS": "1"}  # of processes that have a core each


def each(
    function: Callable[..., T],
    arguments: Sequence[tuple[Any, ...]],
    number: int,
    environment: Mapping[str, str] = MappingProxyType({}),
) -> Iterator[tuple[int, T]]:
    """Call a function with each of several arguments in so many processes; see :func:`pool`.

    Yields what it returns, in no order, each with its place among the arguments.

    Raises Exception as raised in a call, and UserError if a process was killed.
    """
    with pool(number, environment) as working:
        waiting = {working.submit(function, *given): n for n, given in enumerate(arguments)}
        try:
            for done in as_completed(waiting):
                yield waiting[done], done.result()
        except BrokenProcessPool as error:
            raise UserError(
                "a process that worked for this one was killed, as where memory is short; run the "
                "same command again, it continues where it can"
            ) from error
        finally:
            working.shutdown(wait=False, cancel_futures=True)


def pool(number: int, environment: Mapping[str, str] = MappingProxyType({})) -> ProcessPoolExecutor:
    """Return a pool of so many new processes, which end with this one, however it ends.

    Without that the workers of a process that is killed would wait for work for ever.

    ``environment``: variables that they have besides, set before they import what reads them.
    """
    return ProcessPoolExecutor(
        number,
        mp_context=get_context("spawn"),
        initializer=_begin,
        initargs=(dict(environment),),
    )


def _begin(environment: dict[str, str]) -> None:
    os.environ.update(environment)
    parent = parent_process()
    assert parent is not None

    def end_with_parent() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=end_with_parent, daemon=True).start()
