"""Intervals where several kinds of samples are crossed."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import t as student
from scipy.stats import ttest_1samp, ttest_ind

from plumbline.probes.stats.crossed import (
    estimated,
    left_out,
    of_difference,
    of_mean,
    of_total,
    over_trainings,
    own_part,
)

SEED = 42


def half_width(parts, confidence):
    found = estimated(0.0, parts, confidence)
    return (found.high - found.low) / 2


def two_sided_p(value, parts):
    return estimated(value, parts).p


def test_estimated_is_students_t_or_welchs():
    rng = np.random.default_rng(SEED)
    one, two = rng.normal(1, 1, 7), rng.normal(0, 3, 5)
    student = ttest_1samp(one, 0)
    assert two_sided_p(one.mean(), [of_mean(one)]) == pytest.approx(student.pvalue)
    low, high = student.confidence_interval(0.9)
    assert half_width([of_mean(one)], 0.9) == pytest.approx((high - low) / 2)
    welch = ttest_ind(one, two, equal_var=False)
    parts = [of_mean(one), of_mean(two)]
    assert two_sided_p(one.mean() - two.mean(), parts) == pytest.approx(welch.pvalue)
    low, high = welch.confidence_interval(0.95)
    assert half_width(parts, 0.95) == pytest.approx((high - low) / 2)


def test_of_total_is_a_multiple_of_of_mean():
    values = [1.0, 2.0, 4.0, 7.0]
    assert half_width([of_total(values)], 0.95) == pytest.approx(
        4 * half_width([of_mean(values)], 0.95)
    )


def test_estimated_without_spread():
    assert np.isnan(half_width([of_mean([3.0]), of_total([2.0])], 0.95))
    assert np.isnan(two_sided_p(3.0, [of_mean([3.0])]))
    one = [of_mean([3.0]), of_mean([1.0, 2.0])]
    assert half_width(one, 0.95) == half_width(one[1:], 0.95)
    assert half_width([of_mean([2.0, 2.0])], 0.95) == 0
    assert np.isnan(two_sided_p(2.0, [of_mean([2.0, 2.0])]))


def test_over_trainings_worked_by_hand():
    # 1, 2 and 3: s^2 / 3 = 1 / 3; texts 0.5, of which 0.2 is in that already
    for own in (0.0, 0.2):
        found = over_trainings(np.array([1.0, 2.0, 3.0]), 0.5, 51, overlap=own)
        total = 1 / 3 + 0.5 - own
        df = total**2 / ((1 / 3) ** 2 / 2 + 0.5**2 / 50)
        assert found.value == 2
        assert found.p == pytest.approx(2 * student.sf(2 / total**0.5, df))
        assert found.high - 2 == pytest.approx(student.ppf(0.975, df) * total**0.5)
    # never less than the largest part
    found = over_trainings(np.array([1.0, 2.0, 3.0]), 0.5, 51, overlap=9.0)
    df = 0.5**2 / ((1 / 3) ** 2 / 2 + 0.5**2 / 50)
    assert found.high - 2 == pytest.approx(student.ppf(0.975, df) * 0.5**0.5)


def test_of_difference_of_equal_sizes_is_pooled():
    rng = np.random.default_rng(SEED)
    for sizes, pooled in (((3, 3), True), ((5, 5), True), ((3, 4), False)):
        one, two = (rng.normal(0, 1, size) for size in sizes)
        p = two_sided_p(one.mean() - two.mean(), of_difference(one, two))
        assert p == pytest.approx(ttest_ind(one, two, equal_var=pooled).pvalue)


def test_left_out_of_a_mean_is_its_variance():
    print("seed 23")
    values = np.random.default_rng(23).normal(size=7)
    means = np.array([np.delete(values, i).mean() for i in range(7)])
    variance, df = left_out(means)
    assert variance == pytest.approx(values.var(ddof=1) / 7)
    assert df == 6
    assert np.isnan(left_out(means[:1])[0])


def test_over_trainings_of_one_or_of_equal_trainings():
    one = over_trainings(np.ones(1), 0.1, 50)
    assert one.value == 1
    assert np.isnan([one.low, one.high, one.p]).all()
    alike = over_trainings(np.full(3, 0.2), 0.01, 401)
    assert alike.p == pytest.approx(2 * student.sf(2, 400))  # texts alone count
    assert np.isnan(over_trainings(np.full(3, 0.2), 0.0, 10).p)
    assert over_trainings(np.zeros(3), 0.0, 10)[:5] == (0, 0, 0, 1, 0)


def test_own_part():
    rng = np.random.default_rng(SEED)
    many = rng.normal(0, 2, 200_000) + rng.normal(0, 3, (4, 200_000))
    assert own_part(many) == pytest.approx(3**2 / 4, rel=0.02)
    assert own_part(many[:1]) == 0
    drawn = np.array([[1.0, 1.0, -1.0, -1.0], [1.0, -1.0, 1.0, -1.0]])
    lost = np.column_stack([drawn, [np.nan, 5.0]])
    assert own_part(lost) == pytest.approx(own_part(drawn))
    assert own_part(drawn) > 0
    assert np.isnan(own_part(np.full((2, 3), np.nan)))  # nothing is known: not that it is none
