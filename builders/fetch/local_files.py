"""Files that are the user's: beside the checkout, or at an address."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from plumbline.builders.core.errors import Problem
from plumbline.builders.fetch.http import ADDRESS, get

if TYPE_CHECKING:
    from collections.abc import Callable

    from plumbline.builders.fetch.http import Politeness


def bring(
    place: str, wrong: Callable[[bytes], str | None], politeness: Politeness, missing: str
) -> bytes:
    """Return the bytes of a file in the checkout or at an address.

    Parameters
    ----------
    wrong
        Tells what is wrong with the bytes, None if nothing is.
    missing
        What is said where there is no such file.

    Raises
    ------
    Problem
        If it is not there, or something is wrong with it.
    """
    if re.match(ADDRESS, place):
        return get(place, politeness, wrong)
    path = Path(place)
    if not path.is_file():
        raise Problem(f"{place}: {missing}")
    body = path.read_bytes()
    if said := wrong(body):
        raise Problem(f"{place}: {said}; mend the file")
    return body


def web_page(body: bytes) -> str | None:
    """Tell whether a web page came in place of a file of texts, which any bytes may be."""
    if body.lstrip()[:15].lower().startswith((b"<!doctype", b"<html")):
        return "a web page in place of the file"
    return None
