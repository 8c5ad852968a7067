"""The tables behind a page, put beside it as they are: the same bytes, the same hashes."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, NamedTuple

import pyarrow.parquet as pq

from plumbline.probes import EACH
from plumbline.probes.report.given import asked

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

LARGEST = 96 * 1024  # bytes of a table that is put beside the page; larger ones are named alone


class Download(NamedTuple):
    """A table, and where it is."""

    table: str  # its path in the project
    link: str  # from the page; "" where it is too large for the site
    rows: int
    size: int  # bytes


def downloads(data: Path, analyses: Sequence[str]) -> list[Download]:
    """Return the tables of some analyses, of the models that are asked for."""
    found = []
    for path in _paths(data, analyses):
        inside, size = path.relative_to(data).as_posix(), path.stat().st_size
        rows = pq.read_metadata(path).num_rows
        found.append(Download(f"data/{inside}", inside if size <= LARGEST else "", rows, size))
    return found


def put(data: Path, given: Sequence[Download], into: Path) -> None:
    """Copy the tables that are small enough into the site."""
    for download in given:
        if download.link:
            target = into / download.link
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(data / download.link, target)


def _paths(data: Path, analyses: Sequence[str]) -> Iterator[Path]:
    for analysis in analyses:
        folder = data / "tables" / analysis
        folders = [folder / name for name in asked(analysis)] if analysis in EACH else [folder]
        for one in folders:
            yield from sorted(one.glob("*.parquet"))
