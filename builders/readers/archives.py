"""Readers for the records of large files: parquet, CSV, JSON lines, or an archive of JSON files."""

from __future__ import annotations

import csv
import io
import lzma
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from typing import IO, Any, Literal

from plumbline.builders.core.snapshot import READ, within
from plumbline.builders.readers.table import json_object, web_page
from plumbline.builders.readers.table import records as table_records

Format = Literal["parquet", "csv", "jsonl", "jsons"]
BATCH = 256  # rows in memory at a time
DAMAGED = (RuntimeError, zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, OSError)


def records(path: Path, kind: Format, columns: Mapping[str, str]) -> Iterator[dict[str, str]]:
    """Yield the records of a file, with selected and renamed columns.

    ``columns``: names of the columns in the file, by their new names.

    Yields
    ------
    dict
        Values as strings; null becomes an empty string, and dates are in ISO 8601.
    """
    with path.open("rb") as file:
        if wrong := web_page(file.read(256)):
            raise ValueError(wrong)
        if kind in ("csv", "jsonl"):
            size = file.seek(0, io.SEEK_END)
            file.seek(max(size - 1, 0))
            if file.read() not in (b"\n", b"\r"):
                raise ValueError("truncated: no line break at the end")
    for record in READERS[kind](path, list(columns.values())):
        yield {name: _text(record[column]) for name, column in columns.items()}


def _text(value: Any) -> str:
    if value is None:
        return ""
    return value.isoformat() if isinstance(value, date) else str(value)


def parquet_rows(file: Path | IO[bytes], columns: list[str]) -> Iterator[dict[str, Any]]:
    """Yield some columns of a parquet file, row by row."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(file) as parquet:
            _have(columns, parquet.schema_arrow.names, "")
            for batch in parquet.iter_batches(BATCH, columns=list(dict.fromkeys(columns))):
                yield from batch.to_pylist()
    except (pa.ArrowException, OSError) as error:
        raise ValueError("not a complete parquet file") from error


def _csv(path: Path, columns: list[str]) -> Iterator[dict[str, Any]]:
    csv.field_size_limit(READ)  # articles exceed the default limit for a cell
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            for _, record in table_records(file, dict(zip(columns, columns, strict=True))):
                yield record
    except UnicodeDecodeError as error:
        raise ValueError("not UTF-8") from error


def _jsonl(path: Path, columns: list[str]) -> Iterator[dict[str, Any]]:
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            if line.strip():
                yield _object(line, f"line {number}", columns)


def _jsons(path: Path, columns: list[str]) -> Iterator[dict[str, Any]]:
    """Read one record from each ``.json`` file in an archive, sorted by file name."""
    with _opened(path) as archive:
        names = sorted(n for n in archive.namelist() if n.endswith(".json"))
        if not names:
            raise ValueError("no .json file in the archive")
        for name in names:
            yield _object(_member(archive, name), name, columns)


READERS = {"parquet": parquet_rows, "csv": _csv, "jsonl": _jsonl, "jsons": _jsons}


def unpacked(body: bytes, name: str, *, ending: bool = False) -> bytes:
    """Return the file in a zip archive whose name is ``name``, or ends with it if ``ending``.

    Raises ValueError if the archive is damaged or encrypted, or the file is missing or ambiguous.
    """
    with _opened(io.BytesIO(body)) as archive:
        members = (n for n in archive.namelist() if "__MACOSX" not in n)
        names = [n for n in members if n == name or (ending and n.endswith(name))]
        if len(names) != 1:
            raise ValueError(f"the archive contains {len(names) or 'no'} files {name!r}")
        return _member(archive, names[0])


@contextmanager
def _opened(file: Path | IO[bytes]) -> Iterator[zipfile.ZipFile]:
    try:
        with zipfile.ZipFile(file) as archive:
            yield archive
    except DAMAGED as error:
        wrong = "damaged, encrypted, or compressed with a method that cannot be read"
        raise ValueError(f"not a zip archive, or {wrong}") from error


def _member(archive: zipfile.ZipFile, name: str) -> bytes:
    within(archive.getinfo(name).file_size)
    return archive.read(name)


def _object(body: bytes, where: str, columns: list[str]) -> dict[str, Any]:
    record = json_object(body, where)
    _have(columns, list(record), f"{where}: ")
    return record


def _have(columns: list[str], present: Any, where: str) -> None:
    if absent := sorted(set(columns) - set(present)):
        raise ValueError(f"{where}no column {absent[0]!r}; available: {', '.join(sorted(present))}")
