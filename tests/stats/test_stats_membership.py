from fractions import Fraction

import numpy as np
import pytest

from plumbline.probes.stats.intervals import newcombe, wilson
from plumbline.probes.stats.shares import (
    COUNTINGS,
    alone,
    compare,
    leading,
    leading_shares,
    membership,
)
from plumbline.probes.stats.tests import permutation_test

SEED = 1414


def one_hot(classes, number):
    return np.eye(number)[np.asarray(classes)]


def test_the_largest_are_above_zero_and_ties_keep_their_order():
    values = np.array([0.5, -1.0, 2.0, 0.5, 0.0, np.nan, -np.inf, 0.1])
    assert leading(values, 3).tolist() == [2, 0, 3]
    assert leading(values, 100).tolist() == [2, 0, 3, 7]
    assert leading(np.array([-1.0, 0.0]), 5).tolist() == []


def test_shares_of_replicates_are_those_of_each_ones_largest():
    print("seed", SEED)
    rng = np.random.default_rng(SEED)
    parts = rng.dirichlet(np.ones(4), 40)
    values = rng.normal(-0.5, 1, (30, 40))  # often fewer than 15 are above 0
    values[rng.random(values.shape) < 0.1] = np.nan
    found = leading_shares(values, parts, 15)
    each = [parts[leading(row, 15)].mean(axis=0) for row in values]
    assert found == pytest.approx(np.array(each))
    assert len({len(leading(row, 15)) for row in values}) > 1
    assert leading_shares(-np.ones((1, 40)), parts, 15).tolist() == [[0, 0, 0, 0]]


def test_of_each_lemma_the_largest_form_of_a_replicate_is_left():
    values = np.array([[1.0, 5.0, 2.0, 2.0], [3.0, -1.0, np.nan, 1.0], [np.nan] * 4])
    found = alone(values, ["say", "run", "say", "say"])
    assert np.nan_to_num(found, nan=-9).tolist() == [
        [-9, 5, 2, -9],
        [3, -1, -9, -9],
        [-9] * 4,
    ]
    assert values[0].tolist() == [1, 5, 2, 2]


def test_three_ways_to_count_a_word_of_two_classes():
    weights = np.array([[0.5, 0.5, 0.0], [0.2, 0.7, 0.1]])
    best = np.array([[True, True, False], [False, True, False]])
    assert membership(weights, best, "best").tolist() == [[0.5, 0.5, 0], [0, 1, 0]]
    assert membership(weights, best, "fractional").tolist() == weights.tolist()
    assert membership(weights, best, "each").tolist() == [[1, 1, 0], [1, 1, 1]]


@pytest.mark.parametrize("counting", ["best", "fractional"])
def test_shares_of_all_classes_sum_to_one_and_their_differences_to_zero(counting):
    print("seed", SEED)
    rng = np.random.default_rng(SEED)
    weights = rng.dirichlet(np.ones(13), 60)
    best = weights == weights.max(axis=1, keepdims=True)
    parts = membership(weights, best, counting)
    found = compare(parts[:25], parts[25:], 50, 1)
    assert sum(c.first.value for c in found) == pytest.approx(1)
    assert sum(c.second.value for c in found) == pytest.approx(1)
    assert sum(c.difference.value for c in found) == pytest.approx(0, abs=1e-12)


def test_all_countings_agree_where_every_word_has_one_class():
    classes = one_hot([0, 1, 2, 1, 0], 3)
    for counting in COUNTINGS:
        assert (membership(classes, classes > 0, counting) == classes).all()


def test_a_word_without_a_class_and_an_unknown_counting_are_refused():
    empty = np.zeros((1, 3))
    with pytest.raises(ValueError, match="no class"):
        membership(empty, empty > 0, "best")
    with pytest.raises(ValueError, match="'most' is none of best, fractional, each"):
        membership(one_hot([0], 3), one_hot([0], 3) > 0, "most")


def test_30_of_100_words_against_15_of_100():
    first = one_hot([0] * 30 + [1] * 70, 3)
    second = one_hot([0] * 15 + [2] * 85, 3)
    found = compare(first, second, 10, 1)[0]
    assert found.exact
    assert found.p == pytest.approx(0.017149, abs=5e-7)
    assert found.difference == newcombe((30, 15), (100, 100))
    assert found.first == wilson(30, 100)
    assert found.second == wilson(15, 100)
    assert found.difference.low > 0  # interval and test say the same here


def test_thirds_of_a_word_sum_to_whole_words():
    thirds = np.full((3, 3), 1 / 3)
    found = compare(thirds, thirds, 20, 1)
    assert all(c.difference.value == 0 for c in found)
    assert all(c.p == 1 for c in found)
    assert found[0].first.value == pytest.approx(float(Fraction(1, 3)))


def test_the_p_of_parts_is_that_of_the_permutation_test_with_the_seed():
    print("seed", SEED)
    rng = np.random.default_rng(SEED)
    parts = rng.dirichlet(np.ones(4), 60)
    found = [c.p for c in compare(parts[:30], parts[30:], 300, 7)]
    assert found == permutation_test(parts[:30], parts[30:], 300, 7).p.tolist()


def test_swapping_the_lists_mirrors_everything():
    first, second = one_hot([0] * 12 + [1] * 8, 2), one_hot([0] * 4 + [1] * 11, 2)
    for there, back in zip(compare(first, second, 9, 1), compare(second, first, 9, 1), strict=True):
        assert there.first == back.second
        assert there.difference.value == -back.difference.value
        assert there.difference.low == pytest.approx(-back.difference.high)
        assert there.p == pytest.approx(back.p)


def test_a_planted_class_is_found_and_lists_from_one_population_are_not_told_apart():
    print("seed", SEED)
    rng = np.random.default_rng(SEED)
    even = np.full(13, 1 / 13)
    leaning = even.copy()
    leaning[4] += 0.3
    leaning /= leaning.sum()
    planted, null = [], []
    for _ in range(200):
        base = one_hot(rng.choice(13, 100, p=even), 13)
        planted.append(compare(one_hot(rng.choice(13, 100, p=leaning), 13), base, 9, 1)[4])
        null.append(compare(one_hot(rng.choice(13, 100, p=even), 13), base, 9, 1)[4])
    assert np.mean([c.p <= 0.05 for c in planted]) > 0.95
    # discrete tests stay below the level; 4 standard errors above it
    assert np.mean([c.p <= 0.05 for c in null]) <= 0.05 + 4 * (0.05 * 0.95 / 200) ** 0.5
    truth = leaning[4] - even[4]
    held = np.mean([c.difference.low <= truth <= c.difference.high for c in planted])
    assert 0.9 <= held <= 0.995
