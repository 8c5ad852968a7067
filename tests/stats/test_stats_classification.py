from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from plumbline.probes.stats.classification import agreement, chance, difference

TRUE = np.array([0, 1, 2, 0, 1, 2])
GUESS = np.array([0, 2, 1, 0, 0, 1])


def test_the_worked_example_of_a_macro_average():
    # class 0: precision 2/3, recall 1, F1 0.8; the others have no hit
    found = agreement(TRUE, GUESS)
    assert found.accuracy.value == pytest.approx(2 / 6)
    assert found.macro_f1.value == pytest.approx(0.8 / 3)
    assert found.accuracy.n == 6


def test_every_class_counts_alike_however_rare():
    true = np.array([0] * 98 + [1] * 2)
    found = agreement(true, np.zeros(100, dtype=int))
    assert found.accuracy.value == pytest.approx(0.98)
    assert found.macro_f1.value == pytest.approx(2 * 98 / 198 / 2)


def test_perfect_predictions_have_no_interval():
    found = agreement(TRUE, TRUE)
    assert found.accuracy[:3] == (1, 1, 1)


def test_intervals_cover_the_truth_at_their_rate():
    print("seed 7")
    draw = np.random.default_rng(7)
    covered = 0
    for _ in range(300):
        true = draw.integers(0, 3, 200)
        right = draw.random(200) < 0.6
        found = agreement(true, np.where(right, true, (true + 1) % 3), bootstrap=300).accuracy
        covered += found.low <= 0.6 <= found.high
    assert 0.90 <= covered / 300 <= 0.98


def test_mcnemar_is_the_exact_sign_test_of_the_texts_that_differ():
    # one alone is right on 9 texts, the other alone on 1: p = 2 * (1 + 10) / 2^10
    true = np.zeros(30, dtype=int)
    one = np.array([0] * 9 + [1] + [0] * 20)
    other = np.array([1] * 9 + [0] + [0] * 20)
    found = difference(true, one, other)
    assert found.p == pytest.approx(22 / 1024)
    assert found.accuracy.value == pytest.approx(8 / 30)
    assert found.accuracy.low > 0
    assert difference(true, other, one).accuracy.value == pytest.approx(-8 / 30)


def test_equal_classifiers_do_not_differ():
    found = difference(TRUE, GUESS, GUESS)
    assert (found.p, found.p_macro_f1, *found.accuracy[:3]) == (1, 1, 0, 0, 0)


def test_swapping_two_texts_leaves_half_of_the_orders_as_extreme():
    # right on 3 or on 1 of 3: F1 is 1 or 2 * 1 / 4; with both texts swapped as far apart, with one
    # of them not at all: p is 1/2
    true = np.zeros(3, dtype=int)
    found = difference(true, true, np.array([1, 1, 0]), permutations=9999)
    assert found.macro_f1.value == pytest.approx(0.5)
    assert found.p_macro_f1 == pytest.approx(0.5, abs=0.02)


def test_randomisation_agrees_with_the_sign_test_where_all_texts_differ():
    true = np.zeros(10, dtype=int)
    found = difference(true, true, true + 1, permutations=20000)
    assert found.p == pytest.approx(2 / 1024)
    assert found.p_macro_f1 == pytest.approx(2 / 1024, abs=0.0012)


def test_randomisation_of_two_equally_good_classifiers_finds_at_its_rate():
    print("seed 11")
    draw = np.random.default_rng(11)
    found = 0
    for seed in range(300):
        true = draw.integers(0, 3, 90)
        one, other = (
            np.where(draw.random(90) < 0.6, true, draw.integers(0, 3, 90)) for _ in range(2)
        )
        p = difference(true, one, other, bootstrap=2, permutations=199, seed=seed).p_macro_f1
        found += p <= 0.05
    assert 0.02 <= found / 300 <= 0.09


def test_chance_is_the_mean_over_all_orders():
    true, predicted = np.array([0, 0, 1, 2, 2]), np.array([0, 1, 1, 2, 0])
    orders = [np.array(order) for order in permutations(predicted)]
    mean = [
        np.mean([getattr(agreement(true, order, bootstrap=1), of).value for order in orders])
        for of in ("accuracy", "macro_f1")
    ]
    assert chance(true, predicted) == pytest.approx(mean)


def test_lengths_must_agree():
    with pytest.raises(ValueError, match="as many predictions as texts"):
        agreement(TRUE, GUESS[:3])
