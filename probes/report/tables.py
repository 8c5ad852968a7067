"""Read the tables of a run, with the labels that their folders declare.

The report can thus be written without importing the modules of analyses.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, TypeVar

import polars as pl

from plumbline.builders.core import front_matter
from plumbline.probes import EACH, POOLED
from plumbline.probes.core import assignments

if TYPE_CHECKING:
    from pathlib import Path

Frame = TypeVar("Frame", pl.DataFrame, pl.LazyFrame)


class Tables:
    """The tables of a run, each read once, with labels in place of codes."""

    def __init__(self, data: Path) -> None:
        self.data = data
        self.models = cache(assignments.assigned_models)  # models of a probe or analysis, sorted
        self.read = cache(self._read)
        self._labels = cache(labels)

    def folders(self, analysis: str) -> list[Path]:
        """Return the folders of an analysis: one per assigned model, and one for pooled models."""
        folder = self.data / "tables" / analysis
        if analysis not in EACH:
            return [folder]
        return [folder / name for name in (*self.models(analysis), POOLED)]

    def _read(self, source: str) -> pl.DataFrame:
        """Return the table ``ANALYSIS/TABLE``, with labels ordered by code.

        If its files are missing, the table has no columns.
        """
        name, table = source.split("/")
        frames = []
        for folder in self.folders(name):
            if (path := folder / f"{table}.parquet").is_file():
                codes = self._labels(folder / front_matter.FACTS).get(table, {})
                frame = labelled(pl.read_parquet(path), codes)
                if name in EACH and folder.name != POOLED and "model" not in frame.columns:
                    frame = frame.with_columns(model=pl.lit(folder.name))
                frames.append(frame)
        return pl.concat(frames, how="vertical") if frames else pl.DataFrame()


def labels(facts: Path) -> dict[str, dict[str, tuple[str, ...]]]:
    """Return the labels that a ``build.json`` declares, by config and column."""
    schemas = front_matter.read(facts).schemas if facts.is_file() else {}
    return {
        config: {column.name: column.labels for column in schema.columns if column.labels}
        for config, schema in schemas.items()
    }


def labelled(frame: Frame, codes: Mapping[str, tuple[str, ...]]) -> Frame:
    """Return a data frame with labels in place of codes, ordered by code."""
    kinds = frame.collect_schema()
    return frame.with_columns(
        pl.col(name).replace_strict(range(len(texts)), texts, return_dtype=pl.Enum(texts))
        for name, texts in codes.items()
        if name in kinds and kinds[name].is_integer()
    )
