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


def test_one_sample_is_students_t_and_two_are_welchs():
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


def test_three_trainings_worked_by_hand():
    # 1, 2 and 3: s^2 / 3 = 1 / 3; texts 0.5, of which 0.2 is in that already
    for own in (0.0, 0.2):
        found = over_trainings(np.array([1.0, 2.0, 3.0]), 0.5, 51, own=own)
        total = 1 / 3 + 0.5 - own
        df = total**2 / ((1 / 3) ** 2 / 2 + 0.5**2 / 50)
        assert found.value == 2
        assert found.p == pytest.approx(2 * student.sf(2 / total**0.5, df))
        assert found.high - 2 == pytest.approx(student.ppf(0.975, df) * total**0.5)
    # never less than the largest part
    found = over_trainings(np.array([1.0, 2.0, 3.0]), 0.5, 51, own=9.0)
    df = 0.5**2 / ((1 / 3) ** 2 / 2 + 0.5**2 / 50)
    assert found.high - 2 == pytest.approx(student.ppf(0.975, df) * 0.5**0.5)


@pytest.mark.parametrize(
    ("trainings", "words", "by_word"), [(3, 32, 0.0), (5, 32, 0.5), (3, 100, 0)]
)
def test_where_words_differ_between_trainings_a_true_null_is_rejected_at_its_rate(
    trainings, words, by_word
):
    rng, small = np.random.default_rng(SEED), 0
    for _ in range(2000):
        drawn = rng.normal(0, 0.3, (trainings, 1)) + rng.normal(0, 1, (trainings, words))
        drawn += rng.normal(0, by_word, words)
        each = (drawn.var(axis=1, ddof=1) / words).mean()
        whole = drawn.mean(axis=0).var(ddof=1) / words
        own = max(0.0, (each - whole) / (trainings - 1))
        small += over_trainings(drawn.mean(axis=1), whole, words, own=own).p <= 0.05
    print(small / 2000)
    assert 0.03 <= small / 2000 <= 0.07


def test_what_pretrainings_have_by_themselves_of_the_variance_over_texts():
    seed = 5
    print("seed", seed)
    rng = np.random.default_rng(seed)
    drawn = rng.normal(0, 2, 200_000) + rng.normal(0, 3, (4, 200_000))
    assert own_part(drawn) == pytest.approx(3**2 / 4, rel=0.02)
    assert own_part(drawn[:1]) == 0
    assert own_part(np.repeat(drawn[:1], 3, axis=0)) == pytest.approx(0, abs=1e-9)


def test_of_equally_many_trainings_the_variance_is_pooled():
    rng = np.random.default_rng(SEED)
    for sizes, pooled in (((3, 3), True), ((5, 5), True), ((3, 4), False)):
        one, two = (rng.normal(0, 1, size) for size in sizes)
        p = two_sided_p(one.mean() - two.mean(), of_difference(one, two))
        assert p == pytest.approx(ttest_ind(one, two, equal_var=pooled).pvalue)


def slow(*values):
    return pytest.param(*values, marks=pytest.mark.slow)


@pytest.mark.parametrize(
    ("trainings", "sides", "power"),
    [
        *((3, 2, (0.29, 0.78)), slow(5, 2, (0.55, 0.98)), slow(10, 2, (0.89, 1.0))),
        # of differences
        *((3, 4, (0.21, 0.62)), slow(5, 4, (0.35, 0.88)), slow(10, 4, (0.64, 1.0))),
    ],
)
def test_a_shift_over_trainings_is_found_at_its_rate(trainings, sides, power):
    rng = np.random.default_rng(SEED)
    for spread in (1.0, 2.0):  # SDs of one side: alike, or twice the other's
        hits = np.zeros(3)
        for _ in range(4000):
            drawn = [rng.normal(0, 1 if i else spread, trainings) for i in range(sides)]
            signs, parts = (1, -1, -1, 1)[:sides], of_difference(*drawn)
            apart = sum(sign * own.mean() for sign, own in zip(signs, drawn, strict=True))
            hits += [two_sided_p(apart + shift, parts) <= 0.05 for shift in (0.0, 1.5, 3.0)]
        size, *found = hits / 4000
        print(trainings, spread, size, found)
        assert 0.03 <= size <= 0.07
        if spread == 1:
            assert found == pytest.approx(power, abs=0.04)


def test_one_seed_tells_nothing_of_trainings():
    found = over_trainings(np.ones(1), 0.1, 50)
    assert found.value == 1
    assert np.isnan([found.low, found.high, found.p]).all()


def test_where_trainings_are_alike_texts_alone_count():
    found = over_trainings(np.full(3, 0.2), 0.01, 401)
    assert found.p == pytest.approx(2 * student.sf(2, 400))


def test_intervals_over_texts_and_trainings_hold_the_truth_at_their_rate():
    print("seed 19")
    rng = np.random.default_rng(19)
    held, alone = 0, 0
    for _ in range(1000):
        texts = rng.normal(0, 1, 100)
        differences = texts.mean() + rng.normal(0, 0.2, 5)
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


def test_without_spread_there_is_no_evidence_of_a_difference_and_none_is_none():
    assert np.isnan(over_trainings(np.full(3, 0.2), 0.0, 10).p)
    assert over_trainings(np.zeros(3), 0.0, 10)[:5] == (0, 0, 0, 1, 0)


def test_replicates_without_a_number_are_left_out_of_what_pretrainings_have_of_their_own():
    drawn = np.array([[1.0, 1.0, -1.0, -1.0], [1.0, -1.0, 1.0, -1.0]])
    lost = np.column_stack([drawn, [np.nan, 5.0]])
    assert own_part(lost) == pytest.approx(own_part(drawn))
    assert own_part(drawn) > 0
    assert np.isnan(own_part(np.full((2, 3), np.nan)))  # nothing is known: not that it is none
