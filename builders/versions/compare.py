"""Comparing two versions of one config: which rows came, went and changed, and how far they moved.

Rows are matched by their key; then one column of both versions is held at a time, so that memory
is bounded by the keys, one pair of columns, and what differs. What moved is told by the roles of
columns: sentiments, suggestions, estimates, log-probabilities.
"""

from __future__ import annotations

import json
import re
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from plumbline.builders.core.errors import Problem

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    import polars as pl

    from plumbline.builders.core.schema import Schema

BEFORE, AFTER = "before", "after"
NTH = "nth of its key"  # numbers rows that share a key
SIGNIFICANT = 0.05  # an adjusted p below this is what the report calls a finding
CHANGES = ("appeared", "vanished", "moved")
ESTIMATES = (  # of tables: a value and its interval
    ("value", "low", "high"),
    ("difference", "low_difference", "high_difference"),
    ("contrast", "contrast_low", "contrast_high"),
    ("jaccard", "jaccard_low", "jaccard_high"),
    ("share_first", "low_first", "high_first"),
    ("share_second", "low_second", "high_second"),
)
ADJUSTED = re.compile(r"p_(\w+_)?bh")
LOGPROBS = re.compile(r"\w+_nats")  # in outputs, a number or a list of them
_ROW = ("row before", "row after")


class Side(NamedTuple):
    """One config in one version: its files, and the names that its cards gives to codes."""

    paths: list[Path]
    labels: dict[str, tuple[str, ...]]

    def types(self) -> dict[str, str]:
        """Return the type of every column, in the order of the file."""
        import polars as pl

        with _readable(self):
            schema = pl.read_parquet_schema(self.paths[0])
        labels = {name: f"label: {', '.join(names)}" for name, names in self.labels.items()}
        return {name: labels.get(name, str(kind).lower()) for name, kind in schema.items()}

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
        with _readable(self):
            # One after the other: files of a folder need not have their columns in one order.
            parts = [pl.read_parquet(path, columns=named, glob=False) for path in self.paths]
            return pl.concat(parts).select(named).with_columns(told)

    def rows(self) -> int:
        """Return the number of rows, from the files' footers."""
        import pyarrow.parquet as pq

        with _readable(self):
            return sum(pq.read_metadata(path).num_rows for path in self.paths)


@contextmanager
def _readable(side: Side) -> Iterator[None]:
    import polars as pl
    import pyarrow as pa

    try:
        yield
    except (OSError, pl.exceptions.PolarsError, pa.ArrowException) as error:
        said = " ".join(str(error).split())[:150]
        raise Problem(
            f"{side.paths[0]}: cannot be read as parquet ({said}); make or fetch it anew"
        ) from error


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


class Spread(NamedTuple):
    """By how much the numbers of a column differ, over those that differ."""

    numbers: int
    median: float | None
    largest: float | None


@dataclass
class Moved:
    """What moved in one config, each part by its own rule."""

    sentiment: pl.DataFrame | None = None  # by key: before, after, moved, turned
    suggested: dict[str, pl.DataFrame] = field(default_factory=dict)  # of :data:`CHANGES`
    kept: dict[str, int] = field(default_factory=dict)  # suggestions in both, by engine
    estimates: dict[str, pl.DataFrame] = field(default_factory=dict)
    judged: dict[str, int] = field(default_factory=dict)  # of them, those with two intervals
    crossed: dict[str, pl.DataFrame] = field(default_factory=dict)  # by column of adjusted p
    nats: dict[str, Spread] = field(default_factory=dict)

    @property
    def any(self) -> bool:
        """Whether anything moved."""
        parts = (self.suggested, self.estimates, self.crossed, self.nats)
        return self.sentiment is not None or any(parts)


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
    moved: Moved = field(default_factory=Moved)

    @property
    def any(self) -> bool:
        """Whether anything differs."""
        columns = self.new_columns or self.lost_columns or self.retyped
        return bool(len(self.added) or len(self.removed) or self.changed or columns)

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


def moved(
    sides: tuple[Side, Side], matched: Matched, found: Compared, schema: Schema, kind: str
) -> Moved:
    """Return what moved in a config, by the roles and names of its columns."""
    known = [side.types() for side in sides]
    both = {c for c in known[0] if c in known[1]}
    changed = set(found.changes)
    out = Moved()
    told = schema.role("group", "text", "engines", "ranks")
    if schema.sentiment and {*schema.sentiment} <= both and changed & {*schema.sentiment}:
        out.sentiment = sentiments(sides, matched, schema.sentiment)
    if told and {*told} <= both:
        out.suggested, out.kept = suggestions(sides, schema)
    if kind == "tables":
        for columns in (c for c in ESTIMATES if {*c} <= both and changed & {*c}):
            out.estimates[columns[0]] = estimates(sides, matched, columns)
            out.judged[columns[0]] = int(out.estimates[columns[0]]["beyond"].is_not_null().sum())
        for column in (c for c in found.changes if ADJUSTED.fullmatch(c)):
            rows = crossed(found.changes[column])
            if len(rows):
                out.crossed[column] = rows
    if kind == "outputs":
        for column in (c for c in found.changes if LOGPROBS.fullmatch(c)):
            out.nats[column] = spread(found.changes[column])
    return out


def sentiments(
    sides: tuple[Side, Side], matched: Matched, sentiment: tuple[str, str]
) -> pl.DataFrame | None:
    """Return the words whose sentiment moved, the farthest first, and whether its sign turned.

    From nothing to positive is no turn: a turn is from below zero to above it, or back.
    """
    import polars as pl

    value = pl.col(sentiment[0]).cast(pl.Float64) - pl.col(sentiment[1]).cast(pl.Float64)
    ends = [
        matched.of(i, side.read(sentiment).select(value.alias(name))[name])
        for i, (side, name) in enumerate(zip(sides, (BEFORE, AFTER), strict=True))
    ]
    frame = matched.of(1, matched.names[1]).hstack(ends)
    frame = frame.filter(pl.col(BEFORE).ne_missing(pl.col(AFTER))).with_columns(
        moved=pl.col(AFTER) - pl.col(BEFORE),
        turned=(pl.col(BEFORE).sign() * pl.col(AFTER).sign() < 0).fill_null(value=False),
    )
    order = [pl.col("moved").abs(), *matched.names[1].columns]
    down = [True, *[False] * matched.names[1].width]
    return frame.sort(order, descending=down, nulls_last=True) if len(frame) else None


def suggestions(
    sides: tuple[Side, Side], schema: Schema
) -> tuple[dict[str, pl.DataFrame], dict[str, int]]:
    """Return the suggestions that appeared, vanished and moved, and how many each engine kept.

    A suggestion is the whole text that an engine gave, so that it stays the same where another
    version cuts it differently into query and attribute.
    """
    import polars as pl

    frames = [_said(side, schema) for side in sides]
    by = [*schema.role("group"), "text", "engine"]
    both = frames[0].join(
        frames[1], on=by, how="full", coalesce=True, nulls_equal=True, suffix=" after"
    )
    both = both.rename({"rank": BEFORE, "rank after": AFTER}).sort(by)
    kept = both.filter(pl.col("there") & pl.col("there after"))
    shift = (pl.col(AFTER) - pl.col(BEFORE)).alias("moved")
    parts = {
        "appeared": both.filter(pl.col("there").is_null()).select(*by, pl.col(AFTER).alias("rank")),
        "vanished": both.filter(pl.col("there after").is_null()).select(
            *by, pl.col(BEFORE).alias("rank")
        ),
        "moved": kept.filter(pl.col(BEFORE) != pl.col(AFTER))
        .select(*by, BEFORE, AFTER, shift)
        .sort([pl.col("moved").abs(), *by], descending=[True, *[False] * len(by)]),
    }
    numbers = dict(kept.group_by("engine").len().sort("engine").iter_rows())
    return {name: part for name, part in parts.items() if len(part)}, numbers


def _said(side: Side, schema: Schema) -> pl.DataFrame:
    """Return a row for each suggestion of each engine: of whom, what, by whom, at which place."""
    import polars as pl

    group, texts = schema.role("group"), schema.role("text")
    engines, ranks = (*schema.role("engines"), *schema.role("ranks"))
    frame = side.read([*group, *texts, engines, ranks]).select(
        *group,
        pl.concat_str([pl.col(c).cast(pl.String) for c in texts], separator=" ").alias("text"),
        pl.col(engines).alias("engine"),
        pl.col(ranks).alias("rank"),
        pl.int_ranges(pl.col(engines).list.len()).alias("place"),
    )
    frame = frame.explode("engine", "place").drop_nulls("engine")
    rank = pl.col("rank").list.get(pl.col("place"), null_on_oob=True).cast(pl.Int64)
    by = [*schema.role("group"), "text", "engine"]
    return frame.with_columns(rank).group_by(by).agg(pl.min("rank"), there=pl.lit(value=True))


def estimates(
    sides: tuple[Side, Side], matched: Matched, columns: tuple[str, str, str]
) -> pl.DataFrame:
    """Return the estimates that changed, the largest change against its interval first.

    ``beyond``: the new value is outside the old interval, and the old value outside the new one;
    ``disjoint``: the intervals have no point in common. Both are null where a value or an end of an
    interval is missing. The ends belong to an interval.
    """
    import polars as pl

    parts = []
    for i, (side, when) in enumerate(zip(sides, (BEFORE, AFTER), strict=True)):
        names = dict(zip(columns, _ends(when), strict=True))
        parts.append(matched.of(i, side.read(columns).rename(names)).cast(pl.Float64))
    frame: pl.DataFrame = matched.of(1, matched.names[1]).hstack(parts[0]).hstack(parts[1])
    (value, low, high), (value_2, low_2, high_2) = (
        [pl.col(name) for name in _ends(when)] for when in (BEFORE, AFTER)
    )
    half = (high - low + high_2 - low_2) / 4
    frame = frame.filter(
        value.ne_missing(value_2) | low.ne_missing(low_2) | high.ne_missing(high_2)
    ).with_columns(
        moved=value_2 - value,
        beyond=((value_2 < low) | (value_2 > high)) & ((value < low_2) | (value > high_2)),
        disjoint=(high < low_2) | (high_2 < low),
    )
    known = pl.all_horizontal(c.is_not_null() for c in (value, low, high, value_2, low_2, high_2))
    flags = [pl.when(known).then(pl.col(c)).alias(c) for c in ("beyond", "disjoint")]
    order = [(pl.col("moved").abs() / half).fill_nan(0), *matched.names[1].columns]
    down = [True, *[False] * matched.names[1].width]
    return frame.with_columns(flags).sort(order, descending=down, nulls_last=True)


def _ends(when: str) -> tuple[str, str, str]:
    return when, f"{when}_low", f"{when}_high"


def crossed(changes: pl.DataFrame) -> pl.DataFrame:
    """Return the rows whose adjusted p went over the line, and on which side it is now."""
    import polars as pl

    frame = changes.with_columns(significant=pl.col(AFTER) <= SIGNIFICANT)
    return frame.filter((pl.col(BEFORE) <= SIGNIFICANT) != pl.col("significant"))


def spread(changes: pl.DataFrame) -> Spread:
    """Return by how much numbers, or the numbers in lists of one length, differ."""
    import polars as pl

    frame = changes.select(BEFORE, AFTER)
    if frame[BEFORE].dtype == pl.List:
        same = pl.col(BEFORE).list.len() == pl.col(AFTER).list.len()
        frame = frame.filter(same).explode(BEFORE, AFTER)
    far = (pl.col(AFTER).cast(pl.Float64) - pl.col(BEFORE).cast(pl.Float64)).abs()
    sizes = frame.select(far.alias("far"))["far"].drop_nulls()
    sizes = sizes.filter(sizes.is_finite() & (sizes > 0))
    if not len(sizes):
        return Spread(0, None, None)
    return Spread(len(sizes), *(float(sizes.quantile(q, "linear") or 0) for q in (0.5, 1.0)))
