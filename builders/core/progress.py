"""Progress bars and warnings on standard error."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread
from typing import Any

from tqdm import tqdm

PATIENCE = 2.0  # seconds: what is done by then shows no bar


def warn(message: str) -> None:
    """Report something that does not stop a command."""
    tqdm.write(f"warning: {message}", file=sys.stderr)


class Bar(tqdm):  # type: ignore[type-arg]
    """A bar with its rate and the time left, where standard error is a terminal."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **{"delay": PATIENCE, "disable": None, **options})


@contextmanager
def during(what: str) -> Iterator[None]:
    """Show the elapsed time of something that cannot be counted."""
    with Bar(desc=what, bar_format="{desc}: {elapsed}", unit="", leave=False) as bar:
        if bar.disable:
            yield
            return
        over = Event()

        def refresh() -> None:
            over.wait(PATIENCE)
            while not over.wait(1):
                bar.refresh()

        thread = Thread(target=refresh, daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()
