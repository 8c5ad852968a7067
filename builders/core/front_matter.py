"""Metadata of a folder of parquet files, written together with the rows.

``build.json`` contains those facts on a card that are not in the rows: schemas, sources, version
and the command that rebuilds the folder. ``README.md`` contains only the YAML front matter, which
``datasets.load_dataset`` reads; ``release.card`` adds the prose. This module also
formats counts of rows as Markdown tables.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from plumbline.builders.core import parquet
from plumbline.builders.core.errors import UserError, mask
from plumbline.builders.core.schema import Column, Schema

if TYPE_CHECKING:
    import polars as pl

FACTS = "build.json"
CARD = "README.md"
FILES = "{config}.parquet"
SOURCE = ("source", "address", "retrieved", "licence", "citation")


@dataclass(frozen=True)
class Origin:
    """Provenance of a folder."""

    sources: list[dict[str, Any]]  # the manifest of each input, or facts with the same keys
    command: str
    version: str
    recorded: str = ""  # Markdown that the builder adds to the card


@dataclass(frozen=True)
class Built:
    """The description of a folder of parquet files: schemas, provenance and paths."""

    schemas: dict[str, Schema]  # by config
    origin: Origin
    files: str = FILES  # path pattern of a config's files, which contains {config} and possibly *


def source(folder: Path, name: str, sha256: str = "") -> dict[str, str]:
    """Describe a folder of parquet files as a source; ``sha256``: its fingerprint, if known."""
    return {
        "source": name,
        "address": folder.as_posix(),
        "retrieved": f"with sha256 {(sha256 or parquet.fingerprint(folder))[:16]}",
        "licence": "as its card states",
        "citation": "its card",
    }


def write(folder: Path, schemas: Mapping[str, Schema], origin: Origin, files: str = FILES) -> None:
    """Write ``build.json``, and a card that contains only front matter, next to the parquet files.

    ``schemas``: the schema of each config that has rows.
    ``files``: pattern of the parquet files of a config, relative to the folder.
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
    """Read a ``build.json``; raise UserError if it is damaged, since it may be from the Hub."""
    try:
        facts = json.loads(path.read_text(encoding="utf-8"))
        schemas = [Schema.of(tree) for tree in facts["schemas"]]
        by_config = {config: schemas[index] for config, index in facts["configs"].items()}
        stated = (facts["sources"], facts["command"], facts["version"], facts.get("recorded", ""))
        facts["files"].format(config="")
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
        wrong = f"{type(error).__name__}: {error}"
        raise UserError(f"{path}: damaged ({wrong}); make or fetch the folder again") from error
    return Built(by_config, Origin(*stated), facts["files"])


def entries(schemas: Mapping[str, Schema], files: str = FILES) -> dict[str, Any]:
    """Return the front matter that defines configs and features for ``load_dataset``."""
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


def frames(folder: Path) -> Iterator[tuple[str, pl.DataFrame]]:
    """Yield the name and the rows of each config."""
    import polars as pl

    for path in sorted(folder.glob("*.parquet")):
        if path.name != parquet.REJECTS:
            yield path.stem, pl.read_parquet(path)


def count_rows(folder: Path, schema: Schema, *groupings: str) -> str:
    """Return Markdown tables of the numbers of rows by config and the columns of each grouping.

    ``groupings``: each contains names of columns, separated by spaces. A row with a list is counted
    once for each of its values. If the schema has ``redistributable``, the tables also state
    whether all counted rows may be published.
    """
    import polars as pl

    terms = [c.name for c in schema.columns if c.name == "redistributable"]
    lines: list[str] = []
    for by in map(str.split, groupings):
        head = ["config", *by, "rows", *("publishable" for _ in terms)]
        lines += [f"### Rows by {', '.join(by)}", "", f"| {' | '.join(head)} |"]
        lines.append(f"|{'|'.join('---:' if name == 'rows' else '---' for name in head)}|")
        for config, frame in frames(folder):
            if not set(by) <= set(frame.columns):  # the schema of this config lacks a column
                continue
            columns = [schema.config(config)[name] for name in by]
            lists = [name for name in by if isinstance(frame.schema[name], pl.List)]
            rows = frame.explode(lists) if lists else frame
            groups = rows.group_by(by).agg(pl.len(), pl.col(terms).all()).sort(by)
            for row in groups.iter_rows():
                shown = [_shown(column, value) for column, value in zip(columns, row, strict=False)]
                shown += [f"{row[len(by)]:,}", *("yes" if t else "no" for t in row[len(by) + 1 :])]
                lines.append(f"| {' | '.join([config, *shown])} |")
        lines.append("")
    return "\n".join(lines)


def _shown(column: Column, value: Any) -> str:
    """Return a value as text: its label, "yes" or "no", or "none" for a null or empty value."""
    if value is None or value == "":
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return column.labels[value] if column.labels else str(value)
