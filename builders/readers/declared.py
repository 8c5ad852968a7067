"""Files of a snapshot, read as its manifest declares them; what cannot be read is a problem."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import ValidationError

from plumbline.builders.core.errors import Problem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from plumbline.builders.core.params import Params
    from plumbline.builders.core.snapshot import Snapshot

    P = TypeVar("P", bound=Params)
T = TypeVar("T")


def declared(snapshot: Snapshot, model: type[P], *keys: str, otherwise: str) -> list[P]:
    """Return what a manifest declares under some keys of its request: an entry, or a list of them.

    Raises
    ------
    Problem
        That ends with ``otherwise``, if there is none, or none that can be read.
    """
    found: Any = snapshot.manifest.get("request")
    try:
        for key in keys:
            found = found[key]
        return [model.model_validate(e) for e in (found if isinstance(found, list) else [found])]
    except (KeyError, TypeError, ValidationError) as error:
        raise Problem(f"{snapshot.folder}: {otherwise}") from error


def read(
    snapshot: Snapshot, name: str, reader: Callable[[bytes], Iterable[T]], then: str
) -> Iterator[T]:
    """Yield what a reader makes of a file.

    Raises
    ------
    Problem
        If the reader refuses it; ``then`` is what a user may do.
    """
    try:
        yield from reader(snapshot.read(name))
    except (ValueError, OSError) as error:
        raise Problem(f"{snapshot.folder / name}: {error}; {then}") from error
