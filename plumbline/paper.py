"""Tables of a checkout as LaTeX: an estimate with its interval, and the adjusted p."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Any, NamedTuple

import polars as pl

from plumbline import latex
from plumbline.builders.core.errors import UserError
from plumbline.result import number, shown_p

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from plumbline.builders.core.schema import Schema

LONG = 40  # rows of a table that is not put on one page
ENDS = ("low", "high")
NUMBERS = ("value", *ENDS, "n", "p_bh")  # of an estimate: what a table has of it
HEADS = {"n": "$n$", "p": "$p$", "p_bh": "adjusted $p$"}
PACKAGES = "% needs the packages booktabs and longtable\n"


class Source(NamedTuple):
    """A table of an analysis, or a config of a dataset or of outputs."""

    path: str  # of its files below the folder, without a suffix
    frame: pl.LazyFrame  # labels as strings
    schema: Schema


class Selection(NamedTuple):
    """What a table in LaTeX has of the table."""

    columns: Sequence[str] = ()  # none: the key, the estimate, n and the adjusted p
    where: Mapping[str, Sequence[str]] = {}  # values as text, by column
    rows: int = 100  # at most


def texts(sources: Sequence[Source], selection: Selection) -> dict[str, str]:
    """Return tables as LaTeX, by path; none of those in which nothing is selected."""
    there = sorted({name for source in sources for name in source.frame.collect_schema()})
    for name in (*selection.columns, *selection.where):
        known(name, there, "column")
    if selection.rows < 1:
        raise UserError(f"--rows {selection.rows}: one at least")
    found = {s.path: text for s in sources if (text := _latex(s, selection))}
    if not found and selection.where:
        told = ", ".join(f"{name}={'|'.join(of)}" for name, of in selection.where.items())
        raise UserError(f"--where {told}: no table has such rows")
    return found


def _latex(source: Source, selection: Selection) -> str:
    """Return a table as LaTeX: ``value [low, high]`` and the adjusted p, words to the left.

    What all rows have in common is told below it, as is how many rows are left out, and which.
    """
    names = source.frame.collect_schema().names()
    frame = source.frame.collect()
    for name in {*selection.where} & {*names}:
        frame = frame.filter(pl.col(name).cast(pl.String).is_in(list(selection.where[name])))
    columns = [name for name in selection.columns if name in names] or _columns(source, names)
    if frame.is_empty() or (selection.columns and not {*columns} & {*selection.columns}):
        return ""
    notes, whole = [], len(frame)
    if whole > selection.rows:
        best = "p_bh" in names
        kept = frame.sort("p_bh", nulls_last=True, maintain_order=True) if best else frame
        frame = kept.head(selection.rows)
        which = "with the smallest adjusted p" if best else "the first"
        notes.append(f"{selection.rows:,} of {whole:,} rows, {which}.")
    alike = [
        name
        for name in columns
        if not selection.columns and whole > 1 and name not in NUMBERS and _alike(frame[name])
    ]
    notes += [f"{name}: {_cell(name, frame[name][0])}." for name in alike]
    shown = [name for name in columns if name not in alike]
    if {*ENDS} <= {*names} and "value" in shown:
        frame = frame.with_columns(pl.struct("value", *ENDS).alias("value"))
        shown = [name for name in shown if name not in ENDS]
    numeric = [n for n in shown if frame.schema[n].is_numeric() or frame.schema[n] == pl.Struct]
    words = [name for name in shown if name not in numeric]
    if not words:
        words, numeric = numeric[:1], numeric[1:]
    left, right = ([_head(name, frame.schema[name]) for name in of] for of in (words, numeric))
    cells = [
        [latex.text(_cell(name, row[name])) for name in words]
        + [latex.number(_cell(name, row[name])) for name in numeric]
        for row in frame.iter_rows(named=True)
    ]
    note = latex.text(" ".join(notes))
    return PACKAGES + latex.table(left, right, cells, note=note, long=len(cells) > LONG)


def _head(name: str, kind: pl.DataType) -> str:
    plain = name.replace("_", " ") + " [low, high]" * (kind == pl.Struct)
    return HEADS.get(name) or latex.text(plain)


def _columns(source: Source, names: Sequence[str]) -> list[str]:
    """Return the columns of an estimate, or all where a table has none."""
    if "value" not in names:
        return list(names)
    key = [*(["model"] if "model" in names else []), *source.schema.key]
    return [name for name in dict.fromkeys([*key, *NUMBERS]) if name in names]


def _alike(values: pl.Series) -> bool:
    return not values.dtype.is_nested() and values.n_unique() == 1


def _cell(name: str, value: Any) -> str:
    if isinstance(value, dict):
        return _estimate(**value)
    if isinstance(value, float):
        return shown_p(value) if name == "p" or name.startswith("p_") else number(value)
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return "–" if value is None else str(value)


def _estimate(value: float | None, low: float | None, high: float | None) -> str:
    """Return "0.75 [0.60, 0.90]"; an interval without one end goes on without end there."""
    if value is None or low is high is None:
        return number(value)
    ends = ("-∞" if low is None else number(low), "∞" if high is None else number(high))
    return f"{number(value)} [{ends[0]}, {ends[1]}]"


def known(name: str, names: Collection[str], what: str) -> str:
    """Return a name that is among others, or say which may have been meant."""
    if name in names:
        return name
    near = difflib.get_close_matches(name, names, 1)
    meant = f"did you mean {near[0]}?" if near else f"there are {', '.join(names)}"
    raise UserError(f"no {what} {name!r}; {meant}")
