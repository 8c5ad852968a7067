"""Estimates, and the tables made of them: everywhere the same eleven columns.

A reader who knows the columns of one table knows those of all.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl
from pydantic import Field
from scipy.special import nctdtrinc, ndtri, stdtrit

from plumbline.builders.core.params import Params
from plumbline.builders.core.schema import Column

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from plumbline.builders.core.schema import Schema

DECIMALS = 6
NEAR_HALF, MOST = 1e-6, 1e9  # of numbers times 10^6: from a half on, and most, that tells digits
NEAR = 1e-9  # a level as high as a p up to rounding is reached by it
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
    Column(
        "detectable",
        "float64",
        "distance from the null that p would find at .05 with power .8; null where there is no "
        "test, no finite interval, one without width, no distance at which p is low enough, or t "
        "with fewer than 5 degrees of freedom",
        nullable=True,
        minimum=0,
    ),
    Column(
        "detectable_bh",
        "float64",
        "the same of p_bh, at the level that one more finding of this family needs; null also "
        "where the test draws too few permutations to reach that",
        nullable=True,
        minimum=0,
    ),
)
DETECTABLE = ("detectable", "detectable_bh")
LEVEL, POWER = 0.05, 0.8  # of decisions, and with which an effect is called detectable
NEEDED = "needed_p"  # column of :func:`adjusted`
CRITICAL = "critical"  # column of tests whose least finding is known, see :func:`with_detectable`
CRITICAL_NEEDED = "critical_needed"  # the same at the level that is needed, where it is known
TESTED_ERROR = "tested_error"  # column of standard errors where intervals are not of what is tested
DF = "df"  # column of the degrees of freedom of t tests; 0 or null: z
LEAST_DF = 5  # with fewer the error is itself a guess, and what it would find as well
ADJUSTED = {"p", "test", "tested"}  # columns whose adjusted p-values become ``p_bh``


class Bootstrap(Params):
    """Bootstrap intervals of an analysis; to be inherited by its ``Params``."""

    version: str = Field(pattern=r"^\d+\.\d+\.\d+$", description="version of the tables")
    n_bootstrap: int = Field(2000, ge=20, description="bootstrap replicates")
    confidence: float = Field(0.95, gt=0.5, lt=1, description="of the intervals")
    seed: int = Field(1, ge=0, description="of the resampling")


class Resampling(Bootstrap):
    """Bootstrap intervals and permutation tests of an analysis."""

    n_permutations: int = Field(9999, ge=19, description="of permutation tests that are not exact")


class Estimate(NamedTuple):
    """A value with its interval."""

    value: float
    low: float
    high: float
    n: int  # independent clusters behind it
    method: str  # what kind of interval it is, and what was resampled

    def standard_error(self, confidence: float) -> float:
        """Return half the width of its interval over the quantile of z that this has."""
        return (self.high - self.low) / 2 / float(ndtri((1 + confidence) / 2))

    def at(self, confidence: float) -> Estimate:
        """Return it with the level of confidence in the method: "95% Wilson score"."""
        return self._replace(method=f"{confidence:.0%} {self.method}")

    def row(self, *, cluster: str, null: str, p: float | None = None, **key: Any) -> dict[str, Any]:
        """Return a row of a table: the key, then the columns of :data:`ESTIMATE`, rounded.

        ``p_bh`` is null, for :func:`adjusted` to fill in.

        Examples
        --------
        >>> found = Estimate(0.5, float("nan"), 0.7, 9, "Wilson score")
        >>> row = found.row(word="good", cluster="name", null="0: no relation", p=0.01)
        >>> row["word"], row["value"], row["low"], row["p"], row["p_bh"]
        ('good', 0.5, None, 0.01, None)
        """
        ends = {name: finite(getattr(self, name)) for name in ("value", "low", "high")}
        told = {"n": self.n, "cluster": cluster, "method": self.method, "null": null}
        tested = None if p is None or np.isnan(p) else significant(p)
        return key | ends | told | {"p": tested, "p_bh": None}


class Table:
    """Rows of a table with columns :data:`ESTIMATE`, collected one by one; all have the key.

    ``confidence``: of the intervals, see :func:`typed`.
    """

    def __init__(self, schema: Schema, confidence: float | None, **key: Any) -> None:
        self.schema, self.confidence, self.key = schema, confidence, key
        self.rows: list[dict[str, Any]] = []
        self.families: list[tuple[str, Sequence[str], float]] = []

    def add(
        self, estimate: Estimate, *, cluster: str, null: str, p: float | None = None, **key: Any
    ) -> None:
        """Add a row, see :meth:`Estimate.row`."""
        self.rows.append(estimate.row(cluster=cluster, null=null, p=p, **self.key, **key))

    def adjust(self, column: str = "p", over: Sequence[str] = (), least: float = 0.0) -> None:
        """Let :meth:`frame` adjust p-values, see :func:`adjusted`."""
        self.families.append((column, over, least))

    def frame(self) -> pl.DataFrame:
        """Return the table with the columns of its schema."""
        if not self.rows:
            return _empty(self.schema)
        table = pl.DataFrame(self.rows, infer_schema_length=None)
        for family in self.families:
            table = adjusted(table, *family)
        return typed(table, self.schema, self.confidence)


def least_p(drawn: int) -> float:
    """Return the smallest p of a test in which so many outcomes are drawn."""
    return 1 / (1 + drawn)


def adjusted(
    table: pl.DataFrame, column: str = "p", over: Sequence[str] = (), least: float | str = 0.0
) -> pl.DataFrame:
    """Add ``p_bh`` and ``family``, the number of tests in each family.

    Also :data:`NEEDED`, the p that a finding needs: of rows that are found already among those that
    are, of others as one more. p that are drawn are multiples of ``least``, and vary: it is the
    true p of which half of them are low enough, or null where none can be. That is the median of a
    beta distribution, here by Kerman (2011, arXiv:1111.0433): of k + 1 = level / least, rounded
    down, (k + 2 / 3) least.

    Parameters
    ----------
    column
        The p-values; null where there is no test, which is in no family. For another column than
        ``p`` the new ones are named after it: ``x_bh`` and ``family_x``.
    over
        Columns: rows that are equal in all of them are a family; without, all are.
    least
        The smallest p of tests of which outcomes are drawn, see :func:`least_p`; 0: exact ones.
        Or a column that has it.

    Examples
    --------
    >>> table = pl.DataFrame({"p": [0.01, 0.04, None, 0.03], "of": ["a", "a", "a", "b"]})
    >>> adjusted(table, over=["of"])["p_bh"].to_list()
    [0.02, 0.04, None, 0.03]
    """
    p = table[column].cast(pl.Float64).to_numpy()
    family = np.zeros(len(p))
    if over:
        family = table.select(pl.struct(over).rank("dense")).to_series().to_numpy()
    lowest = table[least].fill_null(0.0).to_numpy() if isinstance(least, str) else least
    lowest = np.broadcast_to(lowest, p.shape)
    found, sizes = np.full(len(p), np.nan), np.zeros(len(p), dtype=np.int64)
    needed = np.full(len(p), np.nan)
    for one in np.unique(family):
        tested = (family == one) & ~np.isnan(p)
        number = int(tested.sum())
        sizes[family == one] = number
        found[tested] = [significant(x) for x in benjamini_hochberg(p[tested])]
        there = found[tested] <= LEVEL
        level = LEVEL * np.minimum(number, there.sum() + ~there) / max(1, number)
        needed[tested] = level
    drawn = lowest > 0
    steps = np.floor(needed[drawn] / lowest[drawn] + NEAR)
    needed[drawn] = np.where(steps > 0, lowest[drawn] * (steps - 1 / 3), np.nan)
    size = "family" if column == "p" else f"family_{column}"
    return table.with_columns(
        pl.Series(f"{column}_bh", found).fill_nan(None),
        pl.Series(size, sizes),
        pl.Series(NEEDED if column in ADJUSTED else f"needed_{column}", needed).fill_nan(None),
    )


def with_detectable(
    table: pl.DataFrame, confidence: float, *, equivalence: bool = False
) -> pl.DataFrame:
    """Add what the tests of a table would find, from the intervals; see :data:`ESTIMATE`.

    Of a z test at level a, with standard error s, it is (z(1 - a / 2) + z(.8)) s: Cohen (1988),
    Statistical Power Analysis for the Behavioral Sciences, section 2.2. s is half the interval's
    width, or the finite side, over its quantile of z: with few clusters, whose t is larger, it is a
    little too large. Where the table has a column :data:`CRITICAL`, the distance from the null that
    a permutation test needs takes the place of z(.975) s; it is infinite where nothing can be
    found. At the level
    that is needed after adjustment it is that of :data:`CRITICAL_NEEDED`, or else in proportion to
    the quantiles of z, which is too far where permutations have shorter tails than a normal
    distribution. A column :data:`TESTED_ERROR` has s where the interval is not of what is tested,
    such as a share that is tested against another. With :data:`DF` quantiles are of t, and the
    noncentrality with which t is found takes the place of the sum of quantiles (Cohen 1988, section
    12.7). By fewer than :data:`LEAST_DF` nothing is told: an effect of the size that a table with 1
    to 4 told would be found in .58 to .69 of others.

    Parameters
    ----------
    confidence
        Of the intervals.
    equivalence
        p is the larger of those of two one-sided tests: what is told is half the width of the
        narrowest range around 0 in which a true difference of 0 is found to lie. Either test is
        missed with (1 - .8) / 2, and sometimes both at once: power is .8, or .803 with 5 degrees
        of freedom (.816 at .01). Phillips (1990), Power of the two one-sided tests procedure in
        bioequivalence, J. Pharmacokinet. Biopharm. 18(2).

    Examples
    --------
    >>> row = {"value": 1.0, "low": -0.959964, "high": 2.959964, "p": 0.3, "p_bh": None}
    >>> with_detectable(pl.DataFrame([row]), 0.95).select("detectable", "detectable_bh").row(0)
    (2.801585, None)
    """
    return _with(table, _detectable(table, confidence, equivalence=equivalence))


def with_detectable_correlations(table: pl.DataFrame) -> pl.DataFrame:
    """Add the correlations that the tests of a table would find; see :func:`with_detectable`.

    By the errors of their Fisher's z, the column :data:`TESTED_ERROR`, null or nan where nothing
    can be told. The interval does not tell: the larger a correlation, the narrower it is. Cohen
    (1988), Statistical Power Analysis for the Behavioral Sciences, section 3.2.

    Examples
    --------
    Of 84 statements r = .3 is found with power .8: Cohen's table 3.4.1.

    >>> row = {TESTED_ERROR: 81**-0.5, "value": 0.9, "low": 0.8, "high": 0.95, "p": 0.2}
    >>> table = with_detectable_correlations(pl.DataFrame([row]).with_columns(p_bh="p"))
    >>> table["detectable"].round(2).to_list()
    [0.3]
    """
    errors = table.with_columns(pl.col(TESTED_ERROR).cast(pl.Float64).fill_null(float("nan")))
    return _with(table, [np.tanh(z) for z in _detectable(errors, 1 - LEVEL)])


def _with(table: pl.DataFrame, detectable: Iterable[NDArray[np.float64]]) -> pl.DataFrame:
    return table.with_columns(
        pl.Series(name, told).fill_nan(None).round(DECIMALS)
        for name, told in zip(DETECTABLE, detectable, strict=True)
    )


def _detectable(
    table: pl.DataFrame, confidence: float, *, equivalence: bool = False
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the columns of :data:`DETECTABLE` as they are; nan where there is nothing to tell."""
    value, low, high = (_numbers(table, name) for name in ("value", "low", "high"))
    low, high = value - low, high - value
    half = _filled(_filled((low + high) / 2, low), high)
    error = _numbers(table, TESTED_ERROR, half / _above(table, (1 - confidence) / 2))
    sides, power = (1, (1 + POWER) / 2) if equivalence else (2, POWER)
    own, further = _quantiles(table, LEVEL / sides, power)
    needed, further_needed = _quantiles(table, _numbers(table, NEEDED) / sides, power)
    reach = _numbers(table, CRITICAL, own * error)
    reach_needed = _filled(_numbers(table, CRITICAL_NEEDED), reach * needed / own)
    reachable = np.isfinite(reach_needed) & ~np.isnan(needed)
    some = ~np.isnan(_numbers(table, "p")) & (error > 0) & np.isfinite(reach)
    freedom = np.nan_to_num(_numbers(table, DF))
    some &= (freedom == 0) | (freedom >= LEAST_DF)
    adjusted_too = some & ~np.isnan(_numbers(table, "p_bh")) & reachable
    told, told_adjusted = reach + further * error, reach_needed + further_needed * error
    return np.where(some, told, np.nan), np.where(adjusted_too, told_adjusted, np.nan)


def _numbers(
    table: pl.DataFrame, name: str, otherwise: NDArray[np.float64] | float = np.nan
) -> NDArray[np.float64]:
    """Return a column, and something else where it is null, or there is none."""
    if name not in table.columns:
        return np.broadcast_to(np.float64(otherwise), (len(table),))
    column = table[name].cast(pl.Float64)
    found = column.to_numpy()
    return np.where(column.is_null(), otherwise, found) if column.null_count() else found


def _filled(values: NDArray[np.float64], otherwise: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.where(np.isnan(values), otherwise, values)


def detectable_beside(
    table: pl.DataFrame,
    name: str,
    error: str,
    freedom: str = "",
    *,
    critical: str = "",
    equivalence: bool = False,
) -> pl.DataFrame:
    """Add ``detectable_NAME``, of the test whose p is ``p_NAME``; see :func:`with_detectable`.

    And ``detectable_bh_NAME`` where p was :func:`adjusted`.

    Parameters
    ----------
    error, freedom, critical
        Columns: the standard error that is tested with, its degrees of freedom (0, null or none:
        z), and the distance from the null that a permutation test needs.

    Examples
    --------
    z(.975) + z(.8) standard errors; and of equivalence z(.95) + z(.9).

    >>> table = pl.DataFrame({"p_x": [0.3, None], "error": [0.1, 0.1]})
    >>> detectable_beside(table, "x", "error")["detectable_x"].to_list()
    [0.280159, None]
    >>> detectable_beside(table, "x", "error", equivalence=True)["detectable_x"].to_list()
    [0.292641, None]
    """
    p = f"p_{name}"
    nothing = dict.fromkeys(("value", "low", "high"), pl.lit(None, pl.Float64))
    own = table.select(**nothing, p=p, p_bh=f"{p}_bh" if f"{p}_bh" in table.columns else None)
    given = {TESTED_ERROR: error, NEEDED: f"needed_{p}", DF: freedom, CRITICAL: critical}
    there = {to: table[column] for to, column in given.items() if column in table.columns}
    # there are no intervals that the confidence could be of
    told = with_detectable(own.with_columns(**there), 1 - LEVEL, equivalence=equivalence)
    names = DETECTABLE if f"{p}_bh" in table.columns else DETECTABLE[:1]
    return table.with_columns(told[of].alias(f"{of}_{name}") for of in names)


def detectable_bonferroni(table: pl.DataFrame, number: str, confidence: float) -> pl.DataFrame:
    """Add ``detectable_bonferroni``: what p would find with power .8 at .05 over the tests.

    ``number``: column of how many tests p is multiplied by; null where there is none.
    ``confidence``: of the intervals.

    Examples
    --------
    Of 13 tests z(1 - .05 / 26) + z(.8) standard errors.

    >>> row = {"value": 1.0, "low": -0.959964, "high": 2.959964, "p": 0.3, "tests": 13}
    >>> detectable_bonferroni(pl.DataFrame([row]), "tests", 0.95)["detectable_bonferroni"].to_list()
    [3.732133]
    """
    level = pl.lit(LEVEL) / pl.col(number).cast(pl.Float64)
    own = table.drop(CRITICAL_NEEDED, strict=False)  # which is of another level
    told = with_detectable(own.with_columns(level.alias(NEEDED), p_bh="p"), confidence)
    return table.with_columns(told["detectable_bh"].alias("detectable_bonferroni"))


BONFERRONI = Column(
    "detectable_bonferroni",
    "float64",
    "distance from the null that p_bonferroni finds at .05 with power .8; null as `detectable`",
    nullable=True,
    minimum=0,
)


def beside(name: str, what: str, *, adjusted: bool = True) -> tuple[Column, ...]:
    """Return the columns of :func:`detectable_beside`."""
    also = f"the same of p_{name}_bh, at the level that one more finding needs"
    told = {f"detectable_{name}": what} | ({f"detectable_bh_{name}": also} if adjusted else {})
    return tuple(Column(n, "float64", of, nullable=True, minimum=0) for n, of in told.items())


def _quantiles(
    table: pl.DataFrame, above: float | NDArray[np.float64], power: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the quantiles of :func:`_above`, and how far above them an effect must be.

    So far that t is above the quantile with this power.
    """
    freedom, t = np.nan_to_num(_numbers(table, DF)), _above(table, above)
    further = np.full(freedom.shape, ndtri(power))
    if (of_t := freedom > 0).any():
        each, row = np.unique(np.stack([freedom, t])[:, of_t], axis=1, return_inverse=True)
        further[of_t] = (nctdtrinc(each[0], 1 - power, each[1]) - each[1])[row]
    return t, further


def _above(table: pl.DataFrame, above: float | NDArray[np.float64]) -> NDArray[np.float64]:
    """Return what a part of t is above, of each row, or of z where it is not known to be t."""
    freedom = np.nan_to_num(_numbers(table, DF))
    t = np.broadcast_to(ndtri(1 - above), freedom.shape).copy()
    if (of_t := freedom > 0).any():
        t[of_t] = stdtrit(freedom, 1 - above)[of_t]
    return t


def benjamini_hochberg(p: NDArray[np.float64]) -> NDArray[np.float64]:
    """Adjust the p-values (m,) of a whole family for the false discovery rate.

    Benjamini and Hochberg (1995), J. R. Stat. Soc. B 57(1), procedure (1), p. 293. Equal to
    ``scipy.stats.false_discovery_control``, which every analysis would wait half a second for.

    Examples
    --------
    >>> benjamini_hochberg(np.array([0.01, 0.04, 0.03, 0.5])).round(4).tolist()
    [0.04, 0.0533, 0.0533, 0.5]
    """
    if not ((p >= 0) & (p <= 1)).all():
        raise ValueError("p-values must be numbers between 0 and 1")
    order = np.argsort(p, kind="stable")
    scaled = p[order] * (len(p) / np.arange(1, len(p) + 1))  # in this order never below p
    result = np.empty_like(scaled)
    result[order] = np.minimum.accumulate(scaled[::-1])[::-1]
    return np.minimum(result, 1.0)


def finite(value: float) -> float | None:
    """Round an estimate for a table; None where it is not finite."""
    value = float(value)
    return round(value, DECIMALS) + 0.0 if math.isfinite(value) else None


def significant(p: float) -> float:
    """Round a p-value for a table."""
    return float(f"{p:.{DIGITS}g}")


def rounded(
    table: pl.DataFrame, numbers: Sequence[str] = (), p: Sequence[str] = ("p",)
) -> pl.DataFrame:
    """Round columns of estimates, and of p-values, see :func:`finite` and :func:`significant`.

    Examples
    --------
    >>> rounded(pl.DataFrame({"value": [float("nan")], "p": [0.12345678]}), ["value"]).row(0)
    (None, 0.123457)
    """

    def column(name: str) -> pl.Series:
        if name not in p:
            return _finite(table[name])
        values = [None if x is None else significant(x) for x in table[name]]
        return pl.Series(name, values, dtype=pl.Float64)

    return table.with_columns(column(name) for name in (*numbers, *p))


def _finite(values: pl.Series) -> pl.Series:
    """Return :func:`finite` of each value, null of null.

    The nearest number to whole / 10^6 is what Python rounds to, but where the digits that are cut
    are so near to a half that their own rounding decides, or there are too many before the point.
    """
    given = values.cast(pl.Float64).to_numpy()
    there = np.isfinite(given)
    with np.errstate(over="ignore", invalid="ignore"):
        scaled = given * 10.0**DECIMALS
        found = np.rint(scaled) / 10.0**DECIMALS + 0.0
        near = np.abs(scaled - np.floor(scaled) - 0.5) < NEAR_HALF
    for i in np.flatnonzero(there & (near | (np.abs(scaled) > MOST))):
        found[i] = finite(given[i])
    return pl.Series(values.name, np.where(there, found, np.nan)).fill_nan(None)


def typed(table: pl.DataFrame, schema: Schema, confidence: float | None) -> pl.DataFrame:
    """Order and cast the columns as declared, and add what is detectable if it is not there.

    ``confidence``: of the intervals, from which :func:`with_detectable` has the errors; None only
    where a table has none.
    """
    empty = _empty(schema)
    if "detectable" in empty.columns and (NEEDED in table or "detectable" not in table):
        assert confidence is not None, "of intervals that are there"
        table = with_detectable(table, confidence)
    return table.select(empty.columns).cast(empty.schema)


def _empty(schema: Schema) -> pl.DataFrame:
    empty = pl.from_arrow(schema.arrow().empty_table())
    assert isinstance(empty, pl.DataFrame)
    return empty
