from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from plumbline.probes.stats.classification import METRICS, cells, metrics
from plumbline.probes.stats.tests import exchange_p, mcnemar


def means(true, runs):
    return metrics(cells(true, runs))[:, 0].mean(axis=0)


def by_hand(true, one, other):
    """Go through all choices of texts, one by one."""
    found = []
    for choice in product([False, True], repeat=len(true)):
        first = np.where(choice, other, one)
        second = np.where(choice, one, other)
        found.append(np.abs(means(true, first) - means(true, second)))
    found = np.array(found)
    return (found >= found[0] - 1e-9).mean(axis=0)


def test_mcnemar_of_nine_texts_against_one():
    one = np.array([True] * 9 + [False] + [True] * 5 + [False] * 5)
    other = np.array([False] * 9 + [True] + [True] * 5 + [False] * 5)
    assert mcnemar(one, other) == pytest.approx(2 * (1 + 10) / 2**10)
    assert mcnemar(other, one) == mcnemar(one, other)
    assert mcnemar(one, one) == 1


def test_few_texts_are_gone_through_as_by_hand():
    print("seed 3")
    rng = np.random.default_rng(3)
    true = np.array([True, True, True, False, False, False, True, False])
    one, other = rng.random((2, 2, 8)) < 0.5
    np.testing.assert_allclose(exchange_p(true, one, other, 99, 1), by_hand(true, one, other))


def test_with_one_run_accuracy_has_mcnemar_s_p():
    print("seed 5")
    rng = np.random.default_rng(5)
    true = rng.random(40) < 0.5
    one = true ^ (rng.random(40) < 0.1)
    other = true ^ (rng.random(40) < 0.2)
    assert 3 <= (one != other).sum() <= 12
    p = exchange_p(true, one[None], other[None], 99, 1)[METRICS.index("accuracy")]
    assert p == pytest.approx(mcnemar(one == true, other == true))


def test_drawn_exchanges_agree_with_all_of_them():
    print("seed 8")
    rng = np.random.default_rng(8)
    true = rng.random(60) < 0.5
    one, other = (true ^ (rng.random((3, 60)) < rate) for rate in (0.25, 0.4))
    p = exchange_p(true, one, other, 9999, 1)[0]
    # the mean difference of a text over runs changes its sign: the exact test by convolution
    sums = {0: 1.0}
    for d in ((one == true).sum(0) - (other == true).sum(0)).tolist():
        step = {}
        for value, chance in sums.items():
            for sign in (-d, d):
                step[value + sign] = step.get(value + sign, 0) + chance / 2
        sums = step
    seen = abs(int(((one == true).sum(0) - (other == true).sum(0)).sum()))
    exact = sum(chance for value, chance in sums.items() if abs(value) >= seen)
    assert p == pytest.approx(exact, abs=0.02)


def test_alike_classifiers_have_p_1():
    true = np.array([True, False] * 10)
    same = np.zeros((2, 20), dtype=bool)
    assert exchange_p(true, same, same, 99, 1).tolist() == [1] * 6


def test_equally_good_classifiers_are_told_apart_at_the_nominal_rate():
    print("seed 13")
    rng = np.random.default_rng(13)
    found = np.zeros(6)
    for seed in range(300):
        true = rng.random(80) < 0.5
        hard = rng.random(80) * 0.6  # texts differ: runs of either classifier err on the same
        one, other = (true ^ (rng.random((3, 80)) < hard) for _ in range(2))
        found += exchange_p(true, one, other, 199, seed) <= 0.05
    assert (found / 300 <= 0.09).all()
    assert (found / 300 >= 0.02).all()


def test_clusters_are_exchanged_whole():
    # two clusters of two texts: only all or none of each changes sides, so p is that of two texts
    true = np.array([True] * 4)
    one, other = true[None], ~true[None]
    assert exchange_p(true, one, other, 99, 1)[0] == pytest.approx(2 / 16)
    clusters = np.array([0, 0, 1, 1])
    assert exchange_p(true, one, other, 99, 1, clusters)[0] == pytest.approx(2 / 4)
