"""Datasets as typed parquet files: streamed reading and atomic writing.

The key ``plumbline`` of a file's schema metadata holds JSON: ``inputs`` maps the path of each input
(from the project's root) to its sha256. A folder of parquet files has :func:`fingerprint`, also on
its card; a snapshot has the sha256 of its manifest, which has those of its files. Each input has
such metadata too: the chain ends with snapshots and models.
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
GROUP = 50_000  # rows in a row group; bounds memory, independently of the input's batches
EVERY = "*"  # config of a reject that applies to all configs
KEY = b"plumbline"
REJECTED = Schema.keyed(
    (
        Column("config", "string", "config of the row; `*` for all configs"),
        Column("key", "string", "name of the row in its source"),
        Column("reason", "string", "reason for leaving it out"),
        Column("detail", "string", "further details, or empty"),
    ),
    Column("number", "int64", "number of rows with this reason"),
)


class Row(NamedTuple):
    """One row of one config."""

    config: str
    values: dict[str, Any]


class Reject(NamedTuple):
    """An input row that is excluded from the dataset, with its reason."""

    config: str
    key: str
    reason: str
    detail: str = ""
    number: int = 1


@dataclass
class Counts:
    """Numbers of written and rejected input rows."""

    rows: Counter[str] = field(default_factory=Counter)
    rejects: Counter[tuple[str, str]] = field(default_factory=Counter)


class Writer:
    """One parquet file, written in row groups of a fixed size, from rows or from tables."""

    def __init__(self, sink: Path | BinaryIO, schema: pa.Schema) -> None:
        import pyarrow.parquet as pq

        self._schema = schema
        self._rows: list[dict[str, Any]] = []
        self._rest = schema.empty_table()
        self.file = pq.ParquetWriter(sink, schema, compression="zstd", version="2.6")

    def add(self, values: dict[str, Any]) -> None:
        """Add a row; its keys must be the schema's columns."""
        self._rows.append(values)
        if len(self._rows) == GROUP:
            self.extend(self._schema.empty_table())

    def extend(self, table: pa.Table) -> None:
        """Add the rows of a table with the schema's columns, in the schema's order."""
        import pyarrow as pa

        rows, self._rows = pa.Table.from_pylist(self._rows, schema=self._schema), []
        self._rest = pa.concat_tables([self._rest, rows, table.cast(self._schema)])
        while len(self._rest) >= GROUP:
            self.file.write_table(self._rest.slice(0, GROUP))
            self._rest = self._rest.slice(GROUP)

    def close(self) -> None:
        """Write the remaining rows and the footer."""
        self.extend(self._schema.empty_table())
        if len(self._rest):
            self.file.write_table(self._rest)
        self.file.close()


def carrying(schema: pa.Schema, inputs: Mapping[str, str]) -> pa.Schema:
    """Add the sha256 of inputs to the metadata of a schema; without inputs, leave it unchanged."""
    if not inputs:
        return schema
    text = json.dumps({"inputs": dict(inputs)}, ensure_ascii=False, sort_keys=True)
    return schema.with_metadata({**(schema.metadata or {}), KEY: text.encode()})


def inputs_of(path: Path) -> dict[str, str]:
    """Return the sha256 of each input of a parquet file, by path.

    Raises UserError if it is not a parquet file, or states no inputs.
    """
    import pyarrow.parquet as pq

    with reading(path, "make or fetch the file again"):
        metadata = pq.read_schema(path).metadata or {}
    if KEY not in metadata:
        raise UserError(
            f"{path}: does not say what it was made of; build it again, or name a file "
            "of a dataset, outputs or tables"
        )
    return dict(json.loads(metadata[KEY])["inputs"])


def write(
    stream: Iterable[Row | Reject],
    schema: Schema,
    folder: Path,
    inputs: Mapping[str, str] | None = None,
) -> Counts:
    """Write ``CONFIG.parquet`` for each config, and ``rejects.parquet``.

    The rows must be sorted within their config. Memory holds one row group per config. The folder
    gets its final name from :func:`finish`, which must be called after the card is added.

    ``inputs``: sha256 of each input, by path.

    Raises UserError if a row does not fit the schema.
    """
    import pyarrow as pa

    working, inputs = fresh(folder), inputs or {}
    counts = Counts()
    writers: dict[str, Writer] = {}
    try:
        writers[REJECTS] = Writer(working / REJECTS, carrying(REJECTED.arrow(), inputs))
        for item in Bar(stream, desc=folder.name, unit=" rows", leave=False):
            if isinstance(item, Reject):
                counts.rejects[(item.config, item.reason)] += item.number
                writers[REJECTS].add(item._asdict())
                continue
            counts.rows[item.config] += 1
            file = f"{item.config}.parquet"
            if file not in writers:
                arrow = schema.config(item.config).arrow()
                writers[file] = Writer(working / file, carrying(arrow, inputs))
            writers[file].add(item.values)
        for writer in writers.values():
            writer.close()
    except BaseException as error:
        for writer in writers.values():
            writer.file.is_open = False  # otherwise its destructor writes a footer
        shutil.rmtree(working, ignore_errors=True)
        if not isinstance(error, pa.ArrowException | OverflowError | UnicodeEncodeError):
            raise
        raise UserError(
            f"{folder}: a value of the source does not fit its column ({error}); check the files "
            "of the snapshot, and fetch a valid one"
        ) from error
    return counts


def write_table(frame: pl.DataFrame, schema: pa.Schema, path: Path) -> None:
    """Write a frame in the declared types; Polars would write the large variants."""
    import pyarrow.parquet as pq

    table = frame.select(schema.names).to_arrow().cast(schema)
    pq.write_table(table, path, compression="zstd", version="2.6")


def partial(folder: Path) -> Path:
    """Return the working folder, next to the final one."""
    return folder.with_name(f".{folder.name}.partial")


def fresh(folder: Path) -> Path:
    """Return the working folder, empty."""
    recover(folder)
    shutil.rmtree(partial(folder), ignore_errors=True)
    partial(folder).mkdir(parents=True)
    return partial(folder)


def finish(folder: Path) -> None:
    """Rename the working folder to its final name; the old folder remains until then."""
    recover(folder)
    if folder.exists():
        folder.replace(_aside(folder))
    partial(folder).replace(folder)
    shutil.rmtree(_aside(folder), ignore_errors=True)


def recover(folder: Path) -> None:
    """Restore or remove the old folder that a killed process left behind."""
    if folder.exists():
        shutil.rmtree(_aside(folder), ignore_errors=True)
    elif _aside(folder).exists():
        _aside(folder).replace(folder)


def _aside(folder: Path) -> Path:
    return folder.with_name(f".{folder.name}.old")


def configs(folder: Path) -> list[str]:
    """Return the names of a dataset's configs.

    Raises UserError if the dataset has not been built.
    """
    names = sorted(p.stem for p in folder.glob("*.parquet") if p.name != REJECTS)
    if not names:
        raise UserError(
            f"{folder}: no such dataset; build it with `make repro STAGE=build@{folder.name}`"
        )
    return names


def fingerprint(folder: Path) -> str:
    """Return a single sha256 over the names and bytes of all parquet files in a folder."""
    total = hashlib.sha256()
    for path in sorted(folder.rglob("*.parquet")):
        name = path.relative_to(folder).as_posix().encode()
        with path.open("rb") as file:
            total.update(name + hashlib.file_digest(file, "sha256").digest())
    return total.hexdigest()


def stage_of(name: str) -> str:
    """Return the stage that builds a dataset."""
    return name if name in ("corpora", "counterfactuals") else f"build@{name}"


def require_validated(name: str) -> Path:
    """Return the folder of a dataset whose current bytes passed validation.

    Raises UserError if it was not validated, failed, or changed since.
    """
    folder, report = DATASETS / name, VALIDATION / f"{name}.json"
    configs(folder)
    if not report.is_file():
        raise UserError(f"{report}: {name} is not validated; run `make repro` first")
    with reading(report, "remove it and run `make repro`"):
        facts = json.loads(report.read_text(encoding="utf-8"))
    if not facts["success"]:
        raise UserError(f"{report}: {name} failed its validation and cannot be used")
    if facts["fingerprint"] != fingerprint(folder):
        raise UserError(f"{folder}: changed since it was validated; run `make repro`")
    return folder
