"""Make the section of an analysis from its tables and their schemas.

Every table with rows becomes a sortable table, with a forest plot of its most significant rows if
it contains estimates. A study may replace the forest plot with another figure (:class:`Drawing`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import polars as pl
import polars.selectors as cs

from plumbline.builders.core import front_matter
from plumbline.probes.report import figures
from plumbline.probes.report.view import (
    LEVEL,
    Group,
    Part,
    Section,
    Table,
    is_significant,
    listed,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from plumbline.builders.core.schema import Schema
    from plumbline.probes.report.tables import Tables
    from plumbline.probes.report.view import Row, Study

TOP = 15  # maximum number of lines in a forest plot
ROWS, LEAST_ROWS = 300, 15  # maximum number of rows shown per table, and minimum number per facet
LABELS, FACETS = 6, 24  # maximum number of values in a facet column, and of facets
OWN = 4  # number of columns shown besides the key and the estimate
ENDS = ("value", "low", "high")
NUMBERS = {"value": "value", "interval": "95% interval", "n": "n", "p": "p", "p_bh": "adjusted p"}
NUMBERS |= {"detectable": "detectable"}
SERIES = "reading"  # column with the method variant (faithful or corrected)
MARKS = (
    *(figures.Mark(), figures.Mark("square", "#fff", "#777"), figures.Mark("up", "#555", "#555")),
    *(figures.Mark("diamond", "#bbb", "#777"), figures.Mark("down", "#999", "#999")),
)


class Drawing(NamedTuple):
    """A figure that a study draws from a table, once for each combination of its facets."""

    facets: Sequence[str]
    draw: Callable[[pl.DataFrame, str, Tables], str]  # takes the rows, the title and all tables


def section(
    study: Study, analysis: str, tables: Tables, drawings: Mapping[str, Drawing] | None = None
) -> Section:
    """Return the results of an analysis of a study, with one group per table that has rows."""
    schemas: dict[str, Schema] = {}
    for folder in tables.folders(analysis):
        facts = folder / front_matter.FACTS
        schemas |= front_matter.read(facts).schemas if facts.is_file() else {}
    groups = []
    for name, schema in schemas.items():
        source = f"{analysis}/{name}"
        frame = tables.read(source)
        if len(frame):
            key = [column for column in schema.key if column in frame.columns]
            key = key if "model" in key or "model" not in frame.columns else ["model", *key]
            drawing, sides = (drawings or {}).get(source), study.directions.get(source, ())
            parts = list(_parts(frame, key, tables, drawing, sides))
            title = f"{source} ({len(frame):,} rows)"
            groups.append(Group(title, parts, source.replace("/", "-")))
    return Section(analysis, analysis, study.analyses[analysis], groups, analysis)


def _parts(
    frame: pl.DataFrame,
    key: list[str],
    tables: Tables,
    drawing: Drawing | None,
    sides: Sequence[str],
) -> Iterator[Part]:
    names = list(drawing.facets) if drawing else facets(frame, key)
    facetted = [*frame.group_by(names, maintain_order=True)] if names else [((), frame)]
    most = max(LEAST_ROWS, ROWS // len(facetted))
    for values, part in facetted:
        title = ", ".join(str(value) for value in values if value not in ("", None))
        labels = [name for name in key if name not in names and part[name].n_unique() > 1]
        caption = f"The first {most:,} of {len(part):,} rows." if len(part) > most else ""
        if drawing:
            figure = drawing.draw(part, title, tables)
        else:
            figure = forest(part, labels, title, sides)
            if figure and "p_bh" in part.columns and part["p_bh"].count():
                caption = f"Filled: adjusted p ≤ {LEVEL}. {caption}"
        table = sortable(part, labels, names, most)
        yield Part(title or "all rows", figure, caption, (table,))


def facets(frame: pl.DataFrame, key: Sequence[str]) -> list[str]:
    """Return the key columns that split a table into facets: the model and those with few values.

    The column with the most values and the method variant label the rows instead.
    """
    names = ["model"] if "model" in key and frame["model"].n_unique() > 1 else []
    counts = {name: frame[name].n_unique() for name in key if name not in ("model", SERIES)}
    counts.pop(max(counts, key=counts.__getitem__, default=""), None)
    for name, count in counts.items():
        if 1 < count <= LABELS and frame.select([*names, name]).n_unique() <= FACETS:
            names.append(name)
    return names


def _by_p(frame: pl.DataFrame) -> pl.DataFrame:
    """Sort rows by rank or p, if any, then by the size of the estimate, the largest first."""
    order = [pl.col(name) for name in ("rank", "p") if name in frame.columns]
    order += [-pl.col("value").abs()] if "value" in frame.columns else []
    return frame.sort(order, nulls_last=True, maintain_order=True) if order else frame


def forest(
    frame: pl.DataFrame, labels: Sequence[str], title: str, sides: Sequence[str] = ()
) -> str:
    """Draw the most significant estimates of a table, with method variants as series.

    ``sides``: labels for values below and above 0, if any.
    """
    if not {*ENDS} <= {*frame.columns}:
        return ""
    rows = _by_p(frame.drop_nulls("value"))
    series = SERIES if SERIES in labels and rows[SERIES].n_unique() <= len(MARKS) else ""
    names = [pl.col(name).cast(pl.String).replace("", None) for name in labels if name != series]
    label = pl.concat_str(names, separator=", ", ignore_nulls=True) if names else pl.lit(title)
    rows = rows.with_columns(
        line=label,
        series=pl.col(series).cast(pl.String) if series else pl.lit(""),
        filled=is_significant() if "p_bh" in rows.columns else pl.lit(value=True),
    )
    shown = rows["line"].unique(maintain_order=True).head(TOP)
    rows = rows.filter(pl.col("line").is_in(shown.implode()))
    if rows.is_empty():
        return ""
    return figures.forest(
        rows.select("line", "series", "filled", *ENDS).to_dicts(),
        unit=f"← {sides[0]}      {sides[1]} →" if sides else "value, 95% interval",
        title=title,
        marks=dict(zip(rows["series"].unique(maintain_order=True), MARKS, strict=False)),
        zero={"": 0.0} if sides or rows["low"].fill_null(0).min() < 0 else {},  # type: ignore[operator]
    )


def sortable(frame: pl.DataFrame, labels: Sequence[str], facets: Sequence[str], most: int) -> Table:
    """Return the most significant rows, with labels, the estimate and a few other columns."""
    excluded = {*labels, *facets, *ENDS, *NUMBERS}
    extra = [c for c in frame.columns if c not in excluded and frame[c].n_unique() > 1]
    heads = {c: c.replace("_", " ") for c in extra[: OWN if "value" in frame.columns else 8]}
    numeric = frame.select(*heads).select(cs.numeric()).columns
    words = {name: name for name in labels} | {n: h for n, h in heads.items() if n not in numeric}
    columns = {*frame.columns} | ({"interval"} if "low" in frame.columns else set())
    numbers = {name: head for name, head in NUMBERS.items() if name in columns}
    numbers |= {name: heads[name] for name in numeric}
    order = [{"low": "interval"}.get(name, name) for name in frame.columns]
    numbers = {name: numbers[name] for name in order if name in numbers}
    rows: list[Row] = _by_p(frame).head(most).with_columns(cs.enum().cast(pl.String)).to_dicts()
    if not words:
        rows, words = [row | {"row": str(i)} for i, row in enumerate(rows, 1)], {"row": "row"}
    return listed(rows, words, numbers)
