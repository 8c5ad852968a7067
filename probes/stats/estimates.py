"""Numbers in tables: the columns every estimate has, and how numbers are written.

The same columns in every table, so that a reader who knows one knows all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from plumbline.builders.core.schema import Column

if TYPE_CHECKING:
    from plumbline.builders.core.schema import Schema

DECIMALS = 6
DIGITS = 6  # of p-values: significant ones, so that none becomes 0
ESTIMATE = (
    Column("value", "float64", "the estimate; null where it is not finite", nullable=True),
    Column("low", "float64", "lower end of the interval; null: not finite", nullable=True),
    Column("high", "float64", "upper end of the interval; null: not finite", nullable=True),
    Column("n", "int64", "independent clusters behind it", minimum=0),
    Column("cluster", "string", "what a cluster is"),
    Column("method", "string", "kind of interval, and what was resampled"),
    Column("null", "string", "what it is judged against"),
    Column(
        "p",
        "float64",
        "two-sided p under that null; null where there is no test",
        nullable=True,
        minimum=0,
        maximum=1,
    ),
    Column("p_bh", "float64", "the same, Benjamini-Hochberg", nullable=True, minimum=0, maximum=1),
)


def finite(value: float) -> float | None:
    """Round an estimate for a table; None where it is not finite."""
    return round(float(value), DECIMALS) + 0.0 if np.isfinite(value) else None


def significant(p: float) -> float:
    """Round a p-value for a table."""
    return float(f"{p:.{DIGITS}g}")


def typed(table: pl.DataFrame, schema: Schema) -> pl.DataFrame:
    """Order and cast the columns as declared."""
    empty = pl.from_arrow(schema.arrow().empty_table())
    assert isinstance(empty, pl.DataFrame)
    return table.select(empty.columns).cast(empty.schema)
