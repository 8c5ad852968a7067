"""Comparing two versions of one config: rows added, removed and changed, and how far they moved.

Rows are matched by their key; then one column of both versions is held at a time, so that memory
is bounded by the keys, one pair of columns, and what differs. The roles of columns say how a change
is measured: sentiments, suggestions, estimates, log-probabilities. What is returned is the tree of
the JSON, with frames where that has lists of rows.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import polars as pl

from plumbline.builders.core.schema import Schema
from plumbline.builders.versions.cards import Side

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
MOVES = ("suggestions", "estimates", "adjusted_p_crossed", "nats", "sentiment")  # keys of the tree
ROWS = ("row before", "row after")
Tree = dict[str, Any]


class Key(NamedTuple):
    """The columns that name a row, and what states them."""

    columns: tuple[str, ...]
    source: str


class Pair:
    """Both versions of a config, rows matched by their key, those that share one in their order."""

    def __init__(self, sides: tuple[Side, Side], key: Key) -> None:
        self.sides, self.key = sides, key
        self.types = [side.types() for side in sides]
        names = [
            side.read(key.columns)
            if key.columns
            else pl.DataFrame({"row": range(1, side.rows() + 1)})
            for side in sides
        ]
        columns = [alike(*(frame[column] for frame in names)) for column in names[0].columns]
        names = [pl.DataFrame(list(own)) for own in zip(*columns, strict=True)]
        self.repeated = sum(len(frame) - frame.n_unique() for frame in names)
        if self.repeated:
            number = pl.int_range(1, pl.len() + 1).over(names[0].columns).alias(NTH)
            names = [frame.with_columns(number) for frame in names]
        self.names, self.by = names, names[0].columns
        before, after = (frame.with_row_index(at) for frame, at in zip(names, ROWS, strict=True))
        joined = before.join(after, on=self.by, how="full", coalesce=True, nulls_equal=True)
        both = joined.drop_nulls(ROWS).sort(ROWS[0])
        self.both = [both[row] for row in ROWS]  # numbers of the rows that both versions have
        self.removed = joined.filter(pl.col(ROWS[1]).is_null())[ROWS[0]].sort()
        self.added = joined.filter(pl.col(ROWS[0]).is_null())[ROWS[1]].sort()

    def values(self, columns: Iterable[str]) -> list[pl.DataFrame]:
        """Return columns of both versions: rows that both have, in the same order."""
        named = list(columns)
        return [side.read(named)[at] for side, at in zip(self.sides, self.both, strict=True)]

    def beside(self, *parts: pl.DataFrame) -> pl.DataFrame:
        """Return the names of the rows that both versions have, and what stands beside them."""
        return pl.concat([self.names[1][self.both[1]], *parts], how="horizontal")


def described(
    rows: tuple[int, int],
    key: Key,
    added: pl.DataFrame,
    removed: pl.DataFrame,
    changes: dict[str, pl.DataFrame] | None = None,
    changed: int = 0,
    repeated: int = 0,
    types: Sequence[dict[str, str]] = ({}, {}),
) -> Tree:
    """Return the tree of a config, without what moved in it.

    ``changes``: by column, the rows in which it changed.
    ``changed``: rows in both versions, of which anything changed.
    ``repeated``: rows whose key another row has too.
    """
    (first, last), changes = types, changes or {}
    return {
        "rows": rows,
        "added": len(added),
        "removed": len(removed),
        "changed": changed,
        "key": key.columns,
        "key_from": key.source,
        "repeated_keys": repeated,
        "columns_added": {c: kind for c, kind in last.items() if c not in first},
        "columns_removed": {c: kind for c, kind in first.items() if c not in last},
        "columns_retyped": {
            c: (kind, last[c]) for c, kind in first.items() if last.get(c, kind) != kind
        },
        "changed_by_column": {column: len(frame) for column, frame in changes.items()},
        "rows_added": added,
        "rows_removed": removed,
        "changes": changes,
    }


def differs(found: Tree) -> bool:
    """Whether anything differs in a config."""
    counted = ("added", "removed", "changed", "columns_added", "columns_removed", "columns_retyped")
    return any(found[part] for part in counted)


def compare(pair: Pair, schema: Schema, kind: str) -> Tree:
    """Return all that differs between two versions of a config.

    Columns with the role ``label`` stand beside the key, as they are in the version that has the
    row; of a changed row as they are in the later one.
    """
    names = []
    for side, own, types in zip(pair.sides, pair.names, pair.types, strict=True):
        shown = [c for c in schema.role("label") if c in types and c not in own.columns]
        names.append(pl.concat([own, side.read(shown)], how="horizontal"))
    kept = names[1][pair.both[1]]
    changed, changes = pl.repeat(False, len(kept), eager=True), dict[str, pl.DataFrame]()
    for column in pair.types[0]:
        if column in pair.types[1] and column not in pair.key.columns:
            values = [frame[column] for frame in pair.values([column])]
            one, other = alike(*values)
            unlike = one.ne_missing(other)  # null is like null, and what is no number like itself
            if unlike.any():
                changed |= unlike
                where = unlike.arg_true()
                ends = [own[where].alias(when) for own, when in zip(values, WHEN, strict=True)]
                rows = kept[where].drop(column, strict=False).hstack(ends)
                changes[column] = rows.sort(pair.by, maintain_order=True)
    found = described(
        (len(names[0]), len(names[1])),
        pair.key,
        names[1][pair.added].sort(pair.by),
        names[0][pair.removed].sort(pair.by),
        changes,
        int(changed.sum()),
        pair.repeated,
        pair.types,
    )
    return found | moved(pair, changes, schema, kind)


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


def moved(pair: Pair, changes: dict[str, pl.DataFrame], schema: Schema, kind: str) -> Tree:
    """Return what moved in a config, by the roles and names of its columns: some of `MOVES`."""
    both = {*pair.types[0]} & {*pair.types[1]}
    parts: Tree = dict.fromkeys(MOVES)
    of_suggestions = schema.role("group", "text", "engines", "ranks")
    if of_suggestions and {*of_suggestions} <= both:
        parts["suggestions"] = suggestions(pair.sides, schema)
    if kind == "tables":
        intervals = [c for c in ESTIMATES if {*c} <= both and {*c} & {*changes}]
        parts["estimates"] = {columns[0]: estimates(pair, columns) for columns in intervals}
        over = {c: crossed(rows) for c, rows in changes.items() if ADJUSTED.fullmatch(c)}
        parts["adjusted_p_crossed"] = {c: rows for c, rows in over.items() if len(rows)}
    if kind == "outputs":
        parts["nats"] = {c: spread(rows) for c, rows in changes.items() if LOGPROBS.fullmatch(c)}
    of = schema.sentiment
    if of and {*of} <= both and {*of} & {*changes}:
        parts["sentiment"] = sentiments(pair, of)
    return {name: part for name, part in parts.items() if part}


def _farthest_first(frame: pl.DataFrame, far: pl.Expr, by: list[str]) -> pl.DataFrame:
    down = [True, *[False] * len(by)]
    return frame.sort([far, *by], descending=down, nulls_last=True)


def sentiments(pair: Pair, of: tuple[str, str]) -> Tree:
    """Return the words whose sentiment moved, the farthest first, and whether its sign turned.

    From nothing to positive is no turn: a turn is from below zero to above it, or back.
    """
    value = pl.col(of[0]).cast(pl.Float64) - pl.col(of[1]).cast(pl.Float64)
    ends = zip(pair.values(of), WHEN, strict=True)
    frame = pair.beside(*(own.select(value.alias(when)) for own, when in ends))
    frame = frame.filter(pl.col(BEFORE).ne_missing(pl.col(AFTER))).with_columns(
        moved=pl.col(AFTER) - pl.col(BEFORE),
        turned=(pl.col(BEFORE).sign() * pl.col(AFTER).sign() < 0).fill_null(value=False),
    )
    farthest = _farthest_first(frame, pl.col("moved").abs(), pair.by)
    return {"of": " - ".join(of), "moved": farthest} if len(frame) else {}


def suggestions(sides: tuple[Side, Side], schema: Schema) -> Tree:
    """Return how many suggestions each engine kept, and those that appeared, vanished and moved.

    A suggestion is the whole text that an engine gave, so that it stays the same where another
    version cuts it differently into query and attribute.
    """
    by = [*schema.role("group"), "text", "engine"]
    before, after = (_suggested(side, schema) for side in sides)
    both = before.join(after, on=by, how="full", coalesce=True, nulls_equal=True, suffix=" after")
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
    found = {name: part for name, part in parts.items() if len(part)}
    numbers = dict(kept.group_by("engine").len().sort("engine").iter_rows())
    return {"kept": numbers, **found} if found else {}


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


def estimates(pair: Pair, columns: tuple[str, str, str]) -> Tree:
    """Return the estimates that changed, the largest change against its interval first.

    ``beyond``: the new value is outside the old interval, and the old value outside the new one;
    ``disjoint``: the intervals have no point in common. Both are null where a value or an end of an
    interval is missing; ``judged``: how many are not. The ends belong to an interval.
    """
    ends = [(when, f"{when}_low", f"{when}_high") for when in WHEN]
    parts = [
        part.rename(dict(zip(columns, names, strict=True))).cast(pl.Float64)
        for part, names in zip(pair.values(columns), ends, strict=True)
    ]
    pairs = list(zip(*([pl.col(name) for name in names] for names in ends), strict=True))
    (value, value_2), (low, low_2), (high, high_2) = pairs
    known = pl.all_horizontal(end.is_not_null() for two in pairs for end in two)
    beyond = ((value_2 < low) | (value_2 > high)) & ((value < low_2) | (value > high_2))
    frame = pair.beside(*parts).filter(pl.any_horizontal(a.ne_missing(b) for a, b in pairs))
    frame = frame.with_columns(
        moved=value_2 - value,
        beyond=pl.when(known).then(beyond),
        disjoint=pl.when(known).then((high < low_2) | (high_2 < low)),
    )
    half = (high - low + high_2 - low_2) / 4
    return {
        "changed": len(frame),
        "judged": frame["beyond"].count(),
        "beyond": frame["beyond"].sum(),
        "disjoint": frame["disjoint"].sum(),
        "rows": _farthest_first(frame, (pl.col("moved").abs() / half).fill_nan(0), pair.by),
    }


def crossed(changes: pl.DataFrame) -> pl.DataFrame:
    """Return the rows whose adjusted p went over the line, and on which side it is now."""
    frame = changes.with_columns(significant=pl.col(AFTER) <= SIGNIFICANT)
    return frame.filter((pl.col(BEFORE) <= SIGNIFICANT) != pl.col("significant"))


def spread(changes: pl.DataFrame) -> Tree:
    """Return by how much numbers, or the numbers in lists of one length, differ."""
    frame = changes.select(WHEN)
    if frame[BEFORE].dtype == pl.List:
        same = pl.col(BEFORE).list.len() == pl.col(AFTER).list.len()
        frame = frame.filter(same).explode(WHEN)
    before, after = (pl.col(when).cast(pl.Float64) for when in WHEN)
    far = frame.select((after - before).abs()).to_series().drop_nulls()
    far = far.filter(far.is_finite() & (far > 0))
    middle, largest = (far.quantile(q, "linear") for q in (0.5, 1.0))
    return {"numbers": len(far), "median": middle, "largest": largest}
