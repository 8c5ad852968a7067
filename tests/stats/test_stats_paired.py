from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from plumbline.probes.stats import tests as paired
from plumbline.probes.stats.tests import sign_flip_p

# Darwin's maize, eighths of an inch: crossed minus self-fertilised (Fisher 1935, section 17)
MAIZE = [49, -67, 8, 16, 6, 23, 28, 41, 14, 29, 56, 24, 75, 60, -48]


def test_fishers_maize_has_fishers_p(monkeypatch):
    """Section 21: 863 of the 32,768 patterns sum to 314 or more; so many again to -314 or less."""
    monkeypatch.setattr(paired, "EXACT_PAIRS", 15)
    (p,) = sign_flip_p(np.array(MAIZE, dtype=float)[:, None], 1, 1)
    assert p * 2**15 == pytest.approx(2 * 863)


def test_drawn_patterns_come_near_all_patterns():
    (p,) = sign_flip_p(np.array(MAIZE, dtype=float)[:, None], 20_000, 5)
    assert p == pytest.approx(2 * 863 / 2**15, abs=4 * (0.053 * 0.947 / 20_000) ** 0.5)


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
