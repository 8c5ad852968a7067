"""Errors, warnings and progress on standard error, and secrets, which are in no message or file.

The token for the Hub and the keys of model servers are registered where they are read. Others are
unknown here, so that params may not hold any.
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
from typing import Any, TypeVar
from urllib.parse import urlsplit

from tqdm import tqdm

UNWRITTEN = (
    "{path}: could not be written ({why}); free some space and run the same command again, it "
    "continues where it stopped"
)
DISK = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EIO}
FULL = re.compile("No space left on device|Disk quota exceeded|File too large")
HUB = "HF_ENDPOINT"
SHORTEST = 8  # characters of a secret; the shorter keys of local servers are words
SECRET = re.compile(  # of others, in params
    r"(?i)://[^\s/@?#]+@"  # a password in an address, a signature or token behind it, a token
    r"|[?&;](?:[\w-]*token|api[_-]?key|key|auth|password|passwd|pwd|secret|sig|[\w-]*signature)=[^&{]"
    r"|\b(?:hf_|sk-|gh[opusr]_|github_pat_|glpat-)[\w-]{16,}"
)
secrets: set[str] = set()


class UserError(Exception):
    """Something a user can mend: what is wrong, where, and what to do, in one sentence.

    Commands print it without a traceback and exit with status 1. Registered secrets are masked.
    """

    def __init__(self, message: object = "") -> None:
        super().__init__(mask(str(message)))


@contextmanager
def reading(where: object, advice: str) -> Iterator[None]:
    """Make a UserError of what is wrong with a file; ``then`` is what a user may do."""
    try:
        yield
    except (ValueError, OSError) as error:
        raise UserError(f"{where}: {error}; {advice}") from error


def unwritten(error: BaseException) -> str:
    """Return advice on a disk that is full or cannot be written, "" for an error of another kind.

    Libraries put the system's own words into errors of other kinds.
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


def lacking(error: ModuleNotFoundError) -> str:
    """Return advice to install a missing module, or "" where it is one of ours.

    Extras have what not every use needs; ``pip install 'plumbline[EXTRA]'`` adds one.
    """
    from importlib.metadata import requires

    name = (error.name or "").partition(".")[0]
    if not name or name == "plumbline":
        return ""
    package = {"sklearn": "scikit_learn", "ruamel": "ruamel.yaml"}.get(name, name).lower()
    for requirement in requires("plumbline") or ():
        required, _, condition = requirement.partition(";")
        required = re.split(r"[^A-Za-z0-9_.-]", required.strip())[0].lower().replace("-", "_")
        extra = re.search(r"extra == ['\"]([\w-]+)['\"]", condition)
        if required == package and extra:
            return f"{name} is not installed; run pip install 'plumbline[{extra[1]}]'"
    return f"{name} is not installed; run pip install {name}"


@contextmanager
def optional_library() -> Iterator[None]:
    """Turn a missing library of an extra into a UserError that names the command to install it."""
    try:
        yield
    except ModuleNotFoundError as error:
        if not (advice := lacking(error)):
            raise
        raise UserError(advice) from error


def keep(secret: str | None) -> None:
    """Register a secret, to be masked from then on."""
    if secret and len(secret) >= SHORTEST:
        secrets.add(secret)


def mask(text: str, token: str = "") -> str:
    """Return a text without the registered secrets, and without that of the caller."""
    for secret in sorted({*secrets, token} - {""}, key=len, reverse=True):
        text = text.replace(secret, "[secret]")
    return text


def in_the_open(address: str) -> bool:
    """Return whether others can read what is sent to an address: http, but to this machine."""
    parts = urlsplit(address)
    return parts.scheme != "https" and parts.hostname not in ("localhost", "127.0.0.1", "::1")


def wrong_hub(token: str | None) -> str:
    """Register the token for the Hub, and return what is wrong with the Hub's address, or ""."""
    keep(token)
    address = os.environ.get(HUB) or ""
    if address and token and in_the_open(address):
        return f"{HUB}: {mask(address)} would send your token for all to read; use https"
    return ""


T = TypeVar("T")
PATIENCE = 2.0  # seconds: what is done by then shows no bar
ALONE = {"PLUMBLINE_CORES": "1", "OMP_NUM_THREADS": "1"}  # of processes that have a core each


def warn(message: str) -> None:
    """Report something that does not stop a command."""
    tqdm.write(f"warning: {message}", file=sys.stderr)


class Bar(tqdm):  # type: ignore[type-arg]
    """A bar with its rate and the time left, where standard error is a terminal."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **{"delay": PATIENCE, "disable": None, **options})


@contextmanager
def during(task: str) -> Iterator[None]:
    """Name on a terminal what is being done, where it cannot be counted."""
    with Bar(desc=task, bar_format="{desc}", unit="", delay=0, leave=False):
        yield


def each(
    function: Callable[..., T],
    arguments: Sequence[tuple[Any, ...]],
    number: int,
    environment: Mapping[str, str] = MappingProxyType({}),
) -> Iterator[tuple[int, T]]:
    """Call a function with each of several arguments, in a number of new processes.

    They end with this one, however it ends: else they would wait for work for ever.

    ``environment``: variables that they have besides, set before they import what reads them.

    Yields what it returns, in no order, each with its place among the arguments.

    Raises Exception as raised in a call, and UserError if a process was killed.
    """
    from concurrent.futures import ProcessPoolExecutor, as_completed
    from concurrent.futures.process import BrokenProcessPool
    from multiprocessing import get_context

    spawn, options = get_context("spawn"), (dict(environment),)
    with ProcessPoolExecutor(number, spawn, initializer=_begin, initargs=options) as pool:
        places = {pool.submit(function, *values): n for n, values in enumerate(arguments)}
        try:
            for done in as_completed(places):
                yield places[done], done.result()
        except BrokenProcessPool as error:
            raise UserError(
                "a process that worked for this one was killed, as where memory is short; run the "
                "same command again, it continues where it can"
            ) from error
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def _begin(environment: dict[str, str]) -> None:
    from multiprocessing import parent_process

    os.environ.update(environment)
    parent = parent_process()
    assert parent is not None

    def end_with_parent() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=end_with_parent, daemon=True).start()
