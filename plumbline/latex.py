"""Format tables of estimates in LaTeX, for the packages booktabs and longtable."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

import polars as pl

from plumbline.builders.core.errors import optional_library
from plumbline.probes.report.view import MISSING, interval, number, p_value

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

LONG = 40  # maximum number of rows in a table that is not broken across pages
NUMBERS = ("value", "low", "high", "n", "p_bh")
INTERVAL = "value [low, high]"  # header of the column that contains the estimates
HEADS = {"n": "$n$", "p": "$p$", "p_bh": "adjusted $p$"}
SPECIAL: dict[str, Any] = {sign: f"\\{sign}" for sign in "&%$#_{}"}
SPECIAL |= {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
SPECIAL |= {"<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}", "\n": " "}
SPECIAL |= {'"': r"\texttt{\symbol{34}}"}  # straight in any font encoding, and not active in babel
LIGATURE = re.compile(r"-(?=-)|`(?=`)|'(?=')|,(?=,)|[?!](?=`)")  # pairs that TeX joins to one sign


class Selection(NamedTuple):
    """The columns and rows that a table shows."""

    columns: Sequence[str] = ()  # by default, the key, the estimate, n and the adjusted p
    where: Mapping[str, Sequence[str]] = {}  # values to select in each column, as text
    rows: int = 100  # maximum number of rows


def text(words: str) -> str:
    r"""Escape text for LaTeX, so that each sign is printed as it is.

    A leading `[` or `*` is not read as an argument of `\\`, and signs are not joined to others.

    Examples
    --------
    >>> print(text("R&D_1 {50%}"), text("[NA]"), text("--all"))
    R\&D\_1 \{50\%\} {[}NA] -{}-all
    """
    escaped = LIGATURE.sub(r"\g<0>{}", words.translate(str.maketrans(SPECIAL)))
    return re.sub(r"^([\[*])", r"{\1}", escaped)


def formula(cell: str) -> str:
    r"""Format a number, with or without its interval, as a formula.

    Examples
    --------
    >>> print(formula("-0.75 [-∞, 2e-05]"))
    $-0.75\ [-\infty, 2\cdot10^{-5}]$
    """
    if cell == MISSING:
        return cell
    powers = re.sub(r"e-0?(\d+)", r"\\cdot10^{-\1}", cell)
    return "$" + powers.replace("∞", r"\infty").replace(" [", r"\ [") + "$"


def table(columns: Mapping[str, Sequence[str]], layout: str, note: str = "") -> str:
    """Return a LaTeX table followed by a note.

    Parameters
    ----------
    columns
        The cells of each column by its header; both are LaTeX code.
    layout
        The alignment of each column, such as ``lrr``.
    note
        Plain text.
    """
    with optional_library():
        import pandas as pd
    frame = pd.DataFrame(columns)
    environment = "longtable" if len(frame) > LONG else None
    body = frame.style.hide(axis="index").to_latex(
        hrules=True, column_format=layout, environment=environment
    )
    note = note and f"\n{{\\footnotesize {text(note)}\\par}}\n"
    return f"% needs the packages booktabs and longtable\n{body}{note}"


def estimates(frame: pl.DataFrame, key: Sequence[str], selection: Selection) -> str:
    """Format selected rows of a table as LaTeX, with ``value [low, high]``, n and the adjusted p.

    The note states the values of constant columns and the number of omitted rows. Text columns
    precede numeric ones. The result is an empty string if no row is selected.
    """
    for name in {*selection.where} & {*frame.columns}:
        frame = frame.filter(pl.col(name).cast(pl.String).is_in(list(selection.where[name])))
    usual = ("model", *key, *NUMBERS) if "value" in frame.columns else frame.columns
    columns = [n for n in dict.fromkeys(selection.columns or usual) if n in frame.columns]
    if frame.is_empty() or not columns:
        return ""
    notes, total = [], len(frame)
    if total > selection.rows:
        by_p = "p_bh" in frame.columns
        frame = frame.sort("p_bh", nulls_last=True, maintain_order=True) if by_p else frame
        order = "with the smallest adjusted p" if by_p else "the first"
        notes.append(f"{selection.rows:,} of {total:,} rows, {order}.")
        frame = frame.head(selection.rows)
    if not selection.columns and total > 1:
        for name in [name for name in columns if name not in NUMBERS]:
            if not frame[name].dtype.is_nested() and frame[name].n_unique() == 1:
                notes.append(f"{name}: {_cell(name, frame[name][0])}.")
                columns.remove(name)
    with_ends = {"value", "low", "high"} <= {*frame.columns} and "value" in columns
    if with_ends:
        columns = [name for name in columns if name not in ("low", "high")]
    columns.sort(key=lambda name: frame[name].dtype.is_numeric())
    cells, layout = dict[str, list[str]](), ""
    for name in columns:
        head = HEADS.get(name, text(name.replace("_", " ")))
        values = [_cell(name, value) for value in frame[name]]
        if name == "value" and with_ends:
            head, values = INTERVAL, [interval(row) for row in frame.rows(named=True)]
        numeric = frame[name].dtype.is_numeric()
        layout += "r" if numeric else "l"
        cells[head] = list(map(formula if numeric else text, values))
    return table(cells, layout, " ".join(notes))


def _cell(name: str, value: Any) -> str:
    if isinstance(value, float):
        return p_value(value) if name == "p" or name.startswith("p_") else number(value)
    if isinstance(value, pl.Series):
        return ", ".join(map(str, value))
    return MISSING if value is None else str(value)
