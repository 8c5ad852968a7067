"""Libraries of extras, which an installation may lack."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from plumbline.builders.core.errors import UserError, lacking

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def optional_library() -> Iterator[None]:
    """Turn a missing library of an extra into a UserError that names the command to install it."""
    try:
        yield
    except ModuleNotFoundError as error:
        if not (advice := lacking(error)):
            raise
        raise UserError(advice) from error
