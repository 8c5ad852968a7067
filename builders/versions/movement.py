"""How far values moved between two versions: sentiments, suggestions, estimates, log-probabilities.

Each takes the rows that ``versions.compare`` matched, and returns what a reader of that kind
of data asks first.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from plumbline.builders.versions.compare import AFTER, BEFORE, Compared, Matched, Side
from plumbline.builders.versions.roles import ADJUSTED, ESTIMATES, LOGPROBS, SIGNIFICANT

if TYPE_CHECKING:
    import polars as pl

    from plumbline.builders.versions.roles import Meaning, Sentiment, Suggested

CHANGES = ("appeared", "vanished", "moved")


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


def moved(
    sides: tuple[Side, Side], matched: Matched, found: Compared, meaning: Meaning, kind: str
) -> Moved:
    """Return what moved in a config, by the roles of its columns."""
    known = [side.types() for side in sides]
    both = {c for c in known[0] if c in known[1]}
    changed = set(found.changes)
    out = Moved()
    sentiment, suggested = meaning.sentiment, meaning.suggested
    if sentiment and {*sentiment.columns} <= both and changed & {*sentiment.columns}:
        out.sentiment = sentiments(sides, matched, sentiment)
    if suggested and {*suggested.columns} <= both:
        out.suggested, out.kept = suggestions(sides, suggested)
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
    sides: tuple[Side, Side], matched: Matched, sentiment: Sentiment
) -> pl.DataFrame | None:
    """Return the words whose sentiment moved, the farthest first, and whether its sign turned.

    From nothing to positive is no turn: a turn is from below zero to above it, or back.
    """
    import polars as pl

    value = pl.col(sentiment.plus).cast(pl.Float64) - pl.col(sentiment.minus).cast(pl.Float64)
    ends = [
        matched.of(i, side.read(sentiment.columns).select(value.alias(name))[name])
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
    sides: tuple[Side, Side], suggested: Suggested
) -> tuple[dict[str, pl.DataFrame], dict[str, int]]:
    """Return the suggestions that appeared, vanished and moved, and how many each engine kept.

    A suggestion is the whole text that an engine gave, so that it stays the same where another
    version cuts it differently into query and attribute.
    """
    import polars as pl

    frames = [_said(side, suggested) for side in sides]
    by = [*suggested.within, "text", "engine"]
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


def _said(side: Side, suggested: Suggested) -> pl.DataFrame:
    """Return a row for each suggestion of each engine: of whom, what, by whom, at which place."""
    import polars as pl

    frame = side.read(suggested.columns).with_columns(
        text=pl.concat_str([pl.col(c).cast(pl.String) for c in suggested.text], separator=" "),
        place=pl.int_ranges(pl.col(suggested.engines).list.len()),
    )
    frame = frame.select(*suggested.within, "text", suggested.engines, suggested.ranks, "place")
    frame = frame.explode(suggested.engines, "place").drop_nulls(suggested.engines)
    rank = pl.col(suggested.ranks).list.get(pl.col("place"), null_on_oob=True).cast(pl.Int64)
    by = [*suggested.within, "text", "engine"]
    return (
        frame.with_columns(rank=rank, engine=pl.col(suggested.engines))
        .group_by(by)
        .agg(pl.col("rank").min(), there=pl.lit(value=True))
    )


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
