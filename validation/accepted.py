"""A dataset held to its last accepted version: its size, its shares, and rows drawn by their keys.

``accepted.json`` has a profile of each config of each version that somebody accepted, by dataset
and the snapshots that it was made of, whatever their day: samples are not held to real data.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable
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
DRAWN = 60  # rows of a config that are kept by the hashes of their keys and values
DIGITS = 3  # of the hash of a value: one in 4096 changes is not seen
OPEN = ("redistributable", "simulated")  # of others no hash is kept either, where a column says so
FEW = 25  # distinct values of a string that has shares
# How unlike the accepted version a dataset may be in any config and column; two standard errors
# are added to each share.
ROWS = 0.2  # rows more or fewer, as a share of those before
SHARE = 0.05  # by which the share of a label, a value or nulls differs
SPREAD = 0.25  # by which a median differs, in ranges between the quartiles
GONE = 0.5  # share of the drawn keys that are gone
CHANGED = 0.05  # share of the drawn rows with another value in a column

Profile = dict[str, Any]


def tables(schema: Schema, folder: Path) -> list[Table]:
    """Return what says of each config and column how far it is from the accepted version."""
    known = json.loads(FILE.read_text("utf-8")).get(_version(folder), {})
    rows = [
        (config, *row)
        for config, frame in (frames(folder) if known else ())
        if config in known
        for row in _compared(schema.config(config), frame, known[config])
    ]
    return [listed("accepted", "config column what before now tolerance near", rows, 6)]


def accept(name: str) -> str:
    """Record a dataset as the version that later ones are held to, and return which it is.

    Raises UserError if it is not built, or nothing says of what.
    """
    folder, schema = parquet.DATASETS / name, schema_of(name)
    parquet.configs(folder)
    known = json.loads(FILE.read_text("utf-8"))
    if not (version := _version(folder)):
        raise UserError(f"{folder}: does not say what it was made of; build it anew")
    known[version] = {
        config: profile(schema.config(config), frame) for config, frame in frames(folder)
    }
    texts = []
    for of, configs in sorted(known.items()):
        lines = (f"  {json.dumps(c)}: {_text(p)}" for c, p in sorted(configs.items()))
        texts.append(f" {json.dumps(of)}: {{\n" + ",\n".join(lines) + "\n }")
    write_bytes(FILE, ("{\n" + ",\n".join(texts) + "\n}\n").encode())
    return version


def _text(profile: Profile) -> str:
    return json.dumps(profile, ensure_ascii=False, separators=(",", ":"))


def _version(folder: Path) -> str:
    """Return the dataset and the snapshots behind it, without their days; nothing if not known."""
    found = {re.sub(r"/[^/]*\d{4}-\d\d-\d\d[^/]*(/|$).*", "", path) for path in _made_of(folder)}
    return f"{folder.name} of {', '.join(sorted(found))}" if found else ""


def _made_of(folder: Path) -> set[str]:
    """Return the paths of the manifests that a dataset, or those it is made of, was made of."""
    try:
        path = next(p for p in sorted(folder.glob("*.parquet")))
        inputs = inputs_of(path)
    except (StopIteration, UserError):
        return set()
    there = {path: folder.parent / Path(path).name for path in inputs}
    return {
        end
        for path, at in there.items()
        for end in (_made_of(at) if path.startswith("data/datasets/") else {path})
    }


def profile(schema: Schema, frame: pl.DataFrame) -> Profile:
    """Return a config's size, shares and quartiles of its columns, and hashes of drawn rows."""
    told = [c for c in OPEN if c in frame]
    given = frame.filter(*told).select(schema.key) if told else frame.select(schema.key)
    hashes = sorted(_hash(*key) for key in given.rows())[:DRAWN]
    return {
        "rows": len(frame),
        "shares": {c.name: s for c in schema.columns if (s := _shares(c, frame))},
        "quartiles": {
            c.name: q
            for c in schema.columns
            if not _shares(c, frame) and (q := _quartiles(c, frame))
        },
        "kept": [c.name for c in schema.columns if _stays(c, schema)],
        "drawn": _values(schema, frame, hashes),
    }


def _values(schema: Schema, frame: pl.DataFrame, hashes: Iterable[str]) -> dict[str, str]:
    """Return short hashes of what stays of the rows that are there, by those of their keys."""
    kept = [c.name for c in schema.columns if _stays(c, schema)]
    places = {_hash(*key): at for at, key in enumerate(frame.select(schema.key).rows())}
    there = {key: places[key] for key in hashes if key in places}
    rows = frame[list(there.values())].select(kept).rows() if kept else [()] * len(there)
    values = ("".join(_hash(value)[:DIGITS] for value in row) for row in rows)
    return dict(zip(there, values, strict=True))


def _shares(column: Column, frame: pl.DataFrame) -> dict[str, float]:
    """Return the shares of a column's values, if it has few, or of nulls."""
    values = frame[column.name]
    some = column.kind in ("int32", "int64") and column.maximum is not None
    if column.kind in ("label", "bool", "strings", "string") or some:
        values = values.explode() if column.kind == "strings" else values
        counts = values.cast(pl.String).fill_null("null").value_counts().sort(column.name)
        if len(counts) > min(FEW, max(2, len(frame) // 4)):
            return {}
        return {
            v: round(n / max(1, len(frame)), 4)
            for v, n in counts.iter_rows()
            if v != "null" or column.kind != "strings"
        }
    nulls = values.null_count() / max(1, len(frame))
    return {"null": round(nulls, 4)} if column.nullable else {}


def _quartiles(column: Column, frame: pl.DataFrame) -> list[float]:
    """Return the quartiles of a column: of itself, of days, or of lengths."""
    value = pl.col(column.name)
    if column.kind == "string":
        value = value.str.len_chars()
    elif column.kind in ("strings", "integers", "floats"):
        value = value.list.len()
    elif column.kind in ("label", "bool"):
        return []
    numbers = frame.select(value.to_physical().cast(pl.Float64)).to_series().drop_nulls()
    return [round(numbers.quantile(q) or 0.0, 4) for q in (0.25, 0.5, 0.75)] if len(numbers) else []


def _stays(column: Column, schema: Schema) -> bool:
    """Return whether a row has the same value in the next version: of no key, count or estimate."""
    if column.kind in ("int32", "int64"):
        return column.maximum is not None
    dealt = column.name == "split" or any(c.name == "draw" for c in schema.columns)  # by a seed
    counts = ("float64", "floats", "integers")
    return not dealt and column.name not in schema.key and column.kind not in counts


def _hash(*values: object) -> str:
    return blake2b(repr(values).encode(), digest_size=5).hexdigest()


def _compared(schema: Schema, frame: pl.DataFrame, before: Profile) -> list[tuple[object, ...]]:
    """Return column, what is compared, both values, the tolerance, and whether they are near."""
    rows, size = before["rows"], min(len(frame), before["rows"])
    found = [("", "rows", float(rows), float(len(frame)), round(ROWS * rows, 4))]
    for column, shares in before["shares"].items():
        now = _shares(schema[column], frame)
        for value, share in sorted((dict.fromkeys(now, 0.0) | shares).items()):
            most = SHARE + _twice_the_error(share, size)
            found.append((column, f"share of {value[:40]}", share, now.get(value, 0.0), most))
    for column, (first, middle, third) in before["quartiles"].items():
        middles = _quartiles(schema[column], frame)
        least = 0.0 if schema[column].kind == "float64" else 1.0
        most = max(SPREAD, 3 / math.sqrt(max(size, 1))) * (third - first) + abs(middle) / 20
        median = middles[1] if middles else math.inf
        found.append((column, "median", middle, median, max(most, least)))
    now_drawn = _values(schema, frame, before["drawn"])
    pairs = [(before["drawn"][key], own) for key, own in now_drawn.items()]
    if before["drawn"]:
        gone = 1 - len(pairs) / len(before["drawn"])
        found.append((", ".join(schema.key), "drawn keys gone", 0.0, round(gone, 4), GONE))
    for place, column in enumerate(before["kept"]):
        at = slice(DIGITS * place, DIGITS * (place + 1))
        other = sum(old[at] != new[at] for old, new in pairs) / max(1, len(pairs))
        most = CHANGED + _twice_the_error(CHANGED, len(pairs))
        found.append((column, "drawn rows changed", 0.0, round(other, 4), most))
    return [(*row[:4], round(row[4], 4), abs(row[2] - row[3]) <= row[4]) for row in found]


def _twice_the_error(share: float, rows: int) -> float:
    """Return two standard errors of the difference of two shares of so many rows."""
    rows = max(rows, 1)
    return 2 * math.sqrt(2 * max(share * (1 - share), 1 / (4 * rows)) / rows)
