from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from plumbline.probes.stats.classification import cells, metrics
from plumbline.probes.stats.tests import chance_p, membership_p

TRUE = np.array([True] * 3 + [False] * 4)
RUNS = np.array([[1, 1, 0, 0, 0, 1, 0], [1, 1, 1, 0, 0, 0, 0]], dtype=bool)


def two_sided(values, seen):
    values = np.array(values)
    return np.minimum(
        1, 2 * np.minimum(*((s * values >= s * seen - 1e-9).mean(0) for s in (1, -1)))
    )


def test_chance_is_that_of_all_orders_of_the_classes():
    every = []
    for places in combinations(range(7), 3):
        dealt = np.isin(np.arange(7), places)
        every.append(metrics(cells(dealt, RUNS))[:, 0].mean(axis=0))
    seen = metrics(cells(TRUE, RUNS))[:, 0].mean(axis=0)
    assert chance_p(TRUE, RUNS, 19999, 1) == pytest.approx(two_sided(every, seen), abs=0.02)


def test_membership_is_that_of_all_groups_with_the_same_classes():
    member = np.array([True, True, False, True, False, False, False])
    every = []
    for some in combinations(range(3), 2):
        for other in range(3, 7):
            own = np.isin(np.arange(7), [*some, other])
            every.append(metrics(cells(TRUE[own], RUNS[:, own]))[:, 0].mean(axis=0))
    seen = metrics(cells(TRUE[member], RUNS[:, member]))[:, 0].mean(axis=0)
    assert membership_p(TRUE, RUNS, member, 19999, 1) == pytest.approx(
        two_sided(every, seen), abs=0.02
    )


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
