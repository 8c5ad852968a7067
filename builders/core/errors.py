"""The one exception that a user is meant to read, and what is said of packages that lack."""

from __future__ import annotations

import errno
import re
from collections.abc import Iterator
from contextlib import contextmanager

from plumbline.builders.core.masking import mask

UNWRITTEN = (
    "{path}: could not be written ({why}); free some space and run the same command again, it "
    "continues where it stopped"
)
DISK = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EIO}
SAID = re.compile("No space left on device|Disk quota exceeded|File too large")


class UserError(Exception):
    """Something a user can mend: what is wrong, where, and what to do, in one sentence.

    Commands print it without a traceback and exit with status 1. Registered secrets are masked.
    """

    def __init__(self, message: object = "") -> None:
        super().__init__(mask(str(message)))


@contextmanager
def reading(where: object, then: str) -> Iterator[None]:
    """Make a UserError of what is wrong with a file; ``then`` is what a user may do."""
    try:
        yield
    except (ValueError, OSError) as error:
        raise UserError(f"{where}: {error}; {then}") from error


def unwritten(error: BaseException) -> str:
    """Return what to do about a disk that is full or cannot be written, "" if it is not that.

    Libraries put the system's own words into errors of other kinds.
    """
    cause: BaseException | None = error
    while cause is not None:
        said = SAID.search(str(cause))
        if said or (isinstance(cause, OSError) and cause.errno in DISK):
            path = getattr(cause, "filename", None) or "a file"
            why = said[0] if said else getattr(cause, "strerror", None) or str(cause)
            return UNWRITTEN.format(path=path, why=why)
        cause = cause.__cause__ or cause.__context__
    return ""


def lacking(error: ModuleNotFoundError) -> str:
    """Return what to install for a module that is not there, or "" where it is one of ours.

    Extras have what not every use needs; ``pip install 'plumbline[EXTRA]'`` adds one.
    """
    from importlib.metadata import requires

    name = (error.name or "").partition(".")[0]
    if not name or name == "plumbline":
        return ""
    for requirement in requires("plumbline") or ():
        package, _, condition = requirement.partition(";")
        known = re.split(r"[^A-Za-z0-9_.-]", package.strip())[0].lower().replace("-", "_")
        wanted = {"sklearn": "scikit_learn", "ruamel": "ruamel.yaml"}.get(name, name).lower()
        if known == wanted and (extra := re.search(r"extra == ['\"]([\w-]+)['\"]", condition)):
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
