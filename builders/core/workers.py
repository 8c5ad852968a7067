"""Processes that work for this one, on one machine."""

from __future__ import annotations

import os
import signal
import threading
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context, parent_process

GRACE_S = 3


def pool(number: int) -> ProcessPoolExecutor:
    """Return a pool of so many new processes, which end with this one, however it ends.

    Without that the workers of a process that is killed would wait for work for ever.
    """
    context = get_context("spawn")
    return ProcessPoolExecutor(number, mp_context=context, initializer=_end_with_parent)


def _end_with_parent() -> None:
    parent, main = parent_process(), threading.get_ident()
    assert parent is not None

    def wait() -> None:
        parent.join()
        signal.pthread_kill(main, signal.SIGINT)  # so that what is under way can clear up
        time.sleep(GRACE_S)
        os._exit(1)

    threading.Thread(target=wait, daemon=True).start()
