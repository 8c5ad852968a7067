"""Expectations derived from a schema and params, and the frames to which they are applied.

A check across rows or configs is a frame with a boolean column for each rule, so that all checks
report shares and offending rows in the same way.
"""

from __future__ import annotations

import importlib
import math
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any, NamedTuple, cast

import polars as pl
import pyarrow.parquet as pq
from pydantic import Field

from plumbline.builders.core import front_matter
from plumbline.builders.core import parquet as store
from plumbline.builders.core.params import Params as Section
from plumbline.builders.core.private import REMOVED
from plumbline.builders.core.schema import Schema


class Params(Section):
    """Minimum and maximum values for a dataset."""

    rows_min: dict[str, int] = Field(description="minimum number of rows, by config")
    counts_min: dict[str, dict[str, dict[str, int]]] = Field(
        default_factory=dict,
        description="minimum number of rows, by config (`*` for each), column and value; a list "
        "is counted once for each of its values. Names of several columns, and their "
        "values, are separated by spaces",
    )
    rejects_max_share: dict[str, Annotated[float, Field(ge=0, le=1)]] = Field(
        default_factory=dict,
        description="maximum share of input rows that are rejected, by the first words of the "
        "reason; it is 0 for other reasons",
    )
    damaged_max_share: float = Field(
        0.0,
        ge=0,
        le=1,
        description="maximum share of a column's strings that violate one rule, such as markup, "
        "mojibake, invisible or control characters, or no letter",
    )
    dated_from: date = Field(
        date(1900, 1, 1), description="earliest date; the latest is the date of retrieval"
    )
    near_max_share: float = Field(
        0.0, ge=0, le=1, description="maximum share of texts with a near-duplicate in another split"
    )
    odd_max_share: float = Field(
        0.0,
        ge=0,
        le=1,
        description="maximum share of rows that violate a rule between columns or rows",
    )


class Check(NamedTuple):
    """An expectation: the name of its Great Expectations class, and its arguments."""

    expectation: str
    arguments: dict[str, Any]
    warning: bool = False


@dataclass
class Table:
    """A frame to be checked: one config of the dataset, or rows derived from several."""

    name: str
    frame: pl.DataFrame | Path
    key: list[str]
    checks: list[Check] = field(default_factory=list)


Row = tuple[object, ...]


def checked(
    name: str,
    frame: pl.DataFrame,
    key: int = 1,
    shares: Mapping[str, float] | None = None,
    warn: Collection[str] = (),
) -> Table:
    """Return a table whose first ``key`` columns identify a row; the other columns must be true.

    ``shares``: minimum share of rows in which a column must be true, by column; the default is 1.
    ``warn``: columns for which a failure is only a warning.
    """
    rules = frame.columns[key:]
    frame = frame.with_columns(pl.col(rules).fill_null(value=False)) if rules else frame
    table = Table(name, frame, frame.columns[:key])
    for c in rules:
        arguments = {"column": c, "value_set": [True], "mostly": (shares or {}).get(c, 1.0)}
        table.checks.append(Check("ExpectColumnValuesToBeInSet", arguments, warning=c in warn))
    return table


def listed(name: str, columns: str, rows: Sequence[Row], key: int) -> Table:
    """Return rows as a table (see :func:`checked`); ``columns``: names separated by spaces."""
    frame = pl.DataFrame(rows, columns.split(), orient="row", infer_schema_length=None)
    return checked(name, frame, key)


FILLED: dict[str, Any] = {"string": "", "float64": math.nan, "bool": False, "label": -1}
FILLED |= {"int32": -1, "int64": -1}


def frames(folder: Path) -> Iterator[tuple[str, pl.DataFrame]]:
    """Yield the rows of each config, with the columns of the dataset's schema.

    A column that is missing or cannot be cast is null; nulls in columns that must not have any are
    replaced with a neutral value. The schema's checks report both, and the other checks still run.
    """
    for config, frame in front_matter.frames(folder):
        schema = schema_of(folder.name).config(config)
        kinds = pl.DataFrame(schema.arrow().empty_table()).schema
        columns = {name: _cast(frame, name, kind) for name, kind in kinds.items()}
        for c in schema.columns:
            if not c.nullable and c.kind != "date32":
                columns[c.name] = columns[c.name].fill_null(FILLED.get(c.kind, []))
        yield config, pl.DataFrame(list(columns.values()))


def _cast(frame: pl.DataFrame, name: str, kind: pl.DataType) -> pl.Series:
    try:
        return frame[name].cast(kind, strict=False)
    except pl.exceptions.PolarsError:
        return pl.Series(name, [None] * len(frame), kind)


def schema_of(name: str) -> Schema:
    """Return the schema of a dataset."""
    builder = importlib.import_module(f"plumbline.builders.datasets.{name}.build")
    return cast("Schema", builder.SCHEMA)


def same(column: str, by: str) -> pl.Expr:
    """Return True for rows in groups, defined by ``by``, that have a single value in ``column``."""
    return pl.col(column).n_unique().over(by) == 1


def once(column: str) -> pl.Expr:
    """Return True for rows whose list contains no value twice."""
    return pl.col(column).list.n_unique() == pl.col(column).list.len()


def retrieved(folder: Path) -> date:
    """Return the latest date of retrieval of a dataset's sources, or today if none is stated."""
    facts = folder / front_matter.FACTS
    sources = front_matter.read(facts).origin.sources if facts.is_file() else []
    days = [source["retrieved"] for source in sources]
    dates = [date.fromisoformat(day) for day in days if re.fullmatch(r"\d{4}-\d\d-\d\d", day)]
    return max(dates, default=datetime.now(UTC).date())


def own_tables(module: ModuleType, params: Params, folder: Path) -> list[Table]:
    """Return the checks that a dataset's module defines, by config and across configs."""
    checks: list[Table] = []
    for config, frame in frames(folder):
        checks += module.tables(params, config, frame)
    return [*checks, *(module.across(params, folder) if hasattr(module, "across") else ())]


def tables(schema: Schema, params: Params, folder: Path) -> list[Table]:
    """Return the checks that follow from the schema and the params, for all configs."""
    by_config: list[Table] = []
    types, finite, counts = list[Row](), list[Row](), list[Row]()
    configs = store.configs(folder)
    for config in configs:
        path = folder / f"{config}.parquet"
        limits = {"min_value": params.rows_min.get(config, 1), "max_value": None}
        rows = Check("ExpectTableRowCountToBeBetween", limits)
        layout = schema.config(config)
        by_config.append(Table(config, path, list(layout.key), [*_columns(layout), rows]))
        have = {field.name: str(field.type) for field in pq.read_schema(path)}
        expected = {field.name: str(field.type) for field in layout.arrow()}
        declared = ((name, kind, have.get(name, "missing")) for name, kind in expected.items())
        types += [(config, *row, row[1] == row[2]) for row in declared]
        for name in (n for n, kind in expected.items() if "double" in kind and have.get(n) == kind):
            values = pl.read_parquet(path, columns=[name])[name]
            values = values.explode() if values.dtype == pl.List else values
            infinite = int((~values.is_finite()).sum())
            finite.append((config, name, infinite, infinite == 0))
    for config, frame in frames(folder) if params.counts_min else ():
        scopes = (config, store.EVERY) if schema.config(config) is schema else (config,)
        for names, least in (f for s in scopes for f in params.counts_min.get(s, {}).items()):
            numbers = _count(schema.config(config), frame, names.split())
            for value, floor in least.items():
                number = numbers.get(value, 0)
                counts.append((config, names, value, number, floor, number >= floor))
    built = [(config, config in configs) for config in sorted({*configs, *params.rows_min})]
    derived = (
        ("types", "config column declared found as_declared", types, 4),
        ("numbers", "config column not_finite finite", finite, 3),
        ("counts", "config column value rows floor over_floor", counts, 5),
        ("configs", "config built", built, 1),
    )
    filled = (listed(*table) for table in derived if table[2])
    return [*by_config, *filled, _rejects(params, folder)]


def _count(schema: Schema, frame: pl.DataFrame, names: list[str]) -> dict[str, int]:
    """Count rows by the values of some columns, joined with spaces."""
    lists = [name for name in names if isinstance(frame.schema[name], pl.List)]
    rows = frame.explode(lists) if lists else frame
    texts = [
        pl.col(name).replace_strict(dict(enumerate(schema[name].labels)), default="")
        if schema[name].kind == "label"
        else pl.col(name).cast(pl.String)
        for name in names
    ]
    values = rows.select(pl.concat_str(texts, separator=" ", ignore_nulls=True)).to_series()
    return dict(values.value_counts().iter_rows())


def _columns(schema: Schema) -> list[Check]:
    names, key = [c.name for c in schema.columns], list(schema.key)
    checks = [Check("ExpectTableColumnsToMatchOrderedList", {"column_list": names})]
    for c in schema.columns:
        on: dict[str, Any] = {"column": c.name}
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
    if len(key) == 1:
        return [*checks, Check("ExpectColumnValuesToBeUnique", {"column": key[0]})]
    return [*checks, Check("ExpectCompoundColumnsToBeUnique", {"column_list": key})]


def _rejects(params: Params, folder: Path) -> Table:
    """Compare the share of rejected input rows with its maximum, by config and reason."""
    rejects = (
        pl.scan_parquet(folder / store.REJECTS)
        .filter(pl.col("reason") != REMOVED)  # removal requests are not limited
        .group_by("config", "reason")
        .agg(pl.col("number").sum())
        .sort("config", "reason")
        .collect()
    )
    by_config = dict(rejects.group_by("config").agg(pl.col("number").sum()).iter_rows())
    inputs = {
        config: pq.read_metadata(folder / f"{config}.parquet").num_rows + by_config.get(config, 0)
        for config in store.configs(folder)
    }
    inputs[store.EVERY] = max(inputs.values()) + by_config.get(store.EVERY, 0)
    out = []
    for config, reason, count in rejects.iter_rows():
        ceilings = params.rejects_max_share.items()
        ceiling = next((v for start, v in ceilings if reason.startswith(start)), 0.0)
        share = count / inputs.get(config, count)
        out.append((config, reason, count, round(share, 6), ceiling, share <= ceiling))
    return listed("rejects", "config reason count share ceiling under_ceiling", out, 5)
