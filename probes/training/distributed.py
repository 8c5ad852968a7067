"""Distributed training in processes started by ``accelerate launch``.

The number of processes and machines is configured in accelerate. The precision is set in the
params, since it changes results. Processes started in another way do not load accelerate.
"""

from __future__ import annotations

import os
from contextlib import AbstractContextManager, nullcontext
from datetime import timedelta
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

SMALL = 1024  # a pass of up to this many positions takes about as long as a pass of one
USEFUL = 0.85  # minimum share of positions with a token in larger passes


def launched() -> bool:
    """Return True if ``accelerate launch`` started this process."""
    return "ACCELERATE_MIXED_PRECISION" in os.environ or os.environ.get("WORLD_SIZE", "1") != "1"


@cache
def accelerator() -> Any:
    """Return the accelerator of all processes; None in a process that trains alone."""
    if not launched():
        return None
    from accelerate import Accelerator
    from accelerate.utils import DistributedDataParallelKwargs, InitProcessGroupKwargs

    # unused heads and poolers have no gradient; other processes wait while the first writes
    wrapping = DistributedDataParallelKwargs(find_unused_parameters=True)
    waiting = InitProcessGroupKwargs(timeout=timedelta(days=7))
    return Accelerator(mixed_precision="no", kwargs_handlers=[wrapping, waiting])


def number() -> int:
    """Return the number of processes."""
    return getattr(accelerator(), "num_processes", 1)


def index() -> int:
    """Return the index of this process, starting from 0."""
    return getattr(accelerator(), "process_index", 0)


def first() -> bool:
    """Return True in the first process, which writes files."""
    return index() == 0


def wait() -> None:
    """Wait for all processes."""
    together = accelerator()
    if together is not None:
        together.wait_for_everyone()


def exchange(net: Any, last: bool) -> AbstractContextManager[Any]:
    """Return the context of a pass; gradients are exchanged only after the last pass of a step."""
    together = accelerator()
    return nullcontext() if together is None or last else together.no_sync(net)


def passes(lengths: Sequence[int], room: int, processes: int = 1, rank: int = 0) -> list[list[int]]:
    """Return the indices of the rows that a process computes in each pass of a step.

    Every row belongs to one pass of one process. Rows are padded to the longest row of their pass,
    so rows of similar lengths share a pass: the share of its positions that have a token is at
    least :data:`USEFUL`, except in passes of at most :data:`SMALL` positions. A step of up to four
    times :data:`SMALL` positions is not split.

    ``lengths``: number of tokens of each row.
    ``room``: maximum number of positions in a pass; 0: one pass over all rows of a process.

    Examples
    --------
    >>> passes([512, 500, 300, 290, 280], 1024)
    [[0, 1], [2, 3, 4]]
    """
    mine = list(range(rank, len(lengths), processes))
    if not room or len(mine) * max(lengths) <= min(room, 4 * SMALL):
        return [mine]
    order = sorted(range(len(lengths)), key=lambda row: -lengths[row])[rank::processes]
    parts: list[list[int]] = [[]]
    tokens = 0
    for row in order:
        longest = lengths[parts[-1][0]] if parts[-1] else lengths[row]
        positions = (len(parts[-1]) + 1) * longest
        useful = (tokens + lengths[row]) / positions
        if parts[-1] and (positions > room or (positions > SMALL and useful < USEFUL)):
            parts.append([])
            tokens = 0
        parts[-1].append(row)
        tokens += lengths[row]
    return parts
