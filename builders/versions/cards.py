"""Reading a folder back: its configs, what names a row, what codes mean; and single rows by that.

``build.json`` has what a folder states; of folders older than that, or from elsewhere, the card's
front matter and its section on columns are read.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import date
from fnmatch import fnmatch
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

import yaml

from plumbline.builders.core import front_matter
from plumbline.builders.core.errors import Problem
from plumbline.builders.core.yaml_text import parse

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    import polars as pl

CONFIGS = re.compile(r"^Config (`.+`)\.$")
NAMED = re.compile(r"^One row is named by (`.+`)\.$")
STATED = re.compile(r"^Version (\S+); sha256", re.MULTILINE)
TICKED = re.compile(r"`([^`]+)`")
MODEL = "model"
SHOWN = 5  # row numbers told where values name several rows


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


@dataclass(frozen=True)
class Row:
    """A row, with labels in place of their numbers."""

    number: int  # from 0
    of: int  # rows of the file
    config: str | None
    names: dict[str, Any]  # the columns that name it, as the card says
    values: dict[str, Any]  # all others


@dataclass(frozen=True)
class Behind:
    """Rows of one config of an input that share what names the traced row."""

    config: str
    rows: int
    of: int
    matched: tuple[str, ...]  # columns that are in both, and were compared
    config_is: str | None  # the naming column whose value the config's name is


def row(path: Path, inside: str, card: Card, wanted: str) -> Row:
    """Read one row.

    Parameters
    ----------
    path
        Where the bytes lie.
    inside
        Path of the file in its output.
    wanted
        A number, from 0 as ``load_dataset(...)[12]`` counts; or ``column=value``, several joined
        by commas.

    Raises
    ------
    Problem
        If there is no such row, or are several.
    """
    import polars as pl

    config = card.config(inside)
    labels = card.labels.get(config or "", {})
    frame = pl.scan_parquet(path)
    total = int(frame.select(pl.len()).collect().item())
    number = _number(frame, labels, wanted, inside)
    if not 0 <= number < total:
        raise Problem(f"no row {number} in {inside}: it has {total:,}, counted from 0")
    found = frame.slice(number, 1).collect().row(0, named=True)
    told = {name: _told(value, labels.get(name, ())) for name, value in found.items()}
    keys = [key for key in card.keys.get(config or "", ()) if key in told]
    if keys and MODEL in told and MODEL not in keys:  # in a folder of one model it names no row
        keys.insert(0, MODEL)
    rest = {name: value for name, value in told.items() if name not in keys}
    return Row(number, total, config, {key: told[key] for key in keys}, rest)


def _told(value: Any, labels: tuple[str, ...]) -> Any:
    if labels and isinstance(value, int):
        return labels[value] if 0 <= value < len(labels) else None
    return value


def _number(
    frame: pl.LazyFrame, labels: dict[str, tuple[str, ...]], wanted: str, inside: str
) -> int:
    """Return the number of the row that is meant."""
    if wanted.removeprefix("-").isdecimal():
        return int(wanted)
    columns = frame.collect_schema().names()
    given = dict(part.split("=", 1) for part in wanted.split(",") if "=" in part)
    if len(given) != len(wanted.split(",")) or not {*given} <= {*columns}:
        raise Problem(
            f"no row {wanted!r} in {inside}: give a number, or column=value,column=value with "
            f"its columns: {', '.join(columns)}"
        )
    rows = frame.select(list(given)).collect().iter_rows(named=True)
    found = [
        i
        for i, row in enumerate(rows)
        if all(str(_told(row[n], labels.get(n, ()))) == value for n, value in given.items())
    ]
    if not found:
        raise Problem(f"no row with {wanted} in {inside}: write the values as its card has them")
    if len(found) > 1:
        shown = ", ".join(map(str, found[:SHOWN])) + (", ..." if len(found) > SHOWN else "")
        raise Problem(f"{len(found)} rows with {wanted} in {inside} ({shown}): name more columns")
    return found[0]


def behind(files: dict[str, Path], names: dict[str, Any]) -> list[Behind]:
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
    return [
        _count(config, paths, names, card.labels.get(config, {}), named.get(config))
        for config, paths in sorted(by_config.items())
        if not named or config in named
    ]


def _count(
    config: str,
    paths: list[Path],
    names: dict[str, Any],
    labels: dict[str, tuple[str, ...]],
    config_is: str | None,
) -> Behind:
    import polars as pl

    schema = pl.read_parquet_schema(paths[0])
    wanted: dict[str, Any] = {}
    for name, value in names.items():
        if name not in schema:
            continue
        told = labels.get(name, ())
        if told and value in told:
            wanted[name] = told.index(value)
        elif not told and _comparable(value, schema[name]):
            wanted[name] = value
    frame = pl.scan_parquet(paths)
    total = int(frame.select(pl.len()).collect().item())
    same = [pl.col(name) == value for name, value in wanted.items()]
    rows = int(frame.filter(same).select(pl.len()).collect().item()) if same else total
    return Behind(config, rows, total, tuple(wanted), config_is)


def _comparable(value: Any, kind: pl.DataType) -> bool:
    """Tell whether a value can be looked for in a column of a kind, by equality."""
    import polars as pl

    kinds: dict[type, bool] = {
        bool: kind == pl.Boolean,
        int: kind.is_numeric(),
        float: kind.is_float(),
        str: kind == pl.String,
        date: kind.is_temporal(),
    }
    return kinds.get(type(value), False)
