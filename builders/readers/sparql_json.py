"""Reading SPARQL 1.1 query results in JSON (W3C, 21 March 2013)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

ENTITY = "http://www.wikidata.org/entity/"
Binding = dict[str, dict[str, str]]


def bindings(body: bytes) -> list[Binding]:
    """Return the rows of a result."""
    tree: Any = json.loads(body)
    try:
        rows = tree["results"]["bindings"]
    except (TypeError, KeyError) as error:
        raise ValueError("JSON, but not a SPARQL SELECT result") from error
    if not isinstance(rows, list):
        raise ValueError("JSON, but not a SPARQL SELECT result")  # noqa: TRY004
    return rows


def entity(value: dict[str, str]) -> str | None:
    """Return the item id of a term, or None for an unknown value (a blank or skolem node)."""
    iri = value.get("value", "")
    if value.get("type") == "uri" and iri.startswith(ENTITY):
        return iri.removeprefix(ENTITY)
    return None


def by_item(rows: list[Binding]) -> Iterator[tuple[str, list[Binding]]]:
    """Group rows by ``?item``, in the order in which the items first appear."""
    groups: dict[str, list[Binding]] = {}
    for row in rows:
        qid = entity(row["item"])
        assert qid is not None
        groups.setdefault(qid, []).append(row)
    yield from groups.items()
