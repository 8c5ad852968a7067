"""Errors, warnings and progress on standard error, and the masking of secrets.

The Hub token and the keys of model servers are registered where they are read, and masked in
messages and files. Other secrets are unknown to this module; params must not contain any.
"""

from __future__ import annotations

import errno
import os
import re
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

from tqdm import tqdm

if TYPE_CHECKING:
    from multiprocessing.context import BaseContext

UNWRITTEN = (
    "{path}: could not be written ({why}); free some space or use a writable folder, and run the "
    "same command again to continue"
)
DISK = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EIO}
FULL = re.compile("No space left on device|Disk quota exceeded|File too large")
HUB = "HF_ENDPOINT"
SHORTEST = 8  # minimum length of a secret; shorter keys (of local servers) are ordinary words
SECRET = re.compile(  # patterns of secrets, which params must not contain
    r"(?i)://[^\s/@?#]+@"  # a password in an address
    r"|[?&;](?:[\w-]*token|api[_-]?key|key|auth|password|passwd|pwd|secret|sig|[\w-]*signature)=[^&{]"
    r"|\b(?:hf_|sk-|gh[opusr]_|github_pat_|glpat-)[\w-]{16,}"
)
secrets: set[str] = set()


class UserError(Exception):
    """An error that the user can fix; its message states the place, the problem and the remedy.

    Commands print it without a traceback and exit with status 1. Registered secrets are masked in
    the message.
    """

    def __init__(self, message: object = "") -> None:
        super().__init__(mask(str(message)))


@contextmanager
def reading(where: object, advice: str) -> Iterator[None]:
    """Convert errors in reading a file into a UserError; ``advice`` tells the user what to do."""
    try:
        yield
    except (ValueError, OSError, RecursionError) as error:
        raise UserError(f"{where}: {error}; {advice}") from error


def unwritten(error: BaseException) -> str:
    """Return advice if a disk is full or read-only, or "" for other errors.

    The causes of the error are checked too, since libraries wrap the system's error in their own.
    """
    if isinstance(error, PermissionError):
        return f"{error.filename}: may not be read or written; change its permissions"
    cause: BaseException | None = error
    while cause is not None:
        words = FULL.search(str(cause))
        if words or (isinstance(cause, OSError) and cause.errno in DISK):
            path = getattr(cause, "filename", None) or "a file"
            why = words[0] if words else getattr(cause, "strerror", None) or str(cause)
            return UNWRITTEN.format(path=path, why=why)
        cause = cause.__cause__ or cause.__context__
    return ""


def lacking(error: BaseException) -> str:
    """Return advice on installing a missing module, or "" for other errors and plumbline's modules.

    If the module belongs to an optional extra, the advice is ``pip install 'plumbline[EXTRA]'``.
    """
    from importlib.metadata import requires

    name = str(error.name).partition(".")[0] if isinstance(error, ModuleNotFoundError) else ""
    if name in ("", "None", "plumbline"):
        return ""
    package = {"sklearn": "scikit-learn", "ruamel": "ruamel.yaml"}.get(name, name)
    form = rf"{re.escape(package).replace('_', '[_-]')}\b.*extra == ['\"]([\w-]+)"
    extras = (re.match(form, text, re.IGNORECASE) for text in requires("plumbline") or ())
    extra = next((f"'plumbline[{found[1]}]'" for found in extras if found), package)
    return f"{name} is not installed; run pip install {extra}"


@contextmanager
def optional_library() -> Iterator[None]:
    """Convert an error for a missing optional library to a UserError with the install command."""
    try:
        yield
    except ModuleNotFoundError as error:
        if not (advice := lacking(error)):
            raise
        raise UserError(advice) from error


def keep(secret: str | None) -> None:
    """Register a secret, which is masked from then on."""
    if secret and len(secret) >= SHORTEST:
        secrets.add(secret)


def mask(text: str, token: str = "") -> str:
    """Mask all registered secrets, and the caller's own token, in a text."""
    for secret in sorted({*secrets, token} - {""}, key=len, reverse=True):
        text = text.replace(secret, "[secret]")
    return text


def in_the_open(address: str) -> bool:
    """Return True if requests to an address are unencrypted and leave this machine."""
    parts = urlsplit(address)
    return parts.scheme != "https" and parts.hostname not in ("localhost", "127.0.0.1", "::1")


def wrong_hub(token: str | None) -> str:
    """Register the Hub token; return the problem with the Hub's address, or "" if there is none."""
    keep(token)
    address = os.environ.get(HUB) or ""
    if address and token and in_the_open(address):
        return f"{HUB}: {mask(address)} would send your token unencrypted; use https"
    return ""


T = TypeVar("T")
PATIENCE = 2.0  # seconds before a progress bar is shown
ALONE = {"PLUMBLINE_CORES": "1", "OMP_NUM_THREADS": "1"}  # environment of a one-core process


def warn(message: str) -> None:
    """Print a warning on standard error."""
    tqdm.write(f"warning: {message}", file=sys.stderr)


class Bar(tqdm):  # type: ignore[type-arg]
    """Progress bar with rate and remaining time, shown only if standard error is a terminal."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **{"delay": PATIENCE, "disable": None, **options})


def during(task: str) -> Bar:
    """Show the name of a task that reports no progress, if standard error is a terminal."""
    return Bar(desc=task, bar_format="{desc}", unit="", delay=0, leave=False)


def each(
    function: Callable[..., T],
    arguments: Sequence[tuple[Any, ...]],
    number: int,
    environment: Mapping[str, str] = MappingProxyType({}),
    preload: Sequence[str] = (),
) -> Iterator[tuple[int, T]]:
    """Call a function with each tuple of arguments, in ``number`` new processes.

    The processes end when this process ends; otherwise they would wait for work forever.

    ``environment``: additional variables; they are set before modules that read them are imported.
    ``preload``: modules that are imported only once, for all processes (on Linux only).

    Yields the index of each call and its result, in the order of completion.

    Raises the exception that a call raises, and UserError if a process was killed.
    """
    from concurrent.futures import ProcessPoolExecutor, as_completed
    from concurrent.futures.process import BrokenProcessPool

    context, options = _context(environment, preload), ({**os.environ, **environment},)
    with ProcessPoolExecutor(number, context, initializer=_begin, initargs=options) as pool:
        places = {pool.submit(function, *values): n for n, values in enumerate(arguments)}
        try:
            for done in as_completed(places):
                yield places[done], done.result()
        except BrokenProcessPool as error:
            raise UserError(
                "a worker process was killed, perhaps for lack of memory; run the same command "
                "again; it continues if it can"
            ) from error
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def _context(environment: Mapping[str, str], preload: Sequence[str]) -> BaseContext:
    from multiprocessing import forkserver, get_context

    if not preload or sys.platform != "linux":
        return get_context("spawn")
    context = get_context("forkserver")
    context.set_forkserver_preload([*preload])
    before = {name: os.environ[name] for name in environment if name in os.environ}
    os.environ.update(environment)
    try:
        forkserver.ensure_running()  # the server keeps the current environment
    except OSError:  # its socket is in TMPDIR, whose path may be too long
        return get_context("spawn")
    finally:
        for name in environment:
            del os.environ[name]
        os.environ.update(before)
    return context


def _begin(environment: dict[str, str]) -> None:
    from multiprocessing import parent_process

    os.environ.clear()  # the server's environment may be that of an earlier call
    os.environ.update(environment)
    parent: Any = parent_process()

    def end_with_parent() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=end_with_parent, daemon=True).start()
