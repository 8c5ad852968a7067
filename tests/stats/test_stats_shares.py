"""Shares of classes among the words that deviate most."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from plumbline.probes.stats import shares
from plumbline.probes.stats.intervals import newcombe, wilson
from plumbline.probes.stats.shares import (
    compare,
    leading,
    leading_shares,
)
from plumbline.probes.stats.tests import permutation_p, permutation_test

SEED = 41


def test_largest_of_equal_deviations_is_the_first():
    assert shares.largest(np.array([1.0, 3.0, 3.0, 1.0]), 3).tolist() == [1, 2, 0]
    with pytest.raises(ValueError, match="5"):
        shares.largest(np.zeros(4), 5)


def by_hand():
    """Three men with words 0 and 1, three women with words 2 and 3; one man has 2 for 1."""
    rows = [[1, 1, 0, 0], [1, 1, 0, 0], [1, 0, 1, 0], [0, 0, 1, 1], [0, 0, 1, 1], [0, 0, 1, 1]]
    return csr_array(np.array(rows, dtype=np.float64)), np.array([0, 0, 0, 1, 1, 1])


def test_name_shares_worked_by_hand():
    # men: 0 (3 of 3), 1 (2 of 2), 2 (1 of 4), 3 (0 of 3); women: 3, 2, 1, 0
    # half a list more in each cell: 0 and 1 first for men, 3 and 2 for women
    lists, groups = by_hand()
    found = shares.NameShares(lists, groups, np.array([0, 1, 1, 2]), 2, 3, 0.5).seen()
    assert found.tolist() == [[0.5, 0.5, 0.0], [0.0, 0.5, 0.5]]
    found = shares.NameShares(lists, groups, np.array([0, 1, 1, 2]), 1, 3, 0.5).seen()
    assert found.tolist() == [[1, 0, 0], [0, 0, 1]]


def test_name_shares_of_all_words_are_the_base():
    lists, groups = by_hand()
    found = shares.NameShares(lists, groups, np.array([0, 1, 1, 2]), 4, 3, 0.5).resampled(20, SEED)
    assert found.shape == (20, 2, 3)
    assert (found == [0.25, 0.5, 0.25]).all()


def drawn(rng, names, words, effect, length=10):
    """Return lists whose odds depend on gender, and their classes."""
    classes = np.arange(words) % 3
    side = np.array([1.0, -1.0, 0.0])[classes]
    groups = np.arange(names) % 2
    taste = rng.normal(0, 1, (names, words)) + (groups - 0.5)[:, None] * effect * side
    best = np.argsort(-taste, axis=1)[:, :length]
    lists = np.zeros((names, words))
    np.put_along_axis(lists, best, 1, axis=1)
    return csr_array(lists), groups, classes


def test_name_shares_find_what_is_planted():
    lists, groups, classes = drawn(np.random.default_rng(SEED), 200, 60, 1.5)
    ranked = shares.NameShares(lists, groups, classes, 20, 3, 0.5)
    seen, null = ranked.seen(), ranked.permuted(199, SEED)
    assert seen[1, 0] > 0.9  # the second group has the first class
    assert seen[0, 1] > 0.9
    p = permutation_p(seen[0, 0] - seen[1, 0], null[:, 0, 0] - null[:, 1, 0])
    assert p == 1 / 200


def test_permuted_leaves_a_third_group():
    lists, groups = by_hand()
    third = csr_array(np.vstack([lists.toarray(), [[0, 0, 0, 1.0]]]))
    given = (np.array([*groups, 2]), np.array([0, 1, 1, 2]), 1, 3, 0.5)
    found = shares.NameShares(third, *given).permuted(30, SEED)
    assert (found[:, 2] == [0, 0, 1]).all()
    assert len(np.unique(found[:, 0], axis=0)) > 1


def test_symmetric_worked_by_hand():
    drawn = np.linspace(0.5, 0.7, 101)  # all on one side of the estimate
    low, high = shares.symmetric(drawn, 0.75, 0.95, 0.0)
    assert (low + high) / 2 == pytest.approx(0.75)
    assert high - 0.75 == pytest.approx(0.25 - 0.05 * 0.2)  # 0.51 is as far as 95 in 100 go
    assert shares.symmetric(drawn, 0.9, 0.95, 0.0)[1] == 1
    assert shares.symmetric(-drawn, -0.9, 0.95, -1.0)[0] == -1


SEED_MEMBERSHIP = 1414


def one_hot(classes, number):
    return np.eye(number)[np.asarray(classes)]


def test_leading_are_above_zero_in_order():
    values = np.array([0.5, -1.0, 2.0, 0.5, 0.0, np.nan, -np.inf, 0.1])
    assert leading(values, 3).tolist() == [2, 0, 3]
    assert leading(values, 100).tolist() == [2, 0, 3, 7]
    assert leading(np.array([-1.0, 0.0]), 5).tolist() == []


def test_leading_shares_of_replicates():
    rng = np.random.default_rng(SEED_MEMBERSHIP)
    parts = rng.dirichlet(np.ones(4), 40)
    values = rng.normal(-0.5, 1, (30, 40))  # often fewer than 15 are above 0
    values[rng.random(values.shape) < 0.1] = np.nan
    found = leading_shares(values, parts, 15)
    each = [parts[leading(row, 15)].mean(axis=0) for row in values]
    assert found == pytest.approx(np.array(each))
    assert len({len(leading(row, 15)) for row in values}) > 1
    assert leading_shares(-np.ones((1, 40)), parts, 15).tolist() == [[0, 0, 0, 0]]


def test_compare_shares_sum_to_one():
    parts = np.random.default_rng(SEED_MEMBERSHIP).dirichlet(np.ones(13), 60)
    found = compare(parts[:25], parts[25:], 50, 1)
    assert sum(c.first.value for c in found) == pytest.approx(1)
    assert sum(c.second.value for c in found) == pytest.approx(1)
    assert sum(c.difference.value for c in found) == pytest.approx(0, abs=1e-12)


def test_compare_30_with_15_of_100_words():
    first = one_hot([0] * 30 + [1] * 70, 3)
    second = one_hot([0] * 15 + [2] * 85, 3)
    found = compare(first, second, 10, 1)[0]
    assert found.exact
    assert found.p == pytest.approx(0.017149, abs=5e-7)
    assert found.difference == newcombe((30, 15), (100, 100))
    assert found.first == wilson(30, 100)
    assert found.second == wilson(15, 100)
    assert found.difference.low > 0  # interval and test say the same here


def test_compare_thirds_of_words():
    thirds = np.full((3, 3), 1 / 3)
    found = compare(thirds, thirds, 20, 1)
    assert all(c.difference.value == 0 for c in found)
    assert all(c.p == 1 for c in found)
    assert found[0].first.value == pytest.approx(1 / 3)


def test_compare_p_is_that_of_the_permutation_test():
    rng = np.random.default_rng(SEED_MEMBERSHIP)
    parts = rng.dirichlet(np.ones(4), 60)
    found = [c.p for c in compare(parts[:30], parts[30:], 300, 7)]
    assert found == permutation_test(parts[:30], parts[30:], 300, 7).p.tolist()
