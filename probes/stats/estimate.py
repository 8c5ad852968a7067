"""Estimates, and tables of estimates with the same columns in all analyses.

The columns are ``value, low, high, n`` and, for tests, ``p, p_bh, detectable``. The cluster, method
and null hypothesis are constant within a table or a key, and are stated in the column descriptions,
which also appear in the dataset card.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray
from pydantic import Field
from scipy.special import nctdtrinc, ndtri, stdtrit

from plumbline.builders.core.params import Params
from plumbline.builders.core.schema import Column, Schema

Floats = NDArray[np.float64]

DECIMALS = 6
NEAR = 1e-9  # tolerance for comparing a p-value with a level
DIGITS = 6  # significant digits of p-values, so that none is rounded to 0
LEVEL, POWER = 0.05, 0.8  # significance level, and power of the minimum detectable effect
TESTED_ERROR = "tested_error"  # column with the test's standard error, if not the interval's
DF = "df"  # column with the degrees of freedom of t tests; 0 or null for z tests
LEAST = "least_p"  # column with the smallest possible p of a test
REACH = "reach"  # column with the largest possible distance from the null hypothesis
LEAST_DF = 5  # with fewer degrees of freedom, the error is too uncertain for ``detectable``


def estimates(*, cluster: str, method: str, null: str = "") -> tuple[Column, ...]:
    """Return the columns of an estimate and, given a null hypothesis, those of its test.

    Parameters
    ----------
    cluster
        The independent unit that ``n`` counts, such as "name".
    method
        Kind of interval and resampled unit, such as "95% bootstrap over names".
    null
        The null hypothesis, such as "0: no difference between genders"; "" if there is no test.
    """
    columns = (
        Column("value", "float64", "the estimate; null if not finite", nullable=True),
        Column("low", "float64", f"lower end of the interval ({method})", nullable=True),
        Column("high", "float64", "upper end of the interval", nullable=True),
        Column("n", "int64", f"number of independent clusters ({cluster})", minimum=0),
    )
    if not null:
        return columns
    p = f"two-sided p-value; null hypothesis: {null}; null if there is no test"
    return (
        *columns,
        Column("p", "float64", p, nullable=True, minimum=0, maximum=1),
        Column("p_bh", "float64", "p, Benjamini-Hochberg", nullable=True, minimum=0, maximum=1),
        Column(
            "detectable",
            "float64",
            "minimum detectable effect: distance from the null hypothesis that the test detects "
            "with power .8 at .05 / the number of tests in its family; null if not tested",
            nullable=True,
            minimum=0,
        ),
    )


class Bootstrap(Params):
    """Settings of bootstrap intervals, a base class for the ``Params`` of analyses."""

    version: str = Field(pattern=r"^\d+\.\d+\.\d+$", description="version of the tables")
    n_bootstrap: int = Field(2000, ge=20, description="bootstrap replicates")
    confidence: float = Field(0.95, gt=0.5, lt=1, description="level of the intervals")
    seed: int = Field(1, ge=0, description="seed of the resampling")


class Resampling(Bootstrap):
    """Settings of bootstrap intervals and permutation tests."""

    n_permutations: int = Field(9999, ge=19, description="permutations in tests that are not exact")


class Estimate(NamedTuple):
    """An estimate and the limits of its interval."""

    value: float
    low: float
    high: float
    n: int  # independent clusters

    def standard_error(self, confidence: float) -> float:
        """Return half the interval's width divided by the normal quantile of its confidence."""
        return (self.high - self.low) / 2 / float(ndtri((1 + confidence) / 2))

    def row(self, *, p: float | None = None, **others: Any) -> dict[str, Any]:
        """Return a table row: the other columns, then the estimate and its p-value, rounded.

        Examples
        --------
        >>> row = Estimate(0.5, float("nan"), 0.7, 9).row(word="good", p=0.01)
        >>> row["word"], row["value"], row["low"], row["p"]
        ('good', 0.5, None, 0.01)
        """
        ends = {name: finite(getattr(self, name)) for name in ("value", "low", "high")}
        tested = None if p is None or np.isnan(p) else significant(p)
        return others | ends | {"n": self.n, "p": tested}


class Table:
    """A table that is built row by row, with key values common to all rows.

    ``confidence``: confidence level of the intervals, see :func:`typed`.
    """

    def __init__(self, schema: Schema, confidence: float | None, **key: Any) -> None:
        self.schema, self.confidence, self.key = schema, confidence, key
        self.rows: list[dict[str, Any]] = []
        self.families: list[tuple[str, Sequence[str], float]] = []

    def add(self, estimate: Estimate, *, p: float | None = None, **others: Any) -> None:
        """Add a row, see :meth:`Estimate.row`."""
        self.rows.append(estimate.row(p=p, **self.key, **others))

    def adjust(self, column: str = "p", over: Sequence[str] = (), least: float = 0.0) -> None:
        """Register an adjustment of p-values that :meth:`frame` applies, see :func:`adjusted`."""
        self.families.append((column, over, least))

    def frame(self) -> pl.DataFrame:
        """Return the table with the columns of its schema."""
        if not self.rows:
            return pl.DataFrame(pl.from_arrow(self.schema.arrow().empty_table()))
        table = pl.DataFrame(self.rows, infer_schema_length=None)
        for family in self.families:
            table = adjusted(table, *family)
        return typed(table, self.schema, self.confidence)


def least_p(draws: int) -> float:
    """Return the smallest p-value of a Monte Carlo test with this number of draws."""
    return 1 / (1 + draws)


def adjusted(
    table: pl.DataFrame, column: str = "p", over: Sequence[str] = (), least: float | str = 0.0
) -> pl.DataFrame:
    """Add ``p_bh``, ``family`` (the number of tests in the family) and :data:`LEAST`.

    Benjamini and Hochberg (1995), J. R. Stat. Soc. B 57(1), procedure (1), p. 293. A p-value
    outside [0, 1] raises ValueError.

    Parameters
    ----------
    column
        Column with the p-values; rows in which it is null belong to no family. For a column ``x``
        other than ``p``, the new columns are ``x_bh`` and ``family_x``.
    over
        Columns that define the families; by default, all rows belong to one family.
    least
        The smallest possible p-value, see :func:`least_p`, or its column; 0 if there is none.

    Examples
    --------
    >>> table = pl.DataFrame({"p": [0.01, 0.04, None, 0.03], "word": ["a", "a", "a", "b"]})
    >>> adjusted(table, over=["word"])["p_bh"].to_list()
    [0.02, 0.04, None, 0.03]
    """
    from scipy.stats import false_discovery_control  # the import takes half a second

    p = table[column].cast(pl.Float64).to_numpy()
    family = np.zeros(len(p))
    if over:
        family = table.select(pl.struct(over).rank("dense")).to_series().to_numpy()
    adjusted_p, sizes = np.full(len(p), np.nan), np.zeros(len(p), dtype=np.int64)
    for label in np.unique(family):
        tested = (family == label) & ~np.isnan(p)
        sizes[family == label] = tested.sum()
        if tested.any():
            adjusted_p[tested] = [significant(x) for x in false_discovery_control(p[tested])]
    named = {f"{column}_bh": pl.Series(adjusted_p).fill_nan(None)}
    named["family" if column == "p" else f"family_{column}"] = pl.Series(sizes)
    if column == "p" and LEAST not in table.columns:
        smallest = table[least].cast(pl.Float64) if isinstance(least, str) else pl.lit(least)
        return table.with_columns(smallest.alias(LEAST), **named)
    return table.with_columns(**named)


def with_detectable(table: pl.DataFrame, confidence: float) -> pl.DataFrame:
    """Add ``detectable``, the minimum detectable effect of each row's test.

    This is the standard error times the noncentrality at which the t test has power .8, or, without
    degrees of freedom, times the sum of the normal quantiles q(1 - a / 2) + q(.8): Bloom (1995),
    Minimum detectable effects, Evaluation Review 19(5). The level a is .05 divided by the number of
    tests in the family (Bonferroni): a test that is significant at this level is also significant
    by Benjamini-Hochberg, whatever the other tests are.

    Parameters
    ----------
    table
        Must contain ``low, high, p``. Optional columns: ``family``, the number of tests in the
        row's family (default 1); :data:`TESTED_ERROR`, the standard error of the test if different
        from the interval's; :data:`DF`, degrees of freedom (with fewer than :data:`LEAST_DF`, the
        result is null); :data:`LEAST`, the smallest possible p-value (if it is above a, the result
        is null); and :data:`REACH` (if it is below the result, the result is null).
    confidence
        Confidence level of the intervals.

    Examples
    --------
    >>> row = {"value": 1.0, "low": -0.959964, "high": 2.959964, "p": 0.3}
    >>> with_detectable(pl.DataFrame([row]), 0.95)["detectable"].to_list()
    [2.801585]
    """
    freedom = np.nan_to_num(_numbers(table, DF))
    half = (_numbers(table, "high") - _numbers(table, "low")) / 2
    error = _numbers(table, TESTED_ERROR, half / _quantile((1 + confidence) / 2, freedom))
    level = LEVEL / np.maximum(1, _numbers(table, "family", 1))
    critical, of_t = _quantile(1 - level / 2, freedom), freedom > 0
    distance = critical + ndtri(POWER)
    distance[of_t] = nctdtrinc(freedom[of_t], 1 - POWER, critical[of_t])
    tested = ~np.isnan(_numbers(table, "p")) & (_numbers(table, LEAST, 0) <= level + NEAR)
    tested &= (error > 0) & np.isfinite(error) & ((freedom == 0) | (freedom >= LEAST_DF))
    tested &= distance * error <= _numbers(table, REACH, np.inf)
    column = pl.Series("detectable", np.where(tested, distance * error, np.nan)).fill_nan(None)
    return table.with_columns(column.round(DECIMALS))


def with_detectable_correlations(table: pl.DataFrame) -> pl.DataFrame:
    """Add the minimum detectable correlations, see :func:`with_detectable`.

    :data:`TESTED_ERROR` contains the standard errors of Fisher's z: Cohen (1988), Statistical Power
    Analysis for the Behavioral Sciences, section 3.2.

    Examples
    --------
    With 84 statements, r = .3 is detected with power .8: Cohen's table 3.4.1.

    >>> row = {TESTED_ERROR: 81**-0.5, "value": 0.9, "low": 0.8, "high": 0.95, "p": 0.2}
    >>> with_detectable_correlations(pl.DataFrame([row]))["detectable"].round(2).to_list()
    [0.3]
    """
    z = with_detectable(table, 1 - LEVEL)
    return z.with_columns(pl.col("detectable").tanh().round(DECIMALS))


def _numbers(table: pl.DataFrame, name: str, otherwise: Any = np.nan) -> Floats:
    """Return a column; a missing column and null values are replaced with a default."""
    if name not in table.columns:
        return np.broadcast_to(np.float64(otherwise), (len(table),))
    column = table[name].cast(pl.Float64)
    return np.where(column.is_null(), otherwise, column.to_numpy())


def _quantile(below: float | Floats, freedom: Floats) -> Any:
    """Return quantiles of t, or of z where there are no degrees of freedom."""
    of_t = stdtrit(np.maximum(freedom, 1), below)
    return np.where(freedom > 0, of_t, ndtri(below))


def finite(value: float) -> float | None:
    """Round an estimate for a table; return None if it is not finite."""
    value = float(value)
    return round(value, DECIMALS) + 0.0 if math.isfinite(value) else None


def significant(p: float) -> float:
    """Round a p-value for a table."""
    return float(f"{p:.{DIGITS}g}")


def rounded(
    table: pl.DataFrame, numbers: Sequence[str] = (), p: Sequence[str] = ("p",)
) -> pl.DataFrame:
    """Round columns of estimates and of p-values, see :func:`finite` and :func:`significant`.

    Examples
    --------
    >>> rounded(pl.DataFrame({"value": [float("nan")], "p": [0.12345678]}), ["value"]).row(0)
    (None, 0.123457)
    """

    def column(name: str) -> pl.Series:
        digits = significant if name in p else finite
        values = [None if x is None else digits(x) for x in table[name]]
        return pl.Series(name, values, dtype=pl.Float64)

    return table.with_columns(column(name) for name in (*numbers, *p))


def typed(table: pl.DataFrame, schema: Schema, confidence: float | None) -> pl.DataFrame:
    """Select, order and cast the declared columns; add ``detectable`` if it is missing.

    ``confidence``: confidence level of the intervals; may be None if there are no intervals.
    """
    empty = pl.DataFrame(pl.from_arrow(schema.arrow().empty_table()))
    if "detectable" in empty.columns and "detectable" not in table.columns:
        assert confidence is not None, "a table with intervals needs their confidence level"
        table = with_detectable(table, confidence)
    return table.select(empty.columns).cast(empty.schema)
