"""The tables of a run, with the labels that their folders state.

So the report imports no analysis: neither its module nor what that needs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

import polars as pl

from plumbline.builders.core import front_matter
from plumbline.probes import EACH, POOLED
from plumbline.probes.core import assignments

if TYPE_CHECKING:
    from pathlib import Path

Frame = TypeVar("Frame", pl.DataFrame, pl.LazyFrame)


class Tables:
    """The tables of a run, read once, with labels in place of their codes."""

    def __init__(self, data: Path) -> None:
        self.data = data
        self._read: dict[Source, pl.DataFrame] = {}
        self.models = cache(assignments.assigned_models)  # of a probe or analysis, sorted
        self._labels = cache(labels)

    def folders(self, analysis: str) -> list[Path]:
        """Return where tables of an analysis are: of models still assigned to it, and of groups."""
        folder = self.data / "tables" / analysis
        if analysis not in EACH:
            return [folder]
        return [folder / name for name in (*self.models(analysis), POOLED)]

    def read(self, source: Source) -> pl.DataFrame:
        """Return ``ANALYSIS/TABLE``, ``outputs/PROBE/CONFIG``, or what a function makes of such.

        Labels sort in the order of their codes. Without files the table has no columns.
        """
        if source not in self._read:
            self._read[source] = source(self) if callable(source) else self._found(source)
        return self._read[source]

    def _found(self, source: str) -> pl.DataFrame:
        *outputs, name, table = source.split("/")
        if outputs:
            above = self.data / "outputs" / name
            folders, files = [above / model for model in self.models(name)], f"{table}/*.parquet"
        else:
            folders, files = self.folders(name), f"{table}.parquet"
        frames = []
        for folder in folders:
            if any(folder.glob(files)):
                codes = self._labels(folder / front_matter.FACTS).get(table, {})
                frame = labelled(pl.read_parquet(folder / files), codes)
                of_one = outputs or (name in EACH and folder.name != POOLED)
                if of_one and "model" not in frame.columns:
                    frame = frame.with_columns(model=pl.lit(folder.name))
                frames.append(frame)
        return pl.concat(frames, how="vertical") if frames else pl.DataFrame()


Source = str | Callable[[Tables], pl.DataFrame]


def labels(facts: Path) -> dict[str, dict[str, tuple[str, ...]]]:
    """Return the labels that a ``build.json`` gives, by config and column."""
    schemas = front_matter.read(facts).schemas if facts.is_file() else {}
    return {
        config: {column.name: column.labels for column in schema.columns if column.labels}
        for config, schema in schemas.items()
    }


def labelled(frame: Frame, codes: Mapping[str, tuple[str, ...]]) -> Frame:
    """Return a frame with labels in place of their codes; they sort in the order of the codes.

    Columns that have labels already stay as they are.
    """
    kinds = frame.collect_schema()
    return frame.with_columns(
        pl.col(column).cast(pl.Enum(of))
        if frame.collect_schema()[column] == pl.String
        else pl.col(column).replace_strict(range(len(of)), of, return_dtype=pl.Enum(of))
        for column, of in codes.items()
        if column in kinds and kinds[column].is_integer()
    )


def kept(frame: pl.DataFrame, where: Mapping[str, Any]) -> pl.DataFrame:
    """Return the rows with some values: one, one of several, or with ``*`` any but none."""
    for name, value in where.items() if len(frame) else ():
        column, several = pl.col(name), isinstance(value, list | tuple)
        among = column.is_in(value) if several else column == value
        frame = frame.filter(column.is_not_null() if value == "*" else among)
    return frame


def parts(table: pl.DataFrame, *keys: str) -> Iterator[tuple[tuple[Any, ...], pl.DataFrame]]:
    """Yield values of some columns and the rows that have them, in order of the values."""
    if keys:
        yield from table.sort(*keys, maintain_order=True).group_by(*keys, maintain_order=True)
    else:
        yield (), table
