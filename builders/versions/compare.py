"""Comparing two versions of one config: which rows came, went and changed, column by column.

Rows are matched by their key; then one column of both versions is held at a time, so that memory
is bounded by the keys, one pair of columns, and what differs.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from plumbline.builders.core.errors import Problem

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    import polars as pl

BEFORE, AFTER = "before", "after"
NTH = "nth of its key"  # numbers rows that share a key
_ROW = ("row before", "row after")


class Side(NamedTuple):
    """One config in one version: its files, and the names that its cards gives to codes."""

    paths: list[Path]
    labels: dict[str, tuple[str, ...]]

    def types(self) -> dict[str, str]:
        """Return the type of every column, in the order of the file."""
        import polars as pl

        try:
            schema = pl.read_parquet_schema(self.paths[0])
        except (OSError, pl.exceptions.PolarsError) as error:
            raise _unreadable(self, error) from error
        return {
            name: f"label: {', '.join(self.labels[name])}"
            if name in self.labels
            else str(kind).lower()
            for name, kind in schema.items()
        }

    def read(self, columns: Iterable[str]) -> pl.DataFrame:
        """Return some columns of all rows, codes as the names they stand for."""
        import polars as pl

        named = list(columns)
        told = [
            pl.col(name).replace_strict(
                range(len(self.labels[name])),
                self.labels[name],
                default=pl.col(name).cast(pl.String),
                return_dtype=pl.String,
            )
            for name in named
            if name in self.labels
        ]
        try:
            # One after the other: files of a folder need not have their columns in one order.
            parts = [pl.read_parquet(path, columns=named, glob=False) for path in self.paths]
            return pl.concat(parts).select(named).with_columns(told)
        except (OSError, pl.exceptions.PolarsError) as error:
            raise _unreadable(self, error) from error

    def rows(self) -> int:
        """Return the number of rows, from the files' footers."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            return sum(pq.read_metadata(path).num_rows for path in self.paths)
        except (OSError, pa.ArrowException) as error:
            raise _unreadable(self, error) from error


class Key(NamedTuple):
    """The columns that name a row, and who says so."""

    columns: tuple[str, ...]
    source: str


@dataclass
class Matched:
    """The rows of two versions, matched: places in the one and the other, None where all agree."""

    key: Key
    names: tuple[pl.DataFrame, pl.DataFrame]  # the key of every row
    kept: tuple[pl.Series, pl.Series] | None
    gone: pl.Series
    new: pl.Series
    repeated: int  # rows whose key another row has too

    def of(self, side: int, values: pl.Series | pl.DataFrame) -> Any:
        """Return values of the rows that both versions have, in the same order on both sides."""
        return values if self.kept is None else values[self.kept[side]]


@dataclass
class Compared:
    """What differs in one config."""

    rows: tuple[int, int]
    key: Key
    added: pl.DataFrame
    removed: pl.DataFrame
    repeated: int = 0
    changed: int = 0  # rows in both, of which anything changed
    new_columns: dict[str, str] = field(default_factory=dict)  # and their types
    lost_columns: dict[str, str] = field(default_factory=dict)
    retyped: dict[str, tuple[str, str]] = field(default_factory=dict)
    changes: dict[str, pl.DataFrame] = field(default_factory=dict)  # of each column, by key

    @property
    def kept(self) -> int:
        """Rows that both versions have."""
        return self.rows[1] - len(self.added)


def match(sides: tuple[Side, Side], key: Key) -> Matched:
    """Match the rows of two versions by their key, those that share one in the order they have."""
    import polars as pl

    names = [side.read(key.columns) for side in sides]
    if not key.columns:
        names = [pl.DataFrame({"row": range(1, side.rows() + 1)}) for side in sides]
    for name in names[0].columns:
        pair = alike(names[0][name], names[1][name])
        names = [frame.with_columns(one) for frame, one in zip(names, pair, strict=True)]
    repeated = sum(len(frame) - frame.n_unique() for frame in names)
    if repeated:
        number = pl.int_range(1, pl.len() + 1).over(names[0].columns).alias(NTH)
        names = [frame.with_columns(number) for frame in names]
    both = (names[0], names[1])
    if names[0].equals(names[1]):
        none = pl.Series([], dtype=pl.UInt32)
        return Matched(key, both, None, none, none, repeated)
    places = (
        names[0]
        .lazy()
        .with_row_index(_ROW[0])
        .join(
            names[1].lazy().with_row_index(_ROW[1]),
            on=names[0].columns,
            how="full",
            coalesce=True,
            nulls_equal=True,
        )
        .select(_ROW)
        .collect()
    )
    here, there = (pl.col(row).is_not_null() for row in _ROW)
    kept = places.filter(here & there).sort(_ROW[0])
    gone = places.filter(~there)[_ROW[0]].sort()
    new = places.filter(~here)[_ROW[1]].sort()
    return Matched(key, both, (kept[_ROW[0]], kept[_ROW[1]]), gone, new, repeated)


def compare(sides: tuple[Side, Side], matched: Matched, shown: tuple[str, ...] = ()) -> Compared:
    """Return all that differs between two versions of a config.

    Parameters
    ----------
    matched
        From :func:`match`.
    shown
        Columns that are told beside the key, as they are in the version that has the row; of a
        changed row as they are in the later one.
    """
    import polars as pl

    types = [side.types() for side in sides]
    beside = [
        side.read(c for c in shown if c in kinds and c not in matched.key.columns)
        for side, kinds in zip(sides, types, strict=True)
    ]
    names = [
        frame if extra.width == 0 else frame.hstack(extra)
        for frame, extra in zip(matched.names, beside, strict=True)
    ]
    by = matched.names[0].columns
    found = Compared(
        (len(names[0]), len(names[1])),
        matched.key,
        names[1][matched.new].sort(by),
        names[0][matched.gone].sort(by),
        matched.repeated,
        new_columns={c: kind for c, kind in types[1].items() if c not in types[0]},
        lost_columns={c: kind for c, kind in types[0].items() if c not in types[1]},
        retyped={
            c: (kind, types[1][c])
            for c, kind in types[0].items()
            if c in types[1] and types[1][c] != kind
        },
    )
    kept = matched.of(1, names[1])
    changed = pl.repeat(False, len(kept), eager=True)
    for column in (c for c in types[0] if c in types[1] and c not in matched.key.columns):
        pair = [matched.of(i, side.read([column])[column]) for i, side in enumerate(sides)]
        differs = different(pair[0], pair[1])
        if not differs.any():
            continue
        changed |= differs
        where = differs.arg_true()
        values = [one[where].alias(name) for one, name in zip(pair, (BEFORE, AFTER), strict=True)]
        if column in names[1].columns:
            rows = kept[where].drop(column).hstack(values)
        else:
            rows = kept[where].hstack(values)
        found.changes[column] = rows.sort(by, maintain_order=True)
    found.changed = int(changed.sum())
    return found


def different(before: pl.Series, after: pl.Series) -> pl.Series:
    """Tell where two columns differ; null is like null, and what is no number like itself."""
    one, other = alike(before, after)
    return one.ne_missing(other)


def alike(one: pl.Series, other: pl.Series) -> tuple[pl.Series, pl.Series]:
    """Return two columns in one type, so that values can be compared over a change of types."""
    import polars as pl

    if one.dtype == other.dtype:
        return one, other
    if one.dtype.is_numeric() and other.dtype.is_numeric():
        whole = one.dtype.is_integer() and other.dtype.is_integer()
        kind = pl.Int64() if whole else pl.Float64()
        return one.cast(kind), other.cast(kind)
    return _written(one), _written(other)


def _written(values: pl.Series) -> pl.Series:
    import polars as pl

    if values.dtype == pl.String:
        return values
    texts = [None if v is None else json.dumps(v, default=str) for v in values]
    return pl.Series(values.name, texts, dtype=pl.String)


def _unreadable(side: Side, error: Exception) -> Problem:
    said = " ".join(str(error).split())[:150]
    return Problem(f"{side.paths[0]}: cannot be read as parquet ({said}); make or fetch it anew")
