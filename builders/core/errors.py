"""The one exception that a user is meant to read."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


class UserError(Exception):
    """Something a user can mend: what is wrong, where, and what to do, in one sentence.

    Commands print it without a traceback and exit with status 1.
    """


@contextmanager
def reading(where: object, then: str) -> Iterator[None]:
    """Make a UserError of what is wrong with a file; ``then`` is what a user may do."""
    try:
        yield
    except (ValueError, OSError) as error:
        raise UserError(f"{where}: {error}; {then}") from error
