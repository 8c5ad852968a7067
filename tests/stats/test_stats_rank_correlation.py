from math import atanh, isnan, sqrt, tanh

import numpy as np
import pytest
from scipy.stats import spearmanr

from plumbline.probes.stats.intervals import rank_correlations, spearman

SEED = 77


def test_equals_scipy_on_random_data_with_ties():
    print("seed", SEED)
    rng = np.random.default_rng(SEED)
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


def test_bonett_and_wright_are_wider_than_fisher_and_keep_within_one():
    x = np.arange(30.0)
    found = spearman(x, x**3)
    assert found.value == pytest.approx(1)
    assert -1 <= found.low <= found.high <= 1
    turned = spearman(x, -x)
    assert (turned.low, turned.high) == pytest.approx((-found.high, -found.low))


def test_what_does_not_vary_has_no_correlation():
    found = spearman(np.zeros(8), np.arange(8.0))
    assert isnan(found.value)
    assert isnan(found.low)
    assert isnan(found.high)


@pytest.mark.parametrize(("x", "y"), [([1, 2, 3], [1, 2, 3]), ([1, 2, 3, 4], [1, 2, 3, 4, 5])])
def test_too_few_or_unequal_is_refused(x, y):
    with pytest.raises(ValueError, match="same length, at least 4"):
        spearman(np.array(x, dtype=float), np.array(y, dtype=float))


def test_rank_correlations_are_scipys():
    x, y = np.random.default_rng(77).integers(0, 9, (2, 4, 30)).astype(float)
    found = rank_correlations(x, y)
    assert found == pytest.approx([spearmanr(*pair).statistic for pair in zip(x, y, strict=True)])
    assert np.isnan(rank_correlations(np.ones((1, 3)), x[:1, :3])[0])
