"""Comparison of a dataset with its last accepted version: size, shares, and sampled rows.

``accepted.json`` contains a profile of each config of each accepted version. Its keys name the
dataset and its snapshots, without dates, so that samples are not compared with real data.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from typing import Any

import polars as pl

from plumbline.builders.core import parquet
from plumbline.builders.core.errors import UserError
from plumbline.builders.core.parquet import inputs_of
from plumbline.builders.core.schema import Column, Schema
from plumbline.builders.core.snapshot import write_bytes
from plumbline.validation.suite import Table, frames, listed, schema_of

FILE = Path(__file__).parent / "accepted.json"
DRAWN = 60  # number of rows sampled per config: those whose keys have the lowest hashes
DIGITS = 3  # stored hexadecimal digits of a value's hash: one in 4096 changes is missed
OPEN = ("redistributable", "simulated")  # rows in which one of these columns is false are skipped
FEW = 25  # shares are stored for columns with at most this number of distinct values
# Tolerances for differences from the accepted version, the same for all configs and columns. Two
# standard errors are added to those for shares.
ROWS = 0.2  # relative change in the number of rows
SHARE = 0.05  # change in the share of a label, a value or nulls
GONE = 0.5  # share of the sampled keys that are missing now
CHANGED = 0.05  # share of the sampled rows with a changed value in a column

Compared = tuple[str, str, float, float, float]  # column, statistic, before, now, tolerance


def tables(schema: Schema, folder: Path) -> list[Table]:
    """Compare each config and column with the accepted version."""
    profiles = json.loads(FILE.read_text("utf-8")).get(_version(folder), {})
    rows = []
    for config, frame in ((c, f) for c, f in frames(folder) if c in profiles):
        compared = _compare(schema.config(config), frame, profiles[config])
        for *key, before, now, most in compared:
            rows.append((config, *key, before, now, round(most, 4), abs(before - now) <= most))
    return [listed("accepted", "config column what before now tolerance near", rows, 6)]


def accept(name: str) -> str:
    """Make a dataset the reference for later versions; return its key in ``accepted.json``.

    Raises UserError if the dataset is not built, or its files do not state their inputs.
    """
    folder, schema = parquet.DATASETS / name, schema_of(name)
    parquet.configs(folder)
    profiles = json.loads(FILE.read_text("utf-8"))
    if not (version := _version(folder)):
        raise UserError(f"{folder}: does not state its inputs; build it again")
    profiles[version] = {c: profile(schema.config(c), frame) for c, frame in frames(folder)}
    text = json.dumps(profiles, ensure_ascii=False, indent=1, sort_keys=True) + "\n"
    write_bytes(FILE, text.encode())
    return version


def _version(folder: Path) -> str:
    """Return the names of a dataset and its snapshots, without dates, or "" if they are unknown."""
    sources, todo = set[str](), [folder]
    for dataset in todo:
        with suppress(ValueError, UserError):
            for path in inputs_of(min(dataset.glob("*.parquet"))):
                if path.startswith("data/datasets/"):
                    todo.append(folder.parent / Path(path).name)
                else:
                    sources.add(re.sub(r"/[^/]*\d{4}-\d\d-\d\d[^/]*(/|$).*", "", path))
    return f"{folder.name} of {', '.join(sorted(sources))}" if sources else ""


def profile(schema: Schema, frame: pl.DataFrame) -> dict[str, Any]:
    """Return the size of a config, the shares of its values, and hashes of its sampled rows."""
    allowed = frame.filter(*(c for c in OPEN if c in frame)).select(schema.key)
    hashes = sorted(_hash(*key) for key in allowed.rows())[:DRAWN]
    shares = {c.name: _shares(c, frame) for c in schema.columns}
    return {
        "rows": len(frame),
        "shares": {name: values for name, values in shares.items() if values},
        "kept": _stable(schema),
        "drawn": _values(schema, frame, hashes),
    }


def _values(schema: Schema, frame: pl.DataFrame, hashes: Iterable[str]) -> dict[str, str]:
    """Return short hashes of the stable values in rows, by the hashes of the rows' keys."""
    columns = _stable(schema)
    places = {_hash(*key): index for index, key in enumerate(frame.select(schema.key).rows())}
    rows = {key: frame.row(places[key], named=True) for key in hashes if key in places}
    return {k: "".join(_hash(row[c])[:DIGITS] for c in columns) for k, row in rows.items()}


def _shares(column: Column, frame: pl.DataFrame) -> dict[str, float]:
    """Return the shares of a column's values if they are few, or of nulls if they are numbers."""
    values, size = frame[column.name], max(1, len(frame))
    if not _is_scale(column) and column.kind not in ("label", "bool", "strings", "string"):
        return {"null": round(values.null_count() / size, 4)} if column.nullable else {}
    values = values.explode() if column.kind == "strings" else values
    counts = values.cast(pl.String).fill_null("null").value_counts().sort(column.name)
    if len(counts) > min(FEW, max(2, len(frame) // 4)):
        return {}
    shares = {value: round(number / size, 4) for value, number in counts.iter_rows()}
    if column.kind == "strings":
        shares.pop("null", None)
    return shares


def _stable(schema: Schema) -> list[str]:
    """Return the columns whose values are stable across versions: no keys, counts or estimates."""
    by_seed = "draw" in (c.name for c in schema.columns)
    numbers = ("int32", "int64", "float64", "floats", "integers")
    changing = {c.name for c in schema.columns if by_seed or c.kind in numbers}
    changing |= {"split", *schema.key}
    return [c.name for c in schema.columns if _is_scale(c) or c.name not in changing]


def _is_scale(column: Column) -> bool:
    return column.kind in ("int32", "int64") and column.maximum is not None


def _hash(*values: object) -> str:
    return blake2b(repr(values).encode(), digest_size=5).hexdigest()


def _compare(schema: Schema, frame: pl.DataFrame, before: dict[str, Any]) -> Iterator[Compared]:
    """Yield the column, the statistic, its two values and the tolerance of each comparison."""
    rows, size = before["rows"], min(len(frame), before["rows"])
    yield "", "rows", float(rows), float(len(frame)), ROWS * rows
    for column, shares in before["shares"].items():
        now = _shares(schema[column], frame)
        for value, share in sorted((dict.fromkeys(now, 0.0) | shares).items()):
            most = SHARE + _twice_the_error(share, size)
            yield column, f"share of {value[:40]}", share, now.get(value, 0.0), most
    latest = _values(schema, frame, before["drawn"])
    if before["drawn"]:
        gone = 1 - len(latest) / len(before["drawn"])
        yield ", ".join(schema.key), "drawn keys gone", 0.0, round(gone, 4), GONE
    most = CHANGED + _twice_the_error(CHANGED, len(latest))
    for position, column in enumerate(before["kept"]):
        digits = slice(DIGITS * position, DIGITS * (position + 1))
        changed = sum(before["drawn"][key][digits] != v[digits] for key, v in latest.items())
        yield column, "drawn rows changed", 0.0, round(changed / max(1, len(latest)), 4), most


def _twice_the_error(share: float, rows: int) -> float:
    """Return twice the standard error of the difference between two shares, each of ``rows``."""
    rows = max(rows, 1)
    return 2 * math.sqrt(2 * max(share * (1 - share), 1 / (4 * rows)) / rows)
