"""Differences between two versions of a dataset, outputs or tables, by config.

Rows are matched by their key; rows that share a key are matched in order.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import polars as pl
from pydantic_core import to_json

from plumbline.builders.core.errors import UserError
from plumbline.builders.core.parquet import REJECTS
from plumbline.builders.release.terms import MADE, folder_of
from plumbline.builders.versions.folders import Config, Version, find_version, read_configs

LIMIT = 10  # maximum number of rows listed in the text, unless --all is given
WIDTH = 60  # maximum number of characters of a value in the text
WHEN = BEFORE, AFTER = "before", "after"
NUMBERS = ("row before", "row after")
NTH = "nth of its key"  # column that numbers the rows that share a key
ESTIMATE = ("value", "low", "high")
COUNTED = ("added", "removed", "changed", "columns_added", "columns_removed", "columns_retyped")
Tree = dict[str, Any]  # the JSON report, in which lists of rows are data frames


def diff(named: str, first: str, second: str, selected: tuple[str, ...] = ()) -> Tree:
    """Compare two versions.

    ``named``: name of a dataset, or folder of outputs or tables.
    ``first``, ``second``: the versions, see
    :func:`plumbline.builders.versions.folders.find_version`.
    ``selected``: the configs to compare, or all if it is empty.

    Raises UserError if a version cannot be read, or a selected config is in neither version.
    """
    folder = folder_of(named, MADE)
    tree: Tree = {"name": folder.relative_to("data").as_posix()}
    with TemporaryDirectory() as scratch:
        versions = [find_version(revision, folder, Path(scratch)) for revision in (first, second)]
        (before, stated), (after, stated_after) = (read_configs(v.files) for v in versions)
        for when, version, number in zip(WHEN, versions, (stated, stated_after), strict=True):
            facts = {"named": version.named, "described": version.described, "version": number}
            tree[when] = facts
        names = sorted({*before, *after})
        if unknown := sorted({*selected} - {*names}):
            existing = ", ".join(names) or "none"
            raise UserError(f"--config {unknown[0]}: in neither version; available: {existing}")
        names = [name for name in names if not selected or name in selected]
        tree["configs_added"] = {c: len(after[c].read()[0]) for c in names if c not in before}
        tree["configs_removed"] = {c: len(before[c].read()[0]) for c in names if c not in after}
        tree["rejects"] = _rejects(versions, selected)
        shared = [c for c in names if c in before and c in after]
        tree["configs"] = {c: compare(before[c], after[c]) for c in shared}
    tree["differs"] = bool(
        tree["configs_added"]
        or tree["configs_removed"]
        or any(reason[BEFORE] != reason[AFTER] for reason in tree["rejects"])
        or any(config[part] for config in tree["configs"].values() for part in COUNTED)
    )
    return tree


def compare(before: Config, after: Config) -> Tree:
    """Return the rows and columns that were added to, removed from, or changed in a config."""
    (frame, first), (frame_after, last) = before.read(), after.read()
    shared = [column for column in last if column in first]
    keys = (config.key for config in (after, before) if config.key)
    key = next((key for key in keys if {*key} <= {*shared}), ())
    aligned = [align_types(frame[c], frame_after[c]) for c in shared]
    frames = [
        frame.with_columns(a for a, _ in aligned),
        frame_after.with_columns(b for _, b in aligned),
    ]
    by = list(key) or ["row"]
    if not key:
        frames = [frame.with_row_index("row", offset=1) for frame in frames]
    repeated = sum(len(frame) - frame.select(by).n_unique() for frame in frames)
    if repeated:
        number = pl.int_range(1, pl.len() + 1).over(by).alias(NTH)
        frames = [frame.with_columns(number) for frame in frames]
        by = [*by, NTH]
    names = []  # the key and the columns shown next to it
    for side, frame in zip((before, after), frames, strict=True):
        names.append(frame.select(*by, *(c for c in side.names if c in frame and c not in by)))
    numbered = [f.select(by).with_row_index(row) for f, row in zip(frames, NUMBERS, strict=True)]
    joined = numbered[0].join(numbered[1], on=by, how="full", coalesce=True, nulls_equal=True)
    rows = joined.drop_nulls(NUMBERS).sort(NUMBERS[0])
    old, new = (frame[rows[row]] for frame, row in zip(frames, NUMBERS, strict=True))
    named = names[1][rows[NUMBERS[1]]]
    changed, changes = pl.repeat(False, len(rows), eager=True), dict[str, pl.DataFrame]()
    for column in (c for c in shared if c not in key):
        unequal = old[column].ne_missing(new[column])  # null equals null, NaN equals NaN
        if unequal.any():
            changed |= unequal
            values = [old[column].alias(BEFORE), new[column].alias(AFTER)]
            changes[column] = named.drop(column, strict=False).hstack(values).filter(unequal)
            changes[column] = changes[column].sort(by, maintain_order=True)
    added, removed = (joined.filter(pl.col(number).is_null()) for number in NUMBERS)
    tree: Tree = {
        "rows": [len(frame) for frame in frames],
        "key": list(key),
        "repeated_keys": repeated,
        "added": len(added),
        "removed": len(removed),
        "changed": int(changed.sum()),
        "columns_added": {c: kind for c, kind in last.items() if c not in first},
        "columns_removed": {c: kind for c, kind in first.items() if c not in last},
        "columns_retyped": {c: [first[c], last[c]] for c in shared if first[c] != last[c]},
        "changed_by_column": {column: len(frame) for column, frame in changes.items()},
        "rows_added": names[1][added[NUMBERS[1]]].sort(by),
        "rows_removed": names[0][removed[NUMBERS[0]]].sort(by),
        "changes": changes,
    }
    if {*ESTIMATE} <= {*shared} and {*ESTIMATE} & {*changes}:
        tree["estimates"] = compare_estimates(named, old, new)
    return tree


def compare_estimates(names: pl.DataFrame, before: pl.DataFrame, after: pl.DataFrame) -> Tree:
    """Count the estimates that changed, and list those outside each other's interval.

    An estimate is listed if its value in each version lies outside the closed interval of the other
    version; estimates that lack a value or a bound in either version are not judged.
    """
    parts = [
        frame.select(pl.col(c).cast(pl.Float64).alias(f"{when}_{c}") for c in ESTIMATE)
        for frame, when in zip((before, after), WHEN, strict=True)
    ]
    matched = pl.concat([names, *parts], how="horizontal")
    ends = [[pl.col(f"{when}_{c}") for c in ESTIMATE] for when in WHEN]
    (value, low, high), (value_2, low_2, high_2) = ends
    unequal = pl.any_horizontal(a.ne_missing(b) for a, b in zip(*ends, strict=True))
    outside = ~value_2.is_between(low, high) & ~value.is_between(low_2, high_2)
    matched = matched.filter(unequal)
    beyond = matched.filter(outside).sort((value_2 - value).abs(), descending=True)
    judged = matched.drop_nulls([f"{when}_{c}" for when in WHEN for c in ESTIMATE])
    return {"changed": len(matched), "judged": len(judged), "beyond": len(beyond), "rows": beyond}


def align_types(old: pl.Series, new: pl.Series) -> tuple[pl.Series, pl.Series]:
    """Cast two columns to a common type, so that their values can be compared."""
    if old.dtype == new.dtype:
        return old, new
    if old.dtype.is_numeric() and new.dtype.is_numeric():
        integers = old.dtype.is_integer() and new.dtype.is_integer()
        kind = pl.Int64() if integers else pl.Float64()
        return old.cast(kind), new.cast(kind)
    return _as_text(old), _as_text(new)


def _as_text(values: pl.Series) -> pl.Series:
    if values.dtype == pl.String:
        return values
    texts = [None if v is None else json.dumps(v, default=str) for v in values]
    return pl.Series(values.name, texts, dtype=pl.String)


def _rejects(versions: list[Version], selected: tuple[str, ...]) -> list[Tree]:
    """Count the rejected input rows of both versions, by config and reason."""
    texts = {"config": pl.String, "reason": pl.String}
    frames = [pl.DataFrame(schema=texts | dict.fromkeys(WHEN, pl.Int64))]
    for version, when in zip(versions, WHEN, strict=True):
        if REJECTS in version.files:
            frame, _ = Config([version.files[REJECTS]]).read()
            frames.append(frame.select(*texts, pl.col("number").alias(when)))
    rows = pl.concat(frames, how="diagonal").group_by(*texts).sum().sort(*texts)
    return (rows.filter(pl.col("config").is_in(selected)) if selected else rows).to_dicts()


def as_json(tree: Tree) -> str:
    """Serialise all differences as JSON, in which numbers that are not finite are null."""
    return to_json(tree, indent=1, inf_nan_mode="null", fallback=pl.DataFrame.to_dicts).decode()


def as_text(tree: Tree, limit: int | None = LIMIT) -> Iterator[str]:
    """Yield the report's lines; ``limit``: maximum number of rows in a list, or None for all."""
    yield tree["name"]
    for when in WHEN:
        version = tree[when]
        stated = f", version {version['version']}" if version["version"] else ""
        yield f"  {when}: {version['named']}, {version['described']}{stated}"
    if not tree["differs"]:
        yield "no difference"
    for way in ("added", "removed"):
        for config, rows in tree[f"configs_{way}"].items():
            yield f"config {way}: {config}, {rows:,} rows"
    for name, config in tree["configs"].items():
        yield from _config_text(name, config, limit)
    if any(reason[BEFORE] != reason[AFTER] for reason in tree["rejects"]):
        yield "rejects:"
    for reason in tree["rejects"]:
        if reason[BEFORE] != reason[AFTER]:
            counts = f"{reason[BEFORE]:,} -> {reason[AFTER]:,}"
            yield f"  {reason['config']}, {reason['reason']}: {counts}"


def _config_text(name: str, config: Tree, limit: int | None) -> Iterator[str]:
    first, last = config["rows"]
    key = ", ".join(config["key"]) or "none, rows in their order"
    yield (
        f"{name}: {first:,} -> {last:,} rows: {config['added']:,} added, "
        f"{config['removed']:,} removed, {config['changed']:,} changed (key: {key})"
    )
    if config["repeated_keys"]:
        yield f"  {config['repeated_keys']:,} rows share their key: matched in their order"
    for way in ("added", "removed"):
        for column, kind in config[f"columns_{way}"].items():
            yield f"  column {way}: {column} ({kind})"
    for column, (was, now) in config["columns_retyped"].items():
        yield f"  column of another type: {column}, {was} -> {now}"
    for way in ("added", "removed"):
        yield from _list(f"rows {way}", config[f"rows_{way}"], (), limit)
    for column, rows in config["changes"].items():
        yield from _list(f"{column} changed", rows, WHEN, limit)
    if estimates := config.get("estimates"):
        yield (
            f"  estimates: {estimates['changed']:,} changed, {estimates['judged']:,} of them "
            f"with both intervals, {estimates['beyond']:,} left each other's interval"
        )
        yield from _list("beyond", estimates["rows"], ESTIMATE, limit)


def _list(head: str, rows: pl.DataFrame, values: tuple[str, ...], limit: int | None) -> list[str]:
    """Return the lines for a list of rows: each key, with its values before and after."""
    lines = [f"  {head}: {len(rows):,}"] if len(rows) else []
    for row in rows[:limit].iter_rows(named=True):
        if values == ESTIMATE:
            ends = [
                "{} [{}, {}]".format(*(_short(row.pop(f"{when}_{c}")) for c in ESTIMATE))
                for when in WHEN
            ]
        else:
            ends = [_short(row.pop(column)) for column in values]
        name = " ".join(map(_short, row.values()))
        lines.append(f"    {name}: {' -> '.join(ends)}" if ends else f"    {name}")
    remaining = len(rows) - len(lines) + 1
    return [*lines, f"    and {remaining:,} more"] if len(rows) and remaining else lines


def _short(value: Any) -> str:
    """Return a value as a short text on one line."""
    if isinstance(value, list):
        value = f"[{', '.join(map(_short, value))}]"
    text = f"{value:.4g}" if isinstance(value, float) else " ".join(str(value).split()) or '""'
    return text if len(text) <= WIDTH else f"{text[: WIDTH - 1]}…"
