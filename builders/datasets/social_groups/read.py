"""Files of social groups, and queries formed from groups and templates."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from plumbline.builders.readers.spelling import lowered
from plumbline.builders.readers.table import table

COLUMNS = ["category", "group", "name", "kind"]
KINDS = ("people", "country")


class Group(NamedTuple):
    """One group, with its spelling in prompts and its usual spelling."""

    category: str
    group: str
    name: str
    kind: str


def groups(body: bytes) -> list[Group]:
    """Return the groups of a CSV file with the columns category, group, name and kind."""
    entries: dict[tuple[str, str], Group] = {}
    for number, fields in table(body, COLUMNS)[1]:
        entry = Group(*fields)
        if any(not value or value != " ".join(value.split()) for value in entry):
            raise ValueError(f"line {number}: a field is empty or has superfluous spaces")
        if entry.kind not in KINDS:
            raise ValueError(f"line {number}: {entry.kind!r} is neither {' nor '.join(KINDS)}")
        if entries.setdefault(entry[:2], entry) is not entry:
            raise ValueError(f"line {number}: {entry.group!r} is repeated in {entry.category}")
    if not entries:
        raise ValueError("the file has no groups")
    return list(entries.values())


class Query(NamedTuple):
    """A query to an engine, and the group and template from which it is formed."""

    text: str
    category: str
    group: str
    template: str


def queries(
    entries: Iterable[Group],
    templates: Mapping[str, Sequence[str]],
    spelling: str,
    language: str = "",
) -> dict[str, Query]:
    """Fill each template with each group; queries are in lower case and have single spaces.

    If two groups give the same query (the paper lists Syria twice), it belongs to the first group.

    ``templates``: for each of :data:`KINDS`, texts that contain ``{group}``.
    ``spelling``: ``paper`` for the paper's spelling of groups, ``usual`` for the usual one.

    Examples
    --------
    >>> norway = Group("country", "Norway", "Norway", "country")
    >>> list(queries([norway], {"country": ["why is {group} so"]}, "paper"))
    ['why is norway so']
    """
    filled: dict[str, Query] = {}
    for entry in entries:
        word = entry.group if spelling == "paper" else entry.name
        for template in templates.get(entry.kind, ()):
            text = " ".join(lowered(template.replace("{group}", word), language).split())
            filled.setdefault(text, Query(text, entry.category, entry.group, template))
    return filled
