"""Rates of tests over replicates, against counts by hand and tests whose rates are known."""

import numpy as np
import polars as pl
import pytest
from scipy.special import ndtr

from calibration.rates import rate, rows, tally
from calibration.truth import COLUMNS
from plumbline.probes.report import error_rates
from plumbline.probes.stats.intervals import wilson

SEED = 20261123


def count(*outcomes):
    schema = dict.fromkeys(COLUMNS, pl.Float64) | {"family": pl.String}
    table = pl.DataFrame(outcomes, schema=schema, orient="row")
    tallies = tally(table.with_columns(test=pl.lit("t")))
    return {row["effect"]: row for row in tallies.to_dicts()}


def z_tests(inflate=1.0, kind="null", replicates=400):
    """Tally z tests of 20 rows, whose errors are larger than they are said to be."""
    rng, parts = np.random.default_rng(SEED), []
    for number in range(replicates):
        z = rng.normal(0, inflate, 20)
        p = 2 * ndtr(-np.abs(z))
        table = pl.DataFrame({"effect": 0.0, "target": 0.0, "family": "all", "value": z})
        table = table.with_columns(
            low=z - 1.96, high=z + 1.96, p=p, p_adjusted=np.minimum(20 * p, 1)
        )
        parts.append(tally(table.with_columns(test=pl.lit("t"))).with_columns(replicate=number))
    key = {"shape": "s", "truth": "x", "kind": kind}
    return rows("a", pl.concat(parts).with_columns(pl.lit(v).alias(k) for k, v in key.items()))


def test_tally_by_hand():
    counts = count(
        (0.0, 0.5, "a", 1.0, 0.0, 2.0, 0.04, 0.08),
        (0.0, 2.5, "a", 1.0, 0.0, 2.0, 0.005, 0.02),
        (0.0, 0.0, "b", 1.0, None, 0.2, 0.5, 0.9),
        (0.0, None, "c", 1.0, 0.0, 2.0, None, None),
        (None, None, "a", 1.0, 0.0, 2.0, 0.001, 0.001),
        (0.4, None, "a", -1.0, 0.0, 2.0, 0.01, 0.03),
        (-0.4, None, "a", -1.0, 0.0, 2.0, 0.02, 0.2),
    )
    null, planted = counts[0.0], counts[0.4]
    assert (null["tests"], null["p05"], null["p01"]) == (3, 2, 1)
    assert (null["families"], null["false_families"]) == (2, 1)
    assert (null["intervals"], null["covered"]) == (3, 2)
    assert (planted["tests"], planted["p05"], planted["families"]) == (2, 2, 0)


def test_rate_of_independent_trials_is_wilsons():
    hits = (np.arange(200) < 16).astype(float)
    share, low, high = rate(hits, np.ones(200))
    expected = wilson(16, 200)
    assert (share, low, high) == pytest.approx((0.08, expected.low, expected.high))


def test_rate_of_dependent_trials_counts_replicates():
    hits = (np.arange(50) < 5).astype(float)
    _, low, high = rate(hits, np.ones(50))
    _, low_of_many, high_of_many = rate(hits * 40, np.full(50, 40.0))
    assert high_of_many - low_of_many == pytest.approx(high - low, rel=0.1)


def test_rate_of_two_replicates_that_differ_is_unknown():
    assert rate(np.array([1.0, 8.0]), np.full(2, 10.0)) == (0.45, 0.0, 1.0)


def test_rows_of_a_valid_test_are_within_bounds():
    table = z_tests()
    (line,) = error_rates.lines(table)
    assert line["outside"] == []
    assert line["size at .05"][0] == pytest.approx(0.05, abs=0.01)
    assert line["coverage of intervals"][0] == pytest.approx(0.95, abs=0.01)


def test_rows_of_a_broken_test_are_outside():
    (line,) = error_rates.lines(z_tests(inflate=1.5))
    told = " ".join(line["outside"])
    for measure in ("size at .05", "families", "coverage"):
        assert measure in told


def test_rows_have_size_of_a_null_alone():
    assert set(z_tests(kind="planted")["measure"]) == {"coverage of intervals"}
