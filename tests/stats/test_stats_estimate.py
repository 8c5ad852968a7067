"""Estimates, their tables, adjusted p-values, and minimum detectable effects."""

from decimal import ROUND_HALF_EVEN, Decimal

import numpy as np
import polars as pl
import pytest
from scipy.special import ndtri, stdtrit
from scipy.stats import nct, norm

from plumbline.builders.core.schema import Column, Schema
from plumbline.probes.stats.estimate import (
    DF,
    LEAST,
    REACH,
    TESTED_ERROR,
    Estimate,
    Table,
    adjusted,
    estimates,
    least_p,
    rounded,
    with_detectable,
    with_detectable_correlations,
)

# Benjamini and Hochberg (1995), section 3.1: thrombolysis after myocardial infarction
PUBLISHED = [
    *(0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344),
    *(0.0459, 0.3240, 0.4262, 0.5719, 0.6528, 0.7590, 1.0000),
]
SEED = 20240611
SCHEMA = Schema(
    columns=(
        Column("model", "string", "name"),
        Column("word", "string", "form"),
        *estimates(cluster="name", method="Wilson score", null="0: none"),
    ),
    key=("model", "word"),
)
ROW = {"value": 0.1, "low": -0.0959964, "high": 0.2959964, "p": 0.3}  # standard error .1


def test_adjusted_published_example():
    adjusted_p = adjusted(pl.DataFrame({"p": PUBLISHED}))["p_bh"].to_list()
    assert [p <= 0.05 for p in adjusted_p] == [True] * 4 + [False] * 11
    # by hand: 15 p(i) / i, and the smallest of those at or above i
    by_hand = [15 * 0.0001, 15 * 0.0095 / 4, 15 * 0.0298 / 7, 15 * 0.0298 / 7, 1]
    assert [adjusted_p[i] for i in (0, 3, 5, 6, 14)] == pytest.approx(by_hand, rel=1e-5)
    with pytest.raises(ValueError):
        adjusted(pl.DataFrame({"p": [0.1, 1.1]}))


def test_table_is_rounded_and_its_families_are_adjusted():
    schema = Schema((*SCHEMA.columns, Column("family", "int64", "tests")), SCHEMA.key)
    table = Table(schema, 0.95, model="tiny")
    table.adjust(over=["unit"])
    estimate = Estimate(1 / 3, float("-inf"), 0.5, 7)
    for word, unit, p in (("a", "name", 0.01), ("b", "name", 0.04), ("c", "word", 0.2)):
        table.add(estimate, word=word, unit=unit, p=p)
    table.add(estimate, word="d", unit="name")
    rows = table.frame()
    assert rows.columns == schema.arrow().names
    assert rows["value"].to_list() == [0.333333] * 4
    assert rows["low"].null_count() == 4
    assert rows["p_bh"].to_list() == [0.02, 0.04, 0.2, None]
    assert rows["family"].to_list() == [2, 2, 1, 2]
    assert set(rows["model"]) == {"tiny"}


def test_table_without_rows_has_its_columns():
    table = Table(SCHEMA, None)
    table.adjust()
    assert table.frame().schema == pl.from_arrow(SCHEMA.arrow().empty_table()).schema


@pytest.mark.parametrize("confidence", [0.95, 0.8])
def test_table_reads_its_intervals_at_its_confidence(confidence):
    half = 0.1 * ndtri((1 + confidence) / 2)
    estimate = Estimate(0.2, 0.2 - half, 0.2 + half, 9)
    assert estimate.standard_error(confidence) == pytest.approx(0.1)
    table = Table(SCHEMA, confidence, model="tiny")
    table.adjust()
    table.add(estimate, word="a", p=0.1)
    assert table.frame()["detectable"].to_list() == pytest.approx([0.280159], abs=2e-6)


def test_estimates_without_a_null_hypothesis_have_no_test():
    plain = [column.name for column in estimates(cluster="name", method="Wilson score")]
    assert plain == ["value", "low", "high", "n"]


def test_rounded_as_decimals_and_null_where_not_finite():
    rng = np.random.default_rng(SEED)
    plain = rng.normal(size=2000) * 10.0 ** rng.integers(-8, 12, 2000)
    halves = (2 * rng.integers(-(10**9), 10**9, 2000) + 1) / 2e6  # as near as can be to a half
    values = [*plain.tolist(), *halves.tolist(), 2.5e-6, 5e-7, -5e-7]
    unit = Decimal("0.000001")
    by_hand = [float(Decimal(x).quantize(unit, ROUND_HALF_EVEN)) for x in values]
    table = pl.DataFrame({"value": [*values, 1e300, float("nan"), float("inf"), None]})
    numbers = rounded(table, ["value"], p=())["value"].to_list()
    assert numbers == [*by_hand, 1e300, None, None, None], f"seed {SEED}"
    assert str(rounded(pl.DataFrame({"value": [-1e-9]}), ["value"], p=())["value"][0]) == "0.0"


def test_adjusted_another_column_has_its_own_names():
    table = pl.DataFrame({"p": [0.5] * 4, "p_x": [0.5, 0.5, None, None]})
    table = adjusted(adjusted(table), "p_x")
    assert table["family"].to_list() == [4] * 4
    assert table["family_p_x"].to_list() == [2] * 4
    assert table["p_x_bh"].to_list() == [0.5, 0.5, None, None]


def test_with_detectable_is_at_the_level_of_bonferroni():
    table = with_detectable(adjusted(pl.DataFrame([ROW] * 40)), 0.95)
    expected = 0.1 * (norm.isf(0.025 / 40) + norm.ppf(0.8))
    assert table["detectable"].to_list() == pytest.approx([expected] * 40, abs=1e-6)


def test_with_detectable_impossible_effect_is_null():
    one = with_detectable(pl.DataFrame([ROW]), 0.95)["detectable"].item()
    for reach, possible in ((one + 1e-6, True), (one - 1e-6, False)):
        table = with_detectable(pl.DataFrame([ROW | {REACH: reach}]), 0.95)
        assert table["detectable"].is_not_null().item() == possible


def test_with_detectable_without_numbers_is_null():
    empty = {name: [None, None] for name in ("value", "low", "high", "p")}
    assert with_detectable(pl.DataFrame(empty), 0.95)["detectable"].to_list() == [None, None]
    one_sided = [ROW | {"low": None}, ROW | {"p": None}, ROW | {TESTED_ERROR: 0.0}]
    table = with_detectable(pl.DataFrame(one_sided, infer_schema_length=None), 0.95)
    assert table["detectable"].to_list() == [None] * 3


@pytest.mark.parametrize(("drawn", "tests", "reaches"), [(999, 50, True), (999, 51, False)])
def test_with_detectable_is_null_where_draws_are_too_few(drawn, tests, reaches):
    table = adjusted(pl.DataFrame([ROW] * tests), least=least_p(drawn))
    assert table[LEAST][0] == pytest.approx(1 / 1000)
    assert with_detectable(table, 0.95)["detectable"].is_not_null().all() == reaches


@pytest.mark.parametrize("freedom", [5.0, 7.5, 40.0, 1e6])
@pytest.mark.parametrize("family", [1, 2, 40, 20_000])
def test_with_detectable_has_power_8_by_the_noncentral_t(freedom, family):
    reach = 0.1 * stdtrit(freedom, 0.975)
    row = {"low": -reach, "high": reach, "p": 0.5, DF: freedom, "family": family}
    effect = with_detectable(pl.DataFrame([row]), 0.95)["detectable"][0]
    critical = stdtrit(freedom, 1 - 0.025 / family)
    assert nct.sf(critical, freedom, effect / 0.1) == pytest.approx(0.8, abs=1e-4)


def test_with_detectable_needs_five_degrees_of_freedom():
    assert with_detectable(pl.DataFrame([ROW | {DF: 4.9}]), 0.95)["detectable"].to_list() == [None]


def test_with_detectable_is_of_the_error_that_is_tested():
    table = pl.DataFrame([ROW | {TESTED_ERROR: error} for error in (0.2, None)])
    effects = with_detectable(table, 0.95)["detectable"].to_list()
    assert effects == pytest.approx([2.801585 * 0.2, 2.801585 * 0.1], abs=1e-5)


@pytest.mark.parametrize("freedom", [0, 7])
def test_with_detectable_is_the_same_at_any_confidence(freedom):
    def effect(confidence):
        upper = (1 + confidence) / 2
        half = 0.1 * (stdtrit(freedom, upper) if freedom else ndtri(upper))
        row = {"low": 0.2 - half, "high": 0.2 + half, "p": 0.3, DF: freedom}
        return with_detectable(adjusted(pl.DataFrame([row] * 2)), confidence)["detectable"][0]

    assert effect(0.95) > 0.25
    assert effect(0.8) == pytest.approx(effect(0.95), abs=2e-6)
    assert effect(0.99) == pytest.approx(effect(0.95), abs=2e-6)


def test_with_detectable_correlations_has_power_8_by_fishers_z():
    rows = [{TESTED_ERROR: (n - 3) ** -0.5, "value": 0.1, "p": 0.5} for n in (10, 84, 500)]
    table = with_detectable_correlations(adjusted(pl.DataFrame(rows)))
    for error, r in table.select(TESTED_ERROR, "detectable").iter_rows():
        power = norm.sf(norm.isf(0.025 / 3) - np.arctanh(r) / error)
        assert power == pytest.approx(0.8, abs=1e-4)
