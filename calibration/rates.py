"""Rates of a test over replicates, with intervals: size, power, coverage, errors of the sign.

Tests of one replicate are drawn together and depend on each other: replicates are the clusters. An
interval is Wilson's of as many independent tests as would vary like the rate does over replicates.
"""

from __future__ import annotations

import hashlib
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import polars.selectors as cs
from scipy.special import ndtr, ndtri, stdtrit

from calibration.tally import BINS, LIMITS
from calibration.truth import DECOY, NULL, PLANTED
from plumbline.builders.core.schema import Column, Schema
from plumbline.probes.report.error_rates import (
    COVERAGE,
    DETECTABLE,
    DETECTABLE_BH,
    FALSE,
    FAMILIES,
    FOUND_05,
    LEAST,
    LEAST_ADJUSTED,
    SIZE,
    SIZE_01,
    WRONG,
    WRONG_FAMILIES,
)
from plumbline.probes.stats.estimate import ESTIMATE, POWER, Estimate, Table
from plumbline.probes.stats.intervals import t_half_width, wilson

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

KEY = ("test", "shape", "truth", "kind", "effect")
MEASURES = {  # name: (kinds of truth, what is counted, among what, nominal value)
    SIZE: (NULL, "p05", "tests", "0.05"),
    SIZE_01: (NULL, "p01", "tests", "0.01"),
    FAMILIES: (NULL, "false_families", "families", "at most 0.05"),
    FOUND_05: (PLANTED, "p05", "tests", ""),
    "found after adjustment": (PLANTED, "adjusted05", "adjusted", ""),
    "wrong sign among found": (PLANTED, "wrong_sign", "p05", ""),
    WRONG: (DECOY, "p05", "tests", "0.05"),
    WRONG_FAMILIES: (DECOY, "false_families", "families", "at most 0.05"),
    COVERAGE: ("", "covered", "intervals", "as the interval says"),
}
WIDTH = "width of intervals"
TOLD = {DETECTABLE: "detectable", DETECTABLE_BH: "detectable_bh"}
TABLES = 10  # with one row planted alike, fewer of which say nothing of what is true
OFTEN = 0.9  # share of these tables that tell what is detectable
SEVERAL = 20  # planted effects near to what is told as detectable, fewer of which tell nothing
SMALLEST = {LEAST: ("p05", "tests"), LEAST_ADJUSTED: ("adjusted05", "adjusted")}
CALIBRATION = Schema(
    (
        Column("analysis", "string", "analysis whose tables are tested"),
        Column("test", "string", "table and column of p, and what of it"),
        Column("shape", "string", "shape of the simulated run, see the page of the analysis"),
        Column("truth", "string", "what responses were drawn from"),
        Column("kind", "string", "null: nothing differs; planted; decoy: not what is tested"),
        Column("effect", "float64", "size of the planted effect; 0: none", nullable=True),
        Column("measure", "string", "rate that is told"),
        Column("replicates", "int64", "simulated tables", minimum=1),
        Column("tests", "int64", "tests or families counted in all of them", minimum=0),
        Column("first", "string", "sha256 of what the first table says, cut; or empty"),
        *ESTIMATE,
    ),
    ("analysis", "test", "shape", "truth", "effect", "measure"),
)
CLUSTER = "replicate"
FOUND = ("tests", "p05", "p01", "adjusted", "adjusted05", "wrong_sign", "intervals", "covered")
COUNTS = (*FOUND, "widths", "families", "false_families")


def rows(analysis: str, tallies: pl.DataFrame, confidence: float = 0.95) -> pl.DataFrame:
    """Return the table of rates.

    ``tallies``: rows of :func:`calibration.tally.tally` with the columns ``test``,
    ``shape``, ``truth``, ``kind`` and ``replicate``.
    """
    table = Table(CALIBRATION, confidence, analysis=analysis)
    first = firsts(tallies)
    for key, own in _each(tallies, KEY):
        for measure, (kind, hits, of, nominal) in MEASURES.items():
            null = key["effect"] == 0
            told = kind == key["kind"] and (null if kind in (NULL, DECOY) else not null)
            if (told or not kind) and own[of].sum():
                found = rate(own[hits].to_numpy(), own[of].to_numpy(), confidence)
                _add(table, found, own, int(own[of].sum()), nominal, measure=measure, **key)
        if own["widths"].sum():
            widths = own.filter(pl.col("widths") > 0)
            mean = _mean((widths["width"] / widths["widths"]).to_numpy(), confidence)
            _add(table, mean, own, int(own["widths"].sum()), "", measure=WIDTH, **key)
        shares = own.filter(pl.col("false_share").is_not_nan())
        if key["kind"] == PLANTED and len(shares) > 1 and shares["families"].sum():
            mean = _mean(shares["false_share"].to_numpy(), confidence)
            _add(table, mean, shares, len(shares), "at most 0.05", measure=FALSE, **key)
    for key, measure, (number, found), own in _at_detectable(tallies, confidence):
        _add(table, found, own, number, "0.75 to 0.85", measure=measure, effect=None, **key)
    for measure, (hits, of) in SMALLEST.items():
        for key, least, own in _smallest(tallies, hits, of):
            method = "between simulated effects, normal quantiles of power"
            found = Estimate(least, np.nan, np.nan, own["replicate"].n_unique(), method)
            _add(table, found, own, int(own[of].sum()), f"power {POWER}", measure=measure, **key)
    for row in table.rows:
        row["first"] = first[row["shape"], row["truth"]]
    return table.frame()


def firsts(tallies: pl.DataFrame, *, told: bool = False) -> dict[tuple[str, str], str]:
    """Return what the first replicate of each shape and truth says, as a hash of its counts.

    By it a table of rates is known to be of the code as it is, whatever was rewritten since:
    counts are the same on all machines, up to ties that rounding decides.

    ``told``: also of what is told as detectable, which may differ in its last digits elsewhere.
    """
    first = tallies.filter(pl.col("replicate") == pl.col("replicate").min())
    counts = first.select(
        "shape", "truth", "test", pl.col("effect").round(6), pl.col(COUNTS).cast(pl.Int64)
    )
    if told:
        ratios = (
            pl.sum_horizontal(f"{name}_{n}_ratio" for n in range(BINS)).alias(name)
            for name in TOLD.values()
        )
        sums = (
            pl.col(f"{name}_open")
            .list.eval(pl.element().struct.field(of))
            .list.sum()
            .name.suffix(of)
            for name in TOLD.values()
            for of in ("row", "value", "told")
        )
        told_of = first.select(*ratios, *sums)
        counts = counts.hstack(told_of.select(pl.all().cast(pl.Float64).round(3) + 0.0))
    each = counts.sort(pl.all()).partition_by("shape", "truth", as_dict=True)
    return {
        (shape, truth): hashlib.sha256(own.write_csv().encode()).hexdigest()[:16]
        for (shape, truth), own in each.items()
    }


def rate(hits: NDArray[np.float64], of: NDArray[np.float64], confidence: float = 0.95) -> Estimate:
    """Estimate a share of tests with replicates as clusters, (replicates,) each.

    ``hits``, ``of``: tests that are counted, and all tests, of each replicate.

    Examples
    --------
    Replicates of one test are independent trials: 81 of 263 is Newcombe's (1998) example.

    >>> hits = np.arange(263) < 81
    >>> tuple(round(x, 3) for x in rate(hits.astype(float), np.ones(263))[:3])
    (0.308, 0.255, 0.366)

    A hundred tests that all fall together in a replicate count as one of them, with t for z.

    >>> many = rate(hits * 100.0, np.full(263, 100.0))
    >>> tuple(round(x, 3) for x in many[:3])
    (0.308, 0.255, 0.367)
    """
    kept = of > 0
    hits, of = hits[kept], of[kept]
    total, clusters = of.sum(), len(of)
    share = hits.sum() / total
    # Kish (1965), Survey Sampling, section 6.5: the ratio of totals, linearised
    residual = ((hits - share * of) ** 2).sum() / total**2
    variance = residual * clusters / (clusters - 1) if clusters > 1 else 0.0
    number = clusters if variance == 0 else min(total, share * (1 - share) / variance)
    # not more than the clusters where trials are one each: s^2 has n - 1, Wilson's interval n
    number = max(1, round(number if (of > 1).any() else clusters))
    level = confidence
    if variance > 0 and (of > 1).any():  # estimated of few replicates: t instead of z
        level = 2 * ndtr(stdtrit(clusters - 1, (1 + confidence) / 2)) - 1
    found = wilson(float(share * number), number, float(level))
    method = "Wilson score of the effective number of tests, clusters are replicates"
    return found._replace(value=float(share), n=clusters, method=f"{confidence:.0%} {method}")


def _at_detectable(
    tallies: pl.DataFrame, confidence: float
) -> Iterator[tuple[dict[str, Any], str, tuple[int, Estimate], pl.DataFrame]]:
    for key, own in _each(tallies.filter(pl.col("kind") == PLANTED), KEY[:-1]):
        for measure, column in TOLD.items():
            if told := at_detectable(own, column, confidence):
                yield key, measure, told, own


def at_detectable(
    own: pl.DataFrame, column: str, confidence: float = 0.95
) -> tuple[int, Estimate] | None:
    """Estimate how often an effect of just the size that is told as detectable is found.

    By probit regression of what was found on the planted effect over the detectable one, at 1;
    clusters are replicates. For a z test that is a straight line. Where what is true is not known,
    the planted effect is the mean over tables of what the row says at that level. None where too
    few were planted nearby, or none, or all of them are found.

    ``own``: tallies of one test, shape and truth.
    ``column``: ``detectable`` or ``detectable_bh``.

    Returned: the number of planted effects that were looked at, and the share.
    """
    from statsmodels.genmod.families import Binomial, links
    from statsmodels.genmod.generalized_linear_model import GLM
    from statsmodels.tools.sm_exceptions import PerfectSeparationWarning

    sums = own.group_by("replicate").agg(cs.matches(rf"^{column}_\d").sum())
    number, hits, ratios = (
        sums.sort("replicate").select(f"{column}_{n}{what}" for n in range(BINS)).to_numpy() + part
        for what, part in zip(("", "_found", "_ratio"), _by_mean(own, column), strict=True)
    )
    total, replicates = int(number.sum()), len(number)
    bins = np.flatnonzero(number.sum(axis=0))
    if total < SEVERAL or not 0 < hits.sum() < total or replicates < 2:
        return None
    middle = ratios.sum(axis=0) / np.maximum(number.sum(axis=0), 1)
    if len(bins) == 1 and LIMITS[bins[0]] < 1 < LIMITS[bins[0] + 1]:
        return total, rate(hits[:, bins[0]], number[:, bins[0]], confidence)
    if not middle[bins[0]] <= 1 <= middle[bins[-1]]:
        return None
    replicate, place = np.nonzero(number)
    found, of = hits[replicate, place], number[replicate, place]
    design = np.column_stack([np.ones(len(found)), middle[place] - 1])
    model = GLM(np.column_stack([found, of - found]), design, Binomial(links.Probit()))
    with warnings.catch_warnings():
        warnings.simplefilter("error", PerfectSeparationWarning)
        try:
            fitted = model.fit(cov_type="cluster", cov_kwds={"groups": replicate})
        except PerfectSeparationWarning:
            return None
    reach = float(t_half_width(fitted.bse[0], replicates - 1, confidence))
    if not np.isfinite(reach):  # too alike to say
        return None
    value, low, high = (float(ndtr(fitted.params[0] + side)) for side in (0, -reach, reach))
    method = f"{confidence:.0%} probit regression at 1, clusters are replicates"
    return total, Estimate(value, low, high, replicates, method)


def _by_mean(own: pl.DataFrame, column: str) -> NDArray[np.float64]:
    """Count planted effects whose truth is the mean over tables of what their row says.

    Rows are left out for which many tables tell nothing. Nothing is counted where those near to
    what the tables on average tell as detectable are all smaller, or all larger: which are at it
    in a table of their own is decided by its error.

    Returned: (3, replicates, bins): their number, those found, sums of ratios.
    """
    counted = np.zeros((3, own["replicate"].n_unique(), BINS))
    place = pl.col("replicate").rank("dense").cast(pl.Int64) - 1
    open_rows = own.select("effect", place.alias("place"), told=f"{column}_open").explode("told")
    open_rows = open_rows.drop_nulls("told").unnest("told")
    # of all tables: those that tell something, or something small, are some by their luck
    told, same = pl.col("told"), ("effect", "row")
    known = (pl.len().over(same) >= TABLES) & (
        told.count().over(same) >= OFTEN * pl.len().over(same)
    )
    mean = pl.col("value").mean().over(same)
    some = open_rows.with_columns(ratio=mean / told, usual=mean / told.mean().over(same))
    near = pl.col("usual").is_between(LIMITS[0], LIMITS[-1])
    some = some.filter(known & near & told.is_not_null())
    least, most = some.select(least=pl.col("usual").min(), most=pl.col("usual").max()).row(0)
    some = some.filter(pl.lit(least is not None and least <= 1 <= most))
    some = some.filter(pl.col("ratio") > LIMITS[0], pl.col("ratio") <= LIMITS[-1])
    ratio, found = some["ratio"].to_numpy(), some["found"].to_numpy().astype(float)
    at = some["place"].to_numpy(), np.digitize(ratio, LIMITS, right=True) - 1
    for each, added in zip(counted, (np.ones(len(ratio)), found, ratio), strict=True):
        np.add.at(each, at, added)
    return counted


def _mean(values: NDArray[np.float64], confidence: float) -> Estimate:
    half = ndtri((1 + confidence) / 2) * values.std(ddof=1) / len(values) ** 0.5
    middle = float(values.mean())
    method = f"{confidence:.0%} normal interval over replicates"
    return Estimate(middle, middle - half, middle + half, len(values), method)


def _each(
    tallies: pl.DataFrame, names: Sequence[str]
) -> Iterator[tuple[dict[str, Any], pl.DataFrame]]:
    """Yield the tallies that are of one thing, with what they are of."""
    parts = tallies.sort(*KEY, "replicate").partition_by(
        list(names), as_dict=True, maintain_order=True
    )
    yield from ((dict(zip(names, values, strict=True)), own) for values, own in parts.items())


def _smallest(
    tallies: pl.DataFrame, hits: str, of: str
) -> Iterator[tuple[dict[str, object], float, pl.DataFrame]]:
    """Yield the smallest effect that is found, nan where it is above all that were planted."""
    planted = tallies.filter(pl.col("kind") == PLANTED)
    for key, own in _each(planted, KEY[:-1]):
        sums = own.group_by("effect").agg(pl.col(hits, of).sum(), tables=pl.len())
        sums = sums.filter((pl.col("effect") > 0) & (pl.col(of) > 0)).sort("effect")
        if len(sums):
            power = (sums[hits] / sums[of]).to_numpy()
            told = smallest(sums["effect"].to_numpy(), power, sums["tables"].to_numpy())
            yield key | {"effect": None}, told, own


def smallest(
    effects: NDArray[np.float64], power: NDArray[np.float64], tables: NDArray[np.int64]
) -> float:
    """Return the effect that is found with power .8; nan if it is above all, (effects,) each.

    Between effects the normal quantile of power is taken as linear, as it is of a z test; that of
    what all or none of the ``tables`` find is that of half a table from it. Where the smallest
    effect is found as often it is that one: smaller ones were not simulated.

    Examples
    --------
    Of a two-sided z test 2.8 standard errors are found with .8.

    >>> effects = np.array([2.0, 3.0])
    >>> from scipy.special import ndtr
    >>> power = ndtr(effects - 1.96)
    >>> round(smallest(effects, power, np.array([500, 500])), 2)
    2.8
    """
    half = 0.5 / (tables + 1)
    quantiles = np.maximum.accumulate(ndtri(np.clip(power, half, 1 - half)))
    wanted = ndtri(POWER)
    if quantiles[-1] < wanted:
        return float("nan")
    above = int(np.argmax(quantiles >= wanted))
    if not above:
        return float(effects[0])
    step = (wanted - quantiles[above - 1]) / (quantiles[above] - quantiles[above - 1])
    return float(effects[above - 1] + step * (effects[above] - effects[above - 1]))


def _add(
    table: Table, found: Estimate, own: pl.DataFrame, tests: int, nominal: str, **key: Any
) -> None:
    replicates = own["replicate"].n_unique()
    table.add(found, cluster=CLUSTER, null=nominal, replicates=replicates, tests=tests, **key)
