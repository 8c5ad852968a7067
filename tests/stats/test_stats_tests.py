"""Permutation tests of groups, names, pairs and classifiers."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations
from math import comb

import numpy as np
import pytest
from scipy.stats import fisher_exact, hypergeom
from scipy.stats import permutation_test as scipy_permutation_test

from plumbline.probes.stats import tests as permutation
from plumbline.probes.stats.classification import cells, metrics
from plumbline.probes.stats.tests import (
    chance_p,
    dealt,
    fisher_p,
    of_members,
    permutation_test,
    permuted_sums_p,
    tail_of_sum,
    two_tailed,
)

SEED = 2718


def binary(ones, size):
    return (np.arange(size) < ones).astype(float)[:, None]


def test_permutation_test_least_p():
    few = permutation_test(binary(2, 2), binary(0, 2), 1, 1)  # 1 of 2 splits of 6 each way
    assert few.least_p[0] == few.p[0] == pytest.approx(1 / 3)
    rng = np.random.default_rng(SEED)
    one, two = rng.random((3, 1)), rng.random((3, 1))
    assert permutation_test(one, two, 1, 1).least_p[0] == pytest.approx(2 / 20)
    drawn = permutation_test(rng.random((30, 1)), rng.random((30, 1)), 99, 1)
    assert drawn.least_p[0] == 1 / 100


def test_permutation_test_of_equal_groups_is_fishers_exact_test():
    rng = np.random.default_rng(SEED)
    for _ in range(40):
        n = int(rng.integers(1, 60))
        one, two = rng.integers(0, n + 1, 2)
        p = permutation_test(binary(one, n), binary(two, n), 1, 1).p[0]
        assert p == pytest.approx(fisher_exact([[one, n - one], [two, n - two]]).pvalue), (one, two)


def test_permutation_test_of_groups_of_two_sizes_by_enumeration():
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


def test_permutation_test_published_example():
    # Good's cell cultures with and without vitamin E: 2 of 20 splits are as far apart
    one, two = np.array([[121.0, 118, 110]]).T, np.array([[34.0, 22, 12]]).T
    found = permutation_test(one, two, 1, 1)
    assert found.exact[0]
    assert found.p[0] == pytest.approx(2 / 20)


def test_permutation_test_of_real_values_agrees_with_scipy():
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


def test_permutation_test_drawn_is_near_the_exact_p_and_reproducible():
    one, two = binary(30, 100), binary(15, 100)
    half = np.concatenate([one, one / 2], axis=1), np.concatenate([two, two / 2], axis=1)
    found = permutation_test(*half, 20_000, SEED)
    assert found.exact.tolist() == [True, False]
    # halved values have the same p; 4 standard errors of 20,000 draws
    assert found.p[1] == pytest.approx(found.p[0], abs=4 * (0.0171 * 0.983 / 20_000) ** 0.5)
    assert permutation_test(*half, 20_000, SEED).p[1] == found.p[1]
    assert permutation_test(*half, 20_000, SEED + 1).p[1] != found.p[1]
    apart = permutation_test(np.full((30, 1), 0.9), np.full((30, 1), 0.1), 999, 1)
    assert apart.p[0] == 1 / 1000  # never 0


def test_permutation_test_outcomes_are_tested_alone():
    rng = np.random.default_rng(SEED)
    one, two = rng.random((40, 5)), rng.random((40, 5))
    one[:, 0], two[:, 0] = one[:, 0].round(), two[:, 0].round()
    together = permutation_test(one, two, 500, 3)
    for column in range(5):
        alone = permutation_test(one[:, [column]], two[:, [column]], 500, 3)
        assert alone.p[0] == pytest.approx(together.p[column])


def test_permutation_test_without_differences_is_one():
    assert permutation_test(np.ones((3, 1)), np.ones((4, 1)), 9, 1).p[0] == 1
    assert permutation_test(np.full((30, 1), 0.3), np.full((30, 1), 0.3), 99, 1).p[0] == 1


@pytest.mark.parametrize(
    ("one", "two"),
    [
        (np.empty((0, 1)), np.ones((2, 1))),
        (np.ones(3), np.ones(3)),
        (np.array([[np.nan]]), np.ones((2, 1))),
    ],
)
def test_permutation_test_refuses_bad_input(one, two):
    with pytest.raises(ValueError, match=r"empty|outcomes|finite"):
        permutation_test(one, two, 9, 1)


def test_permutation_p_counts_the_outcome_seen():
    null = np.arange(-9.0, 10.0)
    assert permutation.permutation_p(9.0, null) == 3 / 20
    assert permutation.permutation_p(-10.0, null) == 1 / 20
    assert permutation.permutation_p(0.0, null) == 1
    seen, draws = np.array([[1.0], [-1.0]]), np.array([[[-1.0, 0.5, 0.0, 2.0]]]).repeat(2, axis=0)
    assert permutation.permutation_p(seen, draws).tolist() == [[3 / 5], [3 / 5]]


def test_permutation_p_is_tolerant_of_rounding():
    small = np.array([1e-10, -1e-10, 0.0])
    assert permutation.permutation_p(2e-10, small) == 1
    assert permutation.permutation_p(2e-10, small, relative=True) == 1 / 4
    assert permutation.permutation_p(1e-10 * (1 + 1e-12), small, relative=True) == 3 / 4


def test_possible_p_is_null_where_no_outcome_would_be_significant():
    null = -np.arange(1.0, 40)  # beyond all of 39 but itself p is 2 / 40
    found = permutation.possible_p(np.array([5.0, -50.0]), np.stack([null, null]))
    assert found.tolist() == [36 / 40, 1 / 40]
    assert np.isnan(permutation.possible_p(5.0, null[:38]))
    assert permutation.possible_p(50.0, null[:38]) == 1 / 39


SEED_SUMS = 99


def enumerated(times, seen, size):
    """Return the share of all choices of ``size`` units at least as far from the mean."""
    units = [j for j, number in enumerate(times) for _ in range(number)]
    sums = [sum(chosen) for chosen in combinations(units, size)]
    middle = size * sum(units) / len(units)
    return sum(abs(s - middle) >= abs(seen - middle) - 1e-9 for s in sums) / len(sums)


def test_permuted_sums_p_by_enumeration():
    for times, size in (([4, 2, 1], 3), ([3, 0, 2, 3], 4), ([1, 2, 3, 4], 2)):
        units = sum(times)
        total = sum(j * number for j, number in enumerate(times))
        for seen in range(min(total, 3 * size) + 1):
            exact = enumerated(times, seen, size)
            p = permuted_sums_p(
                np.array([[times]]),
                np.array([[seen, total - seen]]),
                np.array([[size, units - size]]),
                20_000,
                SEED_SUMS,
            )
            error = 5 * (exact * (1 - exact) / 20_000) ** 0.5 + 1e-4
            assert p[0] == pytest.approx([exact, exact], abs=error), (times, size, seen)


def test_permuted_sums_p_of_one_model_is_fishers():
    times = np.array([[[155, 45]]])
    p = permuted_sums_p(times, np.array([[30, 15]]), np.array([[100, 100]]), 999, SEED_SUMS)
    assert p[0] == pytest.approx([0.017149, 0.017149], abs=5e-7)
    assert p == pytest.approx(fisher_p(np.array([[30, 15]]), np.array([100, 100])), rel=1e-12)


def test_permuted_sums_p_within_strata_by_enumeration():
    short, long = [1, 1, 0, 0, 0], [1, 1, 1, 0]  # who has the word, by length of the list
    sums = [a + sum(b) for a in short for b in combinations(long, 3)]  # one woman, and three
    sizes = np.array([[4, 1], [1, 3]])
    for seen in range(2, 5):
        exact = sum(sums.count(s) <= sums.count(seen) for s in sums) / len(sums)
        p = permuted_sums_p(np.array([[[3, 2], [1, 3]]]), np.array([[5 - seen, seen]]), sizes, 9, 1)
        assert p[0] == pytest.approx([exact, exact], rel=1e-12)
        # each also has the list of another model: what is drawn is as far from the mean
        far = [abs(s - np.mean(sums)) >= abs(seen - np.mean(sums)) - 1e-9 for s in sums]
        two = np.array([[[3, 0, 2], [1, 0, 3]]]), 2 * np.array([[5 - seen, seen]])
        p = permuted_sums_p(*two, sizes, 20_000, SEED_SUMS)
        assert p[0] == pytest.approx([np.mean(far)] * 2, abs=0.02)


def test_permuted_sums_p_can_be_below_one_in_the_number_of_permutations():
    times = np.array([[[50, 0, 50]]])
    p = permuted_sums_p(times, np.array([[100, 0]]), np.array([[50, 50]]), 999, SEED_SUMS)
    # of all halves of 100 units, two are as extreme
    assert p[0] == pytest.approx([2 / comb(100, 50)] * 2, rel=0.1)


@pytest.mark.parametrize(
    ("ones", "size", "least"), [(400, 10_000, 150), (20_000, 10_000, 4300), (5, 9000, 4)]
)
def test_tail_of_sum_agrees_with_hypergeometric(ones, size, least):
    exact = hypergeom.sf(least - 1, 50_000, ones, size)
    times = np.array([[50_000 - ones, ones]]), np.array([size])
    for value in (1, 2):  # sums of even values are even
        found = tail_of_sum(*times, np.array([0, value]), value * least)
        assert found == pytest.approx(exact, rel=0.02)
    assert tail_of_sum(*times, np.array([0, 1]), ones + 1) == 0


def test_tail_of_sum_two_strata_by_enumeration():
    times, sizes = np.array([[6, 3, 3, 2], [5, 4, 2, 3]]), (5, 4)
    strata = [
        [sum(chosen) for chosen in combinations(np.repeat(range(4), row), size)]
        for row, size in zip(times, sizes, strict=True)
    ]
    sums, values = np.add.outer(*strata), np.arange(4)
    for least, sign in ((16, 1), (18, 1), (20, 1), (-1, -1)):
        found = tail_of_sum(times, np.array(sizes), sign * values, least)
        assert found == pytest.approx((sign * sums >= least).mean(), rel=0.15)


def test_permuted_sums_p_of_one_outcome_is_nan():
    for times, sums in (([0, 0, 7], [8, 6]), ([0, 7], [4, 3])):
        given = np.array([[times]]), np.array([sums]), np.array([[4, 3]])
        assert np.isnan(permuted_sums_p(*given, 999, SEED_SUMS)).all()


# Darwin's maize, eighths of an inch: crossed minus self-fertilised (Fisher 1935, section 17)


TRUE = np.array([True] * 3 + [False] * 4)
RUNS = np.array([[1, 1, 0, 0, 0, 1, 0], [1, 1, 1, 0, 0, 0, 0]], dtype=bool)


def two_sided(values, seen):
    values = np.array(values)
    return np.minimum(
        1, 2 * np.minimum(*((s * values >= s * seen - 1e-9).mean(0) for s in (1, -1)))
    )


def means(true, runs):
    return metrics(cells(true, runs))[:, 0].mean(axis=0)


def membership_p(true, runs, member, draws, seed, clusters=None):
    return two_tailed(of_members(true, runs, dealt(member, true, draws, seed, clusters)))


def test_chance_p_by_enumeration():
    every = []
    for places in combinations(range(7), 3):
        classes = np.isin(np.arange(7), places)
        every.append(means(classes, RUNS))
    wanted = two_sided(every, means(TRUE, RUNS))
    assert chance_p(TRUE, RUNS, 19999, 1) == pytest.approx(wanted, abs=0.02)


def test_of_members_by_enumeration():
    member = np.array([True, True, False, True, False, False, False])
    every = []
    for some in combinations(range(3), 2):
        for other in range(3, 7):
            own = np.isin(np.arange(7), [*some, other])
            every.append(means(TRUE[own], RUNS[:, own]))
    wanted = two_sided(every, means(TRUE[member], RUNS[:, member]))
    assert membership_p(TRUE, RUNS, member, 19999, 1) == pytest.approx(wanted, abs=0.02)


def test_of_members_of_a_group_with_other_shares_of_the_classes():
    # right on all positive texts and on no other: at positive texts alone accuracy is 1
    true = np.array([True] * 20 + [False] * 20)
    runs = np.ones((1, 40), dtype=bool)
    member = np.arange(40) < 15
    assert membership_p(true, runs, member, 199, 1)[0] == 1


def test_chance_p_of_a_good_and_of_a_constant_classifier():
    true = np.array([True, False] * 15)
    assert chance_p(true, true[None], 999, 1)[:3] == pytest.approx([0.002] * 3, abs=1e-9)
    assert chance_p(true, np.zeros((1, 30), dtype=bool), 999, 1).tolist() == [1] * 6


def test_dealt_permutes_clusters_whole():
    # twice every text: with clusters p is that of the single ones, without it is smaller
    true, runs, member = (
        np.repeat(x, 2, axis=-1) for x in (TRUE, TRUE[None], np.arange(7) % 2 > 0)
    )
    clusters = np.arange(7).repeat(2)
    single = chance_p(TRUE, TRUE[None], 4999, 1)
    np.testing.assert_allclose(chance_p(true, runs, 4999, 1, clusters), single)
    assert chance_p(true, runs, 4999, 1)[0] < single[0]
    whole = membership_p(true, runs, member, 999, 1, clusters)
    np.testing.assert_allclose(whole, membership_p(TRUE, TRUE[None], np.arange(7) % 2 > 0, 999, 1))


def test_dealt_refuses_clusters_of_two_classes():
    with pytest.raises(ValueError, match="of one class"):
        chance_p(TRUE, RUNS, 99, 1, np.zeros(7, dtype=np.int64))
