import itertools
from math import comb

import numpy as np
import pytest

from plumbline.probes.stats.tests import fisher_p, permuted_sums_p

SEED = 99


def enumerated(times, seen, size):
    """Return the share of all choices of ``size`` units at least as far from the mean."""
    units = [j for j, number in enumerate(times) for _ in range(number)]
    sums = [sum(chosen) for chosen in itertools.combinations(units, size)]
    middle = size * sum(units) / len(units)
    return sum(abs(s - middle) >= abs(seen - middle) - 1e-9 for s in sums) / len(sums)


def test_p_is_about_that_of_all_relabellings():
    print("seed", SEED)
    for times, size in (([4, 2, 1], 3), ([3, 0, 2, 3], 4), ([1, 2, 3, 4], 2)):
        units = sum(times)
        total = sum(j * number for j, number in enumerate(times))
        for seen in range(min(total, 3 * size) + 1):
            exact = enumerated(times, seen, size)
            p = permuted_sums_p(
                np.array([times]),
                np.array([[seen, total - seen]]),
                np.array([size, units - size]),
                20_000,
                SEED,
            )
            error = 5 * (exact * (1 - exact) / 20_000) ** 0.5 + 1e-4
            assert p[0] == pytest.approx([exact, exact], abs=error), (times, size, seen)


def test_with_one_model_it_is_the_exact_test():
    times = np.array([[155, 45, 0]])  # no name has two lists with the word
    p = permuted_sums_p(times, np.array([[30, 15]]), np.array([100, 100]), 999, SEED)
    assert p[0] == pytest.approx([0.017149, 0.017149], abs=5e-7)
    assert (p == fisher_p(np.array([[30, 15]]), np.array([100, 100]))).all()


def test_p_is_never_below_one_in_the_number_drawn_and_one():
    times = np.array([[50, 0, 50]])
    p = permuted_sums_p(times, np.array([[100, 0]]), np.array([50, 50]), 999, SEED)
    assert 1 / comb(100, 50) < p[0, 0] == p[0, 1] == 1 / 1000


def test_p_is_one_where_nothing_can_come_out_otherwise():
    times = np.array([[0, 0, 7]])
    p = permuted_sums_p(times, np.array([[8, 6]]), np.array([4, 3]), 999, SEED)
    assert (p == 1).all()


def test_under_the_null_it_rejects_at_its_level():
    print("seed", SEED)
    rng = np.random.default_rng(SEED)
    units = np.repeat([0, 1, 2, 3], [60, 20, 10, 10])
    times, sizes = np.bincount(units), np.array([40, 60])
    sums = []
    for _ in range(1000):
        chosen = rng.permutation(units)
        sums.append([chosen[:40].sum(), chosen[40:].sum()])
    p = permuted_sums_p(np.tile(times, (1000, 1)), np.array(sums), sizes, 999, SEED)
    assert (p[:, 0] <= 0.05).mean() < 0.05 + 4 * (0.05 * 0.95 / 1000) ** 0.5
    assert (p[:, 0] <= 0.5).mean() > 0.4
