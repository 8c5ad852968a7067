"""Reading SPARQL 1.1 query results in JSON (W3C, 21 March 2013)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from plumbline.builders.readers.table import parsed

ITEM = re.compile(r"http://www\.wikidata\.org/entity/(Q[1-9][0-9]{0,17})")
Binding = dict[str, dict[str, str]]


def bindings(body: bytes) -> list[Binding]:
    """Return the rows of a result; :class:`json.JSONDecodeError` where it may have been cut."""
    tree: Any = parsed(body)
    try:
        rows = tree["results"]["bindings"]
        sound = isinstance(rows, list) and all(
            isinstance(term["value"], str) and isinstance(term["type"], str)
            for row in rows
            for term in row.values()
        )
    except (TypeError, KeyError, AttributeError):
        sound = False
    if not sound:
        raise ValueError("JSON, but not a SPARQL SELECT result")
    return list(rows)


def entity(value: dict[str, str]) -> str | None:
    """Return the item id of a term, or None for an unknown value (a blank or skolem node)."""
    iri = value.get("value", "")
    if value.get("type") == "uri" and (found := ITEM.fullmatch(iri)):
        return found[1]
    return None


def by_item(rows: list[Binding]) -> Iterator[tuple[str, list[Binding]]]:
    """Group rows by ``?item``, in the order in which the items first appear."""
    groups: dict[str, list[Binding]] = {}
    for row in rows:
        groups.setdefault(item(row), []).append(row)
    yield from groups.items()


def item(row: Binding, name: str = "item") -> str:
    """Return the item id that a row must have."""
    qid = entity(row.get(name, {}))
    if qid is None:
        raise ValueError(f"a row without an item in ?{name}")
    return qid
