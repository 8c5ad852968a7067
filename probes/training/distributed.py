"""Distributed training, where ``accelerate launch`` started the processes.

Their number and machines are accelerate's configuration; the precision is not, since numbers depend
on it. In a process that was started by itself nothing of accelerate is loaded.
"""

from __future__ import annotations

import math
import os
from functools import cache
from typing import Any


def launched() -> bool:
    """Tell whether ``accelerate launch`` started this process."""
    return "ACCELERATE_MIXED_PRECISION" in os.environ or os.environ.get("WORLD_SIZE", "1") != "1"


@cache
def accelerator() -> Any:
    """Return what holds the processes together; None in one that was started by itself."""
    if not launched():
        return None
    from accelerate import Accelerator
    from accelerate.utils import DistributedDataParallelKwargs

    # heads and poolers that the loss does not need have no gradient
    wrapping = DistributedDataParallelKwargs(find_unused_parameters=True)
    return Accelerator(mixed_precision="no", kwargs_handlers=[wrapping])


def number() -> int:
    """Return how many processes there are."""
    together = accelerator()
    return 1 if together is None else int(together.num_processes)


def index() -> int:
    """Return which one this is, from 0 on."""
    together = accelerator()
    return 0 if together is None else int(together.process_index)


def first() -> bool:
    """Tell whether this is the process that writes."""
    return index() == 0


def wait() -> None:
    """Wait until all have come here."""
    together = accelerator()
    if together is not None:
        together.wait_for_everyone()


def passes(rows: int, at_once: int, processes: int, one: int) -> list[list[int]]:
    """Return which rows of a batch a process puts through the model, pass by pass.

    Every row is in one pass of one process (from 0 on); all have as many passes, some of which may
    be empty: gradients are gathered in each. ``at_once`` is the rows of a pass at most; 0: all.
    """
    mine = range(one, rows, processes)
    most = math.ceil(rows / processes)
    at_once = at_once or most
    return [list(mine[i : i + at_once]) for i in range(0, most, at_once)]
