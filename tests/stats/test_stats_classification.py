"""How well classifiers do: agreement, measures of two classes, votes."""

from __future__ import annotations

from itertools import permutations, product

import numpy as np
import pytest
from scipy.stats import binom

from plumbline.probes.stats.classification import (
    METRICS,
    agreement,
    cells,
    chance,
    dealt_p,
    difference,
    metrics,
    vote,
)

TRUE = np.array([0, 1, 2, 0, 1, 2])
GUESS = np.array([0, 2, 1, 0, 0, 1])


def test_agreement_worked_by_hand():
    # class 0: precision 2/3, recall 1, F1 0.8; the others have no hit
    found = agreement(TRUE, GUESS)
    assert found.accuracy.value == pytest.approx(2 / 6)
    assert found.macro_f1.value == pytest.approx(0.8 / 3)
    assert found.accuracy.n == 6


def test_difference_is_mcnemars_exact_test():
    # one alone is right on 9 texts, the other alone on 1: p = 2 * (1 + 10) / 2^10
    true = np.zeros(30, dtype=int)
    one = np.array([0] * 9 + [1] + [0] * 20)
    other = np.array([1] * 9 + [0] + [0] * 20)
    found = difference(true, one, other)
    assert found.p == pytest.approx(22 / 1024)
    assert found.accuracy.value == pytest.approx(8 / 30)
    assert found.accuracy.low > 0
    assert difference(true, other, one).accuracy.value == pytest.approx(-8 / 30)


def test_difference_of_equal_classifiers():
    found = difference(TRUE, GUESS, GUESS)
    assert (found.p, found.p_macro_f1, *found.accuracy[:3]) == (1, 1, 0, 0, 0)


def test_difference_randomised_worked_by_hand():
    # right on 3 or on 1 of 3: F1 is 1 or 2 * 1 / 4; with both texts swapped as far apart, with one
    # of them not at all: p is 1/2
    true = np.zeros(3, dtype=int)
    found = difference(true, true, np.array([1, 1, 0]), n_permutations=9999)
    assert found.macro_f1.value == pytest.approx(0.5)
    assert found.p_macro_f1 == pytest.approx(0.5, abs=0.02)


def test_difference_randomised_agrees_with_the_sign_test():
    true = np.zeros(10, dtype=int)
    found = difference(true, true, true + 1, n_permutations=20000)
    assert found.p == pytest.approx(2 / 1024)
    assert found.p_macro_f1 == pytest.approx(2 / 1024, abs=0.0012)


def test_chance_by_enumeration():
    true, predicted = np.array([0, 0, 1, 2, 2]), np.array([0, 1, 1, 2, 0])
    orders = [np.array(order) for order in permutations(predicted)]
    mean = [
        np.mean([getattr(agreement(true, order, n_bootstrap=1), of).value for order in orders])
        for of in ("accuracy", "macro_f1")
    ]
    assert chance(true, predicted) == pytest.approx(mean)


def test_agreement_refuses_other_lengths():
    with pytest.raises(ValueError, match="predictions"):
        agreement(TRUE, GUESS[:3])


TRUE_TWO = np.array([True] * 9 + [False] * 11)
FOUND = np.array([True] * 6 + [False] * 3 + [True] * 2 + [False] * 9)


def measured(true, predicted, weights=None):
    values = metrics(cells(true, predicted[None], weights))[0]
    return dict(zip(METRICS, values.T if weights is not None else values[0], strict=True))


def test_metrics_worked_by_hand():
    # 6 found of 9, 8 called so; F1 2 * 6 / (9 + 8); of the others 18 / (11 + 12)
    found = measured(TRUE_TWO, FOUND)
    assert found == pytest.approx(
        {
            "accuracy": 15 / 20,
            "balanced accuracy": (6 / 9 + 9 / 11) / 2,
            "F1": 12 / 17,
            "macro F1": (12 / 17 + 18 / 23) / 2,
            "precision": 6 / 8,
            "recall": 6 / 9,
        }
    )


def test_metrics_of_always_the_commoner_class():
    true = np.array([True] * 2 + [False] * 98)
    found = measured(true, np.zeros(100, dtype=bool))
    assert found["accuracy"] == pytest.approx(0.98)
    assert found["balanced accuracy"] == pytest.approx(0.5)
    assert (found["F1"], found["precision"], found["recall"]) == (0, 0, 0)


def test_metrics_without_a_class_are_nan():
    only = np.ones(4, dtype=bool)
    found = measured(only, np.array([True, True, True, False]))
    assert (found["accuracy"], found["recall"], found["precision"]) == (0.75, 0.75, 1)
    assert np.isnan([found["balanced accuracy"], found["macro F1"]]).all()
    found = measured(~only, np.array([True, True, True, False]))
    assert found["accuracy"] == 0.25
    assert np.isnan([found["F1"], found["precision"], found["recall"]]).all()


def test_cells_weights_repeat_texts():
    weights = np.array([[2.0, 0.0]] * 10 + [[1.0, 3.0]] * 10)
    found = metrics(cells(TRUE_TWO, FOUND[None], weights))[0]
    for column in range(2):
        often = weights[:, column].astype(int)
        whole = metrics(cells(TRUE_TWO.repeat(often), FOUND.repeat(often)[None]))[0, 0]
        np.testing.assert_allclose(found[column], whole, equal_nan=True)


@pytest.mark.parametrize("voters", [1, 3, 5, 7])
def test_vote_accuracy_of_a_majority_is_that_of_all_patterns(voters):
    patterns = np.array(list(product([0.0, 1.0], repeat=voters)))
    chance = np.where(patterns > 0, 0.7, 0.3).prod(axis=1)
    assert binom.sf(voters // 2, voters, 0.7) == pytest.approx(chance @ vote(patterns.T))


def test_vote_ties_are_decided_by_the_mean():
    ties = np.array([[0.9, 0.6, 0.5], [0.4, 0.1, 0.5]])
    assert vote(ties).tolist() == [True, False, False]  # one half is not above one half


def test_dealt_p_agrees_with_permutations():
    rng = np.random.default_rng(11)
    true, guess = rng.integers(0, 3, 30), rng.integers(0, 3, 30)
    guess[:3] = true[:3]

    def f1(labels):
        hits = np.array([((labels == c) & (true == c)).sum() for c in range(3)])
        both = np.array([(labels == c).sum() + (true == c).sum() for c in range(3)])
        return (2 * hits / both).mean()

    dealt = np.array([f1(rng.permutation(guess)) for _ in range(4000)])
    middle = chance(true, guess).macro_f1
    expected = (np.abs(dealt - middle) >= abs(f1(guess) - middle) - 1e-12).mean()
    assert 0.001 < expected < 0.5
    assert dealt_p(true, guess, 20_000, 3) == pytest.approx(expected, abs=0.03)
