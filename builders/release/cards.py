"""Reading a card back: which files are of which config, what names a row, what labels stand for."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fnmatch import fnmatch
from typing import TYPE_CHECKING, Any

from plumbline.builders.core.yaml_text import parse

if TYPE_CHECKING:
    from pathlib import Path

CARD = "README.md"
CONFIGS = re.compile(r"^Config (`.+`)\.$")
NAMED = re.compile(r"^One row is named by (`.+`)\.$")
TICKED = re.compile(r"`([^`]+)`")


@dataclass(frozen=True)
class Card:
    """What a card says of the files beside it."""

    files: dict[str, tuple[str, ...]]  # of each config: patterns
    keys: dict[str, tuple[str, ...]]  # of each config: the columns that name a row
    labels: dict[str, dict[str, tuple[str, ...]]]  # of each config: the labels of a column

    def config(self, path: str) -> str | None:
        """Return the config that a file is of."""
        patterns = ((config, p) for config, ps in self.files.items() for p in ps)
        return next((config for config, p in patterns if fnmatch(path, p)), None)


def read(path: Path | None) -> Card:
    """Read a card; one that is missing or has no YAML block says nothing."""
    text = path.read_text(encoding="utf-8") if path else ""
    pieces = text.split("---\n", 2)
    if len(pieces) != 3 or pieces[0]:
        return Card({}, {}, {})
    front = parse(pieces[1]) or {}
    info = front.get("dataset_info") or []
    files = {c["config_name"]: _patterns(c.get("data_files")) for c in front.get("configs") or ()}
    labels = {
        i.get("config_name", ""): {f["name"]: found for f in i["features"] if (found := _labels(f))}
        for i in ([info] if isinstance(info, dict) else info)
    }
    return Card(files, _keys(pieces[2], list(files)), labels)


def _patterns(listed: Any) -> tuple[str, ...]:
    """Return the patterns of a config's ``data_files``, in any of the forms that the Hub takes."""
    if isinstance(listed, str):
        return (listed,)
    if isinstance(listed, dict):
        return _patterns(listed.get("path") or list(listed.values()))
    return tuple(pattern for one in listed or () for pattern in _patterns(one))


def _labels(feature: dict[str, Any]) -> tuple[str, ...]:
    kind = feature.get("dtype")
    names = kind.get("class_label", {}).get("names", {}) if isinstance(kind, dict) else {}
    if isinstance(names, list):
        return tuple(map(str, names))
    return tuple(str(names[key]) for key in sorted(names, key=int))


def _keys(prose: str, configs: list[str]) -> dict[str, tuple[str, ...]]:
    """Read the lines of the section on columns, as ``builders.lib.card`` writes them."""
    section = f"\n{prose}".partition("\n## Columns\n")[2].partition("\n## ")[0]
    keys: dict[str, tuple[str, ...]] = {}
    about = configs
    for line in section.splitlines():
        if found := CONFIGS.match(line):
            about = TICKED.findall(found[1])
        elif found := NAMED.match(line):
            keys |= dict.fromkeys(about, tuple(TICKED.findall(found[1])))
    return keys
