"""A folder of parquet files read back: its configs with their keys, and labels in place of codes.

``build.json`` states both; without it each parquet file is a config without a key.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from plumbline.builders.core import front_matter
from plumbline.builders.core.errors import UserError
from plumbline.builders.core.parquet import REJECTS


@dataclass(frozen=True)
class Config:
    """The files of one config, and what its schema states."""

    paths: list[Path]
    key: tuple[str, ...] = ()
    names: tuple[str, ...] = ()  # columns that are shown next to the key
    labels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # by column of codes

    def types(self) -> dict[str, str]:
        """Return the type of every column, in the order of the file."""
        try:
            schema = pl.read_parquet_schema(self.paths[0])
        except (OSError, pl.exceptions.PolarsError) as error:
            raise _unreadable(self.paths[0], error) from error
        return {
            name: f"label: {', '.join(self.labels[name])}"
            if name in self.labels and kind.is_integer()
            else str(kind).lower()
            for name, kind in schema.items()
        }

    def rows(self) -> int:
        """Return the number of rows, from the files' footers."""
        try:
            return sum(pq.read_metadata(path).num_rows for path in self.paths)
        except (OSError, pa.ArrowException) as error:
            raise _unreadable(self.paths[0], error) from error

    def read(self, columns: Iterable[str]) -> pl.DataFrame:
        """Return columns of all rows, with labels in place of their codes."""
        selected, types = list(columns), self.types()
        coded = [c for c in selected if types[c].startswith("label: ")]
        named = [
            pl.col(column).replace_strict(
                range(len(self.labels[column])),
                self.labels[column],
                default=pl.col(column).cast(pl.String),
                return_dtype=pl.String,
            )
            for column in coded
        ]
        try:
            parts = [pl.scan_parquet(path, glob=False).select(selected) for path in self.paths]
            return pl.concat(parts).with_columns(named).collect()
        except (OSError, pl.exceptions.PolarsError) as error:
            raise _unreadable(self.paths[0], error) from error


def _unreadable(path: Path, error: Exception) -> UserError:
    reason = " ".join(str(error).split())[:150]
    return UserError(f"{path}: cannot be read as parquet ({reason}); make or fetch it again")


def read_configs(files: Mapping[str, Path]) -> tuple[dict[str, Config], str | None]:
    """Return the configs of a folder by name, and the version that it states.

    ``files``: where the files of the folder are, by their paths inside it.
    """
    data = {inside: path for inside, path in files.items() if inside.endswith(".parquet")}
    data.pop(REJECTS, None)
    configs: dict[str, Config] = {}
    if front_matter.FACTS not in files:
        for inside, path in sorted(data.items()):
            name = inside.split("/")[0].removesuffix(".parquet")
            configs.setdefault(name, Config([])).paths.append(path)
        return configs, None
    built = front_matter.read(files[front_matter.FACTS])
    for name, schema in sorted(built.schemas.items()):
        pattern = built.files.format(config=name)
        if paths := [data[inside] for inside in sorted(data) if fnmatch(inside, pattern)]:
            labels = {c.name: c.labels for c in schema.columns if c.labels}
            configs[name] = Config(paths, schema.key, schema.role("label"), labels)
    return configs, built.origin.version
