"""A difference between two versions in words: short, the largest first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from plumbline.builders.versions.compare import AFTER, BEFORE
from plumbline.builders.versions.diff import Across, differs
from plumbline.builders.versions.movement import CHANGES
from plumbline.builders.versions.roles import SIGNIFICANT

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import polars as pl

    from plumbline.builders.versions.compare import Compared
    from plumbline.builders.versions.diff import Difference
    from plumbline.builders.versions.movement import Moved
    from plumbline.builders.versions.roles import Meaning

LIMIT = 10  # of every list, unless all is asked for
WIDTH = 60  # of a text
CONFIGS = "configs"


def lines(difference: Difference, limit: int | None = LIMIT) -> Iterator[str]:
    """Yield the report; ``limit`` None: every list is told to its end."""
    yield difference.name
    for when, version in zip(("before", "after "), difference.versions, strict=True):
        stated = f", version {version.stated}" if version.stated else ""
        yield f"  {when}: {version.named}, {version.told}{stated}"
    one, other = difference.versions
    if one.card != other.card:
        yield "  the text of their cards differs"
    if not difference.any:
        rows = sum(found.rows[1] for found in difference.configs.values())
        yield f"nothing differs: {_count(len(difference.configs), 'config')}, {rows:,} rows"
        return
    for way, configs in (("added", difference.added), ("removed", difference.removed)):
        for name, rows in configs.items():
            yield f"config {way}: {name}, {rows:,} rows"
    across, meaning = difference.across, difference.meaning
    if across is not None:
        yield from _across(across, meaning, len(difference.configs), limit)
    for name, found in difference.configs.items():
        yield from _config(name, found, difference.moved[name], meaning, across, limit)
    yield from _rejects(difference)


def _across(across: Across, meaning: Meaning, configs: int, limit: int | None) -> Iterator[str]:
    told = f"{len(across.added):,} added, {len(across.removed):,} removed"
    yield f"{meaning.many}, in all configs together: {told}"
    for way, rows in (("added", across.added), ("removed", across.removed)):
        yield from _some(f"  {way}:" if len(rows) else "", _named(rows, configs), len(rows), limit)
    yield from _changes(across, meaning, {}, configs, limit, "")


def _config(
    name: str,
    found: Compared,
    moved: Moved,
    meaning: Meaning,
    across: Across | None,
    limit: int | None,
) -> Iterator[str]:
    before, after = found.rows
    head = f"{name}: {before:,} -> {after:,} rows"
    if not differs(found):
        yield f"{head}, nothing differs"
        return
    numbers = (
        f"{len(found.added):,} added, {len(found.removed):,} removed, {found.changed:,} changed"
    )
    key = ", ".join(found.key.columns) or "their place"
    yield f"{head}: {numbers} (named by {key}: {found.key.source})"
    if found.repeated:
        yield f"  {found.repeated:,} rows share their key with another: matched in their order"
    for way, kinds in (("added", found.new_columns), ("removed", found.lost_columns)):
        for column, kind in kinds.items():
            yield f"  column {way}: {column} ({kind})"
    for column, pair in found.retyped.items():
        yield f"  column of another type: {column}, {pair[0]} -> {pair[1]}"
    yield from _moved(moved, meaning, limit)
    if across is not None:
        counts = ", ".join(f"{c} {len(r):,}" for c, r in found.changes.items())
        yield from [f"  changed: {counts}"] if counts else []
        by = list(found.key.columns)
        for way, here, told in (
            ("added", found.added, across.added),
            ("removed", found.removed, across.removed),
        ):
            only = here.join(told, on=by, how="anti") if len(told) else here
            head = f"  {way} in this config, but not in all: {len(only):,}" if len(only) else ""
            yield from _some(head, _named(only, 0), len(only), limit)
        return
    for way, rows in (("added", found.added), ("removed", found.removed)):
        head = f"  {meaning.many} {way}: {len(rows):,}" if len(rows) else ""
        yield from _some(head, _named(rows, 0), len(rows), limit)
    yield from _changes(found, meaning, {"kept": found.kept, "moved": moved.any}, 0, limit, "  ")


def _changes(
    found: Compared | Across,
    meaning: Meaning,
    facts: dict[str, int | bool],
    configs: int,
    limit: int | None,
    indent: str,
) -> Iterator[str]:
    """Yield what changed by column: every change of those that matter, of others how many."""
    rest = []
    first = [column for column in meaning.first if column in found.changes]
    others = sorted(
        (c for c in found.changes if c not in first), key=lambda c: -found.changes[c].height
    )
    for column in first + others:
        full = column in first or not meaning.first
        rows = found.changes[column]
        pairs = rows.select(BEFORE, AFTER)
        if len(rows) == facts.get("kept") and len(rows) > 1 and len(pairs.unique()) == 1:
            was, now = pairs.row(0)
            yield f"{indent}{column}: {_said(was)} -> {_said(now)} in all {len(rows):,} rows"
        elif limit is None or (full and not facts.get("moved")):
            head = f"{indent}{meaning.words.get(column, column)} changed: {len(rows):,}"
            ordered = _largest_first(rows)
            yield from _some(head, _moves(ordered, configs), len(rows), limit)
        else:
            rest.append(f"{column} {len(rows):,}")
    if rest:
        yield f"{indent}{'other ' if first else ''}columns changed: {', '.join(rest)}"


def _moved(moved: Moved, meaning: Meaning, limit: int | None) -> Iterator[str]:
    if moved.sentiment is not None and meaning.sentiment:
        rows = moved.sentiment
        turned = rows.filter("turned")
        yield from _some(
            f"  sentiment ({meaning.sentiment.told}) moved: {_many(len(rows), meaning)}",
            _moves(rows, 0),
            len(rows),
            limit,
        )
        head = f"  its sign turned: {len(turned):,}" if len(turned) else ""
        yield from _some(head, _moves(turned, 0), len(turned), limit)
    if moved.suggested:
        yield from _suggested(moved, limit)
    for column, rows in moved.estimates.items():
        beyond = rows.filter("beyond")
        disjoint = int(rows["disjoint"].sum())
        head = (
            f"  {column} changed: {_many(len(rows), meaning)}; beyond their intervals: "
            f"{len(beyond):,}, with intervals apart: {disjoint:,}"
        )
        yield from _some(head, _intervals(beyond), len(beyond), limit)
        without = len(rows) - moved.judged[column]
        yield from [f"    {without:,} without an interval in both"] if without else []
    for column, rows in moved.crossed.items():
        now = int(rows["significant"].sum())
        head = f"  {column} crossed {SIGNIFICANT}: {now:,} now below, {len(rows) - now:,} now above"
        yield from _some(head, _moves(rows, 0), len(rows), limit)
    for column, spread in moved.nats.items():
        if spread.numbers:
            yield (
                f"  {column}: {spread.numbers:,} numbers differ, by at most "
                f"{_said(spread.largest)} nats, median {_said(spread.median)}"
            )


def _suggested(moved: Moved, limit: int | None) -> Iterator[str]:
    parts = moved.suggested
    engines = sorted(
        {*moved.kept, *(e for part in parts.values() for e in part["engine"].unique())}
    )
    for engine in engines:
        of = {name: parts[name].filter(engine=engine) for name in CHANGES if name in parts}
        told = ", ".join(f"{len(of.get(name, ())):,} {name}" for name in CHANGES)
        yield f"  suggestions of {engine}: {told}; {moved.kept.get(engine, 0):,} in both"
        for name, rows in of.items():
            head = f"    {name}:" if len(rows) else ""
            told_rows = rows.drop("engine")
            items = _moves(told_rows, 0) if name == "moved" else _named(told_rows, 0)
            yield from _some(head, items, len(rows), limit, "      ")


def _rejects(difference: Difference) -> Iterator[str]:
    changed = [one for one in difference.rejects if one.before != one.after]
    if changed:
        yield "rejects:"
    for one in sorted(changed, key=lambda r: -abs(r.after - r.before)):
        yield f"  {one.config}, {one.reason}: {one.before:,} -> {one.after:,}"


def _some(
    head: str, items: Iterable[str], number: int, limit: int | None, indent: str = "    "
) -> Iterator[str]:
    """Yield a list with its head, no longer than wanted; nothing where there is no head."""
    if not head:
        return
    yield head
    for place, item in enumerate(items):
        if place == limit:
            yield f"{indent}and {number - place:,} more"
            return
        yield indent + item


def _named(rows: pl.DataFrame, configs: int) -> Iterator[str]:
    for row in rows.iter_rows(named=True):
        yield _name(row, configs, ())


def _moves(rows: pl.DataFrame, configs: int) -> Iterator[str]:
    skipped = (BEFORE, AFTER, "moved", "turned", "significant")
    for row in rows.iter_rows(named=True):
        was, now = row[BEFORE], row[AFTER]
        by = ""
        if isinstance(was, (int, float)) and isinstance(now, (int, float)):
            by = "" if isinstance(was, bool) else f" ({now - was:+.4g})"
        yield f"{_name(row, configs, skipped)}: {_said(was)} -> {_said(now)}{by}"


def _intervals(rows: pl.DataFrame) -> Iterator[str]:
    ends = [(f"{when}", f"{when}_low", f"{when}_high") for when in (BEFORE, AFTER)]
    skipped = (*ends[0], *ends[1], "moved", "beyond", "disjoint")
    for row in rows.iter_rows(named=True):
        was, now = (
            f"{_said(row[v])} ({_said(row[low])} to {_said(row[high])})" for v, low, high in ends
        )
        apart = ", intervals apart" if row["disjoint"] else ""
        yield f"{_name(row, 0, skipped)}: {was} -> {now}{apart}"


def _name(row: dict[str, Any], configs: int, skipped: tuple[str, ...]) -> str:
    told = " ".join(_said(v) for c, v in row.items() if c not in skipped and c != CONFIGS)
    where = row.get(CONFIGS) or []
    if not where:
        return told
    return f"{told} (all configs)" if len(where) == configs > 1 else f"{told} ({', '.join(where)})"


def _largest_first(rows: pl.DataFrame) -> pl.DataFrame:
    import polars as pl

    if not rows[BEFORE].dtype.is_numeric() or not rows[AFTER].dtype.is_numeric():
        return rows
    far = (pl.col(AFTER).cast(pl.Float64) - pl.col(BEFORE).cast(pl.Float64)).abs()
    return rows.sort(far, descending=True, nulls_last=True, maintain_order=True)


def _said(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_said, value))}]"[:WIDTH]
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "nothing"}[value]
    if isinstance(value, float):
        return f"{value:.4g}"
    text = " ".join(str(value).split()) or '""'
    return text if len(text) <= WIDTH else f"{text[: WIDTH - 1]}…"


def _many(number: int, meaning: Meaning) -> str:
    return f"{number:,} {meaning.one if number == 1 else meaning.many}"


def _count(number: int, word: str) -> str:
    return f"{number:,} {word}" if number == 1 else f"{number:,} {word}s"
