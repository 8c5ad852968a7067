"""Comparing two versions of one config: rows added, removed and changed, and how far they moved.

Rows are matched by their key; then one column of both versions is held at a time, so that memory
is bounded by the keys, one pair of columns, and what differs. The roles of columns say how a change
is measured: sentiments, suggestions, estimates, log-probabilities.
"""

from __future__ import annotations

import json
import re
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from plumbline.builders.core.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from plumbline.builders.core.schema import Schema

BEFORE, AFTER = WHEN = "before", "after"
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
    """One config in one version: its files, and the names that its card gives to codes."""

    paths: list[Path]
    labels: dict[str, tuple[str, ...]]

    def types(self) -> dict[str, str]:
        """Return the type of every column, in the order of the file."""
        with _readable(self):
            schema = pl.read_parquet_schema(self.paths[0])
        labels = {name: f"label: {', '.join(names)}" for name, names in self.labels.items()}
        return {name: labels.get(name, str(kind).lower()) for name, kind in schema.items()}

    def read(self, columns: Iterable[str]) -> pl.DataFrame:
        """Return some columns of all rows, codes as the names they stand for."""
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
        with _readable(self):
            # One after the other: files of a folder need not have their columns in one order.
            parts = [pl.read_parquet(path, columns=named, glob=False) for path in self.paths]
            return pl.concat(parts).select(named).with_columns(labelled)

    def rows(self) -> int:
        """Return the number of rows, from the files' footers."""
        with _readable(self):
            return sum(pq.read_metadata(path).num_rows for path in self.paths)


@contextmanager
def _readable(side: Side) -> Iterator[None]:
    try:
        yield
    except (OSError, pl.exceptions.PolarsError, pa.ArrowException) as error:
        reason = " ".join(str(error).split())[:150]
        raise UserError(
            f"{side.paths[0]}: cannot be read as parquet ({reason}); make or fetch it anew"
        ) from error


Sides = tuple[Side, Side]


class Key(NamedTuple):
    """The columns that name a row, and what states them."""

    columns: tuple[str, ...]
    source: str


@dataclass
class Matched:
    """The rows of two versions, matched by a key."""

    key: Key
    names: tuple[pl.DataFrame, pl.DataFrame]  # the key of every row
    both: tuple[pl.Series, pl.Series]  # numbers of the rows that both versions have
    removed: pl.Series
    added: pl.Series
    repeated: int  # rows whose key another row has too

    @property
    def by(self) -> list[str]:
        """The columns of the key, or what numbers the rows."""
        return self.names[0].columns

    def values(self, sides: Sides, columns: Iterable[str]) -> list[pl.DataFrame]:
        """Return columns of both versions: rows that both have, in the same order."""
        named = list(columns)
        return [side.read(named)[at] for side, at in zip(sides, self.both, strict=True)]


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


def match(sides: Sides, key: Key) -> Matched:
    """Match the rows of two versions by their key, those that share one in the order they have."""
    names = [
        side.read(key.columns) if key.columns else pl.DataFrame({"row": range(1, side.rows() + 1)})
        for side in sides
    ]
    pairs = [alike(*(frame[column] for frame in names)) for column in names[0].columns]
    names = [pl.DataFrame(list(columns)) for columns in zip(*pairs, strict=True)]
    repeated = sum(len(frame) - frame.n_unique() for frame in names)
    by = names[0].columns
    if repeated:
        number = pl.int_range(1, pl.len() + 1).over(by).alias(NTH)
        names = [frame.with_columns(number) for frame in names]
        by = [*by, NTH]
    before, after = (f.with_row_index(row) for f, row in zip(names, _ROW, strict=True))
    joined = before.join(after, on=by, how="full", coalesce=True, nulls_equal=True)
    here, there = (joined.select(_ROW)[row].is_not_null() for row in _ROW)
    both = joined.filter(here & there).sort(_ROW[0])
    return Matched(
        key,
        (names[0], names[1]),
        (both[_ROW[0]], both[_ROW[1]]),
        joined.filter(~there)[_ROW[0]].sort(),
        joined.filter(~here)[_ROW[1]].sort(),
        repeated,
    )


def compare(sides: Sides, matched: Matched, shown: tuple[str, ...] = ()) -> Compared:
    """Return all that differs between two versions of a config.

    Parameters
    ----------
    matched
        From :func:`match`.
    shown
        Columns that stand beside the key, as they are in the version that has the row; of a
        changed row as they are in the later one.
    """
    first, last = types = [side.types() for side in sides]
    names = [
        pl.concat(
            [own, side.read(c for c in shown if c in kinds and c not in own.columns)],
            how="horizontal",
        )
        for side, own, kinds in zip(sides, matched.names, types, strict=True)
    ]
    shared = [c for c in first if c in last]
    found = Compared(
        (len(names[0]), len(names[1])),
        matched.key,
        names[1][matched.added].sort(matched.by),
        names[0][matched.removed].sort(matched.by),
        matched.repeated,
        new_columns={c: kind for c, kind in last.items() if c not in first},
        lost_columns={c: kind for c, kind in first.items() if c not in last},
        retyped={c: (first[c], last[c]) for c in shared if first[c] != last[c]},
    )
    kept = names[1][matched.both[1]]
    changed = pl.repeat(False, len(kept), eager=True)
    for column in (c for c in shared if c not in matched.key.columns):
        pair = [frame[column] for frame in matched.values(sides, [column])]
        one, other = alike(*pair)
        differs = one.ne_missing(other)  # null is like null, and what is no number like itself
        if differs.any():
            changed |= differs
            where = differs.arg_true()
            values = [values[where].alias(when) for values, when in zip(pair, WHEN, strict=True)]
            rows = kept[where].drop(column, strict=False).hstack(values)
            found.changes[column] = rows.sort(matched.by, maintain_order=True)
    found.changed = int(changed.sum())
    return found


def alike(one: pl.Series, other: pl.Series) -> tuple[pl.Series, pl.Series]:
    """Return two columns in one type, so that values can be compared over a change of types."""
    if one.dtype == other.dtype:
        return one, other
    if one.dtype.is_numeric() and other.dtype.is_numeric():
        whole = one.dtype.is_integer() and other.dtype.is_integer()
        kind = pl.Int64() if whole else pl.Float64()
        return one.cast(kind), other.cast(kind)
    return _as_text(one), _as_text(other)


def _as_text(values: pl.Series) -> pl.Series:
    if values.dtype == pl.String:
        return values
    texts = [None if v is None else json.dumps(v, default=str) for v in values]
    return pl.Series(values.name, texts, dtype=pl.String)


def moved(sides: Sides, matched: Matched, found: Compared, schema: Schema, kind: str) -> Moved:
    """Return what moved in a config, by the roles and names of its columns."""
    first, last = (side.types() for side in sides)
    both, changed = {*first} & {*last}, {*found.changes}
    out = Moved()
    of_suggestions = schema.role("group", "text", "engines", "ranks")
    if schema.sentiment and {*schema.sentiment} <= both and changed & {*schema.sentiment}:
        out.sentiment = sentiments(sides, matched, schema.sentiment)
    if of_suggestions and {*of_suggestions} <= both:
        out.suggested, out.kept = suggestions(sides, schema)
    if kind == "tables":
        for columns in (c for c in ESTIMATES if {*c} <= both and changed & {*c}):
            rows = out.estimates[columns[0]] = estimates(sides, matched, columns)
            out.judged[columns[0]] = int(rows["beyond"].is_not_null().sum())
        for column in (c for c in found.changes if ADJUSTED.fullmatch(c)):
            if len(rows := crossed(found.changes[column])):
                out.crossed[column] = rows
    if kind == "outputs":
        for column in (c for c in found.changes if LOGPROBS.fullmatch(c)):
            out.nats[column] = spread(found.changes[column])
    return out


def _farthest_first(frame: pl.DataFrame, far: pl.Expr, by: list[str]) -> pl.DataFrame:
    down = [True, *[False] * len(by)]
    return frame.sort([far, *by], descending=down, nulls_last=True)


def sentiments(sides: Sides, matched: Matched, sentiment: tuple[str, str]) -> pl.DataFrame | None:
    """Return the words whose sentiment moved, the farthest first, and whether its sign turned.

    From nothing to positive is no turn: a turn is from below zero to above it, or back.
    """
    value = pl.col(sentiment[0]).cast(pl.Float64) - pl.col(sentiment[1]).cast(pl.Float64)
    parts = matched.values(sides, sentiment)
    ends = [part.select(value.alias(when)) for part, when in zip(parts, WHEN, strict=True)]
    frame = pl.concat([matched.names[1][matched.both[1]], *ends], how="horizontal")
    frame = frame.filter(pl.col(BEFORE).ne_missing(pl.col(AFTER))).with_columns(
        moved=pl.col(AFTER) - pl.col(BEFORE),
        turned=(pl.col(BEFORE).sign() * pl.col(AFTER).sign() < 0).fill_null(value=False),
    )
    return _farthest_first(frame, pl.col("moved").abs(), matched.by) if len(frame) else None


def suggestions(sides: Sides, schema: Schema) -> tuple[dict[str, pl.DataFrame], dict[str, int]]:
    """Return the suggestions that appeared, vanished and moved, and how many each engine kept.

    A suggestion is the whole text that an engine gave, so that it stays the same where another
    version cuts it differently into query and attribute.
    """
    frames = [_suggested(side, schema) for side in sides]
    by = [*schema.role("group"), "text", "engine"]
    both = frames[0].join(
        frames[1], on=by, how="full", coalesce=True, nulls_equal=True, suffix=" after"
    )
    both = both.rename({"rank": BEFORE, "rank after": AFTER}).sort(by)
    here, there = (pl.col(name).is_not_null() for name in ("there", "there after"))
    kept = both.filter(here & there)
    shifted = kept.filter(pl.col(BEFORE) != pl.col(AFTER)).select(
        *by, BEFORE, AFTER, moved=pl.col(AFTER) - pl.col(BEFORE)
    )
    parts = {
        "appeared": both.filter(~here).select(*by, rank=AFTER),
        "vanished": both.filter(~there).select(*by, rank=BEFORE),
        "moved": _farthest_first(shifted, pl.col("moved").abs(), by),
    }
    numbers = dict(kept.group_by("engine").len().sort("engine").iter_rows())
    return {name: part for name, part in parts.items() if len(part)}, numbers


def _suggested(side: Side, schema: Schema) -> pl.DataFrame:
    """Return a row for each suggestion of each engine: of whom, what, by whom, at which place."""
    group, texts = schema.role("group"), schema.role("text")
    engines, ranks = (*schema.role("engines"), *schema.role("ranks"))
    frame = side.read([*group, *texts, engines, ranks]).select(
        *group,
        text=pl.concat_str([pl.col(c).cast(pl.String) for c in texts], separator=" "),
        engine=engines,
        rank=ranks,
        place=pl.int_ranges(pl.col(engines).list.len()),
    )
    frame = frame.explode("engine", "place").drop_nulls("engine")
    rank = pl.col("rank").list.get(pl.col("place"), null_on_oob=True).cast(pl.Int64)
    by = [*group, "text", "engine"]
    return frame.with_columns(rank).group_by(by).agg(pl.min("rank"), there=pl.lit(value=True))


def estimates(sides: Sides, matched: Matched, columns: tuple[str, str, str]) -> pl.DataFrame:
    """Return the estimates that changed, the largest change against its interval first.

    ``beyond``: the new value is outside the old interval, and the old value outside the new one;
    ``disjoint``: the intervals have no point in common. Both are null where a value or an end of an
    interval is missing. The ends belong to an interval.
    """
    ends = [(when, f"{when}_low", f"{when}_high") for when in WHEN]
    parts = [
        part.rename(dict(zip(columns, names, strict=True))).cast(pl.Float64)
        for part, names in zip(matched.values(sides, columns), ends, strict=True)
    ]
    frame = pl.concat([matched.names[1][matched.both[1]], *parts], how="horizontal")
    pairs = list(zip(*([pl.col(name) for name in names] for names in ends), strict=True))
    (value, value_2), (low, low_2), (high, high_2) = pairs
    known = pl.all_horizontal(end.is_not_null() for pair in pairs for end in pair)
    beyond = ((value_2 < low) | (value_2 > high)) & ((value < low_2) | (value > high_2))
    frame = frame.filter(pl.any_horizontal(a.ne_missing(b) for a, b in pairs)).with_columns(
        moved=value_2 - value,
        beyond=pl.when(known).then(beyond),
        disjoint=pl.when(known).then((high < low_2) | (high_2 < low)),
    )
    half = (high - low + high_2 - low_2) / 4
    return _farthest_first(frame, (pl.col("moved").abs() / half).fill_nan(0), matched.by)


def crossed(changes: pl.DataFrame) -> pl.DataFrame:
    """Return the rows whose adjusted p went over the line, and on which side it is now."""
    frame = changes.with_columns(significant=pl.col(AFTER) <= SIGNIFICANT)
    return frame.filter((pl.col(BEFORE) <= SIGNIFICANT) != pl.col("significant"))


def spread(changes: pl.DataFrame) -> Spread:
    """Return by how much numbers, or the numbers in lists of one length, differ."""
    frame = changes.select(WHEN)
    if frame[BEFORE].dtype == pl.List:
        same = pl.col(BEFORE).list.len() == pl.col(AFTER).list.len()
        frame = frame.filter(same).explode(WHEN)
    before, after = (pl.col(when).cast(pl.Float64) for when in WHEN)
    sizes = frame.select(far=(after - before).abs())["far"].drop_nulls()
    sizes = sizes.filter(sizes.is_finite() & (sizes > 0))
    if not len(sizes):
        return Spread(0, None, None)
    return Spread(len(sizes), *(float(sizes.quantile(q, "linear") or 0) for q in (0.5, 1.0)))
