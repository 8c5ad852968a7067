"""Files of a snapshot, read as its manifest declares them; what cannot be read is a problem."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import AliasChoices, Field, ValidationError

from plumbline.builders.core.errors import UserError, reading
from plumbline.builders.core.params import Params
from plumbline.builders.core.snapshot import Snapshot

if TYPE_CHECKING:
    P = TypeVar("P", bound=Params)
T = TypeVar("T")
FORMAT = AliasChoices("format", "layout")  # the second in snapshots of before November 2026


class Terms(Params):
    """On what terms a file of others may be used."""

    licence: str = Field(min_length=1, description="as its authors state it")
    citation: str = Field(min_length=1, description="what to cite")
    redistribute: bool = Field(False, description="whether the terms let its rows be published")


def declared(snapshot: Snapshot, model: type[P], *keys: str, otherwise: str) -> list[P]:
    """Return what a manifest declares under some keys of its request: an entry, or a list of them.

    Raises
    ------
    UserError
        That ends with ``otherwise``, if there is none, or none that can be read.
    """
    found: Any = snapshot.manifest.get("request")
    try:
        for key in keys:
            found = found[key]
        return [model.model_validate(e) for e in (found if isinstance(found, list) else [found])]
    except (KeyError, TypeError, ValidationError) as error:
        raise UserError(f"{snapshot.folder}: {otherwise}") from error


def read(
    snapshot: Snapshot, name: str, reader: Callable[[bytes], Iterable[T]], then: str
) -> Iterator[T]:
    """Yield what a reader makes of a file of a snapshot, whose errors are Problems."""
    with reading(snapshot.folder / name, then):
        yield from reader(snapshot.read(name))
