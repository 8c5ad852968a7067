"""Reading a folder back: its configs, what names a row, what codes mean; and single rows by that.

``build.json`` has what a folder states; of a folder from elsewhere the card's front matter is read.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date
from fnmatch import fnmatch
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

import polars as pl
import yaml

from plumbline.builders.core import front_matter
from plumbline.builders.core.errors import UserError
from plumbline.builders.core.yaml_text import parse

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

MODEL = "model"
SHOWN = 5  # row numbers that a message lists where values name several rows
Labels = dict[str, tuple[str, ...]]  # of a config: the labels of a column


@dataclass(frozen=True)
class Card:
    """What a folder states of its files, by config."""

    files: dict[str, tuple[str, ...]] = field(default_factory=dict)  # patterns
    keys: dict[str, tuple[str, ...]] = field(default_factory=dict)  # what names a row
    labels: dict[str, Labels] = field(default_factory=dict)
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
    UserError
        If the front matter of its card is not YAML.
    """
    readme = files.get(front_matter.CARD)
    text = readme.read_text(encoding="utf-8") if readme else ""
    if front_matter.FACTS in files:
        built = front_matter.read(files[front_matter.FACTS])
        schemas = built.schemas.items()
        return Card(
            {config: (built.files.format(config=config),) for config in built.schemas},
            {config: schema.key for config, schema in schemas},
            {config: {c.name: c.labels for c in s.columns if c.labels} for config, s in schemas},
            built.origin.version,
            text,
        )
    pieces = text.split("---\n", 2)
    try:
        front = (parse(pieces[1]) if len(pieces) == 3 and not pieces[0] else None) or {}
    except yaml.YAMLError as error:
        raise UserError(f"{readme}: the card is not valid YAML; mend it there") from error
    info = front.get("dataset_info") or []
    configs, infos = (
        {str(one.get("config_name", "default")): one for one in every or ()}
        for every in (front.get("configs"), [info] if isinstance(info, dict) else info)
    )
    patterns = {config: _patterns(one.get("data_files")) for config, one in configs.items()}
    labels = {
        config: {f["name"]: names for f in one.get("features") or () if (names := _labels(f))}
        for config, one in infos.items()
    }
    return Card(patterns, {}, labels, None, text)


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


@dataclass(frozen=True)
class Row:
    """A row, with labels in place of their numbers."""

    number: int  # from 0
    of: int  # rows of the file
    config: str | None
    names: dict[str, Any]  # the columns that name it, as the card says
    values: dict[str, Any]  # all others


@dataclass(frozen=True)
class Matches:
    """Rows of one config of an input that share what names the traced row."""

    config: str
    rows: int
    of: int
    matched: tuple[str, ...]  # columns that are in both, and were compared
    config_is: str | None  # the naming column whose value the config's name is


def row(path: Path, inside: str, card: Card, selector: str) -> Row:
    """Read one row.

    Parameters
    ----------
    path
        Where the bytes lie.
    inside
        Path of the file in its output.
    selector
        A number, from 0 as ``load_dataset(...)[12]`` counts; or ``column=value``, several joined
        by commas.

    Raises
    ------
    UserError
        If there is no such row, or are several.
    """
    config = card.config(inside)
    labels = card.labels.get(config or "", {})
    frame = pl.scan_parquet(path)
    total = int(frame.select(pl.len()).collect().item())
    number = _number(frame, labels, selector, inside)
    if not 0 <= number < total:
        raise UserError(f"no row {number} in {inside}: it has {total:,}, counted from 0")
    found = frame.slice(number, 1).collect().row(0, named=True)
    values = {name: _label(value, labels.get(name, ())) for name, value in found.items()}
    keys = [key for key in card.keys.get(config or "", ()) if key in values]
    if keys and MODEL in values and MODEL not in keys:  # in a folder of one model it names no row
        keys.insert(0, MODEL)
    return Row(number, total, config, {key: values.pop(key) for key in keys}, values)


def _label(value: Any, labels: tuple[str, ...]) -> Any:
    if labels and isinstance(value, int):
        return labels[value] if 0 <= value < len(labels) else None
    return value


def _number(frame: pl.LazyFrame, labels: Labels, selector: str, inside: str) -> int:
    """Return the number of the row that is meant."""
    if selector.removeprefix("-").isdecimal():
        return int(selector)
    columns = frame.collect_schema().names()
    given = dict(part.split("=", 1) for part in selector.split(",") if "=" in part)
    if len(given) != len(selector.split(",")) or not {*given} <= {*columns}:
        raise UserError(
            f"no row {selector!r} in {inside}: give a number, or column=value,column=value with "
            f"its columns: {', '.join(columns)}"
        )
    found = [
        i
        for i, row in enumerate(frame.select(list(given)).collect().iter_rows(named=True))
        if all(str(_label(row[n], labels.get(n, ()))) == value for n, value in given.items())
    ]
    if not found:
        raise UserError(
            f"no row with {selector} in {inside}: write the values as its card has them"
        )
    if len(found) > 1:
        shown = ", ".join(map(str, found[:SHOWN])) + (", ..." if len(found) > SHOWN else "")
        raise UserError(
            f"{len(found)} rows with {selector} in {inside} ({shown}): name more columns"
        )
    return found[0]


def matches(files: dict[str, Path], names: dict[str, Any]) -> list[Matches]:
    """Count the rows of an input that share what names a row, config by config.

    A column counts as shared if both have it by the same name and, where it holds labels, the
    value is one of the input's labels. Where configs of the input are named by one of the
    values, as ``en`` is by ``language``, only these are counted.
    """
    card = read(files)
    by_config: dict[str, list[Path]] = {}
    for inside, path in files.items():
        if PurePosixPath(inside).suffix == ".parquet" and (config := card.config(inside)):
            by_config.setdefault(config, []).append(path)
    named = {c: n for c in by_config for n, v in reversed(names.items()) if v == c}
    found = []
    for config, paths in sorted(by_config.items()):
        if not named or config in named:
            shared = _shared(names, pl.read_parquet_schema(paths[0]), card.labels.get(config, {}))
            frame = pl.scan_parquet(paths)
            same = frame.filter(*(pl.col(name) == value for name, value in shared.items()))
            rows, total = (int(f.select(pl.len()).collect().item()) for f in (same, frame))
            found.append(Matches(config, rows, total, tuple(shared), named.get(config)))
    return found


def _shared(
    names: dict[str, Any], schema: Mapping[str, pl.DataType], labels: Labels
) -> dict[str, Any]:
    """Return what a row is named by, as a config of an input has it: labels as their codes."""
    found: dict[str, Any] = {}
    for name, value in names.items():
        codes = labels.get(name, ())
        if name in schema and codes and value in codes:
            found[name] = codes.index(value)
        elif name in schema and not codes and _comparable(value, schema[name]):
            found[name] = value
    return found


def _comparable(value: Any, kind: pl.DataType) -> bool:
    """Tell whether a value can be looked for in a column of a kind, by equality."""
    kinds: dict[type, bool] = {
        bool: kind == pl.Boolean,
        int: kind.is_numeric(),
        float: kind.is_float(),
        str: kind == pl.String,
        date: kind.is_temporal(),
    }
    return kinds.get(type(value), False)
