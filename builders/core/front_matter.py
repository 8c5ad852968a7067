"""What a folder of parquet files states about itself, written with the rows.

``build.json`` holds what a card needs and the rows lack: schemas, sources, version and the command
that makes the folder again. ``README.md`` is its YAML front matter alone, which is all that
``datasets.load_dataset`` reads; ``release.card`` adds the prose.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from plumbline.builders.core import parquet
from plumbline.builders.core.masking import mask
from plumbline.builders.core.schema import Schema

FACTS = "build.json"
CARD = "README.md"
FILES = "{config}.parquet"
SOURCE = ("source", "address", "retrieved", "licence", "citation")


@dataclass(frozen=True)
class Origin:
    """Where a folder comes from."""

    sources: list[dict[str, Any]]  # the manifests, or the like, of everything it was made of
    command: str
    version: str
    recorded: str = ""  # Markdown of the builder's, for the card


@dataclass(frozen=True)
class Built:
    """A folder of parquet files: its schemas, where the files are and where they come from."""

    schemas: dict[str, Schema]  # by config
    origin: Origin
    files: str = FILES  # where the files of a config are, with {config} and perhaps *


def source(folder: Path, name: str, sha256: str = "") -> dict[str, str]:
    """Return a folder of parquet files as a source of another one; its hash, if that is known."""
    return {
        "source": name,
        "address": folder.as_posix(),
        "retrieved": f"with sha256 {(sha256 or parquet.fingerprint(folder))[:16]}",
        "licence": "as its card states",
        "citation": "its card",
    }


def write(folder: Path, schemas: Mapping[str, Schema], origin: Origin, files: str = FILES) -> None:
    """Write ``build.json`` and a card of front matter alone, beside the parquet files.

    ``schemas``: the schema of each config that has rows.
    ``files``: where the parquet files of a config are, relative to the folder.
    """
    by_config = dict(sorted(schemas.items()))
    distinct = list(dict.fromkeys(by_config.values()))
    facts = {
        "version": origin.version,
        "command": origin.command,
        "files": files,
        "configs": {config: distinct.index(schema) for config, schema in by_config.items()},
        "schemas": [schema.plain() for schema in distinct],
        "sources": [{key: s[key] for key in SOURCE} for s in origin.sources],
        **({"recorded": origin.recorded} if origin.recorded else {}),
    }
    text = json.dumps(facts, ensure_ascii=False, indent=1) + "\n"
    (folder / FACTS).write_text(mask(text), encoding="utf-8")
    (folder / CARD).write_text(f"---\n{dump(entries(by_config, files))}---\n", encoding="utf-8")


def read(path: Path) -> Built:
    """Read a ``build.json``."""
    facts = json.loads(path.read_text(encoding="utf-8"))
    schemas = [Schema.of(tree) for tree in facts["schemas"]]
    by_config = {config: schemas[place] for config, place in facts["configs"].items()}
    stated = (facts["sources"], facts["command"], facts["version"], facts.get("recorded", ""))
    return Built(by_config, Origin(*stated), facts["files"])


def entries(schemas: Mapping[str, Schema], files: str = FILES) -> dict[str, Any]:
    """Return the front matter that configs and features are loaded by."""
    names = sorted(schemas)
    configs = [
        {
            "config_name": name,
            "data_files": [{"split": "train", "path": files.format(config=name)}],
            **({"default": True} if name == ("en" if "en" in names else names[0]) else {}),
        }
        for name in names
    ]
    info = [{"config_name": name, "features": schemas[name].features()} for name in names]
    return {"configs": configs, "dataset_info": info}


def dump(front: dict[str, Any]) -> str:
    """Return front matter as YAML."""
    return str(yaml.safe_dump(front, allow_unicode=True, sort_keys=False))
