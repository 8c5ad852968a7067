"""Distributed training, where ``accelerate launch`` started the processes.

Their number and machines are accelerate's configuration; the precision is not, since numbers depend
on it. In a process that was started by itself nothing of accelerate is loaded.
"""

from __future__ import annotations

import os
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import timedelta
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

SMALL = 1024  # positions that go through a model in about the time of one
USEFUL = 0.85  # of the positions of a pass, that have a token; of larger passes
_each_alone = False


def launched() -> bool:
    """Tell whether ``accelerate launch`` started this process."""
    return "ACCELERATE_MIXED_PRECISION" in os.environ or os.environ.get("WORLD_SIZE", "1") != "1"


@cache
def _accelerator() -> Any:
    if not launched():
        return None
    from accelerate import Accelerator
    from accelerate.utils import DistributedDataParallelKwargs, InitProcessGroupKwargs

    # heads and poolers that the loss does not need have no gradient; processes that train other
    # models than each other wait long for the last
    wrapping = DistributedDataParallelKwargs(find_unused_parameters=True)
    waiting = InitProcessGroupKwargs(timeout=timedelta(days=7))
    return Accelerator(mixed_precision="no", kwargs_handlers=[wrapping, waiting])


def accelerator() -> Any:
    """Return the accelerator of the processes; None in one that trains by itself."""
    return None if _each_alone else _accelerator()


@contextmanager
def each_alone() -> Iterator[tuple[int, int]]:
    """Let every process train by itself, other models than the others; yield (which, of how many).

    For many small trainings: a training in each process exchanges nothing.
    """
    global _each_alone  # noqa: PLW0603
    from transformers import PreTrainedModel

    any_model: Any = PreTrainedModel
    rank, saves = (index(), number()), any_model.should_save_on_this_rank
    _each_alone = True
    any_model.should_save_on_this_rank = lambda *_: True  # else the first process alone would
    try:
        yield rank
    finally:
        _each_alone = False
        any_model.should_save_on_this_rank = saves
    wait()


def number() -> int:
    """Return the number of processes."""
    return getattr(accelerator(), "num_processes", 1)


def index() -> int:
    """Return the number of this process, from 0 on."""
    return getattr(accelerator(), "process_index", 0)


def first() -> bool:
    """Tell whether this is the process that writes."""
    return index() == 0


def wait() -> None:
    """Wait until all have come here."""
    together = accelerator()
    if together is not None:
        together.wait_for_everyone()


def exchange(net: Any, last: bool) -> AbstractContextManager[Any]:
    """Return the context of a pass: gradients are exchanged after the last one of a step alone."""
    together = accelerator()
    return nullcontext() if together is None or last else together.no_sync(net)


def passes(lengths: Sequence[int], room: int, processes: int = 1, one: int = 0) -> list[list[int]]:
    """Return the rows of a step that a process puts through the model, by pass.

    Every row is in one pass of one process (from 0 on). Where a pass is filled up to its longest
    row, rows of like lengths stand together: at least :data:`USEFUL` of the positions of every pass
    have a token, but for those of :data:`SMALL` positions at most, and a step of four times that,
    which are not worth their parting.

    ``lengths``: tokens of each row.
    ``room``: positions of a pass at most; 0: all rows of a process are one pass.

    Examples
    --------
    >>> passes([512, 500, 300, 290, 280], 1024)
    [[0, 1], [2, 3, 4]]
    """
    mine = list(range(one, len(lengths), processes))
    if not room or len(mine) * max(lengths) <= min(room, 4 * SMALL):
        return [mine]
    order = sorted(range(len(lengths)), key=lambda row: -lengths[row])[one::processes]
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
