from math import exp

import numpy as np
import pytest
from scipy.special import ndtri
from scipy.stats import kstest, poisson, t

from plumbline.probes.stats import bootstrap

UNITS = bootstrap.keys(f"Name {i}" for i in range(2000))


def test_keys_are_those_of_the_published_hash():
    # BLAKE2b of 8 bytes, little-endian: as `b2sum -l 64` prints it, byte for byte
    assert int(bootstrap.keys([""])[0]).to_bytes(8, "little").hex() == "e4a6a0577479b2b4"
    assert len(set(UNITS.tolist())) == 2000


def test_bits_are_those_of_philox_keyed_by_seed_and_unit():
    found = bootstrap.bits(UNITS[:5], 30, 7)
    for row, unit in zip(found, UNITS, strict=False):
        source = np.random.Philox(key=np.array([7, unit], dtype=np.uint64))
        assert np.array_equal(row, source.random_raw(30))


def test_a_unit_has_its_draws_in_any_company_and_order():
    whole = bootstrap.bits(UNITS, 50, 1)
    assert np.array_equal(bootstrap.bits(UNITS[::-7], 50, 1), whole[::-7])
    assert np.array_equal(bootstrap.bits(UNITS[40:41], 50, 1)[0], whole[40])
    assert np.array_equal(bootstrap.bits(UNITS, 20, 1), whole[:, :20])
    assert (bootstrap.bits(UNITS, 50, 2) != whole).all()


def test_weights_are_poisson_and_exponential():
    bits = bootstrap.bits(UNITS, 200, 3)
    drawn = bootstrap.poisson(bits)
    for k in range(5):
        share, n = poisson.pmf(k, 1), drawn.size
        assert (drawn == k).mean() == pytest.approx(share, abs=4 * (share / n) ** 0.5)
    weights = bootstrap.exponential(bits)
    assert np.array_equal(weights, np.rint(weights))
    # steps of 1 / 4096 are seen by no test of 5,000 draws
    assert kstest(weights.ravel()[:5000] / bootstrap.GRAIN, "expon").pvalue > 0.001
    # over units as over replicates
    assert kstest(weights[:, 11] / bootstrap.GRAIN, "expon").pvalue > 0.001


def test_limits_of_poisson_worked_by_hand():
    # exp(-1) of 2^64, and from there on once; 2 exp(-1), and from there on twice
    first, second = int(2**64 * exp(-1)), int(2**64 * 2 * exp(-1))
    edges = np.array([0, first - 4096, first + 4096, second - 4096, second + 4096], dtype=np.uint64)
    assert bootstrap.poisson(edges).tolist() == [0, 0, 1, 1, 2]
    assert bootstrap.poisson(np.array([2**64 - 1], dtype=np.uint64))[0] == 17


def test_limits_are_the_drawn_values_just_outside_the_percentiles_and_nan_is_left_out():
    drawn = np.array([[5.0, np.nan, 1, 3, 2, 4, np.nan], [np.nan] * 7])
    half = bootstrap.percentiles(drawn, 0.5)  # of five values the second and the fourth
    assert (half.low[0], half.high[0]) == (2, 4)
    more = bootstrap.percentiles(drawn, 0.51)
    assert (more.low[0], more.high[0]) == (1, 5)
    assert np.isnan([half.low[1], half.high[1]]).all()


def test_intervals_of_few_clusters_reach_as_far_as_t_does():
    draws = ndtri((np.arange(200_000) + 0.5) / 200_000)  # standard normal, as of many replicates
    low, high = bootstrap.interval(draws, 5, 0.95)
    assert high == pytest.approx((5 / 4) ** 0.5 * t.ppf(0.975, 4), abs=0.005)  # 3.104
    assert low == pytest.approx(-high, abs=1e-6)
