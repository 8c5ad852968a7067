"""Reading back what a folder states about itself: its configs, what names a row, what codes mean.

``build.json`` has it all; of folders older than that, or from elsewhere, the card's front matter
and its section on columns are read.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from fnmatch import fnmatch
from typing import TYPE_CHECKING, Any

import yaml

from plumbline.builders.core import front_matter
from plumbline.builders.core.errors import Problem
from plumbline.builders.core.yaml_text import parse

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

CONFIGS = re.compile(r"^Config (`.+`)\.$")
NAMED = re.compile(r"^One row is named by (`.+`)\.$")
STATED = re.compile(r"^Version (\S+); sha256", re.MULTILINE)
TICKED = re.compile(r"`([^`]+)`")


@dataclass(frozen=True)
class Card:
    """What a folder states of its files."""

    files: dict[str, tuple[str, ...]] = field(default_factory=dict)  # of each config: patterns
    keys: dict[str, tuple[str, ...]] = field(default_factory=dict)  # of each: what names a row
    # of each config: the labels of a column
    labels: dict[str, dict[str, tuple[str, ...]]] = field(default_factory=dict)
    version: str | None = None
    text: str = ""  # of the README

    def config(self, path: str) -> str | None:
        """Return the config that a file is of."""
        patterns = ((config, p) for config, ps in self.files.items() for p in ps)
        return next((config for config, p in patterns if fnmatch(path, p)), None)


def read(files: Mapping[str, Path]) -> Card:
    """Read what a folder states, from its files by their paths in it.

    Raises
    ------
    Problem
        If the front matter of its card is not YAML.
    """
    readme = files.get(front_matter.CARD)
    text = readme.read_text(encoding="utf-8") if readme else ""
    if front_matter.FACTS in files:
        built = front_matter.read(files[front_matter.FACTS])
        return Card(
            {config: (built.files.format(config=config),) for config in built.schemas},
            {config: schema.key for config, schema in built.schemas.items()},
            {
                config: {c.name: c.labels for c in schema.columns if c.labels}
                for config, schema in built.schemas.items()
            },
            built.origin.version,
            text,
        )
    front, prose = _split(text, files)
    info = front.get("dataset_info") or []
    patterns = {
        str(c.get("config_name", "default")): _patterns(c.get("data_files"))
        for c in front.get("configs") or ()
    }
    labels = {
        str(i.get("config_name", "default")): {
            f["name"]: found for f in i.get("features") or () if (found := _labels(f))
        }
        for i in ([info] if isinstance(info, dict) else info)
    }
    stated = STATED.search(text)
    version = stated[1] if stated else None
    return Card(patterns, _keys(prose, list(patterns)), labels, version, text)


def _split(text: str, files: Mapping[str, Path]) -> tuple[dict[str, Any], str]:
    pieces = text.split("---\n", 2)
    if len(pieces) != 3 or pieces[0]:
        return {}, text
    try:
        front = parse(pieces[1])
    except yaml.YAMLError as error:
        where = files[front_matter.CARD]
        raise Problem(f"{where}: the card is not valid YAML; mend it there") from error
    return (front if isinstance(front, dict) else {}), pieces[2]


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
    """Read the lines of a card's section on columns."""
    section = f"\n{prose}".partition("\n## Columns\n")[2].partition("\n## ")[0]
    keys: dict[str, tuple[str, ...]] = {}
    about = configs
    for line in section.splitlines():
        if found := CONFIGS.match(line):
            about = TICKED.findall(found[1])
        elif found := NAMED.match(line):
            keys |= dict.fromkeys(about, tuple(TICKED.findall(found[1])))
    return keys
