from __future__ import annotations

import numpy as np
import pytest

from probes.stats.classification import agreement, difference

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
    assert (found.p, *found.accuracy[:3]) == (1, 0, 0, 0)


def test_lengths_must_agree():
    with pytest.raises(ValueError, match="as many predictions as texts"):
        agreement(TRUE, GUESS[:3])
