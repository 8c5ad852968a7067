"""The configs of two versions: their files, what their codes stand for, and what names a row.

All of it stands on the cards; a folder without one, or with one that says less, is read too.
"""

from __future__ import annotations

import re
from fnmatch import fnmatch
from typing import TYPE_CHECKING, Any

import yaml

from plumbline.builders.core.errors import Problem
from plumbline.builders.core.parquet import REJECTS
from plumbline.builders.core.yaml_text import parse
from plumbline.builders.versions.compare import Key, Side
from plumbline.builders.versions.resolve import PARQUET

if TYPE_CHECKING:
    from pathlib import Path

    from plumbline.builders.versions.resolve import Version
    from plumbline.builders.versions.roles import Meaning

Sides = tuple[Side | None, Side | None]  # None: that version has not got the config
NAMED = re.compile(
    r"(?:^Config (?P<configs>`.+`)\.\n)?^One row is named by (?P<key>`.+`)\.$", re.MULTILINE
)


def sides_of(both: tuple[Version, Version], only: tuple[str, ...]) -> dict[str, Sides]:
    """Return each config in each version, None where a version has not got it."""
    ways = [_configs(version) for version in both]
    names = sorted({*ways[0], *ways[1]})
    for config in only:
        if config not in names:
            raise Problem(
                f"--config {config}: in neither version; there are {', '.join(names) or 'none'}"
            )
    wanted = [name for name in names if not only or name in only]
    return {name: (ways[0].get(name), ways[1].get(name)) for name in wanted}


def _configs(version: Version) -> dict[str, Side]:
    """Return the configs of a version, as its card has them, else as its files are called."""
    front = _front(version)
    files: dict[str, list[Path]] = {}
    for entry in front.get("configs") or ():
        given = entry.get("data_files") or ()
        splits = [given] if isinstance(given, str) else given
        paths = [s["path"] if isinstance(s, dict) else s for s in splits]
        flat = [p for path in paths for p in (path if isinstance(path, list) else [path])]
        at = [where for name, where in version.files.items() if any(fnmatch(name, p) for p in flat)]
        if at:
            files[str(entry.get("config_name", "default"))] = at
    if not files:
        for name, where in version.files.items():
            if name != REJECTS:
                files.setdefault(name.split("/")[0].removesuffix(PARQUET), []).append(where)
    told = front.get("dataset_info") or []
    told = told if isinstance(told, list) else [told]
    labels = {str(info.get("config_name", "default")): _labels(info) for info in told}
    return {
        name: _integer_labels(Side(paths, labels.get(name, {}))) for name, paths in files.items()
    }


def _front(version: Version) -> dict[str, Any]:
    """Return the YAML at the head of a card; nothing where there is none that can be read."""
    pieces = version.card.split("---\n", 2)
    if len(pieces) != 3 or pieces[0]:
        return {}
    try:
        front = parse(pieces[1])
    except yaml.YAMLError as error:
        raise Problem(f"{version.named}: its card is not valid YAML; mend it there") from error
    return front if isinstance(front, dict) else {}


def _labels(info: dict[str, Any]) -> dict[str, tuple[str, ...]]:
    found = {}
    for column in info.get("features") or ():
        kind = column.get("dtype")
        if isinstance(kind, dict) and "class_label" in kind:
            names = kind["class_label"]["names"]
            ordered = (
                names if isinstance(names, list) else [names[k] for k in sorted(names, key=int)]
            )
            found[column["name"]] = tuple(map(str, ordered))
    return found


def _integer_labels(side: Side) -> Side:
    """Leave out labels of columns that hold no codes: they are what the values say already."""
    if not side.labels:
        return side
    kinds = Side(side.paths, {}).types()
    kept = {
        n: names for n, names in side.labels.items() if kinds.get(n, "").startswith(("int", "uint"))
    }
    return side._replace(labels=kept)


def key_of(
    both: tuple[Version, Version],
    config: str,
    sides: tuple[Side, Side],
    schema: tuple[str, ...],
    meaning: Meaning,
) -> Key:
    """Return what names a row: by the schema, else by a card, else all columns of text."""
    types = [side.types() for side in sides]
    shared = [column for column in types[1] if column in types[0]]
    stated = [(_stated(version.card, config), "card") for version in reversed(both)]
    for columns, source in [(schema, "schema"), *stated]:
        if columns and set(columns) <= set(shared):
            instead = tuple(meaning.instead.get(c, c) for c in columns)
            return Key(instead if set(instead) <= set(shared) else columns, source)
    texts = tuple(c for c in shared if all(t[c].startswith(("str", "label")) for t in types))
    return Key(texts, "all columns of text") if texts else Key((), "order of the rows")


def _stated(card: str, config: str) -> tuple[str, ...]:
    for found in NAMED.finditer(card):
        configs = found["configs"]
        if configs is None or config in re.findall(r"`([^`]+)`", configs):
            return tuple(re.findall(r"`([^`]+)`", found["key"]))
    return ()
