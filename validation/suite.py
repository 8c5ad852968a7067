"""From a schema and params to expectations, and the frames that they are held against.

A check across rows or configs is a frame with a column that says for each row whether it holds;
so that shares and offending rows come out the same way for every kind of check.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any

import polars as pl
import pyarrow.parquet as pq
from pydantic import Field

from plumbline.builders.core import parquet as store
from plumbline.builders.core.params import Params as Section

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from pathlib import Path

    from plumbline.builders.core.schema import Schema


class Params(Section):
    """Floors and ceilings of one dataset."""

    rows_min: dict[str, int] = Field(description="fewest rows, for each config")
    rows_max: int | None = Field(None, description="most rows in a config")
    rejects_max_share: dict[str, Annotated[float, Field(ge=0, le=1)]] = Field(
        default_factory=dict,
        description="largest share of the input that may be rejected, by beginning of the reason",
    )
    other_rejects_max_share: float = Field(0.0, ge=0, le=1, description="for all other reasons")


@dataclass(frozen=True)
class Check:
    """One expectation: its Great Expectations class by name, and what it is given."""

    expectation: str
    arguments: dict[str, Any]
    warning: bool = False


@dataclass
class Table:
    """A frame to be checked: one config of the dataset, or a frame derived from several."""

    name: str
    frame: pl.DataFrame | Path
    key: list[str]
    checks: list[Check] = field(default_factory=list)


def holds(column: str, share: float = 1.0, *, warning: bool = False) -> Check:
    """Expect a boolean column to be true, in at least this share of the rows."""
    arguments = {"column": column, "value_set": [True], "mostly": share}
    return Check("ExpectColumnValuesToBeInSet", arguments, warning)


def checked(
    name: str,
    frame: pl.DataFrame,
    key: int = 1,
    shares: Mapping[str, float] | None = None,
    warn: Collection[str] = (),
) -> Table:
    """Return a table whose first columns name a row, and whose others must be true.

    Parameters
    ----------
    shares
        Smallest share of the rows in which a column is true, where that is not all of them.
    warn
        Columns that only warn.
    """
    columns, shares = frame.columns, shares or {}
    checks = [holds(c, shares.get(c, 1.0), warning=c in warn) for c in columns[key:]]
    return Table(name, frame, columns[:key], checks)


def listed(
    name: str, columns: str, rows: Sequence[Sequence[object]], key: int, warn: Collection[str] = ()
) -> Table:
    """Return :func:`checked` of rows; the names of the columns stand in one text."""
    return checked(name, pl.DataFrame(rows, columns.split(), orient="row"), key, warn=warn)


def spaced(column: str, line: bool = False) -> pl.Expr:
    """Return whether a text has single spaces, and none at its ends; ``line``: of each line."""
    text = pl.col(column)
    if line:
        text = text.str.replace_all(r"[^\S\n]+", " ").str.replace_all(r" ?\n[ \n]*", "\n")
    else:
        text = text.str.replace_all(r"\s+", " ")
    return (text.str.strip_chars() == pl.col(column)).alias("single_spaces")


def composed(column: str) -> pl.Expr:
    """Return whether a text is in NFC."""
    return (pl.col(column) == pl.col(column).str.normalize("NFC")).alias("composed")


def lettered(column: str) -> pl.Expr:
    """Return whether a text has a letter."""
    return pl.col(column).str.contains(r"\p{L}").alias("has_a_letter")


def filled(column: str) -> pl.Expr:
    """Return whether a text has a character."""
    return (pl.col(column).str.len_chars() > 0).alias("has_a_character")


def tables(schema: Schema, params: Params, folder: Path) -> list[Table]:
    """Return the checks that follow from schema and params alone, for every config."""
    key = list(schema.key)
    found = []
    for config in store.configs(folder):
        checks = [*_columns(schema), _unique(key), _rows(config, params)]
        found.append(Table(config, folder / f"{config}.parquet", key, checks))
    found.append(_types(schema, folder))
    found.append(_configs(params, folder))
    found.append(_rejects(params, folder))
    return found


def _columns(schema: Schema) -> list[Check]:
    names = [c.name for c in schema.columns]
    checks = [Check("ExpectTableColumnsToMatchOrderedList", {"column_list": names})]
    for c in schema.columns:
        on = {"column": c.name}
        if not c.nullable:
            checks.append(Check("ExpectColumnValuesToNotBeNull", on))
        if c.labels:
            codes = list(range(len(c.labels)))
            checks.append(Check("ExpectColumnValuesToBeInSet", on | {"value_set": codes}))
        if c.minimum is not None or c.maximum is not None:
            limits = {"min_value": c.minimum, "max_value": c.maximum}
            checks.append(Check("ExpectColumnValuesToBeBetween", on | limits))
        if c.pattern:
            checks.append(Check("ExpectColumnValuesToMatchRegex", on | {"regex": c.pattern}))
    return checks


def _unique(key: list[str]) -> Check:
    if len(key) == 1:
        return Check("ExpectColumnValuesToBeUnique", {"column": key[0]})
    return Check("ExpectCompoundColumnsToBeUnique", {"column_list": key})


def _rows(config: str, params: Params) -> Check:
    limits = {"min_value": params.rows_min.get(config, 1), "max_value": params.rows_max}
    return Check("ExpectTableRowCountToBeBetween", limits)


def _types(schema: Schema, folder: Path) -> Table:
    """Hold the parquet types to the declared ones."""
    rows = []
    for config in store.configs(folder):
        found = pq.read_schema(folder / f"{config}.parquet")
        for wanted in schema.arrow():
            have = str(found.field(wanted.name).type) if wanted.name in found.names else "missing"
            rows.append((config, wanted.name, str(wanted.type), have, str(wanted.type) == have))
    return listed("types", "config column declared found as_declared", rows, 4)


def _configs(params: Params, folder: Path) -> Table:
    """Hold the configs on disk to those that have a floor."""
    there = store.configs(folder)
    names = sorted({*there, *params.rows_min})
    frame = pl.DataFrame(
        {"config": names, "built": [n in there for n in names]},
        schema={"config": pl.String, "built": pl.Boolean},
    )
    return Table("configs", frame, ["config"], [holds("built")])


def _rejects(params: Params, folder: Path) -> Table:
    """Hold the share of rejected input rows to its ceilings, by config and reason."""
    rows = {c: pq.read_metadata(folder / f"{c}.parquet").num_rows for c in store.configs(folder)}
    rejects = (
        pl.scan_parquet(folder / store.REJECTS)
        .group_by("config", "reason")
        .agg(pl.col("number").sum())
        .sort("config", "reason")
        .collect()
    )
    by_config = dict(rejects.group_by("config").agg(pl.col("number").sum()).iter_rows())
    inputs = {config: n + by_config.get(config, 0) for config, n in rows.items()}
    inputs[store.EVERY] = max(inputs.values()) + by_config.get(store.EVERY, 0)
    out = []
    for config, reason, count in rejects.iter_rows():
        ceiling = next(
            (v for start, v in params.rejects_max_share.items() if reason.startswith(start)),
            params.other_rejects_max_share,
        )
        share = count / inputs.get(config, count)
        out.append((config, reason, count, round(share, 6), ceiling, share <= ceiling))
    kinds = [pl.String, pl.String, pl.Int64, pl.Float64, pl.Float64, pl.Boolean]
    columns = ["config", "reason", "count", "share", "ceiling", "under_ceiling"]
    frame = pl.DataFrame(out, dict(zip(columns, kinds, strict=True)), orient="row")
    return checked("rejects", frame, 5)
