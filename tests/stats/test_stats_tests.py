"""Permutation tests of groups, names, pairs and classifiers."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations, product
from math import comb

import numpy as np
import pytest
from scipy.stats import fisher_exact
from scipy.stats import permutation_test as scipy_permutation_test

from plumbline.probes.stats import tests as permutation
from plumbline.probes.stats.bootstrap import interval
from plumbline.probes.stats.classification import cells, metrics
from plumbline.probes.stats.tests import (
    chance_p,
    critical,
    critical_at,
    dealt,
    farthest,
    fisher_p,
    of_members,
    permutation_test,
    permuted_sums_p,
    sign_flip_p,
    two_tailed,
)

SEED = 2718


def binary(ones, size):
    return (np.arange(size) < ones).astype(float)[:, None]


@pytest.mark.parametrize("kind", ["counts", "parts", "drawn"])
@pytest.mark.slow
def test_a_difference_is_found_from_the_critical_one_on(kind):
    rng = np.random.default_rng(SEED)
    for _ in range(20):
        n, m = (6, 5) if kind != "drawn" else (15, 14)
        values = rng.integers(0, 2, (n + m, 1)) if kind == "counts" else rng.random((n + m, 1))
        found = [
            permutation_test(*np.split(rng.permutation(values), [n]), 999, 1) for _ in range(60)
        ]
        reach = {float(one.critical[0]) for one in found}
        # of counts half a unit below the least difference that is found
        least = found[0].critical[0] + (kind == "counts") * (1 / n + 1 / m) / 2
        if kind != "drawn":  # it hangs on the values, not on how they are dealt out
            assert len({round(one, 9) for one in reach}) == 1
        for one in found:
            if kind != "drawn" or abs(abs(one.difference[0]) / least - 1) > 0.25:
                assert (one.p[0] <= 0.05) == (abs(one.difference[0]) >= least - 1e-9)


def test_critical_distances_are_the_quantiles_of_the_permutations_themselves():
    # 999 drawn distances, 1 to 999: beyond all but s - 1 of them p is s / 1000 or less
    null = np.random.default_rng(5).permutation(np.arange(1.0, 1000) * np.resize([1, -1], 999))
    far = farthest(null[:, None])
    assert critical_at(far, np.array([0.05]), 999) == critical(null[:, None]) == [950.5]
    for steps, distance in ((1, 999.0), (2, 998.5), (17, 983.5)):
        level = np.array([(steps - 1 / 3) / 1000])  # as adjusted() tells it of drawn p
        assert critical_at(far, level, 999) == [distance]
        for seen, found in ((distance + 0.1, True), (distance - 1.1, False)):
            p = (1 + (np.abs(null) >= seen).sum()) / 1000
            assert (p <= steps / 1000) == found
    # of all 20 there are, each .05: one is at .05, and no level below is reached
    every = farthest(np.arange(1.0, 21)[:, None], exact=True)
    assert critical_at(every, np.array([0.05]), 20, exact=True) == [19.5]
    assert critical_at(every, np.array([0.04]), 20, exact=True) == [np.inf]


def test_as_far_as_each_other_are_found_together_at_any_level():
    # 100 outcomes: 1, 1, 2, 2, ... 50, 50; of the three farthest two are found
    far = farthest(np.repeat(np.arange(1.0, 51), 2)[:, None], exact=True)
    for level, distance in ((0.05, 48.5), (0.04, 48.5), (0.03, 49.5), (0.02, 49.5), (0.01, np.inf)):
        assert critical_at(far, np.array([level]), 100, exact=True) == [distance]


def test_critical_distances_of_groups_at_a_lower_level_by_enumeration():
    values = np.random.default_rng(SEED).random((11, 2))
    values[:, 1] = 0.0  # nothing to tell apart
    found = permutation_test(values[:6], values[6:], 1, 1)
    total = values[:, 0].sum()
    splits = [values[list(s), 0].sum() for s in combinations(range(11), 6)]
    far = sorted((abs(x / 6 - (total - x) / 5) for x in splits), reverse=True)
    assert len(far) == 462 == found.splits
    for level in (0.05, 0.02, 0.005):
        reach = found.critical_at(np.array([level, level]))
        tail = int(level * 462)
        assert reach[0] == pytest.approx((far[tail - 1] + far[tail]) / 2)
        assert np.isnan(reach[1])


def test_too_few_units_find_nothing():
    assert permutation_test(binary(2, 2), binary(0, 2), 1, 1).critical[0] == np.inf


def test_equally_large_groups_are_fishers_exact_test():
    rng = np.random.default_rng(SEED)
    for _ in range(100):
        n = int(rng.integers(1, 60))
        one, two = rng.integers(0, n + 1, 2)
        p = permutation_test(binary(one, n), binary(two, n), 1, 1).p[0]
        assert p == pytest.approx(fisher_exact([[one, n - one], [two, n - two]]).pvalue), (one, two)


def test_groups_of_two_sizes_by_enumeration():
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
    rng = np.random.default_rng(SEED)
    one, two = (rng.random((8, 4)) < 0.5) * 1.0, (rng.random((11, 4)) < 0.5) * 1.0
    there, back = permutation_test(one, two, 1, 1), permutation_test(two, one, 1, 1)
    assert (there.difference == -back.difference).all()
    assert there.p == pytest.approx(back.p, rel=1e-12)


def test_each_outcome_is_tested_as_if_alone():
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


@pytest.mark.slow
def test_under_the_null_p_is_at_or_below_a_level_no_more_often_than_that():
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
    seen, draws = np.array([[1.0], [-1.0]]), np.array([[[-1.0, 0.5, 0.0, 2.0]]]).repeat(2, axis=0)
    assert permutation.permutation_p(seen, draws).tolist() == [[3 / 5], [3 / 5]]


def test_draws_as_far_up_to_rounding_are_as_far():
    small = np.array([1e-10, -1e-10, 0.0])
    assert permutation.permutation_p(2e-10, small) == 1
    assert permutation.permutation_p(2e-10, small, relative=True) == 1 / 4
    assert permutation.permutation_p(1e-10 * (1 + 1e-12), small, relative=True) == 3 / 4


def test_there_is_a_test_where_the_farthest_outcome_of_either_side_would_be_found():
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


def test_p_is_about_that_of_all_relabellings():
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


def test_with_one_model_it_is_the_exact_test():
    times = np.array([[[155, 45]]])
    p = permuted_sums_p(times, np.array([[30, 15]]), np.array([[100, 100]]), 999, SEED_SUMS)
    assert p[0] == pytest.approx([0.017149, 0.017149], abs=5e-7)
    assert p == pytest.approx(fisher_p(np.array([[30, 15]]), np.array([100, 100])), rel=1e-12)


def test_p_within_strata_is_that_of_all_relabellings_within_them():
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


def test_small_p_of_many_strata_are_exact_and_without_both_groups_in_one_there_are_none():
    sizes = np.array([[700, 200], [500, 300], [90, 4]])
    totals, ones = sizes.sum(axis=1), np.array([150, 120, 7])
    ways = np.ones(1, dtype=object)
    for n, m, k in zip(totals.tolist(), ones.tolist(), sizes[:, 1].tolist(), strict=True):
        own = [comb(m, x) * comb(n - m, k - x) for x in range(min(m, k) + 1)]
        ways = np.convolve(ways, np.array(own, dtype=object))
    times = np.stack([totals - ones, ones], axis=1)[None]
    for seen in (78, 140):
        exact = Fraction(int(ways[ways <= ways[seen]].sum()), int(ways.sum()))
        sums = np.array([[ones.sum() - seen, seen]])
        p = permuted_sums_p(times, sums, sizes, 9, 1)
        assert p[0] == pytest.approx([float(exact)] * 2, rel=1e-6)
    assert p[0, 0] < 1e-15
    apart = np.array([[[5, 5], [8, 2]]]), np.array([[5, 2]]), np.array([[10, 0], [0, 10]])
    assert np.isnan(permuted_sums_p(*apart, 9, 1)).all()


def test_p_is_never_below_one_in_the_number_drawn_and_one():
    times = np.array([[[50, 0, 50]]])
    p = permuted_sums_p(times, np.array([[100, 0]]), np.array([[50, 50]]), 999, SEED_SUMS)
    assert 1 / comb(100, 50) < p[0, 0] == p[0, 1] == 1 / 1000


def test_there_is_no_p_where_nothing_can_come_out_otherwise():
    for times, sums in (([0, 0, 7], [8, 6]), ([0, 7], [4, 3])):
        given = np.array([[times]]), np.array([sums]), np.array([[4, 3]])
        assert np.isnan(permuted_sums_p(*given, 999, SEED_SUMS)).all()


@pytest.mark.slow
def test_under_the_null_it_rejects_at_its_level():
    rng = np.random.default_rng(SEED_SUMS)
    units = np.repeat([0, 1, 2, 3], [60, 20, 10, 10])
    times, sizes = np.bincount(units)[None], np.array([[40, 60]])
    sums = []
    for _ in range(1000):
        chosen = rng.permutation(units)
        sums.append([chosen[:40].sum(), chosen[40:].sum()])
    p = permuted_sums_p(np.tile(times, (1000, 1, 1)), np.array(sums), sizes, 999, SEED_SUMS)
    assert (p[:, 0] <= 0.05).mean() < 0.05 + 4 * (0.05 * 0.95 / 1000) ** 0.5
    assert (p[:, 0] <= 0.5).mean() > 0.4


# Darwin's maize, eighths of an inch: crossed minus self-fertilised (Fisher 1935, section 17)
MAIZE = [49, -67, 8, 16, 6, 23, 28, 41, 14, 29, 56, 24, 75, 60, -48]


def test_fishers_maize_has_fishers_p_and_drawn_patterns_come_near_it(monkeypatch):
    """Section 21: 863 of the 32,768 patterns sum to 314 or more; so many again to -314 or less."""
    maize = np.array(MAIZE, dtype=float)[:, None]
    (p,) = sign_flip_p(maize, 20_000, 5)
    assert p == pytest.approx(2 * 863 / 2**15, abs=4 * (0.053 * 0.947 / 20_000) ** 0.5)
    monkeypatch.setattr(permutation, "EXACT_PAIRS", 15)
    (p,) = sign_flip_p(maize, 1, 1)
    assert p * 2**15 == pytest.approx(2 * 863)


def test_all_patterns_are_counted_one_by_one():
    rng = np.random.default_rng(3)
    values = rng.normal(size=(9, 4)).round(2)
    signs = np.array(list(product((1, -1), repeat=9)))
    sums = np.abs(signs @ values)
    expected = (sums >= np.abs(values.sum(axis=0)) - 1e-9).mean(axis=0)
    assert sign_flip_p(values, 1, 1) == pytest.approx(expected)


def test_a_pair_without_an_outcome_or_a_difference_does_not_count():
    whole = np.array([[1.0, 2.0], [2.0, 1.0], [3.0, np.nan], [0.0, 0.0]])
    one, two = sign_flip_p(whole, 1, 1)
    assert (one, two) == (0.25, 0.5)
    assert sign_flip_p(np.zeros((3, 2)), 9, 1).tolist() == [1, 1]


def test_p_is_never_zero_and_the_same_for_mirrored_pairs():
    values = np.full((30, 1), 2.5)
    assert sign_flip_p(values, 99, 1) == sign_flip_p(-values, 99, 1) == [0.01]


def test_p_is_uniform_where_signs_are_random():
    rng = np.random.default_rng(11)
    print("seed 11")
    p = sign_flip_p(rng.standard_t(3, (25, 2000)), 999, 2)
    for level in (0.05, 0.2, 0.5):
        assert abs((p <= level).mean() - level) < 4 * (level * (1 - level) / 2000) ** 0.5


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


def test_chance_is_that_of_all_orders_of_the_classes():
    every = []
    for places in combinations(range(7), 3):
        classes = np.isin(np.arange(7), places)
        every.append(means(classes, RUNS))
    wanted = two_sided(every, means(TRUE, RUNS))
    assert chance_p(TRUE, RUNS, 19999, 1) == pytest.approx(wanted, abs=0.02)


def test_membership_is_that_of_all_groups_with_the_same_classes():
    member = np.array([True, True, False, True, False, False, False])
    every = []
    for some in combinations(range(3), 2):
        for other in range(3, 7):
            own = np.isin(np.arange(7), [*some, other])
            every.append(means(TRUE[own], RUNS[:, own]))
    wanted = two_sided(every, means(TRUE[member], RUNS[:, member]))
    assert membership_p(TRUE, RUNS, member, 19999, 1) == pytest.approx(wanted, abs=0.02)


def test_a_group_with_other_shares_of_the_classes_is_no_other_group():
    # right on all positive texts and on no other: at positive texts alone accuracy is 1
    true = np.array([True] * 20 + [False] * 20)
    runs = np.ones((1, 40), dtype=bool)
    member = np.arange(40) < 15
    assert membership_p(true, runs, member, 199, 1)[0] == 1


def test_a_good_classifier_beats_chance_and_a_constant_one_does_not():
    true = np.array([True, False] * 15)
    assert chance_p(true, true[None], 999, 1)[:3] == pytest.approx([0.002] * 3, abs=1e-9)
    assert chance_p(true, np.zeros((1, 30), dtype=bool), 999, 1).tolist() == [1] * 6


def test_groups_that_are_no_others_are_found_at_the_nominal_rate():
    print("seed 17")
    rng = np.random.default_rng(17)
    found = np.zeros(6)
    for seed in range(300):
        true = rng.random(90) < 0.4
        runs = true ^ (rng.random((2, 90)) < rng.random(90) * 0.5)
        member = rng.random(90) < 0.3
        found += membership_p(true, runs, member, 199, seed) <= 0.05
    assert (found / 300 <= 0.09).all()
    assert (found[:3] / 300 >= 0.01).all()


def test_clusters_are_permuted_whole():
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


def test_clusters_of_two_classes_are_refused():
    with pytest.raises(ValueError, match="of one class"):
        chance_p(TRUE, RUNS, 99, 1, np.zeros(7, dtype=np.int64))


def test_expanded_intervals_of_means_cover_at_their_rate_with_six_clusters():
    seed = 3
    print("seed", seed)
    rng = np.random.default_rng(seed)
    plain = expanded = 0
    for _ in range(400):
        values = rng.normal(0, 1, 6)
        weights = rng.poisson(1, (6, 800))
        with np.errstate(invalid="ignore"):
            draws = values @ weights / weights.sum(axis=0)
        low, high = interval(draws, 6, 0.95)
        expanded += low <= 0 <= high
        low, high = np.nanquantile(draws, [0.025, 0.975])
        plain += low <= 0 <= high
    print(plain / 400, expanded / 400)
    assert plain / 400 < 0.93
    assert 0.92 < expanded / 400 < 0.98
    assert np.isnan(interval(draws, 1, 0.95)).all()


@pytest.mark.parametrize(
    ("ones", "n", "m"), [(20, 8, 52), (25, 9, 71), (25, 25, 25), (7, 30, 4), (3, 2, 40)]
)
def test_beyond_the_critical_distance_of_counts_fishers_p_is_low_enough(ones, n, m):
    expected = ones * n / (n + m)
    below, above = permutation.fisher_critical(ones, n, m)
    for inside in range(max(0, ones - m), min(ones, n) + 1):
        rest = [ones - inside, m - (ones - inside)]
        found = fisher_exact([[inside, n - inside], rest])[1] <= 0.05
        far = expected - inside if inside < expected else inside - expected
        assert found == (far > (below if inside < expected else above)), inside
