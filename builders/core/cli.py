"""What all commands share: options for messages, errors as one sentence, exit statuses."""

from __future__ import annotations

import os
import sys
import time
import traceback
from typing import TYPE_CHECKING

from plumbline.builders.core.errors import UserError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

TRACEBACK = "PLUMBLINE_TRACEBACK"
LOG = "PLUMBLINE_LOG"
FINE, WRONG, FAULT, STOPPED = 0, 1, 70, 130  # argparse itself ends with 2
STATUSES = {
    FINE: "done",
    WRONG: "something is wrong that you can put right: input, params, network, disk, a licence",
    2: "the command line is wrong",
    FAULT: "a fault in the program itself; please report it with what --traceback shows",
    STOPPED: "stopped from the keyboard; the same command continues where it can",
}


def options(parser: argparse.ArgumentParser, commands: argparse.Action | None = None) -> None:
    """Give a program and each of its commands the options for messages."""
    from argparse import SUPPRESS

    for one in (parser, *dict((commands and commands.choices) or {}).values()):
        about = one.add_argument_group("messages")
        about.add_argument(
            "--log-json",
            action="store_true",
            default=SUPPRESS,
            help="report progress, warnings and errors as lines of JSON on standard error",
        )
        about.add_argument(
            "--traceback",
            action="store_true",
            default=SUPPRESS,
            help="print the traceback of an error",
        )


def _words(command: str | list[str]) -> str:
    return command if isinstance(command, str) else " ".join(command)


def run(given: argparse.Namespace, program: str, do: Callable[[], int | None]) -> int:
    """Run a command and return its exit status, one of :data:`STATUSES`, or what it returns.

    A :class:`UserError` becomes one line on standard error; so does a fault in the program, since
    where it came from is of use to its authors alone.
    """
    if getattr(given, "log_json", False):
        os.environ[LOG] = "json"  # of processes that the command starts too
    if getattr(given, "traceback", False):
        os.environ[TRACEBACK] = "1"
    begun = time.monotonic()
    _event("start", command=f"{program} {_words(given.command)}")
    status = FINE
    try:
        status = do() or FINE
        sys.stdout.flush()
    except BrokenPipeError:  # of `| head`: nobody reads on, and Python must not say so at its end
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except UserError as problem:
        _tell("error", str(problem), WRONG)
        return WRONG
    except KeyboardInterrupt:
        _tell("stopped", "stopped; run the same command again to continue", STOPPED)
        return STOPPED
    except Exception as error:  # noqa: BLE001
        said = " ".join(str(error).split())[:300]
        text = f"{type(error).__name__}{': ' + said if said else ''} ({_where(error)})"
        again = "" if os.environ.get(TRACEBACK) else " with what --traceback shows"
        _tell("error", f"a fault in the program, {text}; please report it{again}", FAULT)
        return FAULT
    _event("end", status=status, seconds=round(time.monotonic() - begun, 3))
    return status


def _tell(kind: str, message: str, status: int) -> None:
    """Report how a command ended, and its origin if that is requested."""
    trace = traceback.format_exc() if os.environ.get(TRACEBACK) and kind == "error" else ""
    if os.environ.get(LOG) == "json":
        _event(kind, message=message, status=status, **({"traceback": trace} if trace else {}))
        return
    sys.stderr.write(trace)
    print(f"error: {message}" if kind == "error" else message, file=sys.stderr)


def _where(error: Exception) -> str:
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"{os.path.basename(last.filename)}:{last.lineno}"  # noqa: PTH119


def _event(kind: str, **facts: object) -> None:
    if os.environ.get(LOG) == "json":  # help and usage errors do not wait for this import
        from plumbline.builders.core.progress import event

        event(kind, **facts)
