"""The main numbers of each study, in the faithful reading and the corrected one, side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from plumbline.probes.report.figures import Mark, forest
from plumbline.probes.report.tables import parts
from plumbline.probes.report.view import Block, Group, Listing, Part, Row, Section, listed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from plumbline.probes.report.tables import Tables
    from plumbline.probes.report.view import Readings

TITLE = "Faithful and corrected, side by side"
MOST = 40  # lines of a figure
ENDS = ("value", "low", "high")
SUFFIXES = {"faithful": "", "corrected": "_corrected"}  # of the columns of a reading
MARKS = {"faithful": Mark("square", "#fff", "#777"), "corrected": Mark()}
SIDES = Listing(
    "what",
    "value=faithful; low..high; value_corrected=corrected; low_corrected..high_corrected; "
    "difference",
    digits=3,
)


def lines(tables: Tables, of: Readings) -> pl.DataFrame:
    """Return what differs in its reading alone, a line each, in the order of the table.

    Columns: the model, what was measured, its value, low and high, and with the suffix
    ``_corrected`` those of the corrected reading.
    """
    table, names = tables.read(of.source), of.what.split()
    if table.is_empty():
        return table
    by = [pl.col("model", *names).cast(pl.String).fill_null("–")]
    first, second = (table.filter(reading=name).select(*by, *ENDS) for name in of.pair)
    on = ["model", *names]
    first, second = (t.unique(on, keep="last", maintain_order=True) for t in (first, second))
    suffix = SUFFIXES["corrected"]
    return first.join(second, on=on, suffix=suffix, nulls_equal=True, maintain_order="left")


def sides(line: Row) -> Iterator[Row]:
    """Yield value, low and high of a line in each of its readings."""
    for reading, suffix in SUFFIXES.items():
        yield {"reading": reading} | {end: line[f"{end}{suffix}"] for end in ENDS}


def section(tables: Tables, of: Readings) -> Section:
    """Return figure and table of a study's main numbers, model by model."""
    found = lines(tables, of)
    every = parts(found, "model") if len(found) else ()
    groups = [Group(model, [Block("", _parts(own, of, model))]) for (model,), own in every]
    return Section("readings", TITLE, of.about, groups, of.stage)


def _parts(own: pl.DataFrame, of: Readings, model: str) -> list[Part]:
    """Return figure and table of a model's lines, what all have in common in the title."""
    names = of.what.split()
    alike = [name for name in names if len(own) > 1 and own[name].n_unique() == 1]
    shared = [str(own[name][0]) for name in alike]
    what = pl.concat_str([name for name in names if name not in alike], separator=", ")
    rows = own.with_columns(
        what=what, difference=pl.col("value_corrected") - pl.col("value")
    ).to_dicts()
    drawn = ""
    if len(rows) <= MOST:
        drawn = forest(
            [{"what": row["what"]} | side for row in rows for side in sides(row)],
            line="what",
            unit=f"{of.unit}, with interval",
            title=", ".join([model, *shared]),
            series="reading",
            marks=MARKS,
            zero={},
        )
    caption = f"{of.unit}: {', '.join(shared)}" if shared else of.unit
    return [Part(figure=drawn), Part(tables=(listed(SIDES, rows, caption),), beside=True)]
