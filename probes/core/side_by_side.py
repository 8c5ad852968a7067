"""Running a command for several models side by side, a process and a core each.

For what takes long and gains nothing from a second thread, as the tiny models of worlds do: two
processes of one thread each are twice as fast as one of two, and write the same bytes. A process
goes on to the next model when it is done with one, as its start takes seconds.
"""

from __future__ import annotations

import importlib
import os
from typing import TYPE_CHECKING

from plumbline.builders.core.errors import UserError
from plumbline.builders.core.workers import ALONE, each

if TYPE_CHECKING:
    from collections.abc import Sequence

LONG = {
    *("clusters", "finetuned_classifiers", "latent", "perplexity"),
    *("pretrain", "robustness", "stances", "subgroups"),
}
PROGRAM = "plumbline.probes.__main__"  # `python -m plumbline.probes`, which starts this


def run(command: str, models: Sequence[str]) -> None:
    """Run a command of ``python -m plumbline.probes`` once for each model.

    A UserError if it fails for any of them; what it said stands on standard error.
    """
    number = min(len(models), len(os.sched_getaffinity(0)))
    statuses = dict(each(_one, [(command, model) for model in models], number, ALONE))
    if failed := [model for place, model in enumerate(models) if statuses[place]]:
        raise UserError(f"{command} failed for {', '.join(failed)}: see above")


def _one(command: str, model: str) -> int:
    """Run the command for one model as the program does, and return its exit status."""
    status: int = importlib.import_module(PROGRAM).main([command, model])
    return status
