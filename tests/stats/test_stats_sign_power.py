"""Exact power of McNemar's test, and what it finds."""

from __future__ import annotations

from functools import cache
from itertools import product
from math import comb, inf

import numpy as np
import pytest
from scipy.stats import binomtest, multinomial

from plumbline.probes.stats.classification import sign_p
from plumbline.probes.stats.intervals import sign_detectable, sign_power


@pytest.mark.parametrize(
    ("apart", "differing", "n"), [(0.3, 0.5, 14), (0.0, 0.6, 20), (0.2, 0.2, 30)]
)
def test_the_power_is_the_sum_over_all_outcomes_that_are_found(apart, differing, n):
    one = (differing + apart) / 2
    chances = [one, differing - one, 1 - differing]
    power = sum(
        multinomial.pmf([b, c, n - b - c], n, chances)
        for b, c in product(range(n + 1), repeat=2)
        if 0 < b + c <= n and binomtest(b, b + c).pvalue <= 0.05 * (1 + 1e-9)
    )
    assert sign_power(apart, differing, n) == pytest.approx(power, abs=1e-9)


def test_of_many_pairs_it_is_that_of_the_normal_approximation():
    # Miettinen (1968): 2.8 standard errors are found four times of five
    found = sign_detectable(1000, 1000, 10_000)
    assert found == pytest.approx(2.801585 * 2000**0.5 / 10_000, rel=0.02)


def test_where_all_pairs_differ_one_way_six_are_needed():
    # found where six or more of n differ: smallest probability with which that is .8 likely
    def six(p, n=60):
        return 1 - sum(comb(n, k) * p**k * (1 - p) ** (n - k) for k in range(6))

    least = next(p for p in np.linspace(0.05, 0.3, 2001) if six(p) >= 0.8)
    assert sign_detectable(0, 0, 60) == pytest.approx(least, abs=0.002)
    assert sign_detectable(3, 2, 5) == inf
    assert sign_detectable(3, 2, 60, level=0.01) > sign_detectable(3, 2, 60)


def test_what_is_told_as_detectable_is_found_four_times_of_five():
    print("seed 11")
    rng = np.random.default_rng(11)
    told = cache(sign_detectable)
    for product_, aparts in ((0.1**2, (0.17, 0.19, 0.21)), (0.2**2, (0.22, 0.25, 0.28))):
        near = []
        for apart in aparts:
            differing = (apart**2 + 4 * product_) ** 0.5
            chances = [(differing + apart) / 2, (differing - apart) / 2, 1 - differing]
            for one, other, _ in rng.multinomial(60, chances, 400).tolist():
                if 0.9 < apart / told(one, other, 60) < 1.1:
                    near.append(sign_p(one, other) <= 0.05)
        assert len(near) > 300
        assert 0.75 <= np.mean(near) <= 0.85
