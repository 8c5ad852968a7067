"""Tables of counts for the cards of datasets, as Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from plumbline.builders.core.parquet import REJECTS
from plumbline.builders.core.schema import Column, Schema

if TYPE_CHECKING:
    import polars as pl


def frames(folder: Path) -> Iterator[tuple[str, pl.DataFrame]]:
    """Yield the rows of each config, by name."""
    import polars as pl

    for path in sorted(folder.glob("*.parquet")):
        if path.name != REJECTS:
            yield path.stem, pl.read_parquet(path)


def counted(folder: Path, by: Sequence[str], *aggregates: pl.Expr) -> Iterator[tuple[Any, ...]]:
    """Yield config, group and aggregates for each group of the rows of a config, sorted."""
    for config, frame in frames(folder):
        groups = frame.group_by(*by).agg(*aggregates).sort(*by)
        yield from ((config, *row) for row in groups.iter_rows())


def count_rows(folder: Path, schema: Schema, *groupings: str) -> str:
    """Return the rows of each config by the columns of each grouping, as Markdown.

    Where the schema has ``redistributable``, a column says whether all rows may be published.
    """
    import polars as pl

    terms = [c.name for c in schema.columns if c.name == "redistributable"]
    tables = []
    for grouping in groupings:
        by = grouping.split()
        rows = [
            (
                config,
                *(_shown(schema[c], v) for c, v in zip(by, row, strict=False)),
                *row[len(by) :],
            )
            for config, *row in counted(folder, by, pl.len(), pl.col(terms).all())
        ]
        head = ["config", *by, ":rows", *("publishable" for _ in terms)]
        tables.append(table(" | ".join(head), rows, f"Rows by {', '.join(by)}"))
    return page(*tables)


def _shown(column: Column, value: Any) -> Any:
    """Return the label of a code; "none" for an empty text or no value."""
    if value is None or value == "":
        return "none"
    return column.labels[value] if column.labels else value


def table(head: str, rows: Iterable[Sequence[Any]], title: str = "", text: str = "") -> list[str]:
    """Return a table, with its title and a paragraph before it, as lines.

    ``head``: columns, with ``|`` between them; a colon before the name of those of numbers.
    ``rows``: cells; whole numbers are written with commas, truth as yes and no.
    """
    columns = [name.strip() for name in head.split("|")]
    lines = [f"### {title}", ""] if title else []
    lines += [text, ""] if text else []
    lines.append(f"| {' | '.join(name.removeprefix(':') for name in columns)} |")
    lines.append(f"|{'|'.join('---:' if name[0] == ':' else '---' for name in columns)}|")
    return lines + [f"| {' | '.join(map(_cell, row))} |" for row in rows]


def _cell(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, int) else str(value)


def page(*tables: Sequence[str]) -> str:
    """Return tables with empty lines between them."""
    return "\n\n".join("\n".join(lines) for lines in tables) + "\n"
