"""Tables of counts for the cards of datasets, as Markdown."""

from __future__ import annotations

from collections.abc import Iterator
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


def count_rows(folder: Path, schema: Schema, *groupings: str) -> str:
    """Return the rows of each config by the columns of each grouping, as Markdown.

    A row with a list counts once for each of its values. Where the schema has ``redistributable``,
    a column says whether all rows may be published.
    """
    import polars as pl

    terms = [c.name for c in schema.columns if c.name == "redistributable"]
    lines: list[str] = []
    for by in map(str.split, groupings):
        head = ["config", *by, "rows", *("publishable" for _ in terms)]
        lines += [f"### Rows by {', '.join(by)}", "", f"| {' | '.join(head)} |"]
        lines.append(f"|{'|'.join('---:' if name == 'rows' else '---' for name in head)}|")
        for config, frame in frames(folder):
            if not set(by) <= set(frame.columns):  # a config with a schema of its own
                continue
            columns = [schema.config(config)[name] for name in by]
            lists = [name for name in by if isinstance(frame.schema[name], pl.List)]
            rows = frame.explode(lists) if lists else frame
            groups = rows.group_by(by).agg(pl.len(), pl.col(terms).all()).sort(by)
            for row in groups.iter_rows():
                shown = [_shown(column, value) for column, value in zip(columns, row, strict=False)]
                shown += [f"{row[len(by)]:,}", *("yes" if t else "no" for t in row[len(by) + 1 :])]
                lines.append(f"| {' | '.join([config, *shown])} |")
        lines.append("")
    return "\n".join(lines)


def _shown(column: Column, value: Any) -> str:
    """Return the label of a code, yes or no; "none" for an empty text or no value."""
    if value is None or value == "":
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return column.labels[value] if column.labels else str(value)
