"""Closed-form intervals of proportions and rank correlations."""

from math import atanh, sqrt, tanh

import numpy as np
import pytest
from scipy.stats import spearmanr

from plumbline.probes.stats.intervals import (
    clustered,
    newcombe,
    rank_correlations,
    spearman,
    wilson,
)

SEED = 1998


@pytest.mark.parametrize(
    ("hits", "n", "low", "high"),
    [
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0000, 0.1611),
        (1, 29, 0.0061, 0.1718),
    ],
)
def test_newcombe_1998_table_1_method_3(hits, n, low, high):
    found = wilson(hits, n)
    assert found.value == hits / n
    assert found.n == n
    assert (round(found.low, 4), round(found.high, 4)) == (low, high)


def test_trials_that_vary_as_independent_ones_do_have_the_interval_of_independent_ones():
    hits, of = np.array([1.0] * 12 + [0.0] * 28), np.ones(40)
    # spread over 40 clusters has 39 degrees of freedom
    again = np.array(wilson(0.3 * 39, 39)[:3])
    assert [float(x) for x in clustered(hits, of)] == pytest.approx(again)
    # whole clusters that agree count once, and no more than trials there are
    four = clustered(hits * 4, of * 4)
    assert [float(x) for x in four] == pytest.approx(again)
    mixed = clustered(np.full(10, 2.0) + np.arange(10) % 2, np.full(10, 5.0))
    assert [float(x) for x in mixed] == pytest.approx(np.array(wilson(25, 50)[:3]))


@pytest.mark.parametrize("hits", [0.0, 3.0])
def test_where_nothing_varies_there_are_as_many_trials_as_clusters(hits):
    _, low, high = clustered(np.full(9, hits), np.full(9, 3.0))
    assert [low, high] == pytest.approx([*wilson(3 * hits, 9)[1:3]])


def test_all_and_none_mirror_each_other_and_stay_within_0_and_1():
    none, every = wilson(0, 12), wilson(12, 12)
    assert 0 <= none.low < 1e-15
    assert 1 - 1e-15 < every.high <= 1
    assert none.high == pytest.approx(1 - every.low)


@pytest.mark.parametrize(("hits", "n"), [(-1, 5), (6, 5), (0, 0)])
def test_what_is_no_proportion_is_refused(hits, n):
    with pytest.raises(ValueError, match="proportion"):
        wilson(hits, n)


@pytest.mark.parametrize(
    ("first", "second", "low", "high"),
    [
        ((56, 70), (48, 80), 0.0524, 0.3339),
        ((5, 56), (0, 29), -0.0381, 0.1926),
        ((0, 10), (0, 20), -0.1611, 0.2775),
        ((10, 10), (0, 10), 0.6075, 1.0000),
    ],
)
def test_newcombe_1998_differences_table_2_method_10(first, second, low, high):
    found = newcombe((first[0], second[0]), (first[1], second[1]))
    assert found.value == pytest.approx(first[0] / first[1] - second[0] / second[1])
    assert (round(found.low, 4), round(found.high, 4)) == (low, high)


SEED_RANKS = 77


def test_equals_scipy_on_random_data_with_ties():
    rng = np.random.default_rng(SEED_RANKS)
    for _ in range(50):
        n = int(rng.integers(4, 80))
        x = np.append(rng.integers(0, 6, n), [0.0, 9.0])
        y = np.append(x[:-2] + rng.integers(0, 6, n), [3.0, 1.0])
        assert spearman(x, y).value == pytest.approx(spearmanr(x, y).statistic)


def test_interval_worked_by_hand():
    # ranks 1..6 against 2 1 4 3 6 5: sum of squared differences 6, rho = 1 - 6 * 6 / (6 * 35)
    found = spearman(np.array([1.0, 2, 3, 4, 5, 6]), np.array([20.0, 10, 40, 30, 60, 50]))
    rho = 29 / 35
    assert found.value == pytest.approx(rho)
    assert found.n == 6
    # Bonett and Wright: standard error of z is sqrt((1 + rho^2 / 2) / (n - 3))
    half = 1.959963984540054 * sqrt((1 + rho**2 / 2) / 3)
    assert found.low == pytest.approx(tanh(atanh(rho) - half))
    assert found.high == pytest.approx(tanh(atanh(rho) + half))


def test_what_does_not_vary_has_no_correlation():
    found = spearman(np.zeros(8), np.arange(8.0))
    assert np.isnan([found.value, found.low, found.high]).all()


@pytest.mark.parametrize(("x", "y"), [([1, 2, 3], [1, 2, 3]), ([1, 2, 3, 4], [1, 2, 3, 4, 5])])
def test_too_few_or_unequal_is_refused(x, y):
    with pytest.raises(ValueError, match="length"):
        spearman(np.array(x, dtype=float), np.array(y, dtype=float))


def test_rank_correlations_are_scipys():
    x, y = np.random.default_rng(77).integers(0, 9, (2, 4, 30)).astype(float)
    found = rank_correlations(x, y)
    assert found == pytest.approx([spearmanr(*pair).statistic for pair in zip(x, y, strict=True)])
    assert np.isnan(rank_correlations(np.ones((1, 3)), x[:1, :3])[0])


def test_clustered_strata_have_the_mean_of_their_shares():
    rng = np.random.default_rng(SEED)
    strata = np.repeat(np.arange(3), [6, 12, 30])
    trials = rng.integers(1, 10, len(strata))
    hits = rng.binomial(trials, 0.2 * (1 + strata))
    share, low, high = clustered(hits, trials, strata=strata)
    by_hand = [hits[strata == s].sum() / trials[strata == s].sum() for s in range(3)]
    assert share == pytest.approx(np.mean(by_hand))
    assert low < share < high
