"""Reading a folder back: its configs, what names a row, what codes mean; and single rows by that.

``build.json`` has what a folder states; of a folder from elsewhere the card's front matter is read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import yaml

from plumbline.builders.core import front_matter
from plumbline.builders.core.errors import UserError
from plumbline.builders.core.params import yaml_of
from plumbline.builders.core.parquet import REJECTS

MODEL = "model"
PARQUET = ".parquet"
SHOWN = 5  # row numbers that a message lists where values name several rows
Labels = dict[str, tuple[str, ...]]  # of a config: the labels of a column


class Side(NamedTuple):
    """One config in one version: its files, and the names that its card gives to codes."""

    paths: list[Path]
    labels: Labels

    def types(self) -> dict[str, str]:
        """Return the type of every column, in the order of the file."""
        labels = {name: f"label: {', '.join(names)}" for name, names in self.labels.items()}
        return {name: labels.get(name, str(kind).lower()) for name, kind in self.schema().items()}

    def schema(self) -> Mapping[str, pl.DataType]:
        """Return the type of every column as it is stored."""
        with self._readable():
            return pl.read_parquet_schema(self.paths[0])

    def read(
        self, columns: Iterable[str], only: Callable[[pl.LazyFrame], pl.LazyFrame] = lambda f: f
    ) -> pl.DataFrame:
        """Return some columns of all rows, or only of some, codes as the names they stand for."""
        named = list(columns)
        labelled = [
            pl.col(name).replace_strict(
                range(len(names)),
                names,
                default=pl.col(name).cast(pl.String),
                return_dtype=pl.String,
            )
            for name, names in self.labels.items()
            if name in named
        ]
        with self._readable():
            # One after the other: files of a folder need not have their columns in one order.
            parts = [pl.scan_parquet(path, glob=False).select(named) for path in self.paths]
            return only(pl.concat(parts).with_columns(labelled)).collect()

    def rows(self) -> int:
        """Return the number of rows, from the files' footers."""
        with self._readable():
            return sum(pq.read_metadata(path).num_rows for path in self.paths)

    @contextmanager
    def _readable(self) -> Iterator[None]:
        try:
            yield
        except (OSError, pl.exceptions.PolarsError, pa.ArrowException) as error:
            reason = " ".join(str(error).split())[:150]
            raise UserError(
                f"{self.paths[0]}: cannot be read as parquet ({reason}); make or fetch it anew"
            ) from error


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

    def sides(self, files: Mapping[str, Path]) -> dict[str, Side]:
        """Return the configs among files, as they are stated here, else as the files are called."""
        found: dict[str, list[Path]] = {}
        for name, path in files.items():
            config = self.config(name) if self.files else name.split("/")[0]
            if config and name.endswith(PARQUET) and name != REJECTS:
                found.setdefault(config.removesuffix(PARQUET), []).append(path)
        return {config: self.side(config, found[config]) for config in sorted(found)}

    def side(self, config: str | None, paths: list[Path]) -> Side:
        """Return files of a config, with the labels of the columns that hold codes."""
        labels = self.labels.get(config or "", {})
        kinds = Side(paths, {}).types() if labels else {}
        return Side(paths, {c: of for c, of in labels.items() if "int" in kinds.get(c, "")})


def read(files: Mapping[str, Path]) -> Card:
    """Read what a folder states, from its files by their paths in it.

    Raises UserError if the front matter of its card is not YAML.
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
        front = (yaml_of(pieces[1]) if len(pieces) == 3 and not pieces[0] else None) or {}
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

    ``path``: where the bytes lie.
    ``inside``: path of the file in its output.
    ``selector``: a number, from 0 as ``load_dataset(...)[12]`` counts; or ``column=value``, several
    joined by commas.

    Raises UserError if there is no such row, or are several.
    """
    config = card.config(inside)
    side = card.side(config, [path])
    total, columns = side.rows(), side.types()
    number = _number(side, list(columns), selector, inside)
    if not 0 <= number < total:
        raise UserError(f"no row {number} in {inside}: it has {total:,}, counted from 0")
    values = side.read(columns, lambda frame: frame.slice(number, 1)).row(0, named=True)
    keys = [key for key in card.keys.get(config or "", ()) if key in values]
    if keys and MODEL in values and MODEL not in keys:  # in a folder of one model it names no row
        keys.insert(0, MODEL)
    return Row(number, total, config, {key: values.pop(key) for key in keys}, values)


def _number(side: Side, columns: list[str], selector: str, inside: str) -> int:
    """Return the number of the row that is meant."""
    if selector.removeprefix("-").isdecimal():
        return int(selector)
    given = dict(part.split("=", 1) for part in selector.split(",") if "=" in part)
    if len(given) != len(selector.split(",")) or not {*given} <= {*columns}:
        raise UserError(
            f"no row {selector!r} in {inside}: give a number, or column=value,column=value with "
            f"its columns: {', '.join(columns)}"
        )
    texts = enumerate([*map(str, row)] for row in side.read(given).iter_rows())
    found = [i for i, row in texts if row == [*given.values()]]
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
    sides = card.sides(files) if card.files else {}
    named = {c: n for c in sides for n, v in reversed(names.items()) if v == c}
    found = []
    for config, side in sides.items():
        if not named or config in named:
            kinds = side.schema()
            same = {n: v for n, v in names.items() if n in kinds and _sought(v, side, n, kinds[n])}
            rows = side.read(same).filter(*(pl.col(n) == v for n, v in same.items()))
            number = len(rows) if same else side.rows()
            found.append(Matches(config, number, side.rows(), tuple(same), named.get(config)))
    return found


def _sought(value: Any, side: Side, column: str, kind: pl.DataType) -> bool:
    """Tell whether a value can be looked for in a column, by equality."""
    if column in side.labels:
        return value in side.labels[column]
    kinds: dict[type, bool] = {
        bool: kind == pl.Boolean,
        int: kind.is_numeric(),
        float: kind.is_float(),
        str: kind == pl.String,
        date: kind.is_temporal(),
    }
    return kinds.get(type(value), False)
