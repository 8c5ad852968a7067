from fractions import Fraction
from itertools import combinations
from math import comb

import numpy as np
import pytest
from scipy.stats import fisher_exact
from scipy.stats import permutation_test as scipy_permutation_test

from plumbline.probes.stats import tests as permutation
from plumbline.probes.stats.tests import permutation_test

SEED = 2718


def binary(ones, size):
    return (np.arange(size) < ones).astype(float)[:, None]


def test_30_of_100_against_15_of_100_by_all_three_definitions():
    found = permutation_test(binary(30, 100), binary(15, 100), 1, 1)
    assert found.difference[0] == pytest.approx(0.15)
    assert found.exact[0]
    assert found.p[0] == pytest.approx(0.017149, abs=5e-7)
    ways = [comb(45, x) * comb(155, 100 - x) for x in range(46)]
    as_rare = sum(w for w in ways if w <= ways[30])
    as_far = sum(w for x, w in enumerate(ways) if abs(x - (45 - x)) >= 15)
    doubled = 2 * sum(ways[30:])
    assert as_rare == as_far == doubled
    assert found.p[0] == pytest.approx(float(Fraction(as_far, sum(ways))), rel=1e-12)


def test_fishers_lady_and_her_tea():
    # Fisher (1935): all eight cups right has 1 of 70 ways to either side
    found = permutation_test(binary(4, 4), binary(0, 4), 1, 1)
    assert found.p[0] == pytest.approx(2 / 70)


def test_equally_large_groups_are_fishers_exact_test():
    print("seed", SEED)
    rng = np.random.default_rng(SEED)
    for _ in range(100):
        n = int(rng.integers(1, 60))
        one, two = rng.integers(0, n + 1, 2)
        p = permutation_test(binary(one, n), binary(two, n), 1, 1).p[0]
        assert p == pytest.approx(fisher_exact([[one, n - one], [two, n - two]]).pvalue), (one, two)


def test_groups_of_two_sizes_by_enumeration():
    print("seed", SEED)
    rng = np.random.default_rng(SEED)
    for n, m in ((3, 6), (5, 2), (4, 7)):
        values = (rng.random(n + m) < 0.4).astype(int)
        values[0] = 1
        seen = abs(Fraction(int(values[:n].sum()), n) - Fraction(int(values[n:].sum()), m))
        splits = list(combinations(range(n + m), n))
        far = 0
        for chosen in splits:
            inside = int(values[list(chosen)].sum())
            far += abs(Fraction(inside, n) - Fraction(int(values.sum()) - inside, m)) >= seen
        found = permutation_test(values[:n, None] * 1.0, values[n:, None] * 1.0, 1, 1)
        assert found.p[0] == pytest.approx(far / len(splits))


def test_a_published_example_of_real_values():
    # Good's cell cultures with and without vitamin E: 2 of 20 splits are as far apart
    one, two = np.array([[121.0, 118, 110]]).T, np.array([[34.0, 22, 12]]).T
    found = permutation_test(one, two, 1, 1)
    assert found.exact[0]
    assert found.p[0] == pytest.approx(2 / 20)


def test_real_values_are_gone_through_like_another_program_does():
    print("seed", SEED)
    rng = np.random.default_rng(SEED)
    one, two = rng.random((6, 3)), rng.random((5, 3)) + 0.2
    found = permutation_test(one, two, 1, 1)

    def distance(x, y, axis):
        return np.abs(x.mean(axis=axis) - y.mean(axis=axis))

    other = scipy_permutation_test(
        (one, two), distance, n_resamples=np.inf, vectorized=True, alternative="greater"
    )
    assert found.exact.all()
    assert found.p == pytest.approx(other.pvalue)
    assert np.abs(found.difference) == pytest.approx(other.statistic)


def test_drawn_splits_come_near_the_exact_answer_and_are_the_same_for_a_seed():
    one, two = binary(30, 100), binary(15, 100)
    half = np.concatenate([one, one / 2], axis=1), np.concatenate([two, two / 2], axis=1)
    found = permutation_test(*half, 20_000, SEED)
    assert found.exact.tolist() == [True, False]
    # halved values have the same p; 4 standard errors of 20,000 draws
    assert found.p[1] == pytest.approx(found.p[0], abs=4 * (0.0171 * 0.983 / 20_000) ** 0.5)
    assert permutation_test(*half, 20_000, SEED).p[1] == found.p[1]
    assert permutation_test(*half, 20_000, SEED + 1).p[1] != found.p[1]


def test_p_of_drawn_splits_is_never_zero():
    one, two = np.full((30, 1), 0.9), np.full((30, 1), 0.1)
    assert permutation_test(one, two, 999, 1).p[0] == 1 / 1000


def test_swapping_the_groups_turns_the_sign_and_nothing_else():
    print("seed", SEED)
    rng = np.random.default_rng(SEED)
    one, two = (rng.random((8, 4)) < 0.5) * 1.0, (rng.random((11, 4)) < 0.5) * 1.0
    there, back = permutation_test(one, two, 1, 1), permutation_test(two, one, 1, 1)
    assert (there.difference == -back.difference).all()
    assert there.p == pytest.approx(back.p, rel=1e-12)


def test_each_outcome_is_tested_as_if_alone():
    print("seed", SEED)
    rng = np.random.default_rng(SEED)
    one, two = rng.random((40, 5)), rng.random((40, 5))
    one[:, 0], two[:, 0] = one[:, 0].round(), two[:, 0].round()
    together = permutation_test(one, two, 500, 3)
    for column in range(5):
        alone = permutation_test(one[:, [column]], two[:, [column]], 500, 3)
        assert alone.p[0] == pytest.approx(together.p[column])


def test_nothing_that_differs_has_a_p_of_one():
    assert permutation_test(np.ones((3, 1)), np.ones((4, 1)), 9, 1).p[0] == 1
    assert permutation_test(np.full((30, 1), 0.3), np.full((30, 1), 0.3), 99, 1).p[0] == 1


def test_under_the_null_p_is_at_or_below_a_level_no_more_often_than_that():
    print("seed", SEED)
    rng = np.random.default_rng(SEED)
    drawn = rng.random((2000, 25, 2))
    p = np.array([permutation_test(d[:, :1], d[:, 1:], 199, i).p[0] for i, d in enumerate(drawn)])
    for level in (0.05, 0.2, 0.5):
        assert (p <= level).mean() == pytest.approx(level, abs=4 * (level / 2000) ** 0.5)


def test_bad_input_is_refused():
    with pytest.raises(ValueError, match="empty"):
        permutation_test(np.empty((0, 1)), np.ones((2, 1)), 9, 1)
    with pytest.raises(ValueError, match="outcomes"):
        permutation_test(np.ones(3), np.ones(3), 9, 1)
    with pytest.raises(ValueError, match="finite"):
        permutation_test(np.array([[np.nan]]), np.ones((2, 1)), 9, 1)


def test_blocks_do_not_change_an_exact_answer(monkeypatch):
    print("seed", SEED)
    rng = np.random.default_rng(SEED)
    one, two = rng.random((6, 2)), rng.random((6, 2))
    whole = permutation_test(one, two, 1, 1).p
    monkeypatch.setattr(permutation, "BLOCK", 7)
    assert (permutation_test(one, two, 1, 1).p == whole).all()


def test_permutation_p_counts_the_outcome_seen():
    null = np.arange(-9.0, 10.0)
    assert permutation.permutation_p(9.0, null) == 3 / 20
    assert permutation.permutation_p(-10.0, null) == 1 / 20
    assert permutation.permutation_p(0.0, null) == 1
