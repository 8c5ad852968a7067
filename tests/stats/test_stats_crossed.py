import numpy as np
import pytest
from scipy.stats import ttest_1samp, ttest_ind

from plumbline.probes.stats.crossed import half_width, of_mean, of_total, two_sided_p

SEED = 42


def test_one_sample_is_students_t_and_two_are_welchs():
    print("seed", SEED)
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


def test_a_total_is_as_uncertain_as_so_many_means():
    values = [1.0, 2.0, 4.0, 7.0]
    assert half_width([of_total(values)], 0.95) == pytest.approx(
        4 * half_width([of_mean(values)], 0.95)
    )


def test_one_of_a_kind_tells_nothing_and_no_spread_is_no_evidence():
    assert np.isnan(half_width([of_mean([3.0]), of_total([2.0])], 0.95))
    assert np.isnan(two_sided_p(3.0, [of_mean([3.0])]))
    one = [of_mean([3.0]), of_mean([1.0, 2.0])]
    assert half_width(one, 0.95) == half_width(one[1:], 0.95)
    assert half_width([of_mean([2.0, 2.0])], 0.95) == 0
    assert np.isnan(two_sided_p(2.0, [of_mean([2.0, 2.0])]))


def test_intervals_over_trainings_hold_their_mean():
    print("seed", SEED)
    rng = np.random.default_rng(SEED)
    held = []
    for _ in range(2000):  # trainings, prompts and statements vary alike; the truth is 0
        trainings, prompts = rng.normal(0, 1, (3, 1, 1)), rng.normal(0, 1, (1, 5, 1))
        told = trainings + prompts + rng.normal(0, 2, 20) + rng.normal(0, 1, (3, 5, 20))
        parts = [
            of_total(told.mean(axis=(0, 1)) / 20),
            of_mean(told.mean(axis=(0, 2))),
            of_mean(told.mean(axis=(1, 2))),
        ]
        held.append(abs(told.mean()) <= half_width(parts, 0.95))
    print(np.mean(held))
    assert 0.93 <= np.mean(held) <= 0.985
