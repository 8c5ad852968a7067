"""Parts shared by all commands: options for messages, one-line errors, exit statuses."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable
from pathlib import Path

from plumbline.builders.core.errors import UserError, lacking, mask, unwritten

TRACEBACK = "PLUMBLINE_TRACEBACK"
STOPPING = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
FINE, WRONG, FAULT, STOPPED = 0, 1, 70, 130  # argparse exits with status 2


def options(parser: argparse.ArgumentParser, commands: argparse.Action | None = None) -> None:
    """Add the options for messages to a parser and to each of its commands."""
    for command in (parser, *dict((commands and commands.choices) or {}).values()):
        about = command.add_argument_group("messages")
        about.add_argument(
            "--traceback",
            action="store_true",
            default=argparse.SUPPRESS,
            help="print the traceback of an error",
        )


def run(arguments: argparse.Namespace, do: Callable[[], int | None]) -> int:
    """Run a command and return its exit status (see ``docs/failures.md``).

    A :class:`UserError` is printed as one line on standard error. A fault in the
    program is printed in the same way, since its traceback is useful only to the authors.

    SIGTERM and SIGHUP stop the command as SIGINT does, so that its temporary folders are removed.
    """
    if getattr(arguments, "traceback", False):
        os.environ[TRACEBACK] = "1"
    status = FINE
    main = threading.current_thread() is threading.main_thread()  # only it may set handlers
    stopping = [n for n in STOPPING if main and signal.getsignal(n) == signal.SIG_DFL]
    for number in stopping:
        signal.signal(number, signal.default_int_handler)
    try:
        status = do() or FINE
        sys.stdout.flush()
    except BrokenPipeError:  # the reader, e.g. `head`, has ended; avoid a warning at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except KeyboardInterrupt:
        print("stopped; run the same command again to continue", file=sys.stderr)
        status = STOPPED
    except Exception as error:  # noqa: BLE001
        known = str(error) if isinstance(error, UserError) else lacking(error) or unwritten(error)
        status = WRONG if known else FAULT
        trace = traceback.format_exc() if os.environ.get(TRACEBACK) else ""
        print(mask(f"{trace}error: {known or _fault(error)}"), file=sys.stderr)
    finally:
        for number in stopping:
            signal.signal(number, signal.SIG_DFL)
    return status


def _fault(error: Exception) -> str:
    reason = " ".join(str(error).split())[:300]
    last = traceback.extract_tb(error.__traceback__)[-1]
    text = f"{type(error).__name__}{': ' + reason if reason else ''}"
    again = "" if os.environ.get(TRACEBACK) else " with what --traceback shows"
    where = f"({Path(last.filename).name}:{last.lineno})"
    return f"a fault in the program, {text} {where}; please report it{again}"
