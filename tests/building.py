"""Small datasets of a test's own: snapshots of a few files, and which checks some rows fail."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

import pytest
import whole

from plumbline.builders.core import parquet
from plumbline.builders.core.snapshot import Snapshot, write_manifest
from plumbline.validation import suite, texts

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

REAL = whole.TOP.parent / "shared/data"  # real inputs beside the checkout
FACTS = dict.fromkeys(("address", "licence", "citation"), "test") | {"counts": {}}


def builder(name: str) -> Any:
    """Return the module that builds a dataset."""
    return importlib.import_module(f"plumbline.builders.datasets.{name}.build")


def snapshot(
    folder: Path,
    source: str,
    files: Mapping[str, str | bytes],
    request: Mapping[str, Any] | None = None,
    retrieved: str = "2026-01-01",
) -> Snapshot:
    """Write a snapshot of some files."""
    for name, body in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(body.encode() if isinstance(body, str) else body)
    facts = FACTS | {"source": source, "retrieved": retrieved}
    write_manifest(folder, facts | {"request": dict(request or {"x": 1})})
    return Snapshot.open(folder)


def parted(items: Iterable) -> tuple[list[parquet.Row], list[parquet.Reject]]:
    """Return rows and rejects."""
    found = list(items)
    rejects = [item for item in found if isinstance(item, parquet.Reject)]
    return [item for item in found if not isinstance(item, parquet.Reject)], rejects


def written(folder: Path, name: str, rows: Iterable[parquet.Row]) -> Path:
    """Write rows as a dataset."""
    parquet.write(rows, builder(name).SCHEMA, folder)
    parquet.finish(folder)
    return folder


def tables(name: str, folder: Path, floors: Mapping[str, Any] | None = None) -> list:
    """Return the frames of a dataset's checks, with the floors of the sample or others."""
    own = importlib.import_module(f"plumbline.validation.datasets.{name}")
    params = own.Params(**(whole.tree()["validation"][name] if floors is None else floors))
    shared = texts.tables(builder(name).SCHEMA, params, folder)
    return [*shared, *suite.own_tables(own, params, folder)]


def failing(name: str, folder: Path, floors: Mapping[str, Any] | None = None) -> dict[str, list]:
    """Return the checks across rows that do not hold, without Great Expectations.

    Returns
    -------
    dict
        For each check, the keys of the rows that it fails in; of strings for each rule.
    """
    found: dict[str, list] = {}
    for table in tables(name, folder, floors):
        for check in table.checks:
            column = check.arguments["column"]
            held = table.frame[column]
            if (held.mean() if len(held) else 1) < check.arguments["mostly"]:
                rows = table.frame.filter(~held).select(table.key).rows()
                for row in rows:
                    found.setdefault(row[2] if column == "unbroken" else column, []).append(row)
    return found


def reads(place: str) -> Any:
    """Mark a test that reads real inputs, which is skipped where they are absent."""
    absent = pytest.mark.skipif(not (REAL / place).exists(), reason=f"no {REAL / place}")
    return lambda test: pytest.mark.shared(absent(test))
