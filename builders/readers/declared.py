"""Files of a snapshot, read as its manifest declares them; what cannot be read is a problem."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Self, TypeVar

from pydantic import AliasChoices, Field, ValidationError, model_validator

from plumbline.builders.core.errors import UserError, reading
from plumbline.builders.core.params import Params
from plumbline.builders.core.snapshot import Snapshot
from plumbline.builders.readers import licences

if TYPE_CHECKING:
    P = TypeVar("P", bound=Params)
T = TypeVar("T")
FORMAT = AliasChoices("format", "layout")  # the second in snapshots of before November 2026


class Shared(Params):
    """Whether what others made may be published: not, unless it is said with an open licence."""

    licence: str = Field(min_length=1, description="as its authors state it; best its SPDX id")
    redistribute: bool = Field(
        False,
        description="whether its rows may be published; true needs the SPDX id of an open licence",
    )

    @model_validator(mode="after")
    def _open(self) -> Self:
        if self.redistribute and not licences.is_open(self.licence):
            raise ValueError(
                f"redistribute: true needs the SPDX id of an open licence, CC-BY-4.0 for instance, "
                f"and {self.licence!r} is none"
            )
        return self

    @property
    def stated(self) -> str:
        """The licence, and whether rows must not be published."""
        return self.licence + licences.NOT_PUBLISHED * (not self.redistribute)


class Terms(Shared):
    """On what terms a file of others may be used."""

    citation: str = Field(min_length=1, description="what to cite")


def declared(snapshot: Snapshot, model: type[P], *keys: str, hint: str = "") -> list[P]:
    """Return what a manifest declares under some keys of its request: an entry, or a list of them.

    Raises UserError, with a hint, if there is none, or none that can be read.
    """
    found: Any = snapshot.manifest.get("request")
    try:
        for key in keys:
            found = found[key]
        return [model.model_validate(e) for e in (found if isinstance(found, list) else [found])]
    except (KeyError, TypeError, ValidationError) as error:
        name = ".".join(keys)
        raise UserError(
            f"{snapshot.folder}: declares no readable {name}; add it under "
            f"sources.{snapshot.manifest['source']} and fetch, or take it out of the dataset{hint}"
        ) from error


def read(
    snapshot: Snapshot, name: str, reader: Callable[[bytes], Iterable[T]], then: str
) -> Iterator[T]:
    """Yield what a reader makes of a file of a snapshot, whose errors are Problems."""
    with reading(snapshot.folder / name, then):
        yield from reader(snapshot.read(name))
