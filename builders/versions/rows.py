"""One row of an output, by its number or by values; and the rows of others that share its name."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from plumbline.builders.core.errors import Problem
from plumbline.builders.versions import cards

if TYPE_CHECKING:
    from pathlib import Path

    import polars as pl

    from plumbline.builders.versions.cards import Card

MODEL = "model"
SHOWN = 5  # row numbers told where values name several rows


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


def read(path: Path, inside: str, card: Card, wanted: str) -> Row:
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
    """Return the number of the row that is asked for."""
    if wanted.removeprefix("-").isdecimal():
        return int(wanted)
    pairs = [part.partition("=") for part in wanted.split(",")]
    columns = frame.collect_schema().names()
    for name, equals, _ in pairs:
        if not equals or name not in columns:
            raise Problem(
                f"no row {wanted!r} in {inside}: give a number, or column=value,column=value with "
                f"its columns: {', '.join(columns)}"
            )
    given = {name: value for name, _, value in pairs}
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
    card = cards.read(files)
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

    if isinstance(value, bool):
        return kind == pl.Boolean
    if isinstance(value, int):
        return kind.is_numeric()
    if isinstance(value, float):
        return kind.is_float()
    if isinstance(value, str):
        return kind == pl.String
    return isinstance(value, date) and kind.is_temporal()
