from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import t as student

from plumbline.probes.stats.crossed import combined, left_out, over_trainings


def test_two_by_two_worked_by_hand():
    # means 1 and 3 by pretraining: s^2 / 2 = 1; 1.5 and 2.5 by fine-tuning: 0.25; texts 0.5
    differences = np.array([[0.5, 1.5], [2.5, 3.5]])
    found = over_trainings(differences, 0.5, 51)
    total = 1 + 0.25 + 0.5
    df = total**2 / (1 + 0.25**2 + 0.5**2 / 50)
    assert found.value == 2
    assert found.p == pytest.approx(2 * student.sf(2 / total**0.5, df))
    assert found.high - 2 == pytest.approx(student.ppf(0.975, df) * total**0.5)


def test_one_seed_tells_nothing_of_trainings():
    for shape in ((1, 3), (3, 1)):
        found = over_trainings(np.ones(shape), 0.1, 50)
        assert found.value == 1
        assert np.isnan([found.low, found.high, found.p]).all()


def test_where_trainings_are_alike_texts_alone_count():
    found = over_trainings(np.full((3, 3), 0.2), 0.01, 401)
    assert found.p == pytest.approx(2 * student.sf(2, 400))


def test_no_difference_at_all_is_none():
    assert over_trainings(np.zeros((3, 3)), 0.0, 10) == (0, 0, 0, 1)


def test_intervals_over_texts_and_trainings_hold_the_truth_at_their_rate():
    print("seed 19")
    rng = np.random.default_rng(19)
    held, alone = 0, 0
    for _ in range(1000):
        texts = rng.normal(0, 1, 100)
        by_first, by_second = rng.normal(0, 0.15, (3, 1)), rng.normal(0, 0.1, (1, 3))
        differences = texts.mean() + by_first + by_second
        variance = texts.var(ddof=1) / 100
        found = over_trainings(differences, variance, 100)
        held += found.low <= 0 <= found.high
        alone += abs(differences.mean()) <= 1.96 * variance**0.5
    assert 0.93 <= held / 1000 <= 0.995
    assert alone / 1000 < 0.9  # texts alone take these trainings for all there are


def test_the_jackknife_of_a_mean_is_the_variance_of_a_mean():
    print("seed 23")
    values = np.random.default_rng(23).normal(size=7)
    means = np.array([np.delete(values, i).mean() for i in range(7)])
    variance, df = left_out(means)
    assert variance == pytest.approx(values.var(ddof=1) / 7)
    assert df == 6
    assert np.isnan(left_out(means[:1])[0])


def test_one_variance_is_student_s_t():
    found = combined(3.0, [(4.0, 5)])
    assert found.p == pytest.approx(2 * student.sf(1.5, 5))
    assert found.low == pytest.approx(3 - 2 * student.ppf(0.975, 5))
