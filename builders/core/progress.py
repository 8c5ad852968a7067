"""How far a command is: bars for people, lines of JSON for programs, nothing into a file.

A bar appears after :data:`PATIENCE` seconds where standard error is a terminal. With ``--log-json``
(or ``PLUMBLINE_LOG=json``, which the stages of a pipeline inherit) it is a line of JSON instead,
now and then, wherever standard error goes. Neither changes what a command writes.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from io import StringIO
from threading import Event, Thread
from typing import Any

from tqdm import tqdm

from plumbline.builders.core.cli import as_json, event

PATIENCE = 2.0  # seconds: what is done by then shows no bar
BETWEEN = 5.0  # seconds between two lines of JSON on one bar


def warn(message: str) -> None:
    """Report something that does not stop a command."""
    if as_json():
        event("warning", message=message)
    else:
        tqdm.write(f"warning: {message}", file=sys.stderr)


class Bar(tqdm):  # type: ignore[type-arg]
    """A bar with its rate and the time left; options as of ``tqdm``."""

    def __init__(self, *given: Any, **options: Any) -> None:
        options.setdefault("disable", None)
        if as_json() and options["disable"] is None:
            # what tqdm writes besides, such as the end of a line, goes nowhere
            nowhere = {"file": StringIO(), "disable": False}
            options |= nowhere | {"mininterval": BETWEEN, "miniters": 1}
        super().__init__(*given, **{"delay": PATIENCE, **options})

    def display(self, msg: str | None = None, pos: int | None = None) -> Any:
        """Show how far it is."""
        if not as_json():
            return super().display(msg, pos)
        if msg == "":  # takes a bar off the screen
            return True
        now = self.format_dict
        done, whole, rate = now["n"], now["total"], now["rate"]
        if rate is None and now["elapsed"] > 0:
            rate = (done - now["initial"]) / now["elapsed"]
        left = (whole - done) / rate if whole is not None and rate else None
        event(
            "progress",
            what=(now["prefix"] or "").removesuffix(": "),
            done=done,
            total=whole,
            unit=now["unit"],
            per_second=None if rate is None else round(rate, 3),
            elapsed_s=round(now["elapsed"], 1),
            left_s=None if left is None else round(left, 1),
        )
        return True


@contextmanager
def during(what: str) -> Iterator[None]:
    """Show how long something has taken that cannot be counted."""
    with Bar(desc=what, bar_format="{desc}: {elapsed}", unit="", leave=False) as bar:
        if bar.disable:
            yield
            return
        over = Event()
        pause = BETWEEN if as_json() else 1.0

        def beat() -> None:
            wait = PATIENCE
            while not over.wait(wait):
                bar.refresh()
                wait = pause

        beating = Thread(target=beat, daemon=True)
        beating.start()
        try:
            yield
        finally:
            over.set()
            beating.join()
