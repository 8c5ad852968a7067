from decimal import ROUND_HALF_EVEN, Decimal

import numpy as np
import polars as pl
import pytest
from scipy.integrate import quad
from scipy.special import nctdtrinc, ndtri, stdtrit
from scipy.stats import binom, chi, false_discovery_control, nct, norm
from scipy.stats import t as student

from plumbline.builders.core.schema import Column, Schema
from plumbline.probes.report.view import missed
from plumbline.probes.stats.estimate import (
    CRITICAL,
    CRITICAL_NEEDED,
    DETECTABLE,
    DF,
    ESTIMATE,
    NEEDED,
    TESTED_ERROR,
    Estimate,
    Table,
    adjusted,
    benjamini_hochberg,
    detectable_beside,
    detectable_bonferroni,
    least_p,
    rounded,
    with_detectable,
)

# Benjamini and Hochberg (1995), section 3.1: thrombolysis after myocardial infarction
PUBLISHED = [
    *(0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344),
    *(0.0459, 0.3240, 0.4262, 0.5719, 0.6528, 0.7590, 1.0000),
]
SEED = 20240611


def test_rejects_the_four_hypotheses_of_the_published_example():
    adjusted = benjamini_hochberg(np.array(PUBLISHED))
    assert (adjusted <= 0.05).tolist() == [True] * 4 + [False] * 11
    # by hand: 15 p(i) / i, and the smallest of those at or above i
    assert adjusted[0] == pytest.approx(15 * 0.0001)
    assert adjusted[3] == pytest.approx(15 * 0.0095 / 4)
    assert adjusted[4] == pytest.approx(15 * 0.0201 / 5)
    assert adjusted[5] == adjusted[6] == pytest.approx(15 * 0.0298 / 7)
    assert adjusted[14] == 1


def test_one_test_is_its_own_family_and_none_is_none():
    assert benjamini_hochberg(np.array([0.03])).tolist() == [0.03]
    assert benjamini_hochberg(np.array([])).tolist() == []


def test_random_families_with_ties_are_adjusted_as_scipy_does_in_any_order():
    rng = np.random.default_rng(SEED)
    for _ in range(200):
        p = np.round(rng.random(int(rng.integers(1, 60))) ** 2, int(rng.integers(1, 5)))
        adjusted = benjamini_hochberg(p)
        assert adjusted == pytest.approx(false_discovery_control(p, method="bh"), abs=1e-12)
        assert all(len(set(adjusted[p == tie])) == 1 for tie in p)
        shuffle = rng.permutation(len(p))
        assert (benjamini_hochberg(p[shuffle]) == adjusted[shuffle]).all()


@pytest.mark.parametrize("wrong", [[0.1, 1.1], [-0.01], [0.1, float("nan")]])
def test_what_is_not_a_vector_of_p_values_is_refused(wrong):
    with pytest.raises(ValueError, match="between 0 and 1"):
        benjamini_hochberg(np.array(wrong))


SCHEMA = Schema(
    columns=(
        Column("model", "string", "name"),
        Column("word", "string", "form"),
        *ESTIMATE,
        Column("family", "int64", "tests in the family"),
    ),
    key=("model", "word"),
)


def test_a_table_has_its_columns_rounded_and_its_families_adjusted():
    table = Table(SCHEMA, 0.95, model="tiny")
    table.adjust(over=["cluster"])
    known = Estimate(1 / 3, float("-inf"), 0.5, 7, "Wilson score")
    for word, cluster, p in (("a", "name", 0.01), ("b", "name", 0.04), ("c", "word", 0.2)):
        table.add(known, word=word, cluster=cluster, null="0: none", p=p)
    table.add(known, word="d", cluster="name", null="none: a description")
    found = table.frame()
    assert found.columns == SCHEMA.arrow().names
    assert found["value"].to_list() == [0.333333] * 4
    assert found["low"].null_count() == 4
    assert found["p_bh"].to_list() == [0.02, 0.04, 0.2, None]
    assert found["family"].to_list() == [2, 2, 1, 2]
    assert set(found["model"]) == {"tiny"}
    assert found["detectable_bh"].is_null().to_list() == [False] * 3 + [True]
    table.families.clear()
    table.adjust(over=["cluster"], least=0.06)  # of draws that are too few to find anything
    assert table.frame()["detectable_bh"].null_count() == 4


def test_columns_are_rounded_as_decimals_are_and_what_is_not_finite_is_null():
    rng = np.random.default_rng(SEED)
    plain = rng.normal(size=2000) * 10.0 ** rng.integers(-8, 12, 2000)
    halves = (2 * rng.integers(-(10**9), 10**9, 2000) + 1) / 2e6  # as near as can be to a half
    values = [*plain.tolist(), *halves.tolist(), 2.5e-6, 5e-7, -5e-7, 1e300]
    place = Decimal("0.000001")
    by_hand = [float(Decimal(x).quantize(place, ROUND_HALF_EVEN)) for x in values[:-1]]
    table = pl.DataFrame({"value": [*values, float("nan"), float("inf"), None]})
    told = rounded(table, ["value"], p=())["value"].to_list()
    assert told[:-4] == by_hand, f"seed {SEED}"
    assert told[-4:] == [1e300, None, None, None]
    assert str(rounded(pl.DataFrame({"value": [-1e-9]}), ["value"], p=())["value"][0]) == "0.0"


def test_a_table_without_rows_has_its_columns():
    table = Table(SCHEMA, None)
    table.adjust()
    assert table.frame().schema == pl.from_arrow(SCHEMA.arrow().empty_table()).schema


def test_what_is_detectable_of_a_table_without_numbers_is_null_and_of_z_tests_known():
    nothing = {name: [None, None] for name in ("value", "low", "high", "p", "p_bh")}
    found = with_detectable(pl.DataFrame(nothing), 0.95)
    assert found["detectable"].to_list() == found["detectable_bh"].to_list() == [None, None]
    error, one_sided = 0.5, {"low": [None, -0.979982], "high": [0.979982, None]}
    table = pl.DataFrame({"value": [0.0, 0.0], "p": [0.5, 0.5], **one_sided})
    table = adjusted(table)  # of two tests none is found: the next one needs .025
    found = with_detectable(table, 0.95)
    assert found["detectable"].to_list() == pytest.approx([error * (1.959964 + 0.841621)] * 2)
    assert found["detectable_bh"].to_list() == pytest.approx([error * (2.241403 + 0.841621)] * 2)
    unreachable = with_detectable(adjusted(table, least=0.03), 0.95)
    assert unreachable["detectable_bh"].to_list() == [None, None]


def test_the_p_that_is_needed_is_found_and_a_larger_one_is_not():
    print("seed 31")
    rng = np.random.default_rng(31)
    for _ in range(50):
        p = np.where(rng.random(8) < 0.4, rng.random(8) * 0.02, rng.random(8))
        needed = adjusted(pl.DataFrame({"p": p}))[NEEDED].to_numpy()
        for row in range(8):
            for factor, found in ((0.999, True), (1.001, False)):
                other = np.where(np.arange(8) == row, needed[row] * factor, p)
                told = benjamini_hochberg(other) <= 0.05
                # others may be found with it, by which a larger p is enough
                more = told.sum() > round(needed[row] * 8 / 0.05)
                assert told[row] or not found
                assert not told[row] or found or more


def test_what_a_permutation_test_needs_is_detectable_with_what_power_adds():
    row = {"value": 0.1, "low": -0.095996, "high": 0.295996, "p": 0.3, "p_bh": None}
    table = pl.DataFrame([row | {CRITICAL: c} for c in (0.5, float("inf"), None)])
    found = with_detectable(table, 0.95)["detectable"].to_list()
    assert found[0] == pytest.approx(0.5 + 0.841621 * 0.1, abs=1e-5)
    assert found[1] is None
    assert found[2] == pytest.approx((1.959964 + 0.841621) * 0.1, abs=1e-5)


def test_the_distance_at_the_level_that_is_needed_takes_the_place_of_the_scaled_one():
    # of uniform distances up to 1 p is 1 - x: .95 at .05, .975 at .025, and not .95 * 2.24 / 1.96
    row = {"value": 0.1, "low": -0.095996, "high": 0.295996, "p": 0.3, CRITICAL: 0.95}
    table = pl.DataFrame([row | {CRITICAL_NEEDED: c} for c in (0.975, None)])
    found = with_detectable(adjusted(table), 0.95)
    assert found["detectable"].to_list() == pytest.approx([0.95 + 0.0841621] * 2, abs=1e-5)
    scaled = 0.95 * 2.241403 / 1.959964
    assert found["detectable_bh"].to_list() == pytest.approx(
        [0.975 + 0.0841621, scaled + 0.0841621], abs=1e-5
    )
    unreachable = with_detectable(adjusted(table, least=0.03), 0.95)
    assert unreachable["detectable_bh"].to_list() == [None, None]
    infinite = table.with_columns(pl.lit(float("inf")).alias(CRITICAL_NEEDED))
    assert with_detectable(adjusted(infinite), 0.95)["detectable_bh"].to_list() == [None, None]


def test_of_few_degrees_of_freedom_quantiles_of_t_are_those_of_what_is_found():
    print("seed 33")
    rng, freedom = np.random.default_rng(33), 5
    reach = stdtrit(freedom, 0.975)  # of a mean of six with standard error 1
    row = {"value": 0.0, "low": -reach, "high": reach, "p": 0.5, DF: freedom}
    table = pl.concat([pl.DataFrame([row]), pl.DataFrame([row | {DF: 0}])])
    t, z = with_detectable(adjusted(table), 0.95).select("detectable", "detectable_bh").rows()
    for detectable, level in zip(t, (0.05, 0.025), strict=True):  # one of two more is needed
        assert nct.sf(stdtrit(freedom, 1 - level / 2), freedom, detectable) == pytest.approx(
            0.8, abs=1e-4
        )
    assert z[0] == pytest.approx(reach / 1.959964 * (1.959964 + 0.841621), abs=1e-4)
    # by simulation: what is told as detectable is found about four times of five
    draws = rng.normal(0, 6**0.5, (4000, 6)) + t[0]
    seen = draws.mean(axis=1) / (draws.std(axis=1, ddof=1) / 6**0.5)
    assert 0.78 <= (np.abs(seen) > reach).mean() <= 0.82
    few = with_detectable(adjusted(pl.DataFrame([row | {DF: 4.9}])), 0.95)
    assert few.select("detectable", "detectable_bh").row(0) == (None, None)
    assert missed(few).startswith(
        "These tests miss any effect"
    )  # and "found nothing" is not left without a word
    assert missed(few.with_columns(p=None)) == ""
    without = few.drop("detectable", "detectable_bh")  # as of F tests
    assert missed(without).startswith("These tests miss any effect")


def test_what_every_p_that_is_shown_would_miss_is_told():
    small, large = [0.1, 0.2, 0.4], [0.3, None, None]
    table = pl.DataFrame(
        {"p": [0.5] * 3, "p_x": [0.5, None, None], "p_x_bh": [0.9, None, None]},
        schema_overrides={"p_x": pl.Float64, "p_x_bh": pl.Float64},
    )
    table = table.with_columns(detectable=pl.Series(small), detectable_bh=pl.Series(small))
    table = table.with_columns(detectable_x=pl.Series(large), detectable_bh_x=pl.Series(large))
    own = "Half of these tests miss effects under 0.2 (adjusted: 0.2) more than one time in five."
    assert missed(table, "value; p; p_bh") == own
    beside = missed(table, "value; p; p_x_bh=p over something:3").removeprefix(own)
    assert beside.startswith(" Half of the tests of p_x miss effects under 0.3 (adjusted: 0.3)")
    most = table.with_columns(p_x=pl.lit(0.5), p_x_bh=pl.lit(0.9))  # two of three tell nothing
    assert "Half of the tests of p_x miss any effect, or rest on too little" in missed(most, "p_x")
    none = table.with_columns(detectable_x=pl.lit(None, pl.Float64))
    assert "The tests of p_x miss any effect" in missed(none, "p_x")
    margin = table.rename(lambda name: name.replace("_x", "_equivalence"))
    assert "find a margin of 0.3" in missed(margin, "p_equivalence_bh")


def test_what_is_adjusted_is_told_of_the_tests_that_are_in_a_family():
    effects, none = pl.Series([0.1, 0.2, 0.4]), pl.Series([None] * 3, dtype=pl.Float64)
    table = pl.DataFrame({"p": [0.5] * 3, "detectable": effects, "detectable_bh": none})
    alone = "Half of these tests miss effects under 0.2 more than one time in five."
    assert missed(table.with_columns(p_bh=none)) == alone
    told = pl.Series([0.3, None, None], dtype=pl.Float64)  # of the one test that is adjusted
    some = table.with_columns(p_bh=told, detectable_bh=told)
    assert missed(some) == alone.replace("0.2", "0.2 (adjusted: 0.3)")
    any_effect = alone.replace("0.2", "0.2 (adjusted: half of them miss any effect or cannot tell)")
    assert missed(table.with_columns(p_bh=effects)) == any_effect
    beside = table.with_columns(p_bh=effects).rename(
        {"p": "p_x", "p_bh": "p_x_bh"}
        | {"detectable": "detectable_x", "detectable_bh": "detectable_bh_x"}
    )
    assert missed(beside.with_columns(p_x_bh=none), "p_x") == alone.replace(
        "these tests", "the tests of p_x"
    )


def test_of_ratios_increases_and_the_decreases_that_are_as_large_are_told():
    table = pl.DataFrame(
        {"p": [0.5], "p_bh": [0.5], "detectable": [25.0], "detectable_bh": [150.0]}
    )
    assert missed(table, ratio=True) == (
        "Half of these tests miss increases under 25% (adjusted: 150%) and decreases under 20% "
        "(adjusted: 60%) more than one time in five."
    )
    none = pl.lit(None, pl.Float64)
    assert (
        "decreases under 20% (adjusted: half of them miss any effect or cannot tell) more"
        in missed(table.with_columns(detectable_bh=none), ratio=True)
    )
    assert "25% and decreases under 20% more" in missed(
        table.with_columns(detectable_bh=none, p_bh=none), ratio=True
    )


def test_the_error_of_what_is_tested_takes_the_place_of_that_of_the_interval():
    row = {"value": 0.1, "low": -0.095996, "high": 0.295996, "p": 0.3, "p_bh": None}
    table = pl.DataFrame([row | {TESTED_ERROR: error} for error in (0.2, None)])
    found = with_detectable(table, 0.95)["detectable"].to_list()
    assert found == pytest.approx([2.801585 * 0.2, 2.801585 * 0.1], abs=1e-5)
    interval = Estimate(*(row[name] for name in ("value", "low", "high")), 9, "")
    assert interval.standard_error(0.95) == pytest.approx(0.1, abs=1e-5)


@pytest.mark.parametrize("freedom", [0, 7])
@pytest.mark.parametrize("critical", [None, 0.5])
def test_what_is_detectable_is_the_same_by_intervals_of_any_confidence(freedom, critical):
    def told(confidence):
        """Return what is told of a standard error of .1, beside the interval."""
        upper = (1 + confidence) / 2
        half = 0.1 * (stdtrit(freedom, upper) if freedom else ndtri(upper))
        row = {"value": 0.2, "low": 0.2 - half, "high": 0.2 + half, "p": 0.3, "tests": 3}
        table = adjusted(pl.DataFrame([row | {DF: freedom, CRITICAL: critical}] * 2))
        found = detectable_bonferroni(with_detectable(table, confidence), "tests", confidence)
        return found.select(*DETECTABLE, "detectable_bonferroni").row(0)

    at_95 = told(0.95)
    assert min(at_95) > 0.25
    for confidence in (0.8, 0.99):
        assert told(confidence) == pytest.approx(at_95, abs=2e-6)
    of_z = Estimate(0.2, 0.2 - 0.1 * ndtri(0.9), 0.2 + 0.1 * ndtri(0.9), 9, "")
    assert of_z.standard_error(0.8) == pytest.approx(0.1)


def test_a_table_takes_its_intervals_to_have_the_confidence_that_it_is_given():
    schema = Schema((Column("word", "string", "form"), *ESTIMATE), ("word",))
    for confidence in (0.95, 0.8):
        half = 0.1 * ndtri((1 + confidence) / 2)
        table = Table(schema, confidence)
        table.add(
            Estimate(0.2, 0.2 - half, 0.2 + half, 9, ""), word="a", cluster="", null="", p=0.1
        )
        assert table.frame()["detectable"].to_list() == pytest.approx([0.280159], abs=2e-6)


def beside_it(name, **columns):
    """Return what is told as detectable of one row, and after adjustment, with so many like it."""
    of = {f"p_{name}": 0.3, f"p_{name}_bh": 0.3, f"needed_p_{name}": 0.01, "error": 0.2}
    how = {k: columns.pop(k) for k in ("equivalence",) if k in columns}
    how |= {k: k for k in ("freedom", "critical") if k in columns}
    found = detectable_beside(pl.DataFrame([of | columns]), name, "error", **how)
    return found.select(f"detectable_{name}", f"detectable_bh_{name}").row(0)


def test_what_another_p_of_a_row_would_find_is_of_its_own_error_freedom_and_level():
    for freedom in (5.0, 7.5, 40.0):
        told = beside_it("x", freedom=freedom)
        for detectable, level in zip(told, (0.05, 0.01), strict=True):
            critical = student.isf(level / 2, freedom)
            assert nct.sf(critical, freedom, detectable / 0.2) == pytest.approx(0.8, abs=1e-4)
            assert nct.sf(critical, freedom, detectable / 0.1) > 0.99  # of another error it is not
    assert beside_it("x", freedom=4.9) == (None, None)
    assert beside_it("x", p_x=None, freedom=9.0) == (None, None)  # no test, nothing to tell
    assert beside_it("x", error=0.0, freedom=9.0) == (None, None)
    z = [0.2 * (norm.isf(level / 2) + norm.ppf(0.8)) for level in (0.05, 0.01)]
    assert beside_it("x") == pytest.approx(z, abs=1e-6)
    drawn = [0.5 * norm.isf(level / 2) / norm.isf(0.025) for level in (0.05, 0.01)]
    drawn = [critical + 0.2 * norm.ppf(0.8) for critical in drawn]
    assert beside_it("x", critical=0.5) == pytest.approx(drawn, abs=1e-6)
    bare = pl.DataFrame({"p_x": [0.3], "error": [0.2]})
    assert detectable_beside(bare, "x", "error").columns == ["p_x", "error", "detectable_x"]


def test_what_bonferroni_finds_is_of_the_number_of_tests_and_the_freedom_of_each_row():
    tests, freedoms = [40, 2, 7, None, 7, 3], [9.0, 30.0, None, 9.0, 9.0, 4.0]
    reach = [norm.isf(0.025) if df is None else student.isf(0.025, df) for df in freedoms]
    table = pl.DataFrame({"value": [0.3] * 6, "high": [0.3 + 0.1 * x for x in reach]})
    table = table.with_columns(low=0.6 - pl.col("high"), p=pl.Series([0.5] * 6))
    table = table.with_columns(pl.Series(DF, freedoms), tests=pl.Series(tests))
    # what is told of p_bh is not of this: it is of another level, or nothing is told
    table = table.with_columns(pl.lit(0.05).alias(NEEDED), p_bh=pl.lit(None, pl.Float64))
    assert with_detectable(table, 0.95)["detectable_bh"].null_count() == 6
    told = detectable_bonferroni(table, "tests", 0.95)["detectable_bonferroni"].to_list()
    assert told[3] is told[5] is None  # no number of tests; of too few degrees of freedom
    assert told[2] == pytest.approx(0.1 * (norm.isf(0.025 / 7) + norm.ppf(0.8)), abs=1e-5)
    for row in (0, 1, 4):
        critical = student.isf(0.025 / tests[row], freedoms[row])
        assert nct.sf(critical, freedoms[row], told[row] / 0.1) == pytest.approx(0.8, abs=1e-4)


def test_each_p_of_a_row_has_the_level_of_its_own_family():
    table = pl.DataFrame({"p": [0.5] * 4, "p_x": [0.5, 0.5, None, None], "error": [0.1] * 4})
    table = adjusted(adjusted(table), "p_x")
    assert table[NEEDED].to_list() == [0.0125] * 4
    assert table["needed_p_x"].to_list() == [0.025, 0.025, None, None]
    told = detectable_beside(table, "x", "error")["detectable_bh_x"].to_list()
    one = pytest.approx(0.1 * (norm.isf(0.0125) + norm.ppf(0.8)), abs=1e-6)
    assert told == [one, one, None, None]


def both_one_sided_tests_find(margin, freedom, level):
    """Return the power of two one-sided t tests at a true difference of 0; errors are 1."""

    def given(spread):  # that the error is told as so much
        inside = max(0.0, margin - student.isf(level, freedom) * spread)
        return (2 * norm.cdf(inside) - 1) * chi.pdf(spread * freedom**0.5, freedom) * freedom**0.5

    return quad(given, 0, margin / student.isf(level, freedom))[0]


def test_the_margin_of_equivalence_is_that_within_which_no_difference_is_found():
    for freedom, over in ((5.0, 0.016), (11.0, 0.0015), (99.0, 0.0001)):
        told = beside_it("x", freedom=freedom, equivalence=True)
        for margin, level in zip(told, (0.05, 0.01), strict=True):
            power = both_one_sided_tests_find(margin / 0.2, freedom, level)
            assert 0.8 - 1e-4 <= power <= 0.8 + over
    # each of the two tests with .8 is not both
    one = nctdtrinc(11.0, 0.2, student.isf(0.05, 11.0))
    assert both_one_sided_tests_find(one, 11.0, 0.05) == pytest.approx(0.6, abs=0.002)
    z = [0.2 * (norm.isf(level) + norm.ppf(0.9)) for level in (0.05, 0.01)]
    assert beside_it("x", equivalence=True) == pytest.approx(z, abs=1e-6)


def test_half_of_the_p_that_are_drawn_where_one_is_needed_are_low_enough():
    # by the binomial distribution of draws as far: of 30 tests the first finding needs .05 / 30
    table = pl.DataFrame({"p": np.full(30, 0.5)})
    exact = adjusted(table)[NEEDED][0]
    assert exact == pytest.approx(0.05 / 30)
    for drawn in (600, 999, 1199, 9999, 99999):
        needed = adjusted(table, least=least_p(drawn))[NEEDED][0]
        hits = int(exact * (drawn + 1) + 1e-9) - 1
        assert 0.48 < binom.cdf(hits, drawn, needed) < 0.52, drawn
    assert needed == pytest.approx(exact, rel=0.01)  # of many draws
    mixed = adjusted(table.with_columns(least=pl.Series([1 / 500, 0.0, None] * 10)), least="least")
    assert mixed[NEEDED][:3].to_list() == [None, pytest.approx(exact), pytest.approx(exact)]
