"""Running a command for several models side by side, a process and a core each.

For what takes long and gains nothing from a second thread, as the tiny models of worlds do: two
processes of one thread each are twice as fast as one of two, and write the same bytes.
"""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from plumbline.builders.core.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Sequence

LONG = {
    *("clusters", "finetuned_classifiers", "latent", "perplexity", "pretrain", "robustness"),
    "stances",
}


def run(command: str, models: Sequence[str]) -> None:
    """Run a command of ``python -m plumbline.probes`` once for each model.

    A UserError if it fails for any of them; what it said stands on standard error.
    """
    alone = os.environ | {"PLUMBLINE_CORES": "1", "OMP_NUM_THREADS": "1"}

    def one(model: str) -> int:
        words = [sys.executable, "-m", "plumbline.probes", command, model]
        return subprocess.run(words, check=False, env=alone).returncode  # noqa: S603

    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        failed = [m for m, status in zip(models, pool.map(one, models), strict=True) if status]
    if failed:
        raise UserError(f"{command} failed for {', '.join(failed)}: see above")
