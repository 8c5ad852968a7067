"""Readers for the files that a snapshot's manifest declares, and checks of their licences.

Licences are identified by their SPDX ids. Other wordings are not interpreted: a person must read
them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Self, TypeVar

from pydantic import AliasChoices, Field, ValidationError, model_validator

from plumbline.builders.core.errors import UserError, reading
from plumbline.builders.core.params import Params
from plumbline.builders.core.snapshot import Snapshot

if TYPE_CHECKING:
    P = TypeVar("P", bound=Params)
T = TypeVar("T")
FREE = ("CC0-1.0", "PDDL-1.0", "Unlicense", "0BSD", "MIT-0")  # licences without conditions
# Excludes licences that forbid changes, since a dataset modifies its sources.
OPEN = re.compile(
    rf"{'|'.join(map(re.escape, FREE))}|CC-BY(-NC)?(-SA)?-(1\.0|2\.0|2\.5|3\.0|4\.0)(-IGO)?"
    r"|MIT|Apache-2\.0|BSD-[23]-Clause|ISC|Zlib|NCSA|PostgreSQL|MPL-2\.0|EPL-[12]\.0|EUPL-1\.[012]"
    r"|Artistic-2\.0|OFL-1\.1|GFDL-1\.[123](-only|-or-later)?|[AL]?GPL-[123]\.[01](-only|-or-later|\+)?"
    r"|ODbL-1\.0|ODC-By-1\.0|CDLA-(Permissive-[12]\.0|Sharing-1\.0)|C-UDA-1\.0|DL-DE-BY-2\.0"
    r"|etalab-2\.0|OGL-UK-[123]\.0|OGL-Canada-2\.0|NLOD-[12]\.0",
    re.IGNORECASE,
)
NOT_PUBLISHED = " (rows not to be published)"  # added to a licence if redistribute is false
FORMAT = AliasChoices("format", "layout")  # snapshots before November 2026 use the second name


class Shared(Params):
    """Terms of publication, which is permitted only if it is declared and the licence is open."""

    licence: str = Field(min_length=1, description="licence as stated, preferably an SPDX id")
    redistribute: bool = Field(
        False,
        description="whether its rows may be published; true needs the SPDX id of an open licence",
    )

    @model_validator(mode="after")
    def _open(self) -> Self:
        if self.redistribute and not is_open(self.licence):
            raise ValueError(
                f"redistribute: true needs the SPDX id of an open licence, such as CC-BY-4.0, "
                f"but {self.licence!r} is not one"
            )
        return self

    @property
    def stated(self) -> str:
        """The licence, followed by a note if the rows must not be published."""
        return self.licence + NOT_PUBLISHED * (not self.redistribute)


class Terms(Shared):
    """Terms of use of a third party's file."""

    citation: str = Field(min_length=1, description="reference to cite")


def declared(snapshot: Snapshot, model: type[P], *keys: str, hint: str = "") -> list[P]:
    """Return the entries under a path of keys in the request of a snapshot's manifest.

    Raises UserError, whose message ends with ``hint``, if an entry is missing or invalid.
    """
    value: Any = snapshot.manifest.get("request")
    try:
        for key in keys:
            value = value[key]
        return [model.model_validate(e) for e in (value if isinstance(value, list) else [value])]
    except (KeyError, TypeError, ValidationError) as error:
        name = ".".join(keys)
        raise UserError(
            f"{snapshot.folder}: declares no valid {name}; add it under "
            f"sources.{snapshot.manifest['source']} and fetch, or remove it from the dataset{hint}"
        ) from error


def read(
    snapshot: Snapshot, name: str, reader: Callable[[bytes], Iterable[T]], advice: str
) -> Iterator[T]:
    """Yield the items in a file of a snapshot; convert errors of the reader to UserErrors."""
    with reading(snapshot.folder / name, advice):
        yield from reader(snapshot.read(name))


def split_licences(stated: str) -> list[str]:
    """Split the licences of several sources that are stated in one line.

    Examples
    --------
    >>> split_licences("a: MIT; b-2: CC-BY-4.0 AND CC0-1.0")
    ['MIT', 'CC-BY-4.0', 'CC0-1.0']
    """
    parts = re.split(r"; | AND ", stated)
    return list(dict.fromkeys(re.sub(r"^[\w.-]+: ", "", part.strip()) for part in parts))


def is_open(stated: str) -> bool:
    """Return True if all stated licences are SPDX ids of open licences."""
    return all(OPEN.fullmatch(licence) for licence in split_licences(stated))


def exceeds(licence: str, stated: list[str]) -> bool:
    """Return True if a licence may permit more than at least one of the stated licences."""
    free = {name.lower() for name in (licence, *FREE)}
    return any(licence.lower() not in free for text in stated for licence in split_licences(text))
