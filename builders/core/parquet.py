"""Datasets as typed parquet files, which are written atomically.

The key ``plumbline`` of a file's schema metadata contains JSON, in which ``inputs`` maps the path
of each input (from the project's root) to its sha256: the :func:`fingerprint` of a folder of
parquet files, or the sha256 of the manifest of a snapshot or model. The files of the inputs contain
such metadata too, so the chain can be followed back to snapshots and models.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

from plumbline.builders.core.errors import Bar, UserError, reading
from plumbline.builders.core.schema import Column, Schema

if TYPE_CHECKING:
    import polars as pl
    import pyarrow as pa

DATASETS = Path("data/datasets")
VALIDATION = Path("data/validation")
REJECTS = "rejects.parquet"
GROUP = 50_000  # number of rows in a row group; this bounds the memory
EVERY = "*"  # denotes all configs in a :class:`Reject`
KEY = b"plumbline"
FORMAT: dict[str, Any] = {"compression": "zstd", "version": "2.6"}
REJECTED = Schema.keyed(
    (
        Column("config", "string", "config of the row; `*` for all configs"),
        Column("key", "string", "name of the row in its source"),
        Column("reason", "string", "reason why the row was excluded"),
        Column("detail", "string", "further details, or empty"),
    ),
    Column("number", "int64", "number of rows with this reason"),
)


class Row(NamedTuple):
    """One row of one config."""

    config: str
    values: dict[str, Any]


class Reject(NamedTuple):
    """An input row that is excluded from the dataset, and the reason."""

    config: str
    key: str
    reason: str
    detail: str = ""
    number: int = 1


@dataclass
class Counts:
    """Numbers of rows written, and of input rows rejected."""

    rows: Counter[str] = field(default_factory=Counter)
    rejects: Counter[tuple[str, str]] = field(default_factory=Counter)


def carrying(schema: pa.Schema, inputs: Mapping[str, str]) -> pa.Schema:
    """Return a schema whose metadata also contain the sha256 of the inputs, if there are any."""
    if not inputs:
        return schema
    text = json.dumps({"inputs": dict(inputs)}, ensure_ascii=False, sort_keys=True)
    return schema.with_metadata({**(schema.metadata or {}), KEY: text.encode()})


def inputs_of(path: Path) -> dict[str, str]:
    """Return the sha256 of each input of a parquet file, by path.

    Raises UserError if the file is not in parquet format, or does not state its inputs.
    """
    import pyarrow.parquet as pq

    with reading(path, "make or fetch the file again"):
        metadata = pq.read_schema(path).metadata or {}
    if KEY not in metadata:
        raise UserError(
            f"{path}: does not state its inputs; build it again, or name a file of a dataset, "
            "outputs or tables"
        )
    return dict(json.loads(metadata[KEY])["inputs"])


def write(
    stream: Iterable[Row | Reject],
    schema: Schema,
    folder: Path,
    inputs: Mapping[str, str] | None = None,
) -> Counts:
    """Write ``CONFIG.parquet`` for each config, and ``rejects.parquet``.

    The rows must be sorted within their config. At most one row group per config is held in memory.
    The folder has a temporary name until :func:`finish` is called, after the card has been added.

    ``inputs``: sha256 of each input, by path.

    Raises UserError if a value does not fit its column.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    working, counts = fresh(folder), Counts()
    files: dict[str, pq.ParquetWriter] = {}
    rows: dict[str, list[dict[str, Any]]] = {}

    def create(file: str, layout: Schema) -> pq.ParquetWriter:
        arrow = carrying(layout.arrow(), inputs or {})
        files[file], rows[file] = pq.ParquetWriter(working / file, arrow, **FORMAT), []
        return files[file]

    def flush(file: str, writer: pq.ParquetWriter) -> None:
        writer.write_table(pa.Table.from_pylist(rows[file], schema=writer.schema))
        rows[file].clear()

    try:
        create(REJECTS, REJECTED)
        for item in Bar(stream, desc=folder.name, unit=" rows", leave=False):
            if isinstance(item, Reject):
                counts.rejects[(item.config, item.reason)] += item.number
                file, values = REJECTS, item._asdict()
            else:
                counts.rows[item.config] += 1
                file, values = f"{item.config}.parquet", item.values
            writer = files.get(file) or create(file, schema.config(item.config))
            rows[file].append(values)
            if len(rows[file]) == GROUP:
                flush(file, writer)
        for file, writer in files.items():
            if rows[file]:
                flush(file, writer)
            writer.close()
    except (pa.ArrowException, OverflowError, UnicodeEncodeError) as error:
        raise UserError(
            f"{folder}: a value in the source does not fit its column ({error}); check the files "
            "of the snapshot, and fetch a valid one"
        ) from error
    finally:
        for writer in files.values():
            writer.is_open = False  # otherwise the destructor would write a footer after a failure
    return counts


def write_tables(tables: Iterable[pa.Table], schema: pa.Schema, sink: Path | BinaryIO) -> None:
    """Write tables that have the columns of a schema to one file, in row groups of a fixed size."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    whole = pa.concat_tables([schema.empty_table(), *(table.cast(schema) for table in tables)])
    with pq.ParquetWriter(sink, schema, **FORMAT) as file:
        if len(whole):  # an empty table would become an empty row group
            file.write_table(whole, row_group_size=GROUP)


def write_table(frame: pl.DataFrame, schema: pa.Schema, path: Path) -> None:
    """Write a frame with the schema's types instead of the large variants that Polars writes."""
    import pyarrow.parquet as pq

    table = frame.select(schema.names).to_arrow().cast(schema)
    pq.write_table(table, path, **FORMAT)


def partial(folder: Path) -> Path:
    """Return the path of the working folder, which is next to the final one."""
    return folder.with_name(f".{folder.name}.partial")


def fresh(folder: Path) -> Path:
    """Create and return an empty working folder."""
    recover(folder)
    shutil.rmtree(partial(folder), ignore_errors=True)
    partial(folder).mkdir(parents=True)
    return partial(folder)


def finish(folder: Path) -> None:
    """Rename the working folder to its final name, and only then remove the old folder.

    A symbolic link with the final name is replaced; the folder to which it points is not changed.
    """
    recover(folder)
    if folder.is_symlink():
        folder.unlink()
    if folder.exists():
        folder.replace(_aside(folder))
    partial(folder).replace(folder)
    shutil.rmtree(_aside(folder), ignore_errors=True)


def recover(folder: Path) -> None:
    """Recover from a killed process: restore the old folder, or remove it if the new one exists."""
    if _aside(folder).is_symlink():
        _aside(folder).unlink()
    if folder.exists():
        shutil.rmtree(_aside(folder), ignore_errors=True)
    elif _aside(folder).exists():
        _aside(folder).replace(folder)


def _aside(folder: Path) -> Path:
    return folder.with_name(f".{folder.name}.old")


def configs(folder: Path) -> list[str]:
    """Return the names of a dataset's configs, sorted.

    Raises UserError if the dataset has not been built.
    """
    names = sorted(p.stem for p in folder.glob("*.parquet") if p.name != REJECTS)
    if not names:
        raise UserError(
            f"{folder}: no such dataset; build it with `make repro STAGE=build@{folder.name}`"
        )
    return names


def fingerprint(folder: Path) -> str:
    """Return a single sha256 of the names and bytes of all parquet files in a folder."""
    total = hashlib.sha256()
    for path in sorted(folder.rglob("*.parquet")):
        name = path.relative_to(folder).as_posix().encode()
        with path.open("rb") as file:
            total.update(name + hashlib.file_digest(file, "sha256").digest())
    return total.hexdigest()


def stage_of(name: str) -> str:
    """Return the name of the stage that builds a dataset."""
    return name if name in ("corpora", "counterfactuals") else f"build@{name}"


def require_validated(name: str) -> Path:
    """Return the folder of a dataset after checking that its current bytes passed validation.

    Raises UserError if it has not been validated, failed validation, or has changed since.
    """
    folder, report = DATASETS / name, VALIDATION / f"{name}.json"
    configs(folder)
    if not report.is_file():
        raise UserError(f"{report}: missing, so {name} is not validated; run `make repro` first")
    with reading(report, "remove it and run `make repro`"):
        facts = json.loads(report.read_text(encoding="utf-8"))
    if not facts["success"]:
        raise UserError(f"{report}: {name} failed its validation and cannot be used")
    if facts["fingerprint"] != fingerprint(folder):
        raise UserError(f"{folder}: has changed since it was validated; run `make repro`")
    return folder
