"""The main numbers of each study, in the faithful reading and the corrected one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from plumbline.probes.report.figures import Mark, shared
from plumbline.probes.report.tables import parts
from plumbline.probes.report.view import Block, Group, Listing, Part, Section, aligned, listed

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from plumbline.probes.report.tables import Tables
    from plumbline.probes.report.view import Readings, Row

TITLE = "Faithful and corrected, side by side"
NAME = "readings"
MOST = 40  # lines of a figure
ENDS = ("value", "low", "high")
SUFFIXES = {"faithful": "", "corrected": "_corrected"}  # of the columns of a reading
MARKS = {"faithful": Mark("square", "#fff", "#777"), "corrected": Mark()}
NUMBERS = (
    "value=faithful; low..high; value_corrected=corrected; low_corrected..high_corrected; "
    "difference"
)
SIDES = Listing("what", NUMBERS, digits=3)
MODELS = Listing("model; what=largest difference", f"{NUMBERS}; lines=of", digits=3)


def lines(tables: Tables, of: Readings) -> pl.DataFrame:
    """Return what differs in its reading alone, a line each, in the order of the table.

    Columns: the model, what was measured, its value, low and high, and with the suffix
    ``_corrected`` those of the corrected reading; ``zero``, which they are held against.
    """
    table, names = tables.read(of.source), of.what.split()
    if table.is_empty():
        return table
    if "zero" not in table.columns:
        table = table.with_columns(zero=pl.lit(0.0))
    by = [pl.col("model", *names).cast(pl.String).fill_null("–")]
    first, second = (table.filter(reading=name).select(*by, "zero", *ENDS) for name in of.pair)
    on = ["model", *names]
    first, second = (t.unique(on, keep="last", maintain_order=True) for t in (first, second))
    suffix, second = SUFFIXES["corrected"], second.drop("zero")
    both = first.join(second, on=on, suffix=suffix, nulls_equal=True, maintain_order="left")
    return both.with_columns(difference=pl.col(f"value{suffix}") - pl.col("value"))


def sides(line: Row) -> Iterator[Row]:
    """Yield value, low and high of a line in each of its readings."""
    for reading, suffix in SUFFIXES.items():
        yield {"reading": reading} | {end: line[f"{end}{suffix}"] for end in ENDS}


def section(tables: Tables, of: Readings, shown: Mapping[str, str]) -> Section:
    """Return a row for each model: where its readings differ most.

    ``shown``: names of models as they stand on the page.
    """
    rows = []
    for (model,), own in parts(lines(tables, of), "model") if len(lines(tables, of)) else ():
        most = own.sort(pl.col("difference").abs(), descending=True, nulls_last=True).row(
            0, named=True
        )
        what = ", ".join(str(most[name]) for name in of.what.split())
        rows.append(most | {"model": shown.get(model, model), "what": what, "lines": len(own)})
    made = [Part(tables=(listed(MODELS, rows, of.unit),))] if rows else []
    groups = [Group("", [Block("", made)])] if made else []
    return Section(NAME, TITLE, of.about, groups, of.stage)


def models(tables: Tables, of: Readings) -> dict[str, Group]:
    """Return figure and table of each model's main numbers, all figures of a unit on one axis."""
    found = lines(tables, of)
    groups = [
        Group(TITLE, [Block("", list(_parts(own, of, model)))], NAME, model)
        for (model,), own in (parts(found, "model") if len(found) else ())
    ]
    return {group.model: group for group in aligned(groups)}


def _parts(own: pl.DataFrame, of: Readings, model: str) -> Iterator[Part]:
    """Yield figures and table of a model's lines, what all have in common in the title."""
    names = of.what.split()
    alike = [name for name in names if len(own) > 1 and own[name].n_unique() == 1]
    common = [str(own[name][0]) for name in alike]
    what = pl.concat_str([name for name in names if name not in alike], separator=", ")
    own = own.with_columns(what=what)
    for (zero,), lined in parts(own, "zero"):
        if len(lined) <= MOST:
            rows = [{"what": row["what"]} | s for row in lined.to_dicts() for s in sides(row)]
            yield Part(
                figure=shared(
                    rows,
                    line="what",
                    unit=f"{of.unit}, with interval; grey line: {zero:g}",
                    title=", ".join([model, *common]),
                    series="reading",
                    marks=MARKS,
                    zero={"": zero},
                )
            )
    caption = f"{of.unit}: {', '.join(common)}" if common else of.unit
    yield Part(tables=(listed(SIDES, own.to_dicts(), caption),))
